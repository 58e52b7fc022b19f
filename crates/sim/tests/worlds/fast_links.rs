//! Blocks on fast and long links: the bytes sent besides those of the block, and the share of the link that
//! is used.

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::{Block, ConnectionConfig, ConnectionStats};
use haulier_sim::hosts::{ClientHost, Keyed, Script, ServerHost, configs};
use haulier_sim::link::UDP_IP_OVERHEAD;
use haulier_sim::{Access, EcnPath, HostId, LinkConfig, Rng, World, address};

const SEED: u64 = 0x5eed_0c24;

/// Datagrams of up to 1500 bytes pass, headers included.
fn link(mbit: u64, rtt_ms: u64) -> LinkConfig {
    LinkConfig::new(mbit * 1_000_000, Duration::from_micros(500 * rtt_ms)).with_mtu(1500)
}

/// A server, and a client at the other end of a link.
struct Line {
    world: World,
    server: HostId<ServerHost>,
    client: HostId<ClientHost>,
    /// Blocks sent.
    blocks: usize,
}

impl Line {
    fn new(link: LinkConfig) -> Self {
        let connection = ConnectionConfig::default().with_max_datagram_bytes(9000);
        let connection = connection.with_max_block_bytes(1 << 30);
        let (server, client) = configs(Keyed::Secret, connection);
        let mut world = World::new(SEED);
        let host = ServerHost::new(|_, _| Script::idle(), server, SEED);
        let hosting = LinkConfig { ecn: EcnPath::Carried, ..LinkConfig::default() };
        let server = world.add(host, address(1), &Access::from(hosting));
        let host = ClientHost::new(Script::idle(), client, Instant::ZERO, SEED + 1);
        let client = world.add(host, address(2), &Access::from(link));
        Self { world, server, client, blocks: 0 }
    }

    /// Bytes that the client has received, without UDP and IP.
    fn received(&self) -> u64 {
        let client = self.world.host(self.client).client.as_ref();
        client.map_or(0, |client| client.wire_bytes().received)
    }

    /// Bytes that arrived over the link, UDP and IP included.
    fn carried(&self) -> u64 {
        let connection = self.world.host(self.client).client.as_ref().and_then(|c| c.connection());
        let stats = connection.expect("a connection").stats();
        stats.bytes_received + UDP_IP_OVERHEAD * stats.datagrams_received
    }

    /// Sends a block of `mib` MiB as soon as there is a connection. Returns the rate at which the link was
    /// used while the middle half of it arrived, in Mbit/s.
    fn send(&mut self, mib: usize) -> f64 {
        let Self { world, server, client, .. } = self;
        let (server, client) = (*server, *client);
        let deadline = world.now() + Duration::from_secs(120);
        assert!(world.run_until(deadline, |world| world.host(server).connection().is_some()));
        let block = Block::new(1, Rng::new(SEED).bytes(mib << 20));
        let before = self.received();
        self.world.act(server, |host, now| {
            let connection = host.connection_mut().expect("a connection");
            connection.send_block(now, &block).expect("a place in the queue");
        });
        self.blocks += 1;
        let quarter = (block.data().len() / 4) as u64;
        let at = [1, 3, 4].map(|quarters| {
            let blocks = self.blocks;
            let is_there = self.world.run_until(deadline, |world| {
                let host = world.host(client);
                let bytes = host.client.as_ref().map_or(0, |client| client.wire_bytes().received);
                let is_whole = host.app.received.len() >= blocks;
                is_whole || quarters < 4 && bytes - before >= quarters * quarter
            });
            assert!(is_there, "{:?}", self.world.host(client).app.heard);
            (self.world.now(), self.carried())
        });
        (at[1].1 - at[0].1) as f64 * 8e-6 / at[1].0.since(at[0].0).as_secs_f64()
    }

    /// What the server has done so far, in counts.
    fn steps(&self) -> u64 {
        self.world.host(self.server).connection().expect("a connection").work().steps
    }

    fn stats(&self) -> ConnectionStats {
        self.world.host(self.server).connection().expect("a connection").stats()
    }
}

/// The bytes that arrive besides those of a block of `mib` MiB, as a share of the block: the heads and tags
/// of its datagrams, repair slices, probes, and all else that the server sends, without UDP and IP headers. A
/// probe that the link does not carry is not counted: it is dropped where it is sent.
fn overhead(link: LinkConfig, mib: usize) -> f64 {
    let delay = link.delay;
    let mut line = Line::new(link);
    line.send(mib);
    // Bytes that are still in flight count too.
    line.world.run_to(line.world.now() + 2 * delay + Duration::from_millis(100));
    let share = line.received() as f64 / (mib << 20) as f64 - 1.0;
    println!("{:.2} % beside {mib} MiB: {:?}", 100.0 * share, line.stats());
    share
}

/// Slices are as large as the path carries, so that few bytes are heads; and nothing goes twice or in
/// advance where nothing is lost, however much of the link is idle.
#[test]
fn a_block_has_few_bytes_beside_its_own() {
    for mbit in [5, 20, 100, 1_000, 10_000] {
        for rtt_ms in [2, 30, 60, 100, 200] {
            print!("{mbit} Mbit/s, {rtt_ms} ms: ");
            assert!(overhead(link(mbit, rtt_ms), 16) <= 0.025);
        }
    }
    assert!(overhead(link(20, 30).with_mtu(9000), 16) <= 0.015);
}

/// The share of a link that a block uses once its rate is known, and while chunks are left to open.
fn used(mbit: f64, line: &mut Line, mib: usize) -> f64 {
    let used = line.send(mib) / mbit;
    println!("{used:.3} of {mbit} Mbit/s: {:?}", line.stats());
    used
}

/// Windows follow the number of datagrams in flight: 8000, and 16,000. The link is full from half a second
/// on.
#[test]
fn a_long_path_is_full() {
    for rtt_ms in [100, 200] {
        assert!(used(1e3, &mut Line::new(link(1_000, rtt_ms)), 192) >= 0.9);
    }
}

/// 10 Gbit/s with 100 ms: 80,000 datagrams are in flight. The rate is that of the block before; without it a
/// block begins at the 1 Gbit/s that a train can show, and grows by the law of long transfers. In the middle
/// half the receiver's window is still growing.
#[test]
fn a_path_of_ten_gigabits_is_full_once_its_rate_is_known() {
    let mut line = Line::new(link(10_000, 100));
    line.send(16);
    line.world.run_to(line.world.now() + Duration::from_secs(1));
    assert!(used(1e4, &mut line, 320) >= 0.7);
    assert_eq!(line.stats().datagrams_lost, 0);
}

/// The cost of a datagram and its ack in counts of work: the same with 0.25 MB in flight and with 25 MB.
#[test]
fn work_does_not_grow_with_what_is_in_flight() {
    let steps = |rtt_ms| {
        let mut line = Line::new(link(1_000, rtt_ms));
        line.send(16);
        let before = (line.steps(), line.stats().datagrams_sent);
        line.send(128);
        let (steps, sent) = (line.steps() - before.0, line.stats().datagrams_sent - before.1);
        println!("{rtt_ms} ms: {steps} steps for {sent} datagrams");
        steps as f64 / sent as f64
    };
    let (few, many) = (steps(2), steps(200));
    assert!(many < 1.2 * few && many < 12.0, "{few} {many}");
}

/// How a client's first block begins on an idle link.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    /// From when on nine tenths of the link were used, if they were.
    found: Option<Duration>,
    /// The share of the datagrams that the queue dropped.
    dropped: f64,
}

/// The minimum time for which a first block is watched: the effects of a step that is too large are seen in
/// it.
const WATCHED: Duration = Duration::from_millis(60);

/// A first block on a link with a queue of `queue_kib` KiB, watched for four windows longer than `should`, or
/// until one window after the window in which the rate was found: a block at 10 Gbit/s takes seconds of
/// processor time.
fn ramp(mbit: u64, rtt: Duration, queue_kib: u64, should: Duration) -> Ramp {
    let link = LinkConfig::new(mbit * 1_000_000, rtt / 2).with_mtu(1500);
    let mut line = Line::new(link.with_queue(queue_kib << 10));
    line.world.run_to(Instant::from_millis(2_000));
    let window = rtt.max(Duration::from_millis(4));
    let lasts = should + 4 * window;
    let bytes = (lasts.as_secs_f64() * mbit as f64 * 125e3) as usize;
    let block = Block::new(1, vec![7; bytes.min(1 << 30)]);
    line.world.act(line.server, |host, now| {
        let connection = host.connection_mut().expect("a connection");
        connection.send_block(now, &block).expect("a place in the queue");
    });
    let (begun, mut before, mut found) = (line.world.now(), line.carried(), None);
    let is_seen = |found: Option<Duration>, now: Duration| {
        now >= WATCHED && found.is_some_and(|found| now >= found + 2 * window)
    };
    while line.world.now().since(begun) < lasts && !is_seen(found, line.world.now().since(begun)) {
        line.world.run_to(line.world.now() + window);
        let carried = line.carried();
        let used = (carried - before) as f64 * 8e-6 / window.as_secs_f64() / mbit as f64;
        if used >= 0.9 && found.is_none() {
            found = Some(line.world.now().since(begun) - window);
        }
        before = carried;
    }
    let stats = *line.world.links(line.world.segment_of(line.client)).1.stats();
    Ramp { found, dropped: stats.queue_full as f64 / stats.offered as f64 }
}

/// A rate in Mbit/s, a round trip in microseconds and a queue in KiB.
const LINKS: [(u64, u64, u64); 15] = [
    (1_000, 200, 256),
    (1_000, 1_000, 64),
    (1_000, 10_000, 512),
    (1_000, 100_000, 4_096),
    (2_500, 200, 64),
    (2_500, 200, 512),
    (2_500, 1_000, 256),
    (2_500, 1_000, 2_048),
    (2_500, 30_000, 2_048),
    (5_000, 1_000, 512),
    (10_000, 200, 2_048),
    (10_000, 200, 64),
    (10_000, 1_000, 256),
    (10_000, 1_000, 2_048),
    (10_000, 100_000, 16_384),
];

/// The maximum share of datagrams of such a block that are dropped: after one step that is too large, where
/// the queue is short. On long paths a train takes 0.02 to 0.08 ms, and the datagrams after it have to show
/// that the link delayed it, and not a radio. The first window of the longest path overruns its queue.
const MAX_DROPPED: f64 = 0.035;
const OF_LONG_PATHS: [(u64, u64, f64); 2] = [(2_500, 30_000, 0.11), (10_000, 100_000, 0.1)];

/// The rate was once 1 Gbit/s for seconds where the link has more: with usual clocks, a train of 20 shows no
/// more.
#[test]
fn a_first_block_finds_the_rate_of_a_fast_link() {
    let mut failures = Vec::new();
    for (mbit, rtt_us, queue_kib) in LINKS {
        let rtt = Duration::from_micros(rtt_us);
        let should = 8 * rtt + Duration::from_millis(20);
        let ramp = ramp(mbit, rtt, queue_kib, should);
        let line = format!("{mbit} Mbit/s, {rtt:?}, {queue_kib} KiB: {ramp:?}, of {should:?}");
        println!("{line}");
        let long = OF_LONG_PATHS.iter().find(|long| (long.0, long.1) == (mbit, rtt_us));
        let most = long.map_or(MAX_DROPPED, |long| long.2);
        if ramp.found.is_none_or(|found| found > should) || ramp.dropped > most {
            failures.push(line);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
