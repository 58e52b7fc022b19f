//! A chunk peer under a script of hostile packets.

use std::time::Duration;

use haulier_article::chunk::{Ack, ChunkId, MAX_CHUNK_BYTES, Slice, SliceCount, SliceSet};
use haulier_article::packet::article::ArticlePacket;
use haulier_article::packet::{self, ProtocolId};
use haulier_article::{ArticleConfig, ArticlePeer, Instant, MAX_PACKET_BYTES};

use crate::oracle::Meter;

const PROTOCOL: ProtocolId = ProtocolId::ARTICLE;

/// What a peer holds besides its chunks, in bytes: a record for each slice in flight, queues, and a datagram.
const PEER_BYTES: usize = 32 << 10;

/// A script of hostile packets, time steps and calls, run against a peer that is itself sending; its
/// invariants are checked after every step.
///
/// # Panics
/// If one does not hold, if the peer floods, or if it holds more memory than its input justifies.
pub fn peer(script: &[u8]) {
    let mut run = Run {
        peer: ArticlePeer::new(ArticleConfig::default()),
        now: Instant::ZERO,
        out: Vec::new(),
        slices_in: 0,
        given_bytes: 0,
    };
    let mut meter = Meter::default();
    let mut bytes = script.iter().copied();
    while let Some(op) = bytes.next() {
        meter.around(|| run.step(op, &mut bytes));
        let max = run.peer.receiver().memory_bytes() + run.given_bytes + PEER_BYTES;
        assert!(meter.held_bytes <= max as i64, "{} bytes held, at most {max}", meter.held_bytes);
    }
}

struct Run {
    peer: ArticlePeer,
    now: Instant,
    out: Vec<u8>,
    /// Slices received since the last chunk was finished or dropped.
    slices_in: usize,
    /// Bytes of the chunks that the script gave it to send.
    given_bytes: usize,
}

impl Run {
    fn step(&mut self, op: u8, bytes: &mut impl Iterator<Item = u8>) {
        let mut next = || usize::from(bytes.next().unwrap_or(0));
        match op % 8 {
            0 | 1 => {
                let count = SliceCount::new(next() + 1).unwrap_or(SliceCount::ONE);
                let index = count.index(next()).unwrap_or(count.first());
                let length = if index.is_last() { (next() * 4).clamp(1, 1024) } else { 1024 };
                self.slice(ChunkId::new(next() as u16 % 4), index, length);
            }
            2 => {
                let count = SliceCount::new(next() + 1).unwrap_or(SliceCount::ONE);
                let mut received = SliceSet::empty(count);
                let (first, step) = (next(), next() + 1);
                count.indices().skip(first).step_by(step).for_each(|index| {
                    received.insert(index);
                });
                let chunk_id = ChunkId::new(next() as u16 % 4);
                self.packet(ArticlePacket::Ack(Ack { chunk_id, received }));
            }
            3 => self.now = self.now + Duration::from_millis(next() as u64 * 4),
            4 => {
                let bytes = (next() * 1100).clamp(1, MAX_CHUNK_BYTES);
                self.given_bytes += self.peer.send_chunk(vec![7; bytes]).map_or(0, |_| bytes);
            }
            5 => {
                let _chunk = self.peer.pop_chunk();
            }
            6 => self.peer.reset(ChunkId::new(next() as u16 % 4)),
            _ => {
                let length = next() * 5;
                let junk: Vec<u8> = (0..length).map(|_| next() as u8).collect();
                let _refused = self.peer.handle_datagram(self.now, &junk);
            }
        }
        self.settle();
    }

    fn slice(&mut self, id: ChunkId, index: haulier_article::chunk::SliceIndex, length: usize) {
        let data = vec![id.get() as u8; length];
        if let Some(slice) = Slice::new(id, index, &data) {
            self.slices_in += 1;
            self.packet(ArticlePacket::Slice(slice));
        }
    }

    /// Sends a packet as an attacker with the protocol id would.
    fn packet(&mut self, packet: ArticlePacket<'_>) {
        let mut datagram = [0; MAX_PACKET_BYTES];
        let length = packet::write(packet, PROTOCOL, &mut datagram).expect("a legal packet");
        let _refused = self.peer.handle_datagram(self.now, &datagram[..length]);
    }

    fn settle(&mut self) {
        self.peer.handle_timeout(self.now);
        let mut sent = 0;
        while self.peer.poll_datagram(self.now, &mut self.out) {
            sent += 1;
            assert!(sent <= 300, "more than a burst and its ack at one moment");
            let read = packet::read::<ArticlePacket<'_>>(PROTOCOL, &self.out);
            assert!(read.is_ok(), "the peer sent {read:?}");
        }
        while self.peer.poll_event().is_some() {}
        self.peer.check_invariants();
        assert!(self.peer.poll_timeout().is_none_or(|at| at > self.now), "a deadline left behind");
        let held = self.peer.receiver().memory_bytes();
        let most = 2 * 1025 * self.slices_in.clamp(8, 256);
        assert!(held <= most, "{held} bytes held for {} slices", self.slices_in);
        if held == 0 {
            self.slices_in = 0;
        }
    }
}
