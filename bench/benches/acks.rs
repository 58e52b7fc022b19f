//! What an ack costs beside large blocks: to the receiver that composes it, by the chunks that are open, and
//! to the sender that reads it, by the chunks that are done and the datagrams that it names.
//!
//!     cargo bench --manifest-path bench/Cargo.toml --bench acks
//!
//! In mode `open`, because what is behind the seal is the same in all modes. Of each pair of numbers of one
//! run the second should be the first and little more.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, reason = "a bench program")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use haulier_proto::connection::{Block, ConnectionConfig};
use haulier_proto::internals::frames::{
    BlockFrame, ChunkAt, ProgressEntry, ProgressFrame, SliceFrame, SliceKind,
};
use haulier_proto::internals::{AckFrame, Frame, Frames};
use haulier_proto::server::{ServerEvent, ServerMachine};
use haulier_proto::{Instant, Machine};
use haulier_sim::address;
use haulier_sim::attack::raw::RawClient;
use haulier_sim::hosts::{Keyed, UNIX_TIME, configs};

const CHUNK_BYTES: u64 = 256 << 10;

/// Datagrams that make an ack due at once.
const ACK_AFTER: usize = 16;

/// A server, and a client that says what it likes.
struct Room {
    now: Instant,
    server: ServerMachine,
    client: RawClient,
    out: Vec<u8>,
}

impl Room {
    fn new() -> Self {
        let config = ConnectionConfig::default()
            .with_max_block_bytes(1 << 30)
            .with_max_unread_block_bytes(1 << 30)
            .with_max_rate_bps(10_000_000_000);
        let (server, _) = configs(Keyed::Open, config);
        let now = Instant::from_millis(1_000);
        let server = ServerMachine::new(now, UNIX_TIME, server, [1; 32]).unwrap();
        let mut room = Self { now, server, client: RawClient::new(None, 1), out: Vec::new() };
        let mut request = room.client.request();
        room.server.handle_datagram(now, address(2), &mut request).unwrap();
        let id = room.server.connections().next().unwrap();
        room.server.connection_mut(id).unwrap().ping();
        room.take();
        room.say(&[Frame::Ping]);
        room
    }

    /// What the server sends arrives.
    fn take(&mut self) -> u64 {
        let mut count = 0;
        while self.server.poll_datagram(self.now, &mut self.out).is_some() {
            let _plaintext = self.client.handle(self.now, &self.out);
            count += 1;
        }
        count
    }

    fn say(&mut self, frames: &[Frame<'_>]) {
        let mut datagram = self.client.link.as_mut().unwrap().frames(frames);
        self.hear(&mut datagram);
    }

    fn hear(&mut self, datagram: &mut [u8]) {
        self.server.handle_datagram(self.now, address(2), datagram).unwrap();
        while let Some((_, event)) = self.server.poll_event(self.now) {
            black_box::<ServerEvent>(event);
        }
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
        self.server.handle_timeout(self.now);
    }

    /// Blocks of no bytes: each is done at once, which makes the window of chunks grow to its maximum.
    fn grow_window(&mut self) {
        let root = *Block::new(0, Vec::new()).digest();
        for first in (0..2_000).step_by(16) {
            let frames: Vec<_> = (first..first + 16)
                .map(|number| Frame::Block(BlockFrame { number, tag: 0, length: 0, root }))
                .collect();
            self.say(&frames);
            self.wait(Duration::from_millis(1));
            self.take();
        }
    }
}

/// Pings of a client, and the ack of them, while `open` chunks are open. One slice of each has arrived.
fn composed(open: u32) -> impl FnMut() {
    let mut room = Room::new();
    room.grow_window();
    let (number, root, length) = (2_000, [7; 32], 1_024 * CHUNK_BYTES);
    room.say(&[Frame::Block(BlockFrame { number, tag: 0, length, root })]);
    for index in 0..open {
        let at = ChunkAt { block: number, index };
        room.say(&[Frame::Slice(SliceFrame {
            at,
            kind: SliceKind::Source,
            index: 3,
            data: &[5; 1024],
        })]);
        room.wait(Duration::from_millis(1));
        room.take();
    }
    move || {
        // `ACK_AFTER` pings make an ack due at once. No time passes, because the block would fail in time.
        (0..ACK_AFTER).for_each(|_| room.say(&[Frame::Ping]));
        assert!(room.take() > 0);
    }
}

/// The progress of a block whose first chunk is missing at the client, and `done` later chunks are done.
fn read(done: u32) -> impl FnMut() {
    let mut room = Room::new();
    let id = room.server.connections().next().unwrap();
    let block = Block::new(1, vec![7; (256 * CHUNK_BYTES) as usize]);
    room.server.connection_mut(id).unwrap().send_block(room.now, &block).unwrap();
    let (mut map, mut seen) = (vec![0_u8; 32], 0);
    while seen < done {
        room.wait(Duration::from_millis(1));
        let mut newest = 0;
        while room.server.poll_datagram(room.now, &mut room.out).is_some() {
            let Some(plaintext) = room.client.handle(room.now, &room.out) else { continue };
            for frame in Frames::of(&plaintext).flatten() {
                if let Frame::Slice(slice) = frame {
                    newest = newest.max(slice.at.index);
                }
            }
        }
        seen = seen.max(newest);
        (0..newest.min(done)).for_each(|bit| map[bit as usize / 8] |= 1 << (bit % 8));
        progress(&mut room, &map);
    }
    map.truncate(done.div_ceil(8) as usize);
    move || progress(&mut room, &map)
}

/// An honest ack, and a map of the chunks that are done, in one datagram.
fn progress(room: &mut Room, map: &[u8]) {
    let mut entries = Vec::new();
    ProgressEntry { block: 0, first: 0, map }.write(&mut entries);
    let progress = ProgressFrame::new(4_096, 0, 0, 1, &entries).expect("a frame");
    let ack = room.client.link.as_ref().unwrap().received.ack_frame(room.now);
    let ack = ack.unwrap_or_else(|| AckFrame::new(0, Duration::ZERO, 0));
    room.say(&[Frame::Ack(ack), Frame::Progress(progress)]);
}

fn acks(c: &mut Criterion) {
    let mut group = c.benchmark_group("an ack");
    for open in [1, 1_023] {
        let mut act = composed(open);
        group.bench_function(format!("composed with {open} open chunks"), |b| b.iter(&mut act));
    }
    for done in [1, 250] {
        let mut act = read(done);
        group.bench_function(format!("read with {done} chunks done"), |b| b.iter(&mut act));
    }
    group.finish();
}

criterion_group!(benches, acks);
criterion_main!(benches);
