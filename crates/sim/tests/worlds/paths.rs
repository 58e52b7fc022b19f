//! What a path does to datagrams by their size and their ECN field, and how the two ends react (STANDARD-1,
//! 4.1 and 5.6).

use std::time::Duration;

use haulier_proto::connection::{Block, ConnectionConfig, ConnectionStats, Event};
use haulier_sim::hosts::{ClientHost, Game, Keyed, Script, ServerHost, configs};
use haulier_sim::{Access, CoDel, EcnPath, HostId, LinkConfig, Mtu, Rng, World, address};

const SEED: u64 = 0x5eed_0506;

fn ms(millis: u64) -> haulier_proto::Instant {
    haulier_proto::Instant::from_millis(millis)
}

/// A server and a client whose packets are sent by a game, and blocks by the server.
struct Line {
    world: World,
    server: HostId<ServerHost>,
    client: HostId<ClientHost>,
}

impl Line {
    /// `accepts` is the largest datagram of each end: server and client.
    fn new(link: &LinkConfig, accepts: [u16; 2], seed: u64, script: &Script) -> Self {
        println!("seed {seed:#x}");
        let connection = ConnectionConfig::default();
        let (server, client) = configs(Keyed::Secret, connection);
        let server = server.with_connection(connection.with_max_datagram_bytes(accepts[0]));
        let client = client.with_connection(connection.with_max_datagram_bytes(accepts[1]));
        let mut world = World::new(seed);
        let of_server = script.clone();
        let host = ServerHost::new(move |_, _| of_server.clone(), server, seed);
        let hosting = LinkConfig { ecn: EcnPath::Carried, ..LinkConfig::default() };
        let server = world.add(host, address(1), &Access::from(hosting));
        let host = ClientHost::new(Script::idle(), client, ms(0), seed + 1);
        let client = world.add(host, address(2), &Access::from(link.clone()));
        Self { world, server, client }
    }

    /// What the server and the client have counted.
    fn stats(&self) -> [ConnectionStats; 2] {
        let server = self.world.host(self.server).connection().expect("a connection");
        let client = self.world.host(self.client).client.as_ref();
        let client = client.and_then(|client| client.connection()).expect("a connection");
        [server, client].map(|connection| connection.stats())
    }

    /// The largest datagrams of the server and the client.
    fn sizes(&self) -> [u16; 2] {
        self.stats().map(|stats| stats.max_datagram_bytes)
    }
}

/// 50 packets of this size in a second.
fn game(bytes: usize) -> Script {
    let game = Game { interval: Duration::from_millis(20), bytes, blocks_from: ms(1) };
    let mut script = Script::idle();
    script.game = Some(game);
    script
}

fn link() -> LinkConfig {
    LinkConfig::new(20_000_000, Duration::from_millis(15))
}

/// [H-5.6a]
#[test]
fn each_path_is_used_up_to_what_it_carries() {
    let tunnel = [(1500, 1472), (9000, 8972), (1420, 1392), (1480, 1452), (1228, 1200)];
    for (mtu, expected) in tunnel {
        let mut line = Line::new(&link().with_mtu(mtu), [9000; 2], SEED, &game(300));
        line.world.run_to(ms(5_000));
        println!("{mtu}: {:?}", line.stats());
        assert_eq!(line.sizes(), [expected; 2], "{mtu}");
        let stats = line.stats();
        assert!(stats.iter().all(|stats| stats.datagrams_lost == 0 && stats.black_holes == 0));
        assert!((line.world.host(line.server).meter.worst_bytes()) <= 3.0);
    }
}

#[test]
fn a_path_with_losses_is_found_all_the_same() {
    let loss = haulier_sim::Loss::Independent(haulier_sim::Probability::ratio(5, 100));
    let mut found = 0;
    for seed in SEED..SEED + 20 {
        let link = LinkConfig { loss, ..link().with_mtu(1500) };
        let mut line = Line::new(&link, [9000; 2], seed, &game(300));
        line.world.run_to(ms(10_000));
        found += line.sizes().into_iter().filter(|&size| size == 1472).count();
    }
    assert_eq!(found, 40, "three lost probes in a row are one in 8000");
}

/// The smaller of what this end may send and what its peer accepts; nothing larger is ever sent.
#[test]
fn nothing_is_larger_than_both_ends_allow() {
    for (accepts, expected) in
        [([9000, 1200], 1200), ([1200, 9000], 1200), ([1460, 9000], 1452), ([9000, 8971], 1472)]
    {
        let mut line = Line::new(&link(), accepts, SEED, &game(300));
        line.world.run_to(ms(3_000));
        assert_eq!(line.sizes(), [expected; 2], "{accepts:?}");
        let server = &line.world.host(line.server).server;
        assert_eq!(server.drops().iter().map(|(_, count)| count).sum::<u64>(), 0);
    }
}

/// A probe on a thin way up holds up the acks of a block, and is of no use to one that is cut already.
#[test]
fn a_join_of_a_chunk_is_over_before_larger_datagrams_are_looked_for() {
    let block = Block::new(1, Rng::new(SEED).bytes(256 << 10));
    let mut line = Line::new(&link(), [9000; 2], SEED, &Script::default().sending(block, 1));
    line.world.run_to(ms(120));
    assert_eq!(line.world.host(line.client).app.received.len(), 0, "it is on its way");
    assert_eq!(line.sizes(), [1200; 2]);
    line.world.run_to(ms(1_000));
    assert_eq!(line.world.host(line.client).app.received.len(), 1);
    assert_eq!(line.sizes(), [8972; 2]);
}

/// [H-5.6b] The path shrinks while a block and a game's packets are on the way.
#[test]
fn a_path_that_shrinks_is_a_black_hole_and_the_connection_goes_on() {
    for shrunk in [1280, 1228] {
        let mtu = Mtu::from(1500).then(ms(5_000), shrunk);
        // A fragment of 1024 bytes and one of 200 share a datagram.
        let block = Block::new(1, Rng::new(SEED).bytes(3_000_000));
        let script = game(1224).sending(block, 6);
        let mut line = Line::new(&link().with_mtu(mtu), [9000; 2], SEED, &script);
        line.world.run_to(ms(4_900));
        assert_eq!(line.sizes(), [1472, 1200], "the way up has acks to carry");
        line.world.run_to(ms(20_000));
        let [server, _] = line.stats();
        println!("{shrunk}: {server:?}");
        assert_eq!((server.max_datagram_bytes, server.black_holes), (1200, 1));
        let client = &line.world.host(line.client).app;
        let arrived = |from, to| {
            client.packets.iter().filter(|(sent, _)| (ms(from)..ms(to)).contains(sent)).count()
        };
        println!("{} of 50 packets in the second after", arrived(5_000, 6_000));
        assert!(arrived(5_000, 6_000) >= 35);
        assert_eq!(arrived(7_000, 19_000), 600);
        assert_eq!(client.received.len(), 6, "blocks");
        assert!(!client.heard.iter().any(|(_, event)| matches!(event, Event::Closed(_))));
    }
}

/// All that is in flight may be lost in one run. On a path of larger datagrams only pings went after that,
/// one after each timeout, and most were in the same run: 4 MiB took twice as long. The slices after a
/// timeout find its end sooner, as large as they are.
#[test]
fn the_end_of_a_run_of_losses_is_found_by_large_slices() {
    let mean = haulier_sim::Probability::ratio(25, 1_000);
    let mut took: Vec<u64> = (SEED..SEED + 9)
        .map(|seed| {
            let loss = haulier_sim::Loss::Bursts { mean, length: 12 };
            let link = LinkConfig { loss, ..LinkConfig::new(10_000_000, Duration::from_millis(3)) };
            let link = link.with_mtu(1500).with_queue(28 << 10);
            let block = Block::new(1, Rng::new(seed).bytes(4 << 20));
            let script = Script::default().sending(block, 1);
            let mut line = Line::new(&link, [1472; 2], seed, &script);
            let is_done = |line: &Line| !line.world.host(line.client).app.received.is_empty();
            (1..)
                .map(|n| n * 100)
                .find(|&at| {
                    line.world.run_to(ms(at));
                    is_done(&line)
                })
                .expect("a block")
        })
        .collect();
    took.sort_unstable();
    println!("{took:?} ms");
    // The bytes alone take 3.5 s; with pings alone half took 7.9 and more.
    assert!(took[4] <= 5_500, "{took:?}");
}

/// [H-5.6b] Only slices are in flight, and all are too large: pings are sent beside the slices that probe.
#[test]
fn a_black_hole_is_found_soon_by_a_block_alone() {
    for seed in SEED..SEED + 5 {
        let mtu = Mtu::from(1500).then(ms(2_000), 1280);
        let block = Block::new(1, Rng::new(seed).bytes(8_000_000));
        let script = Script::default().sending(block, 1);
        let mut line = Line::new(&link().with_mtu(mtu), [1472; 2], seed, &script);
        let found = (2_000..9_000).step_by(20).find(|&at| {
            line.world.run_to(ms(at));
            line.stats()[0].black_holes == 1
        });
        println!("{found:?} ms");
        assert!(found.is_some_and(|at| at <= 2_500), "{found:?}");
    }
}

/// After a black hole the size is probed again, once a minute has passed.
#[test]
fn a_path_that_heals_is_found_again() {
    let mtu = Mtu::from(1500).then(ms(5_000), 1228).then(ms(10_000), 1500);
    let mut line = Line::new(&link().with_mtu(mtu), [9000; 2], SEED, &game(1224));
    line.world.run_to(ms(60_000));
    let [server, _] = line.stats();
    println!("{server:?}");
    assert_eq!((server.max_datagram_bytes, server.black_holes), (1200, 1));
    line.world.run_to(ms(70_000));
    assert_eq!(line.sizes()[0], 1472);
}

/// [H-5.2] A client that moves takes no size along: the new path is probed.
#[test]
fn a_client_that_moves_is_probed_anew() {
    let mut line = Line::new(&link().with_mtu(1500), [9000; 2], SEED, &game(300));
    line.world.run_to(ms(5_000));
    assert_eq!(line.sizes(), [1472; 2]);
    let segment = line.world.segment_of(line.client);
    for link in line.world.links_mut(segment) {
        let tunnel = link.config().clone().with_mtu(1420);
        link.set_config(tunnel);
    }
    let client = line.client;
    line.world.rebind(client, address(7));
    line.world.act(client, |host, _| {
        let connection = host.client.as_mut().and_then(|client| client.connection_mut());
        connection.expect("a connection").ping();
    });
    line.world.run_to(ms(10_000));
    let [server, _] = line.stats();
    assert_eq!((server.max_datagram_bytes, server.black_holes), (1392, 0));
}

/// A client that moves to a longer way, from one that reorders: RTT and base delay are those of the new one,
/// and the block that was on its way goes on at its rate (RFC 9000, 9.4). The RTT was the old one's.
#[test]
fn a_client_that_moves_is_measured_anew() {
    let block = Block::new(1, Rng::new(SEED).bytes(12 << 20));
    let script = Script::idle().sending(block, 1);
    let mut line = Line::new(&link().with_queue(128 << 10), [1200; 2], SEED, &script);
    line.world.run_to(ms(2_000));
    assert!(line.stats()[0].min_rtt < Some(Duration::from_millis(35)), "{:?}", line.stats());
    let segment = line.world.segment_of(line.client);
    for link in line.world.links_mut(segment) {
        let longer = LinkConfig { delay: Duration::from_millis(60), ..link.config().clone() };
        link.set_config(longer);
    }
    let client = line.client;
    line.world.rebind(client, address(7));
    line.world.act(client, |host, _| {
        let connection = host.client.as_mut().and_then(|client| client.connection_mut());
        connection.expect("a connection").ping();
    });
    line.world.run_until(ms(60_000), |world| !world.host(client).app.received.is_empty());
    let took = line.world.host(client).app.received.first().map(|at| at.since(ms(0)));
    let [server, _] = line.stats();
    println!("{took:?}: {server:?}");
    assert!(server.min_rtt > Some(Duration::from_millis(119)), "{server:?}");
    // 12 MiB at 20 Mbit/s are 5.3 s.
    assert!(took < Some(Duration::from_millis(6_800)), "{took:?}");
}

/// A long transfer over this link. Returns the stats of the server, packets that the link lost, and the
/// longest queue after two seconds, in milliseconds.
fn transfer(link: LinkConfig) -> (ConnectionStats, u64, u64) {
    let block = Block::new(1, Rng::new(SEED).bytes(20_000_000));
    let script = Script::idle().sending(block, 1);
    let mut line = Line::new(&link, [1200; 2], SEED, &script);
    line.world.run_to(ms(2_000));
    let segment = line.world.segment_of(line.client);
    line.world.links_mut(segment)[1].forget_peak();
    let client = line.client;
    let is_done =
        line.world.run_until(ms(60_000), |world| !world.host(client).app.received.is_empty());
    assert!(is_done, "{:?}", line.world.host(client).app.heard);
    let (_, down) = line.world.links(segment);
    let (link, server) = (*down.stats(), line.stats()[0]);
    let queue_ms = link.queue_bytes_max * 8 * 1_000 / 20_000_000;
    println!(
        "in {:?}: queue {queue_ms} ms, marked {}, full {}; {} marks heard, {} marked",
        line.world.now(),
        link.marked,
        link.queue_full,
        server.congestion_marks,
        server.datagrams_marked
    );
    (server, link.queue_full, queue_ms)
}

/// A step of 2 ms: an L4S router has it at 1 ms.
const STEP_BYTES: u64 = 5_000;

#[test]
fn marks_keep_the_queue_short_without_a_loss() {
    let queue = link().with_queue(100_000);
    let (plain, _, plain_queue) = transfer(queue.clone());
    assert_eq!(plain.datagrams_marked, 10, "the field is cleared on the way");
    let (stats, lost, queue) = transfer(queue.marking_above(STEP_BYTES));
    assert!(stats.congestion_marks > 10, "{stats:?}");
    assert!(stats.datagrams_marked > 10_000, "{stats:?}");
    assert_eq!(lost, 0);
    assert!(queue < plain_queue, "{queue} ms, without marks {plain_queue} ms");
}

/// A transfer that is over before it is long: marks end its start, which fills the queue on purpose. Returns
/// when it was over, and the marks from the second round trip on.
#[test]
fn the_first_slices_react_to_marks() {
    let short = |link: LinkConfig| {
        let block = Block::new(1, Rng::new(SEED).bytes(260_000));
        let script = Script::idle().sending(block, 1);
        let mut line = Line::new(&link.with_queue(100_000), [1200; 2], SEED, &script);
        let (client, segment) = (line.client, line.world.segment_of(line.client));
        line.world.run_to(ms(130));
        let before = line.world.links(segment).1.stats().marked;
        let is_done =
            line.world.run_until(ms(10_000), |world| !world.host(client).app.received.is_empty());
        assert!(is_done);
        let (took, stats) = (line.world.now(), line.stats()[0]);
        let down = *line.world.links(segment).1.stats();
        println!("{took:?}: {before} and {} of {}, {stats:?}", down.marked, down.offered);
        assert_eq!((down.queue_full, stats.datagrams_lost), (0, 0));
        (took, down.marked - before, stats)
    };
    let slow = LinkConfig::new(10_000_000, Duration::from_millis(15));
    let (plain, ..) = short(slow.clone());
    let (took, marked, stats) = short(slow.marking_above(STEP_BYTES));
    assert!(stats.congestion_marks >= 1, "{stats:?}");
    assert!(marked < 20, "{marked}");
    assert!(took < plain + Duration::from_millis(50), "{took:?}, without marks {plain:?}");
}

/// A path that clears, changes or forges the field gets a transfer as without it.
#[test]
fn a_path_that_lies_is_not_marked_for() {
    let queue = link().with_queue(100_000);
    for ecn in [EcnPath::Bleached, EcnPath::Remarked, EcnPath::AlwaysMarked] {
        let (stats, ..) = transfer(LinkConfig { ecn, ..queue.clone() });
        assert!(stats.datagrams_marked <= 10, "{ecn:?}: {stats:?}");
    }
}

/// How long a block of 16 MiB takes over a link of 20 Mbit/s and 30 ms that becomes `later` at this time, and
/// whether the server still sends datagrams that can be marked.
fn block_over(link: &LinkConfig, later: &LinkConfig, at_ms: u64, seed: u64) -> (Duration, bool) {
    let block = Block::new(1, Rng::new(SEED).bytes(16 << 20));
    let mut line = Line::new(link, [1200; 2], seed, &Script::idle().sending(block, 1));
    let client = line.client;
    line.world.run_to(ms(at_ms));
    let segment = line.world.segment_of(client);
    line.world.links_mut(segment)[1].set_config(later.clone());
    line.world.run_until(ms(60_000), |world| !world.host(client).app.received.is_empty());
    let took = line.world.host(client).app.received.first().map(|at| at.since(ms(0)));
    let [server, _] = line.stats();
    println!("at {at_ms} ms: {took:?}, {} marked, {server:?}", server.datagrams_marked);
    (took.unwrap_or(Duration::MAX), server.datagrams_marked > 10_000)
}

/// A router that marks everything shows nothing about its queue. This was found out only if it marked from
/// the first datagram on; if it began later, a transfer stayed at the minimum rate, at which it takes eleven
/// minutes.
#[test]
fn a_path_that_marks_everything_is_used_all_the_same() {
    let link = LinkConfig { ecn: EcnPath::Carried, ..link().with_queue(128 << 10) };
    let all = LinkConfig { ecn: EcnPath::AlwaysMarked, ..link.clone() };
    for (seed, at_ms) in (1..).zip([0, 60, 100, 150, 300, 1_000, 3_000]) {
        let (took, _) = block_over(&link, &all, at_ms, seed);
        assert!(took < Duration::from_millis(9_500), "from {at_ms} ms on, seed {seed}: {took:?}");
    }
}

/// The marks of a queue that is too long are obeyed for as long as it is there.
#[test]
fn the_marks_of_a_queue_are_obeyed() {
    let link = LinkConfig { ecn: EcnPath::Carried, ..link().with_queue(128 << 10) };
    let codel = LinkConfig { codel: Some(CoDel::for_rate(20_000_000)), ..link.clone() };
    let short = link.marking_above(20_000);
    for (seed, link) in (1..).zip([codel, short]) {
        let (took, is_marked) = block_over(&link, &link, 1, seed);
        assert!(is_marked && took < Duration::from_millis(8_000), "seed {seed}: {took:?}");
    }
}
