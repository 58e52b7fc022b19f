//! What a datagram costs the sender of large blocks, by how much is in flight: sent, acknowledged, and all
//! that is measured and chosen in between.
//!
//!     cargo bench --manifest-path bench/Cargo.toml --bench flight
//!
//! A server sends at 1 Gbit/s over round trips of 0.8 to 800 ms, so that 0.1 to 100 MB are in flight. Time is
//! virtual, and only what the server does is measured: composing datagrams, and reading an ack of each 32.
//! The rows are to be alike.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, reason = "a bench program")]

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Duration;

use haulier_proto::connection::{Block, ConnectionConfig};
use haulier_proto::internals::frames::{ProgressEntry, ProgressFrame};
use haulier_proto::internals::{ArrivalsFrame, Frame, Frames};
use haulier_proto::server::ServerMachine;
use haulier_proto::{Instant, Machine};
use haulier_sim::address;
use haulier_sim::attack::raw::RawClient;
use haulier_sim::hosts::{Keyed, UNIX_TIME, configs};

const RATE_BPS: u64 = 1_000_000_000;
const BLOCK_BYTES: u64 = 64 << 20;
const CHUNK_BYTES: u64 = 256 << 10;

/// Datagrams that an ack is for.
const ACK_EVERY: usize = 32;

/// Datagrams of a measurement, and the measurements, of which the shortest counts.
const MEASURED: u64 = 20_000;
const TIMES: usize = 6;

/// A server, and the receiver of its blocks at the end of a link.
struct Line {
    now: Instant,
    delay: Duration,
    server: ServerMachine,
    client: RawClient,
    /// When the link is free again. Then the datagrams in flight to the client, each with its arrival time.
    free_at: Instant,
    down: VecDeque<(Instant, Vec<u8>)>,
    /// The datagrams in flight to the server, each with its arrival time.
    up: VecDeque<(Instant, Vec<u8>)>,
    /// The newest arrivals, not acknowledged yet.
    arrived: Vec<(u64, Instant)>,
    /// Bytes of the present chunk that are here, the chunks of the block that are done, and its number.
    bytes: u64,
    chunks: u32,
    block: u32,
    /// What the server did, and for how many datagrams.
    spent: [Duration; 2],
    datagrams: u64,
}

impl Line {
    fn new(delay: Duration) -> Self {
        let config = ConnectionConfig::default()
            .with_max_block_bytes(BLOCK_BYTES)
            .with_max_unread_block_bytes(1 << 30);
        let (server, _) = configs(Keyed::Open, config);
        let now = Instant::from_millis(1_000);
        let server = ServerMachine::new(now, UNIX_TIME, server, [1; 32]).unwrap();
        let mut line = Self {
            now,
            delay,
            server,
            client: RawClient::new(None, 1),
            free_at: now,
            down: VecDeque::new(),
            up: VecDeque::new(),
            arrived: Vec::new(),
            bytes: 0,
            chunks: 0,
            block: 0,
            spent: [Duration::ZERO; 2],
            datagrams: 0,
        };
        let mut request = line.client.request();
        line.server.handle_datagram(now, address(2), &mut request).unwrap();
        let id = line.server.connections().next().unwrap();
        let block = Block::new(1, vec![7; BLOCK_BYTES as usize]);
        let blocks =
            6 + 3 * (2 * RATE_BPS / 8) * delay.as_micros() as u64 / 1_000_000 / BLOCK_BYTES;
        for _ in 0..blocks {
            line.server.connection_mut(id).unwrap().send_block(now, &block).unwrap();
        }
        line
    }

    /// Runs until something happens next.
    fn step(&mut self) {
        let times = [self.down.front().map(|it| it.0), self.up.front().map(|it| it.0)];
        let due = self.server.poll_timeout();
        let next = times.into_iter().flatten().chain(due).min().expect("something to wait for");
        self.now = self.now.max(next);
        while self.down.front().is_some_and(|it| it.0 <= self.now) {
            let (at, datagram) = self.down.pop_front().unwrap();
            self.receive(at, &datagram);
        }
        let begun = std::time::Instant::now();
        while self.up.front().is_some_and(|it| it.0 <= self.now) {
            let (_, mut datagram) = self.up.pop_front().unwrap();
            self.server.handle_datagram(self.now, address(2), &mut datagram).unwrap();
            while let Some((_, event)) = self.server.poll_event(self.now) {
                drop(black_box(event));
            }
        }
        if due.is_some_and(|due| due <= self.now) {
            self.server.handle_timeout(self.now);
        }
        let heard = std::time::Instant::now();
        self.spent[0] += heard - begun;
        let mut out = Vec::with_capacity(1_500);
        while self.server.poll_datagram(self.now, &mut out).is_some() {
            self.datagrams += 1;
            let bits = (out.len() as u64 + 28) * 8;
            self.free_at =
                self.free_at.max(self.now) + Duration::from_nanos(bits * 1_000_000_000 / RATE_BPS);
            self.down.push_back((
                self.free_at + self.delay,
                std::mem::replace(&mut out, Vec::with_capacity(1_500)),
            ));
        }
        self.spent[1] += heard.elapsed();
    }

    /// What hearing and sending cost, in nanoseconds a datagram.
    fn measure(&mut self) -> [f64; 2] {
        let from = self.datagrams;
        self.spent = [Duration::ZERO; 2];
        while self.datagrams < from + MEASURED {
            self.step();
        }
        self.spent.map(|spent| spent.as_nanos() as f64 / (self.datagrams - from) as f64)
    }

    fn receive(&mut self, at: Instant, datagram: &[u8]) {
        let Some(plaintext) = self.client.handle(at, datagram) else { return };
        let number = self.client.link.as_ref().unwrap().received.largest().unwrap();
        self.arrived.push((number, at));
        for frame in Frames::of(&plaintext).flatten() {
            if let Frame::Slice(slice) = frame {
                self.bytes += slice.data.len() as u64;
            }
        }
        while self.bytes >= CHUNK_BYTES {
            self.bytes -= CHUNK_BYTES;
            self.chunks += 1;
        }
        if u64::from(self.chunks) >= BLOCK_BYTES / CHUNK_BYTES {
            (self.block, self.chunks) = (self.block + 1, 0);
        }
        if self.arrived.len() >= ACK_EVERY || self.block == 0 && self.chunks < 2 {
            self.ack(at);
        }
    }

    fn ack(&mut self, at: Instant) {
        let mut newest = self.arrived.drain(..).rev();
        let (mut number, last) = newest.next().unwrap();
        let mut arrivals = ArrivalsFrame::new(number, last);
        for (earlier, at) in newest {
            let _is_there_room = arrivals.push(number - earlier, last.since(at));
            number = earlier;
        }
        let mut entries = Vec::new();
        ProgressEntry { block: self.block, first: self.chunks, map: &[] }.write(&mut entries);
        let progress = ProgressFrame::new(100_000, 0, self.block, 1, &entries).unwrap();
        let link = self.client.link.as_mut().unwrap();
        let ack = link.received.ack_frame(at).unwrap();
        let frames = [Frame::Ack(ack), Frame::Arrivals(arrivals), Frame::Progress(progress)];
        let datagram = link.frames(&frames);
        self.up.push_back((at + self.delay, datagram));
    }
}

fn main() {
    println!("in flight       heard          sent        both, ns a datagram");
    let mut first = None;
    for delay_us in [400, 4_000, 40_000, 400_000] {
        let mut line = Line::new(Duration::from_micros(delay_us));
        let full = RATE_BPS / 8 * 2 * delay_us / 1_000_000;
        let in_flight = |line: &Line| line.down.iter().map(|it| it.1.len() as u64).sum::<u64>();
        let from = 3 * full / 1_200 + 20_000;
        while line.datagrams < from {
            line.step();
        }
        let is_in_flight = in_flight(&line);
        let [heard, sent] = (0..TIMES)
            .map(|_| line.measure())
            .min_by(|a, b| (a[0] + a[1]).total_cmp(&(b[0] + b[1])))
            .unwrap();
        let ratio = (heard + sent) / *first.get_or_insert(heard + sent);
        println!(
            "{:6.1} MB ({:4.1}) {heard:9.0} {sent:12.0} {:12.0}   {ratio:.2}",
            full as f64 / 1e6,
            is_in_flight as f64 / 1e6,
            heard + sent,
        );
    }
}
