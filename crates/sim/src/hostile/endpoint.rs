//! Two endpoints that share a small pool, under a script of hostile packets.

use std::time::Duration;

use haulier_article::ack::AckBits;
use haulier_article::endpoint::{Endpoint, EndpointConfig, EndpointEvent};
use haulier_article::fragment::{Fragment, FragmentPool, FragmentPoolConfig};
use haulier_article::packet::fragment::FragmentPacket;
use haulier_article::packet::numbered::NumberedPacket;
use haulier_article::packet::{self, Packet, ProtocolId};
use haulier_article::{Instant, MAX_PACKET_BYTES, Sequence};

use crate::oracle::Meter;

const PROTOCOL: ProtocolId = ProtocolId::PACKETS;

/// The fragments that both endpoints may keep, in bytes.
const POOL_BYTES: usize = 60_000;

/// What both may hold in all, in bytes: the fragments, two packets each of up to 30 KB (one on its way out
/// and one put together), and their windows of 256 packets.
const MAX_HELD_BYTES: i64 = POOL_BYTES as i64 + 4 * (31 << 10) + (64 << 10);

/// A script of hostile packets, time steps and calls, run against two endpoints that are themselves
/// sending; everything is checked after every step.
///
/// # Panics
/// If an invariant does not hold, a packet has two fates or was acked without being sent, an accepted packet
/// is delivered again within the window, an endpoint floods, or the pool or the allocator exceeds its limit.
pub fn endpoint(script: &[u8]) {
    let pool = FragmentPoolConfig::default()
        .with_max_fragments(32)
        .with_max_bytes_per_peer(40_000)
        .with_max_bytes(POOL_BYTES);
    let end = || End {
        endpoint: Endpoint::new(EndpointConfig::default()).expect("a configuration that works"),
        accepted: Vec::new(),
        restarts: 0,
        settled: 0,
    };
    let mut run = Run {
        ends: [end(), end()],
        pool: FragmentPool::new(pool).expect("limits that work"),
        now: Instant::ZERO,
        out: Vec::new(),
    };
    let mut meter = Meter::default();
    let mut bytes = script.iter().copied();
    while let Some(op) = bytes.next() {
        meter.around(|| run.step(op, &mut bytes));
        let held = meter.held_bytes;
        assert!(held <= MAX_HELD_BYTES, "{held} bytes held, at most {MAX_HELD_BYTES}");
    }
}

struct End {
    endpoint: Endpoint,
    /// The newest sequences accepted, at most a quarter of the window.
    accepted: Vec<Sequence>,
    /// Restarts of the peer that the endpoint detected.
    restarts: u64,
    /// Events received.
    settled: u64,
}

struct Run {
    ends: [End; 2],
    pool: FragmentPool,
    now: Instant,
    out: Vec<u8>,
}

impl Run {
    fn step(&mut self, op: u8, bytes: &mut impl Iterator<Item = u8>) {
        let mut next = || bytes.next().unwrap_or(0);
        let at = usize::from(op >> 7);
        match op % 8 {
            0..=2 => {
                let (sequence, index) = (u16::from(next()) * 3, usize::from(next() % 32));
                let count = usize::from(next() % 40) + 1;
                let length = if index + 1 == count { usize::from(next()) * 4 + 1 } else { 1024 };
                let data = vec![next(); length];
                let sequence = Sequence::new(if op & 8 == 0 { sequence } else { sequence << 6 });
                if let Ok(fragment) = Fragment::new(sequence, index, count, &data) {
                    self.packet(at, FragmentPacket(fragment), op & 16 == 0);
                }
            }
            3 => {
                let sequence = Sequence::new(u16::from_le_bytes([next(), next() % 4]));
                let acks = (op & 8 == 0).then(|| acks([next(), next(), next(), next()]));
                let payload = vec![next(); usize::from(next()) * 4];
                let packet = NumberedPacket::Payload { sequence, acks, payload: &payload };
                self.packet(at, packet, op & 16 == 0);
            }
            4 => {
                let packet = NumberedPacket::Ack(acks([next(), next(), next(), next()]));
                self.packet(at, packet, true);
            }
            5 => self.now = self.now + Duration::from_millis(u64::from(next()) * 8),
            6 => {
                let payload = vec![op; usize::from(next()) * usize::from(next() % 16) * 8];
                let _too_large = self.ends[at].endpoint.send(self.now, &payload);
            }
            _ => {
                let junk: Vec<u8> = (0..usize::from(next()) * 5).map(|_| next()).collect();
                self.deliver(at, &junk, true);
            }
        }
        self.settle();
    }

    /// Sends a packet as an attacker with the protocol id would.
    fn packet<'p>(&mut self, at: usize, packet: impl Packet<'p>, accepts: bool) {
        let mut datagram = [0; MAX_PACKET_BYTES];
        if let Ok(length) = packet::write(packet, PROTOCOL, &mut datagram) {
            self.deliver(at, &datagram[..length], accepts);
        }
    }

    fn deliver(&mut self, at: usize, datagram: &[u8], accepts: bool) {
        let End { endpoint, accepted, restarts, .. } = &mut self.ends[at];
        let offered = endpoint.handle_datagram(self.now, datagram, &mut self.pool);
        let Ok(Some(delivery)) = offered.inspect_err(|reason| assert!(!reason.name().is_empty()))
        else {
            return;
        };
        let (sequence, lives) = (delivery.sequence(), delivery.restarts());
        // A restarted peer is a new one: everything from before is forgotten.
        if std::mem::replace(restarts, lives) != lives {
            accepted.clear();
        }
        let near = |old: &&Sequence| sequence.distance_from(**old).abs() <= 64;
        // As long as all sequences are close together, none has left the window.
        if accepted.iter().filter(near).count() == accepted.len() {
            assert!(!accepted.contains(&sequence), "{sequence:?} was offered again");
        } else {
            accepted.clear();
        }
        if accepts {
            delivery.accept();
            accepted.push(sequence);
            if accepted.len() > 64 {
                accepted.remove(0);
            }
        }
    }

    /// Delivers what each end sends to the other, so that there is regular traffic during the attack.
    fn settle(&mut self) {
        // The first again, for the answers of the second.
        for at in [0, 1, 0] {
            self.ends[at].endpoint.handle_timeout(self.now);
            let mut sent = 0;
            let mut datagram = std::mem::take(&mut self.out);
            while self.ends[at].endpoint.poll_datagram(self.now, &mut datagram) {
                sent += 1;
                assert!(sent <= 64, "more than a packet and an ack at one moment");
                self.deliver(1 - at, &datagram, true);
            }
            self.out = datagram;
        }
        self.pool.check_invariants();
        for end in &mut self.ends {
            end.endpoint.check_invariants();
            while let Some(event) = end.endpoint.poll_event() {
                let is_fate =
                    matches!(event, EndpointEvent::Acked { .. } | EndpointEvent::Lost { .. });
                end.settled += u64::from(is_fate);
            }
            let stats = end.endpoint.stats();
            assert_eq!(end.settled, stats.packets_acked + stats.packets_lost, "events");
            assert!((0.0..=1.0).contains(&stats.loss), "a loss of {}", stats.loss);
        }
        let [first, second] = &self.ends;
        for end in [first, second] {
            let at = end.endpoint.poll_timeout();
            assert!(
                at.is_none_or(|at| at >= self.now || at == Instant::ZERO),
                "left behind: {at:?}"
            );
        }
    }
}

fn acks([low, high, bits, more]: [u8; 4]) -> AckBits {
    let bits = (u32::from(bits) * 0x0101_0101) ^ (u32::from(more) << 12);
    AckBits { ack: Sequence::new(u16::from_le_bytes([low, high % 4])), bits }
}
