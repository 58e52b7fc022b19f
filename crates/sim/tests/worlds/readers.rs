//! Receivers whose program reads late: once a frame, a few times a second, or not at all for a while. What
//! waits for it fits its socket, so that it never looks like loss, and no timeout mistakes it for silence
//! (STANDARD-1, 4.2.3).

use std::time::Duration;

use haulier_proto::connection::{Block, ConnectionConfig, ConnectionStats, Event};
use haulier_sim::hosts::{ClientHost, Keyed, Script, ServerHost, configs};
use haulier_sim::{Access, Framed, HostId, LinkConfig, Rng, World, address};

const SEED: u64 = 0x5eed_0512;

/// What a datagram of 1200 bytes takes of a socket's buffer on Linux, by the kernel's count.
const KERNEL_BYTES: u64 = 2304;

fn ms(millis: u64) -> haulier_proto::Instant {
    haulier_proto::Instant::from_millis(millis)
}

/// A server, and a client whose program reads its socket once in a while.
struct Line {
    world: World,
    server: HostId<ServerHost>,
    client: HostId<Framed<ClientHost>>,
}

impl Line {
    /// The client's socket holds `datagrams` of 1200 bytes, and it says so.
    fn new(link: &LinkConfig, every: Duration, datagrams: u16, block: Block) -> Self {
        println!("seed {SEED:#x}, read every {every:?} from {datagrams} datagrams");
        let connection = ConnectionConfig::default();
        let (server, client) = configs(Keyed::Secret, connection);
        let buffer_bytes = u64::from(datagrams) * KERNEL_BYTES / 2;
        let client = client.with_connection(connection.with_receive_buffer_bytes(buffer_bytes));
        let mut world = World::new(SEED);
        let host = ServerHost::giving(block, server, SEED);
        let server = world.add(host, address(1), &Access::default());
        let host = ClientHost::new(Script::idle(), client, ms(0), SEED + 1);
        let host = Framed::new(host, every, ms(3)).holding(datagrams.into()).stamped();
        let client = world.add(host, address(2), &Access::from(link.clone()));
        Self { world, server, client }
    }

    fn client(&self) -> &Framed<ClientHost> {
        self.world.host(self.client)
    }

    /// Runs until the block is there. Returns in how many seconds.
    fn run(&mut self) -> f64 {
        let client = self.client;
        let is_there = |world: &World| !world.host(client).inner.app.received.is_empty();
        let is_done = self.world.run_until(ms(120_000), is_there);
        assert!(is_done, "{:?}", self.client().inner.app.heard);
        let heard = &self.client().inner.app.heard;
        assert!(!heard.iter().any(|(_, event)| matches!(event, Event::Closed(_))));
        self.world.now().as_nanos() as f64 / 1e9
    }

    fn sent(&self) -> ConnectionStats {
        self.world.host(self.server).connection().expect("a connection").stats()
    }
}

fn block(bytes: usize) -> Block {
    Block::new(1, Rng::new(SEED).bytes(bytes))
}

/// 20 Mbit/s, and a queue that holds what a sender has in flight.
fn link() -> LinkConfig {
    LinkConfig::new(20_000_000, Duration::from_millis(20)).with_queue(256 << 10)
}

/// Readers of 60, 30 and ten frames a second. In the time between, a link of 20 Mbit/s brings 33, 67 or 204
/// datagrams; a socket of Linux holds 184, unless it is configured otherwise.
#[test]
fn a_late_reader_never_looks_like_loss() {
    for (every, datagrams) in [(16, 184), (100, 184), (33, 92)] {
        let mut line = Line::new(&link(), Duration::from_millis(every), datagrams, block(8 << 20));
        let took = line.run();
        let sent = line.sent();
        println!("{took:.2} s: {sent:?}");
        assert_eq!(line.client().dropped_bytes, 0, "every {every} ms");
        assert_eq!((sent.datagrams_lost, sent.slices_resent), (0, 0), "every {every} ms");
        assert!(sent.repair_slices_sent * 33 < sent.slices_sent, "{sent:?}");
    }
}

/// It reads every frame, except in one pause of two seconds in the middle of a block.
#[test]
fn a_single_pause_costs_no_more_than_itself() {
    let mut line = Line::new(&link(), Duration::from_millis(16), 184, block(8 << 20));
    line.world.run_to(ms(1_000));
    let before = line.sent();
    line.world.act(line.client, |client, now| client.pause_until(now + Duration::from_secs(2)));
    let took = line.run();
    println!("{took:.2} s: {before:?}, then {:?}", line.sent());
    assert_eq!((line.client().dropped_bytes, line.sent().datagrams_lost), (0, 0));
    assert!(took < 6.5, "3.6 s of sending, and the pause: {took:.2}");
}

/// A small buffer on a long path: what the link needs in flight is far more than the buffer holds, so only
/// what the receiver says of its program keeps the sender from flooding it.
#[test]
fn a_small_buffer_on_a_long_path_is_not_flooded() {
    let long = LinkConfig::new(20_000_000, Duration::from_millis(50)).with_queue(256 << 10);
    let mut line = Line::new(&long, Duration::from_millis(16), 28, block(2 << 20));
    let took = line.run();
    let sent = line.sent();
    println!("{took:.2} s, {} dropped: {sent:?}", line.client().dropped_bytes);
    assert!(line.client().dropped_bytes <= 3 * 1228, "before anything is known of the reader");
    assert!(took < 4.0, "{took:.2}: 2 MiB at half of the buffer in each frame are 2.1 s");
}
