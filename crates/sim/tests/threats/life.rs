//! Clocks that jump, hosts that vanish, and closes that get lost.

use std::time::Duration;

use haulier_core::{Batch, FourTuple, Instant, Machine};
use haulier_proto::connection::Event;
use haulier_sim::hosts::{ClientHost, Script, ServerHost};
use haulier_sim::{Access, Host, World, address};

use crate::support::{
    BOTH, CLIENT, Keyed, Pair, SERVER, Town, block, client_config, drain_client, dsl, last, ms,
    server_config,
};

/// A host whose clock jumps at a moment of the real time.
struct Jumpy<H> {
    inner: H,
    at: Instant,
    /// From then on it shows `ahead` more and `behind` less.
    ahead: Duration,
    behind: Duration,
    /// The last real time that was received.
    real: Instant,
}

impl<H> Jumpy<H> {
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

impl<H: Machine> Machine for Jumpy<H> {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        let now = self.clock(now);
        self.inner.handle_datagram(now, path, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = self.clock(now);
        self.inner.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        let now = self.clock(now);
        self.inner.poll_transmit(now, batch);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let at = self.inner.poll_timeout()?;
        // As a driver would wait: for the same duration from now on, and it wakes when the clock jumps.
        let until = self.real + at.since(self.shown(self.real));
        Some(if self.real < self.at { until.min(self.at) } else { until })
    }
}

impl<H: Host> Host for Jumpy<H> {
    fn check_invariants(&self) {
        self.inner.check_invariants();
    }
}

/// The clock of `inner` jumps after 300 ms.
fn jumpy<H>(inner: H, ahead: u64, behind: u64) -> Jumpy<H> {
    let [ahead, behind] = [ahead, behind].map(Duration::from_secs);
    Jumpy { inner, at: ms(300), ahead, behind, real: ms(0) }
}

/// An hour ahead, or two back, in the middle of a transfer, at either end: neither end panics or spins, and
/// a new client is served afterwards.
#[test]
fn a_clock_that_jumps_is_survived() {
    for keyed in BOTH {
        for (ahead, behind) in [(3600, 0), (0, 7200), (1, 0), (0, 1)] {
            for at_server in [true, false] {
                let mut world = World::new(1);
                let jump = |is_here: bool| if is_here { (ahead, behind) } else { (0, 0) };
                let (of_server, of_client) = (jump(at_server), jump(!at_server));
                let host = ServerHost::giving(block(500_000), server_config(keyed), 1);
                let server = jumpy(host, of_server.0, of_server.1);
                let server = world.add(server, address(SERVER), &Access::default());
                let client = |script, seed| {
                    ClientHost::new(script, client_config(keyed), Instant::ZERO, seed)
                };
                let host = jumpy(client(Script::idle(), 2), of_client.0, of_client.1);
                let honest = world.add(host, address(CLIENT), &dsl());
                world.run_to(ms(20_000));
                let events = &world.host(honest).inner.app.heard;
                let is_well = events
                    .iter()
                    .any(|(_, event)| matches!(event, Event::Block { .. } | Event::Closed(_)));
                assert!(is_well, "{keyed:?} {ahead} {behind} {at_server}: {:?}", events.last());
                let late = jumpy(client(Script::idle().leaving_after(1), 3), 0, 0);
                let late = world.add(late, address(20), &dsl());
                let done = world.run_until(ms(60_000), |world| {
                    world.host(late).inner.app.joined_after().is_some()
                });
                let stats = world.host(server).inner.server.stats();
                assert!(done, "{keyed:?} {ahead} {behind} {at_server}: {stats:?}");
            }
        }
    }
}

/// A client that vanishes: the server releases its place after the idle time-out and no later.
#[test]
fn t12_a_client_that_vanishes_is_forgotten() {
    for keyed in BOTH {
        let mut town = Town::new(keyed, 5_000_000);
        town.world.run_to(ms(500));
        assert!(town.is_open());
        town.world.act(town.client, |host, _| host.is_frozen = true);
        town.world.run_to(ms(18_000));
        let stats = town.server().server.stats();
        assert_eq!((stats.connections, stats.handshakes), (0, 0), "{:?}", last(town.client()));
    }
}

/// A client that gives up everything it began, before it received any progress of it, can go on: its credit
/// is used up by then, and no block is left whose progress would grant it more. It once waited for ever.
#[test]
fn a_sender_that_gives_everything_up_can_go_on() {
    let mut pair = Pair::connected(Keyed::Secret);
    let world = block(600_000);
    for _ in 0..10 {
        let now = pair.now;
        let connection = pair.client.connection_mut().unwrap();
        let all: Vec<_> = (0..20).map(|_| connection.send_block(now, &world).unwrap()).collect();
        let begun = drain_client(&mut pair.client, now);
        let connection = pair.client.connection_mut().unwrap();
        let cancelled = all.into_iter().filter(|&handle| connection.cancel_block(now, handle, 1));
        assert_eq!(cancelled.count(), 20);
        for mut datagram in begun.into_iter().chain(drain_client(&mut pair.client, now)) {
            let _counted = pair.server.handle_datagram(now, address(CLIENT), &mut datagram);
        }
        pair.round();
        pair.round();
    }
    let now = pair.now;
    let connection = pair.client.connection_mut().unwrap();
    let last = connection.send_block(now, &block(100_000)).unwrap();
    for _ in 0..200 {
        pair.round();
    }
    let connection = pair.client.connection().unwrap();
    assert!(connection.state().is_open() && connection.all_acked(), "{connection:?}");
    assert_eq!(connection.sending_block(last), None);
}
