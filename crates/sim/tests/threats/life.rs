//! Clocks that jump, hosts that vanish, and closes that get lost.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::Event;
use haulier_sim::join::{Answer, ClientHost, JoinHost, ServerHost, address};
use haulier_sim::{Access, Host, Internet};

use crate::support::{
    BOTH, CLIENT, SERVER, Town, block, client_config, dsl, last, ms, server_config,
};

/// A host whose clock jumps at a moment of the real time.
struct Jumpy {
    inner: JoinHost,
    at: Instant,
    /// From then on it shows so much more, or less.
    ahead: Duration,
    behind: Duration,
    /// The real time, as far as it was heard.
    real: Instant,
}

impl Jumpy {
    fn clock(&mut self, now: Instant) -> Instant {
        self.real = now;
        self.shown(now)
    }

    fn shown(&self, now: Instant) -> Instant {
        // Every clock begins at an hour and more, so that there is room to jump back.
        let now = now + Duration::from_secs(10_000);
        if now < self.at + Duration::from_secs(10_000) {
            return now;
        }
        let nanos = (now + self.ahead).as_nanos() - self.behind.as_nanos() as u64;
        Instant::ZERO + Duration::from_nanos(nanos)
    }
}

impl Host for Jumpy {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        let now = self.clock(now);
        self.inner.handle_datagram(now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = self.clock(now);
        self.inner.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        let now = self.clock(now);
        self.inner.poll_transmit(now, datagram)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let at = self.inner.poll_timeout()?;
        // As a driver would wait: so long from now on, and it wakes when the clock jumps.
        let until = self.real + at.since(self.shown(self.real));
        Some(if self.real < self.at { until.min(self.at) } else { until })
    }

    fn check_invariants(&self) {
        self.inner.check_invariants();
    }
}

/// An hour ahead, or two back, in the middle of a transfer, at either end: nobody panics, nobody spins, and a
/// new client is served afterwards.
#[test]
fn a_clock_that_jumps_is_survived() {
    for keyed in BOTH {
        for (ahead, behind) in [(3600, 0), (0, 7200), (1, 0), (0, 1)] {
            for at_server in [true, false] {
                let mut internet = Internet::new(1);
                let jumpy = |inner, is_jumpy: bool| {
                    let (ahead, behind) = if is_jumpy { (ahead, behind) } else { (0, 0) };
                    let ahead = Duration::from_secs(ahead);
                    let behind = Duration::from_secs(behind);
                    Jumpy { inner, at: ms(300), ahead, behind, real: ms(0) }
                };
                let answer = Answer::Block(block(500_000));
                let host = ServerHost::new(server_config(keyed), answer, 1);
                let server = JoinHost::Server(Box::new(host));
                let server =
                    internet.add(jumpy(server, at_server), address(SERVER), &Access::default());
                let mut host = ClientHost::new(client_config(keyed), Instant::ZERO, 2);
                host.leaves_after_blocks = None;
                let client = JoinHost::Client(Box::new(host));
                let client = internet.add(jumpy(client, !at_server), address(CLIENT), &dsl());
                internet.run_to(ms(20_000));
                let heard = &internet.host(client).inner.client().events;
                let is_well = heard
                    .iter()
                    .any(|(_, event)| matches!(event, Event::Block { .. } | Event::Closed(_)));
                assert!(is_well, "{keyed:?} {ahead} {behind} {at_server}: {:?}", heard.last());
                let host = ClientHost::new(client_config(keyed), Instant::ZERO, 3);
                let late = jumpy(JoinHost::Client(Box::new(host)), false);
                let late = internet.add(late, address(20), &dsl());
                let done = internet.run_until(ms(60_000), |internet| {
                    internet.host(late).inner.client().joined_after().is_some()
                });
                assert!(
                    done,
                    "{keyed:?} {ahead} {behind} {at_server}: {:?}",
                    internet.host(server).inner.server().server.stats()
                );
            }
        }
    }
}

/// A client that vanishes: the server lets its place go after the idle time-out and no later.
#[test]
fn t12_a_client_that_vanishes_is_forgotten() {
    for keyed in BOTH {
        let mut town = Town::new(keyed, 5_000_000);
        town.internet.run_to(ms(500));
        assert!(town.is_open());
        town.internet.act(town.client, |host, _| host.client_mut().is_frozen = true);
        town.internet.run_to(ms(18_000));
        let stats = town.server().server.stats();
        assert_eq!((stats.connections, stats.handshakes), (0, 0), "{:?}", last(town.client()));
    }
}
