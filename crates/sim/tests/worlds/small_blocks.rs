//! Many blocks that are smaller than a round trip's worth of the link (STANDARD-1, 4.2.1).

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::{Block, Connection, ConnectionConfig, ConnectionStats, Event};
use haulier_sim::hosts::{App, ClientHost, Keyed, Script, ServerHost, configs};
use haulier_sim::{Access, LinkConfig, Rng, World, address};

const SEED: u64 = 0x5eed_0513;

const fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Queues blocks as fast as the connection takes them, at most `max_queued` at a time.
struct Many {
    left: VecDeque<Block>,
    max_queued: usize,
    queued: usize,
}

impl Many {
    /// `count` blocks with lengths in this range.
    fn new(count: u64, lengths: Range<u64>, max_queued: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let block = |tag| {
            let length = lengths.start + rng.below(lengths.end - lengths.start);
            Block::new(tag, rng.bytes(usize::try_from(length).unwrap()))
        };
        Self { left: (0..count).map(block).collect(), max_queued, queued: 0 }
    }
}

impl App for Many {
    fn hear(&mut self, _now: Instant, event: Event) {
        self.queued -= usize::from(matches!(event, Event::BlockSent { .. }));
    }

    fn wakes_at(&self) -> Option<Instant> {
        None
    }

    fn is_due(&self, _now: Instant) -> bool {
        !self.left.is_empty() && self.queued < self.max_queued
    }

    fn act(&mut self, now: Instant, connection: &mut Connection) {
        while self.queued < self.max_queued
            && let Some(block) = self.left.front()
            && connection.send_block(now, block).is_ok()
        {
            self.left.pop_front();
            self.queued += 1;
        }
    }
}

/// Sends this many blocks over 100 Mbit/s with a round trip of 40 ms. Returns how many arrive a second, from
/// the first one on, and what the sender counted.
fn rate_of(
    count: u64,
    lengths: Range<u64>,
    max_queued: usize,
    seed: u64,
) -> (f64, ConnectionStats) {
    let (server, client) = configs(Keyed::Secret, ConnectionConfig::default());
    let mut world = World::new(seed);
    let host = ServerHost::new(
        move |_, _| Many::new(count, lengths.clone(), max_queued, seed),
        server,
        seed,
    );
    let server = world.add(host, address(1), &Access::from(LinkConfig::default()));
    let host = ClientHost::new(Script::idle(), client, ms(0), seed + 1);
    let link = LinkConfig::new(100_000_000, Duration::from_millis(20));
    let client = world.add(host, address(2), &Access::from(link));
    let count = usize::try_from(count).unwrap();
    let is_done =
        world.run_until(ms(120_000), |world| world.host(client).app.received.len() == count);
    let received = &world.host(client).app.received;
    println!("seed {seed:#x}: {} of {count}", received.len());
    assert!(is_done);
    let took = received[count - 1].since(received[0]).as_secs_f64();
    let stats = world.host(server).connection().expect("a connection").stats();
    ((count - 1) as f64 / took, stats)
}

/// So many that nothing is waited for but the link, a few at a time, and one at a time.
#[test]
fn small_blocks_come_by_the_thousand() {
    for (count, lengths, max_queued, min_rate) in [
        (2_000, 1..1_025, usize::MAX, 1_000.0),
        (2_000, 1_000..10_001, usize::MAX, 1_000.0),
        (200, 1..1_025, 4, 85.0),
        (100, 1..1_025, 1, 22.0),
        (100, 1_000..10_001, 1, 23.0),
    ] {
        let (rate, stats) = rate_of(count, lengths.clone(), max_queued, SEED);
        let ConnectionStats { slices_sent, slices_resent, repair_slices_sent, .. } = stats;
        println!(
            "{lengths:?}, {max_queued} queued: {rate:.0} a second, {slices_sent} slices, \
             {slices_resent} again, {repair_slices_sent} repair"
        );
        assert!(rate >= min_rate, "{lengths:?}: {rate}");
        assert_eq!(slices_resent, 0, "{lengths:?}: nothing was lost");
        let is_single = lengths.end <= 1_025;
        assert!(!is_single || slices_sent == count, "{lengths:?}: {slices_sent}");
    }
}
