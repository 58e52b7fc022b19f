//! T24: the reports of a client about its path are remembered, and affect the next client behind its address.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::client::{ClientConfig, ClientMachine};
use haulier_proto::connection::{Block, CloseCode, Event};
use haulier_proto::credentials::TokenKey;
use haulier_proto::internals::{ArrivalsFrame, Frame};
use haulier_proto::server::{ServerEvent, ServerMachine};
use haulier_proto::{Instant, Machine as _};
use haulier_sim::address;
use haulier_sim::attack::raw::RawClient;

use crate::support::{Keyed, block, client_config, drain, drain_client, ms, secret};
use crate::tokens::{NOW_UNIX, token_client_named, token_server};

const WAY: Duration = Duration::from_millis(10);
const STEP: Duration = Duration::from_millis(1);
const GIGABIT: u64 = 1_000_000_000;

/// The way down, with a queue of no limit.
#[derive(Default)]
struct Down {
    free_at: Instant,
    queue: Vec<(Instant, Vec<u8>)>,
}

impl Down {
    fn arrived(&mut self, now: Instant) -> Vec<Vec<u8>> {
        self.queue.extract_if(.., |(at, _)| *at <= now).map(|(_, datagram)| datagram).collect()
    }
}

/// A server that sends a world to every client, over links of 10 ms each way.
struct Bench {
    server: ServerMachine,
    now: Instant,
    world: Block,
    /// Of the way down, in bit/s.
    rate_bps: u64,
    key: TokenKey,
}

impl Bench {
    fn new(rate_bps: u64) -> Self {
        let (mut config, key) = token_server();
        config.credentials.secret = Some(secret());
        config.connection.max_rate_bps = u64::MAX;
        let server = ServerMachine::new(ms(0), NOW_UNIX, config, [1; 32]).unwrap();
        Self { server, now: ms(0), world: block(1 << 20), rate_bps, key }
    }

    /// Visit `n` of the client with this name, at this address; without a name, with the ticket.
    fn visit(&mut self, n: u8, name: Option<u8>, from: SocketAddr) -> Duration {
        let config = match name {
            Some(name) => token_client_named(&self.key, n, [name; 8], from),
            None => client_config(Keyed::Secret),
        };
        self.fetch(config, from, n)
    }

    fn send(&mut self, down: &mut Down, rate_bps: u64) {
        for (_, datagram) in self.step() {
            let nanos = (datagram.len() as u64 + 28) * 8_000_000_000 / rate_bps;
            down.free_at = self.now.max(down.free_at) + Duration::from_nanos(nanos);
            down.queue.push((down.free_at + WAY, datagram));
        }
    }

    fn step(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        self.server.handle_timeout(self.now);
        while let Some((id, event)) = self.server.poll_event(self.now) {
            if let ServerEvent::Connecting { .. } = event {
                let connection = self.server.connection_mut(id).unwrap();
                connection.send_block(self.now, &self.world).unwrap();
            }
        }
        drain(&mut self.server, self.now)
    }

    /// How long an honest client at this address needs for the world.
    fn fetch(&mut self, config: ClientConfig, from: SocketAddr, seed: u8) -> Duration {
        let mut client = ClientMachine::new(self.now, config, [seed; 32]).unwrap();
        let (mut up, mut down) = (Vec::<(Instant, Vec<u8>)>::new(), Down::default());
        let (began, mut took) = (self.now, None);
        while took.is_none() || self.server.connections().count() > 0 {
            for (_, mut datagram) in up.extract_if(.., |(at, _)| *at <= self.now) {
                let _counted = self.server.handle_datagram(self.now, from, &mut datagram);
            }
            for mut datagram in down.arrived(self.now) {
                let _counted = client.handle_datagram(self.now, address(1), &mut datagram);
            }
            client.handle_timeout(self.now);
            self.send(&mut down, self.rate_bps);
            let sent = drain_client(&mut client, self.now).into_iter();
            up.extend(sent.map(|datagram| (self.now + WAY, datagram)));
            while let Some(event) = client.poll_event(self.now) {
                if let Event::Block { .. } = event {
                    took = Some(self.now.since(began));
                    client.close(self.now, CloseCode::DONE, "");
                }
            }
            self.now = self.now + STEP;
            assert!(self.now.since(began) < Duration::from_secs(60), "nothing in a minute");
        }
        took.unwrap()
    }

    /// A client with the ticket, at a link of this rate, sends acks of what it gets with arrivals this far
    /// apart, and goes.
    fn lie(&mut self, from: SocketAddr, apart: Duration, rate_bps: u64) {
        let mut raw = RawClient::new(Some(&secret()), 99);
        let (mut clock, mut reported) = (ms(1000), 0);
        for _ in 0..3 {
            let mut request = raw.request();
            self.server.handle_datagram(self.now, from, &mut request).unwrap();
        }
        let mut down = Down::default();
        let began = self.now;
        while reported < 40 && self.now.since(began) < Duration::from_secs(5) {
            self.send(&mut down, rate_bps);
            for datagram in down.arrived(self.now) {
                if raw.handle(self.now, &datagram).is_none() {
                    continue;
                }
                let link = raw.link.as_mut().unwrap();
                let Some(ack) = link.received.ack_frame(self.now) else { continue };
                link.received.on_ack_sent(self.now, true);
                let number = link.received.largest().unwrap();
                clock = clock + apart;
                reported += 1;
                let arrivals = Frame::Arrivals(ArrivalsFrame::new(number, clock));
                let mut lie = link.frames(&[Frame::Ack(ack), arrivals]);
                let _counted = self.server.handle_datagram(self.now, from, &mut lie);
            }
            self.now = self.now + STEP;
        }
        let link = raw.link.as_mut().unwrap();
        let mut bye = link.frames(&[Frame::Close { code: 0, reason: "" }]);
        let _counted = self.server.handle_datagram(self.now, from, &mut bye);
        self.step();
        assert_eq!(self.server.connections().count(), 0);
    }
}

/// Arrivals reported 3 s apart made the server assume 3 kbit/s, for all clients behind the liar's address and
/// for minutes.
#[test]
fn t24_a_lie_about_arrivals_slows_nobody_behind_the_same_address() {
    let port = |port| SocketAddr::new(address(7).ip(), port);
    let cold = Bench::new(GIGABIT).visit(10, None, port(1000));
    for millis in [2, 10, 30, 100, 1_000, 3_000, 30_000] {
        let mut bench = Bench::new(GIGABIT);
        bench.lie(port(2000), Duration::from_millis(millis), GIGABIT);
        for n in 0..3 {
            let took = bench.visit(20 + n, None, port(3000 + u16::from(n)));
            assert!(took <= cold + cold / 10, "{took:?} after a lie of {millis} ms, cold {cold:?}");
        }
    }
}

/// Arrivals reported a microsecond apart made the server send the next client 0.9 MB before it received an
/// answer. Now that client gets no more than the address was seen to take in a round trip, or what it would
/// get without memory.
#[test]
fn t24_a_claimed_gigabit_sends_nobody_more_than_the_address_took() {
    let unanswered = |lies: bool| {
        let port = |port| SocketAddr::new(address(7).ip(), port);
        let mut bench = Bench::new(GIGABIT);
        if lies {
            bench.lie(port(2000), Duration::from_micros(1), 10_000_000);
        }
        // It proves its address, and reports nothing about its link.
        let (mut raw, mut bytes) = (RawClient::new(Some(&secret()), 5), 0);
        let mut request = raw.request();
        bench.server.handle_datagram(bench.now, port(3000), &mut request).unwrap();
        for (_, datagram) in bench.step() {
            bytes += datagram.len();
            raw.handle(bench.now, &datagram).unwrap();
        }
        let mut ping = raw.link.as_mut().unwrap().frames(&[Frame::Ping]);
        bench.server.handle_datagram(bench.now, port(3000), &mut ping).unwrap();
        for _ in 0..50 {
            bytes += bench.step().iter().map(|(_, datagram)| datagram.len()).sum::<usize>();
            bench.now = bench.now + STEP;
        }
        bytes
    };
    let (cold, after_a_lie) = (unanswered(false), unanswered(true));
    println!("{cold} bytes in 50 ms without memory, {after_a_lie} after a lie");
    assert!(after_a_lie <= cold + 60_000, "{after_a_lie} bytes, {cold} without memory");
}

/// A proven rate is still used: a client that returns is served at most a tenth later than the first time,
/// and over 100 Mbit/s it is served sooner, by some tenth if its token names it.
#[test]
fn t24_an_honest_client_that_returns_is_served_sooner() {
    for rate_bps in [2_000_000, 5_000_000, 20_000_000, 100_000_000, GIGABIT] {
        for name in [None, Some(1)] {
            let mut bench = Bench::new(rate_bps);
            let from = SocketAddr::new(address(7).ip(), 1000);
            let visits = [10, 11, 12].map(|n| bench.visit(n, name, from));
            println!("{rate_bps} bit/s, {name:?}: {visits:?}");
            let best = match (rate_bps, name) {
                (100_000_000, Some(_)) => 0.92,
                (100_000_000, None) => 0.97,
                _ => 1.1,
            };
            let returned = visits[1].max(visits[2]);
            assert!(returned < visits[0].mul_f64(best), "{rate_bps} {name:?}: {visits:?}");
        }
    }
}
