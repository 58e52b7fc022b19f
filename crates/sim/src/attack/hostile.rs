//! Hostile clients for crowds: each repeats one attack.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::credentials::Secret;
use haulier_proto::internals::frames::{BlockFrame, ChunkAt, SliceFrame, SliceKind};
use haulier_proto::internals::{Frame, Frames};

use super::Mind;
use super::raw::RawClient;
use crate::{Rng, Shot, address};

/// The attack of a hostile client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostileKind {
    /// Random datagrams of all lengths.
    Junk,
    /// Requests with a wrong check, from spoofed addresses.
    Forger,
    /// Has the key: requests from spoofed addresses.
    Spoofer,
    /// Has the key: incomplete handshakes from its own address, with a cookie if required.
    Holder,
    /// Has the key: connects, acks datagrams, but never says that a chunk is done.
    Crawler,
    /// Has the key: connects, and acks numbers that were never sent.
    Optimist,
    /// Has the key: connects, announces a block, sends one of its slices at intervals.
    Trickler,
}

impl HostileKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Junk,
        Self::Forger,
        Self::Spoofer,
        Self::Holder,
        Self::Crawler,
        Self::Optimist,
        Self::Trickler,
    ];
}

/// A hostile client.
pub struct Hostile {
    kind: HostileKind,
    server: SocketAddr,
    secret: Secret,
    rng: Rng,
    every: Duration,
    wakes: Instant,
    until: Instant,
    raw: Option<RawClient>,
    asked: Instant,
}

/// How long a hostile client waits before it starts over.
const ANEW: Duration = Duration::from_secs(2);

impl Hostile {
    /// A client that acts at this interval until then.
    #[must_use]
    pub fn new(
        kind: HostileKind,
        server: SocketAddr,
        secret: Secret,
        seed: u64,
        every: Duration,
        until: Instant,
    ) -> Self {
        let mut rng = Rng::stream(seed, 90);
        let wakes = Instant::ZERO + Duration::from_nanos(rng.below(every.as_nanos() as u64 + 1));
        Self { kind, server, secret, rng, every, wakes, until, raw: None, asked: Instant::ZERO }
    }

    fn stranger(&mut self) -> SocketAddr {
        address(0x80_0000 | self.rng.below(1 << 20) as u32)
    }

    fn fresh(&mut self, now: Instant) -> Vec<u8> {
        self.asked = now;
        let mut raw = RawClient::new(Some(&self.secret), self.rng.next_u64());
        let request = raw.request();
        self.raw = Some(raw);
        request
    }

    fn connected(&mut self, now: Instant, out: &mut Vec<Shot>) {
        let is_stale = now.since(self.asked) > ANEW;
        let Some(link) = self.raw.as_mut().and_then(|raw| raw.link.as_mut()) else {
            if self.raw.is_none() || is_stale {
                let request = self.fresh(now);
                out.push(Shot::own(self.server, request));
            }
            return;
        };
        let mut frames = vec![Frame::Ping];
        if let Some(ack) = link.received.ack_frame(now) {
            link.received.on_ack_sent(now, false);
            frames.push(Frame::Ack(ack));
        }
        let data = [7; 1024];
        match self.kind {
            HostileKind::Optimist => {
                let largest = link.received.largest().unwrap_or(0) + self.rng.below(200);
                let first = largest.min(300) as u16;
                let ack =
                    haulier_proto::internals::AckFrame::new(largest, Duration::ZERO, first.into());
                frames = vec![Frame::Ping, Frame::Ack(ack)];
            }
            HostileKind::Trickler => {
                let block = BlockFrame { number: 0, tag: 0, length: 256 << 10, root: [0; 32] };
                frames.push(Frame::Block(block));
                let index = (now.since(self.asked).as_secs() / 10 % 255) as u8;
                let (at, kind) = (ChunkAt { block: 0, index: 0 }, SliceKind::Source);
                frames.push(Frame::Slice(SliceFrame { at, kind, index, data: &data }));
            }
            _ => {}
        }
        // One datagram has room for one slice.
        let datagram = link.frames(&frames);
        if datagram.len() <= 1200 {
            out.push(Shot::own(self.server, datagram));
        }
    }
}

impl Mind for Hostile {
    fn wakes_at(&self) -> Option<Instant> {
        Some(self.wakes).filter(|&at| at < self.until)
    }

    fn wake(&mut self, now: Instant, out: &mut Vec<Shot>) {
        if now < self.wakes {
            return;
        }
        self.wakes = now + self.every;
        match self.kind {
            HostileKind::Junk => {
                let length = self.rng.below(1300) as usize;
                let mut bytes = self.rng.bytes(length);
                if let Some(first) = bytes.first_mut() {
                    *first = *self.rng.pick(&[0x0c, 0x0d, 0x0e, 0x04, 0x07, 0x08, *first]);
                }
                out.push(Shot::own(self.server, bytes));
            }
            HostileKind::Forger => {
                let mut bytes = self.fresh(now);
                bytes[1190] ^= 1;
                out.push(Shot::spoofed(self.stranger(), self.server, bytes));
            }
            HostileKind::Spoofer => {
                let bytes = self.fresh(now);
                out.push(Shot::spoofed(self.stranger(), self.server, bytes));
            }
            HostileKind::Holder => {
                let bytes = self.fresh(now);
                out.push(Shot::own(self.server, bytes));
            }
            HostileKind::Crawler | HostileKind::Optimist | HostileKind::Trickler => {
                self.connected(now, out);
            }
        }
    }

    fn receive(&mut self, now: Instant, _from: SocketAddr, datagram: &[u8], out: &mut Vec<Shot>) {
        let is_response = datagram.first() == Some(&0x07);
        let Some(raw) = &mut self.raw else { return };
        if self.kind == HostileKind::Holder && is_response {
            return; // It never completes one, so it need not agree on keys.
        }
        let had = raw.cookie;
        let plaintext = raw.handle(now, datagram);
        if raw.cookie != had {
            out.push(Shot::own(self.server, raw.request()));
        }
        let plaintext = plaintext.unwrap_or_default();
        if Frames::of(&plaintext).any(|frame| matches!(frame, Ok(Frame::Close { .. }))) {
            // Disconnected: start over later.
            self.raw = None;
            self.wakes = now + ANEW;
        }
    }
}
