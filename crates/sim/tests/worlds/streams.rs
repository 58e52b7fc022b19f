//! Blocks from source to sink, over links with faults, between disks that are slower than the link and stand
//! still (docs/BLOCKS.md).

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::{
    Block, BlockTree, ChunkValue, CloseCode, CloseReason, ConnectionConfig, Delivery,
};
use haulier_sim::hosts::stream::{Disk, SinkHost, SourceApp, block_of, bytes_at};
use haulier_sim::hosts::{Keyed, ServerHost, configs};
use haulier_sim::{Access, HostId, LinkConfig, Loss, Probability, World, address};

const SEED: u64 = 0x5eed_0b10;

const MIB: u64 = 1 << 20;

const CHUNK: u64 = 262_144;

/// The largest block of these tests, of which only the bytes in flight are stored.
const LARGE: u64 = 100_000_000_000;

fn secs(secs: u64) -> Instant {
    Instant::from_millis(1000 * secs)
}

/// What each end does with a block, and over which link.
struct Plan {
    link: LinkConfig,
    delivery: Delivery,
    memory: u64,
    source: Disk,
    sink: Disk,
}

impl Plan {
    fn new(link: LinkConfig) -> Self {
        let (source, sink) = (Disk::default(), Disk::default());
        Self { link, delivery: Delivery::Chunks, memory: 32 * MIB, source, sink }
    }

    fn line(self, block: Block, seed: u64) -> Line {
        self.line_with(seed, move |disk| SourceApp::new(block.clone(), disk), |sink| sink)
    }

    fn line_with(
        self,
        seed: u64,
        app: impl Fn(Disk) -> SourceApp + 'static,
        sink: impl FnOnce(SinkHost) -> SinkHost,
    ) -> Line {
        let connection = ConnectionConfig::default()
            .with_max_datagram_bytes(9000)
            .with_max_block_bytes(1 << 50)
            .with_max_unread_block_bytes(self.memory)
            .with_delivery(self.delivery);
        let (server, client) = configs(Keyed::Secret, connection);
        let mut world = World::new(seed).for_measuring();
        let source = self.source;
        let host = ServerHost::new(move |_, _| app(source.clone()), server, seed);
        let server = world.add(host, address(1), &Access::default());
        let host = sink(SinkHost::new(client, self.sink, seed + 1));
        let client = world.add(host, address(2), &Access::from(self.link));
        Line { world, server, client }
    }
}

struct Line {
    world: World,
    server: HostId<ServerHost<SourceApp>>,
    client: HostId<SinkHost>,
}

impl Line {
    fn source(&self) -> &SourceApp {
        self.world.host(self.server).all_apps().next().expect("a client has come")
    }

    fn sink(&self) -> &SinkHost {
        self.world.host(self.client)
    }

    /// Runs until the block is written and its sender knows it; returns when.
    fn finish(&mut self, end: Instant) -> Instant {
        let (server, client) = (self.server, self.client);
        let is_done = self.world.run_until(end, |world| {
            let is_sent = world.host(server).all_apps().any(|app| app.is_sent);
            is_sent && world.host(client).is_complete
        });
        let (source, sink) = (self.source(), self.sink());
        assert!(is_done, "{} bytes, {:?}, {:?}", sink.written, source.end, sink.end);
        assert_eq!(source.refused, []);
        self.world.now()
    }

    /// Bytes that both ends hold of the block, as they count it themselves.
    fn held(&self) -> [usize; 2] {
        let server = self.world.host(self.server).connection();
        let client = self.sink().client.as_ref().and_then(|client| client.connection());
        [server, client].map(|it| it.map_or(0, |connection| connection.memory_bytes()))
    }
}

/// Each link has other faults.
fn faulty(n: u64) -> LinkConfig {
    let base =
        LinkConfig::new([20, 100, 300][n as usize % 3] * 1_000_000, Duration::from_millis(20));
    let base = base.with_mtu([1500, 9000, 1280][n as usize / 3 % 3]).with_queue(300_000);
    match n % 5 {
        0 => LinkConfig { loss: Loss::Independent(Probability::percent(5)), ..base },
        1 => LinkConfig {
            jitter: Duration::from_millis(15),
            reorder: true,
            duplicate: Probability::percent(5),
            duplicate_delay: Duration::from_millis(30),
            ..base
        },
        2 => LinkConfig {
            corrupt: Probability::percent(2),
            truncate: Probability::percent(2),
            ..base
        },
        3 => LinkConfig { cut_outs: vec![Instant::from_millis(150)..secs(6)], ..base },
        _ => base,
    }
}

#[test]
fn blocks_of_every_length_arrive_over_every_link() {
    for (n, length) in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 40 * CHUNK + 7].into_iter().enumerate() {
        let block = block_of(3, length);
        for link in 0..15 {
            let seed = SEED + 100 * n as u64 + link;
            println!("{length} bytes, link {link}, seed {seed:#x}");
            let mut plan = Plan::new(faulty(link));
            plan.delivery = if link % 2 == 0 { Delivery::Chunks } else { Delivery::InOrder };
            plan.memory = if link % 4 < 2 { 2 * MIB } else { 32 * MIB };
            let mut line = plan.line(block.clone(), seed);
            line.finish(secs(60));
            assert_eq!(line.sink().written, length);
        }
    }
}

/// 100 Mbit/s and 40 ms.
fn link() -> LinkConfig {
    LinkConfig::new(100_000_000, Duration::from_millis(20)).with_mtu(1500).with_queue(500_000)
}

/// What the server has sent so far, in bytes of UDP payload.
fn sent_bytes(line: &Line) -> u64 {
    let server = line.world.host(line.server).connection();
    server.map_or(0, |connection| connection.stats().bytes_sent)
}

/// Meanwhile nothing is lost, no data is sent, neither end gives up, and the memory stays the same; then the
/// block goes on at the rate of the link.
#[test]
fn a_receiver_that_stops_reading_for_an_hour_loses_nothing() {
    const LENGTH: u64 = 64 * MIB;
    for delivery in [Delivery::Chunks, Delivery::InOrder] {
        let mut plan = Plan::new(link());
        (plan.delivery, plan.memory) = (delivery, 8 * MIB);
        plan.sink = Disk::default().with_pause(secs(1)..secs(3601));
        let mut line = plan.line(block_of(3, LENGTH), SEED);
        line.world.run_to(secs(5));
        let (written, sent, held) = (line.sink().written, sent_bytes(&line), line.held());
        assert!(written > 4 * MIB && written < 16 * MIB, "{written}");
        assert!(held[1] as u64 <= 8 * MIB + (256 << 10), "{held:?}");
        for minute in 1..60 {
            line.world.run_to(secs(60 * minute));
            assert_eq!((line.held(), line.sink().written), (held, written), "minute {minute}");
        }
        line.world.run_to(secs(3600));
        assert!(sent_bytes(&line) - sent < 2_000_000, "{} for pings", sent_bytes(&line) - sent);
        let done = line.finish(secs(3700));
        let time = done.since(secs(3601)).as_secs_f64();
        let least = (LENGTH - written - 8 * MIB) as f64 * 8.0 / 100e6;
        println!("{delivery:?}: {time:.2} s after the pause, at least {least:.2}; {held:?} held");
        assert!(time <= 1.2 * least + 0.3, "{time} s for {least}");
    }
}

/// The source sets the rate, and nothing is sent to fill the time; nor does the block take long once the
/// source is fast again.
#[test]
fn a_source_slower_than_the_link_sets_the_rate() {
    const LENGTH: u64 = 16 * MIB;
    let mut plan = Plan::new(link());
    plan.source = Disk::with_rate_bps(20_000_000);
    let mut line = plan.line(block_of(3, LENGTH), SEED);
    let time = line.finish(secs(60)).since(Instant::ZERO).as_secs_f64();
    let (least, sent) = (LENGTH as f64 * 8.0 / 20e6, sent_bytes(&line) as f64 / LENGTH as f64);
    println!("{time:.2} s, the disk takes {least:.2}; {sent:.3} of the bytes");
    assert!(time <= least + 0.4 && sent <= 1.04, "{time} of {least} s, {sent}");

    let mut plan = Plan::new(link());
    plan.source = Disk::default().with_pause(Instant::from_millis(300)..secs(1800));
    let mut line = plan.line(block_of(3, LENGTH), SEED);
    line.world.run_to(secs(1799));
    let left = LENGTH - line.sink().written;
    assert!(left > 8 * MIB, "{left} left");
    let time = line.finish(secs(1860)).since(secs(1800)).as_secs_f64();
    let least = left as f64 * 8.0 / 100e6;
    println!("{time:.2} s after the pause, at least {least:.2}");
    assert!(time <= 1.2 * least + 0.3, "{time} of {least} s");
}

/// The credit slows the sender: what waits for the disk stays within the receiver's memory, and the disk is
/// never idle.
#[test]
fn a_sink_slower_than_the_link_slows_the_sender() {
    const LENGTH: u64 = 32 * MIB;
    for delivery in [Delivery::Chunks, Delivery::InOrder] {
        let mut plan = Plan::new(link());
        (plan.delivery, plan.memory) = (delivery, 4 * MIB);
        plan.sink = Disk::with_rate_bps(30_000_000);
        let mut line = plan.line(block_of(3, LENGTH), SEED);
        let mut most = 0;
        while !line.sink().is_complete && line.world.now() < secs(60) {
            line.world.run_to(line.world.now() + Duration::from_millis(50));
            most = most.max(line.held()[1]);
        }
        let time = line.finish(secs(60)).since(Instant::ZERO).as_secs_f64();
        let (least, sent) = (LENGTH as f64 * 8.0 / 30e6, sent_bytes(&line) as f64 / LENGTH as f64);
        println!(
            "{delivery:?}: {time:.2} s, the disk takes {least:.2}; {sent:.3} of the bytes; {most}"
        );
        assert!(time <= least + 0.4 && sent <= 1.05, "{time} of {least} s, {sent}");
        assert!(most as u64 <= 4 * MIB + (256 << 10), "{most}");
    }
}

/// The source has nothing to read for any more, and gets an event about it.
#[test]
fn a_block_that_is_declined_in_the_middle_frees_both_ends() {
    let block = block_of(3, 64 * MIB);
    let app = move |disk| SourceApp::new(block.clone(), disk);
    let mut line = Plan::new(link()).line_with(SEED, app, |sink| sink.declining_after(10 * MIB));
    line.world.run_to(secs(30));
    let (source, sink) = (line.source(), line.sink());
    assert!(source.is_declined && !source.is_sent && source.end.is_none() && sink.end.is_none());
    assert!(sink.written < 30 * MIB, "{}", sink.written);
    let held = line.held();
    assert!(held.iter().all(|&held| held < 100_000), "{held:?}");
}

/// The receiver finds it, hands nothing of it out, and the sender learns why.
#[test]
fn a_wrong_chunk_is_found_over_a_link_that_loses() {
    let block = block_of(3, 16 * MIB);
    let link = LinkConfig { loss: Loss::Independent(Probability::percent(3)), ..link() };
    let app = move |disk| SourceApp::new(block.clone(), disk).with_wrong_chunk(20);
    let mut line = Plan::new(link).line_with(SEED, app, |sink| sink);
    line.world.run_to(secs(30));
    let (source, sink) = (line.source(), line.sink());
    assert_eq!(sink.end, Some(CloseReason::Here(CloseCode::BLOCK_DAMAGED)));
    let damaged = CloseCode::BLOCK_DAMAGED;
    assert!(
        matches!(&source.end, Some(CloseReason::There { code, .. }) if *code == damaged),
        "{:?}",
        source.end
    );
    assert!(sink.written < 16 * MIB && !sink.is_complete);
}

/// More than 32 bits count, at both ends, and both hold the same all the time.
#[test]
fn a_block_of_4_gib_and_a_byte_arrives() {
    const LENGTH: u64 = (4 << 30) + 1;
    let link = LinkConfig::new(10_000_000_000, Duration::from_millis(1)).with_mtu(9000);
    let link =
        LinkConfig { loss: Loss::Independent(Probability::ppm(100)), ..link.with_queue(4_000_000) };
    let mut line = Plan::new(link).line(block_of(3, LENGTH), SEED);
    let mut most = [0; 2];
    while !line.sink().is_complete && line.world.now() < secs(60) {
        line.world.run_to(line.world.now() + Duration::from_millis(20));
        most = [0, 1].map(|end| line.held()[end].max(most[end]));
    }
    let time = line.finish(secs(60)).since(Instant::ZERO);
    println!("{time:?}, {most:?} bytes held");
    assert_eq!(line.sink().written, LENGTH);
    assert!(most.iter().sum::<usize>() as u64 <= 64 * MIB, "{most:?}");
}

/// A block over a link with all faults at once, which is down for 3 s, and with a client that moves.
#[test]
#[ignore = "takes minutes: cargo test --release -p haulier-sim --test worlds streams:: -- --ignored"]
fn a_block_of_4_gib_and_a_byte_arrives_whatever_the_link_does() {
    const LENGTH: u64 = (4 << 30) + 1;
    let link = LinkConfig::new(1_000_000_000, Duration::from_millis(5)).with_mtu(9000);
    let link = LinkConfig {
        loss: Loss::Bursts { mean: Probability::ppm(5_000), length: 4 },
        jitter: Duration::from_millis(2),
        reorder: true,
        duplicate: Probability::percent(1),
        duplicate_delay: Duration::from_millis(5),
        corrupt: Probability::ppm(1_000),
        truncate: Probability::ppm(1_000),
        cut_outs: vec![secs(4)..secs(7)],
        ..link.with_queue(4_000_000)
    };
    let mut line = Plan::new(link).line(block_of(3, LENGTH), SEED);
    line.world.run_to(secs(12));
    line.world.rebind(line.client, address(300));
    let time = line.finish(secs(600)).since(Instant::ZERO);
    println!("{time:?}, {:.3} of the bytes", sent_bytes(&line) as f64 / LENGTH as f64);
    assert_eq!(line.sink().written, LENGTH);
}

/// 1 Gbit/s and 100 ms, with some losses.
fn long_link() -> LinkConfig {
    let link = LinkConfig::new(1_000_000_000, Duration::from_millis(50)).with_mtu(1500);
    LinkConfig { loss: Loss::Independent(Probability::ppm(100)), ..link.with_queue(3_000_000) }
}

/// A block of 100 GB of which all is here but two runs of 2,000 chunks: their bytes, and the map.
fn mostly_here() -> (Block, Vec<u8>) {
    let chunks = LARGE.div_ceil(CHUNK) as u32;
    let is_missing = |index: u32| matches!(index / 2_000, 5 | 189);
    let value = |index: u32| match is_missing(index) {
        true => {
            let offset = u64::from(index) * CHUNK;
            ChunkValue::of(LARGE, index, &bytes_at(offset, CHUNK as usize))
        }
        // Those are never read.
        false => ChunkValue::from_bytes([(index % 251) as u8; 32]),
    };
    let tree = BlockTree::from_values(LARGE, (0..chunks).map(value).collect()).expect("a tree");
    let mut map = vec![0; chunks.div_ceil(8) as usize];
    (0..chunks).filter(|&index| !is_missing(index)).for_each(|index| {
        map[index as usize / 8] |= 1 << (index % 8);
    });
    (Block::from_source(3, tree), map)
}

/// Both ends, the tree of 100 GB, and the datagrams in flight between them: counted by the allocator. The
/// tables of the repair code, 9 MB, exist once per process.
#[test]
fn a_block_of_100_gb_takes_64_mib_at_both_ends() {
    haulier_proto::prepare();
    let mut time = Duration::ZERO;
    let counted = allocation_counter::measure(|| {
        let (block, map) = mostly_here();
        let digest = *block.digest();
        let app = move |disk| SourceApp::new(block.clone(), disk).starting_at(secs(1));
        let plan = Plan { memory: 16 * MIB, ..Plan::new(long_link()) };
        let mut line = plan.line_with(SEED, app, |sink| sink.having(digest, map));
        time = line.finish(secs(120)).since(secs(1));
        assert_eq!(line.sink().written, 4_000 * CHUNK);
    });
    let (most, rate) = (counted.bytes_max, 4_000.0 * CHUNK as f64 * 8e-6 / time.as_secs_f64());
    println!("{most} bytes at most, {} of them the tree's; {rate:.0} Mbit/s", LARGE / CHUNK * 33);
    assert!(most <= 64 * MIB, "{most}");
    assert!(rate >= 800.0, "{rate} Mbit/s");
}

/// All of it goes over: 800 s on the link, and some minutes of computing.
#[test]
#[ignore = "takes minutes: cargo test --release -p haulier-sim --test worlds streams:: -- --ignored"]
fn all_of_a_block_of_100_gb_arrives() {
    haulier_proto::prepare();
    let mut time = Duration::ZERO;
    let block = block_of(3, LARGE);
    let counted = allocation_counter::measure(|| {
        let mut line =
            Plan { memory: 16 * MIB, ..Plan::new(long_link()) }.line(block.clone(), SEED);
        time = line.finish(secs(2_000)).since(Instant::ZERO);
        assert_eq!(line.sink().written, LARGE);
    });
    println!("{} bytes at most, {time:?}", counted.bytes_max);
    assert!(counted.bytes_max <= 64 * MIB, "{}", counted.bytes_max);
}
