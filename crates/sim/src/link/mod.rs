//! One direction of a link: queue, serializer, faults, delay. It has no clock, so the same code serves
//! virtual time here and real datagrams in the program's demo.
//!
//! A packet crosses these stages in order:
//!
//! 1. **size**: a packet that is larger than the link carries is dropped without notice;
//! 2. **bucket**: a token bucket, if there is one, that drops or delays packets above its rate;
//! 3. **queue**: droptail, counted in bytes with the packet on the serializer included; it may mark the
//!    ECN field of packets that find it long, and CoDel may drop or mark packets that wait in it too long;
//! 4. **serializer**: one packet after the other at the link's rate, IP and UDP headers included; or at the
//!    times of a recorded link;
//! 5. **loss**: a lost packet has used the link, as on a real one; so has one in an outage;
//! 6. **aggregation**: packets wait for the next bunch;
//! 7. **delay**: the propagation delay, and jitter that keeps the order or does not;
//! 8. **damage**: flipped bits, a cut tail; and a copy that arrives after the original, never before.
//!
//! The invariant, checked by [`Link::check_conservation`]: every packet sent has arrived, was dropped for a
//! named reason, or is in flight.

mod config;
mod stats;

pub use config::LinkConfig;
pub use stats::{Fate, LinkStats};

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use haulier_core::Ecn;
use haulier_proto::Instant;

use crate::Rng;
use crate::codel::CoDelState;
use crate::loss::LossProcess;
use crate::record::Position;
use crate::shaping::{BucketLevel, leaves};

/// Bytes of the UDP and IPv4 headers of every datagram.
pub const UDP_IP_OVERHEAD: u64 = 28;

/// The maximum number of buffers that a link keeps to use again: of a hundred thousand links, those that were
/// busy must not keep the memory of their queues.
const MAX_SPARE: usize = 16;

/// A packet in flight with its label and mark, ordered by arrival and then by sending.
type UnderWay = Reverse<(Instant, u64, (u64, Ecn), Vec<u8>)>;

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct Link {
    config: LinkConfig,
    loss: LossProcess,
    jitter: Rng,
    damage: Rng,
    /// When each packet in the queue will have left the serializer, and its bytes.
    queue: VecDeque<(Instant, u64)>,
    queued_bytes: u64,
    bucket: BucketLevel,
    position: Position,
    codel: CoDelState,
    /// The latest arrival so far, without copies: jitter may have to keep the order.
    last_arrival: Instant,
    under_way: BinaryHeap<UnderWay>,
    sent: u64,
    spare: Vec<Vec<u8>>,
    stats: LinkStats,
}

impl Link {
    /// A link with all random choices from `seed`. With the same seed the same packets of those that pass
    /// the queue are lost, by their order, whatever jitter or damage is enabled.
    #[must_use]
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        Self {
            config,
            loss: LossProcess::new(Rng::stream(seed, 1)),
            jitter: Rng::stream(seed, 2),
            damage: Rng::stream(seed, 3),
            queue: VecDeque::new(),
            queued_bytes: 0,
            bucket: BucketLevel::default(),
            position: Position::default(),
            codel: CoDelState::default(),
            last_arrival: Instant::ZERO,
            under_way: BinaryHeap::new(),
            sent: 0,
            spare: Vec::new(),
            stats: LinkStats::default(),
        }
    }

    /// Changes the properties of the link. Packets in flight are not affected.
    pub fn set_config(&mut self, config: LinkConfig) {
        self.config = config;
    }

    /// The properties of the link.
    #[must_use]
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Counters.
    #[must_use]
    pub const fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Resets the peak of the queue.
    pub const fn forget_peak(&mut self) {
        self.stats.queue_bytes_max = 0;
    }

    /// The number of packets in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.under_way.len()
    }

    /// Sends a packet.
    pub fn offer(&mut self, now: Instant, datagram: &[u8]) -> Fate {
        self.offer_labelled(now, datagram, 0)
    }

    /// Sends a packet with a label, which is returned with the packet and each copy of it, undamaged, like
    /// the content of the outer headers.
    pub fn offer_labelled(&mut self, now: Instant, datagram: &[u8], label: u64) -> Fate {
        self.offer_marked(now, datagram, label, Ecn::NotEct)
    }

    /// Sends a packet with a label and an ECN field, which the link may change.
    pub fn offer_marked(&mut self, now: Instant, datagram: &[u8], label: u64, ecn: Ecn) -> Fate {
        let bytes = datagram.len() as u64 + UDP_IP_OVERHEAD;
        self.stats.offered += 1;
        self.stats.offered_bytes += bytes;
        if self.config.mtu.at(now).is_some_and(|mtu| bytes > mtu) {
            self.stats.too_large += 1;
            return Fate::TooLarge;
        }
        while self.queue.front().is_some_and(|&(left, _)| left <= now) {
            self.queued_bytes -= self.queue.pop_front().map_or(0, |(_, bytes)| bytes);
        }
        if self.config.queue_bytes.is_some_and(|room| self.queued_bytes + bytes > room) {
            self.stats.queue_full += 1;
            self.stats.queue_full_bytes += bytes;
            self.stats.dropped_bytes += bytes;
            return Fate::QueueFull;
        }
        let released = match self.config.bucket {
            Some(bucket) => self.bucket.take(&bucket, now, bytes),
            None => Some(now),
        };
        let Some(released) = released else {
            self.stats.policed += 1;
            self.stats.dropped_bytes += bytes;
            return Fate::Policed;
        };
        let ecn = self.config.ecn.pass(ecn);
        let starts = self.queue.back().map_or(released, |&(left, _)| left.max(released));
        let is_late = self.config.codel.is_some_and(|codel| {
            self.codel.drops(&codel, starts, starts.since(now), self.queued_bytes)
        });
        if is_late && !is_capable(ecn) {
            // It is in the queue until it would have been sent.
            self.queue.push_back((starts, bytes));
            self.queued_bytes += bytes;
            self.stats.managed += 1;
            self.stats.dropped_bytes += bytes;
            return Fate::Managed;
        }
        let left = self.serialize(now, released, bytes);
        let ecn = self.mark(ecn, is_late);
        // Drawn for every packet that passes the queue, so that outages do not change later losses.
        let lost = self.loss.is_lost(self.config.loss);
        if self.config.cut_outs.iter().any(|cut_out| cut_out.contains(&left)) {
            self.stats.cut_out += 1;
            return Fate::CutOut;
        }
        if lost {
            self.stats.lost += 1;
            return Fate::Lost;
        }
        self.carry(left, datagram, (label, ecn));
        Fate::Carried
    }

    /// The queueing delay of a packet sent now.
    #[must_use]
    pub fn queueing_delay(&self, now: Instant) -> Duration {
        self.queue.back().map_or(Duration::ZERO, |&(left, _)| left.since(now))
    }

    /// When the next packet arrives at the far end.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.under_way.peek().map(|Reverse((arrival, ..))| *arrival)
    }

    /// Fills `datagram` with the next packet that has arrived by `now` and returns `true`; returns `false` if
    /// no packet has.
    pub fn poll_delivery(&mut self, now: Instant, datagram: &mut Vec<u8>) -> bool {
        self.poll_labelled(now, datagram).is_some()
    }

    /// As [`poll_delivery`](Self::poll_delivery), but returns the packet's label.
    pub fn poll_labelled(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<u64> {
        self.poll_marked(now, datagram).map(|(label, _)| label)
    }

    /// As [`poll_delivery`](Self::poll_delivery), but returns the packet's label and ECN field.
    pub fn poll_marked(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<(u64, Ecn)> {
        self.poll_timeout().filter(|&arrival| arrival <= now)?;
        let Reverse((_, _, label, mut bytes)) = self.under_way.pop()?;
        std::mem::swap(datagram, &mut bytes);
        if self.spare.len() < MAX_SPARE {
            self.spare.push(bytes);
        }
        self.stats.delivered += 1;
        Some(label)
    }

    /// Panics unless every packet is accounted for.
    pub fn check_conservation(&self) {
        let LinkStats {
            offered,
            duplicated,
            delivered,
            queue_full,
            policed,
            managed,
            too_large,
            lost,
            cut_out,
            ..
        } = self.stats;
        let dropped = queue_full + policed + managed + too_large + lost + cut_out;
        let out = delivered + dropped + self.under_way.len() as u64;
        assert_eq!(offered + duplicated, out, "packets appeared or vanished: {:?}", self.stats);
    }

    /// Queues a packet that may leave from `released` on; returns when its last bit leaves.
    fn serialize(&mut self, now: Instant, released: Instant, bytes: u64) -> Instant {
        let LinkConfig { rate_bps, rate_changes, record, bucket, .. } = &self.config;
        if rate_bps.is_none() && rate_changes.is_empty() && record.is_none() && bucket.is_none() {
            return released;
        }
        let starts = self.queue.back().map_or(released, |&(left, _)| left.max(released));
        self.stats.waited += starts.since(now);
        let left = match record {
            Some(record) => self.position.leaves(record, starts, bytes),
            None => leaves(starts, bytes, rate_bps.unwrap_or(u64::MAX), rate_changes),
        };
        self.queue.push_back((left, bytes));
        self.queued_bytes += bytes;
        self.stats.queue_bytes_max = self.stats.queue_bytes_max.max(self.queued_bytes);
        left
    }

    /// The ECN field of a packet that has just joined the queue.
    fn mark(&mut self, ecn: Ecn, is_late: bool) -> Ecn {
        let is_above = self.config.mark_above_bytes.is_some_and(|max| self.queued_bytes > max);
        if !(is_above || is_late) || !is_capable(ecn) {
            return ecn;
        }
        self.stats.marked += 1;
        Ecn::Ce
    }

    /// Schedules the arrival of a packet, and sometimes of a copy.
    fn carry(&mut self, left: Instant, datagram: &[u8], label: (u64, Ecn)) {
        let sent = next_bunch(left, self.config.aggregation);
        let mut arrival = sent + self.config.delay + draw(&mut self.jitter, self.config.jitter);
        if !self.config.exponential_jitter.is_zero() {
            arrival = arrival + self.jitter.exponential(self.config.exponential_jitter);
        }
        if !self.config.reorder {
            arrival = arrival.max(self.last_arrival);
        }
        self.last_arrival = self.last_arrival.max(arrival);
        self.schedule(arrival, datagram, label);
        if self.damage.chance(self.config.duplicate) {
            // Never before the original: half of the copies in the 2016 simulator were, which improved every
            // measurement with duplicates.
            let later = draw(&mut self.damage, self.config.duplicate_delay);
            self.stats.duplicated += 1;
            self.schedule(arrival + later, datagram, label);
        }
    }

    fn schedule(&mut self, arrival: Instant, datagram: &[u8], label: (u64, Ecn)) {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.extend_from_slice(datagram);
        if !bytes.is_empty() && self.damage.chance(self.config.corrupt) {
            for _ in 0..self.damage.between(1, 3) {
                let bit = self.damage.below(bytes.len() as u64 * 8) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            self.stats.corrupted += 1;
        }
        if self.damage.chance(self.config.truncate) {
            let length = self.damage.below(bytes.len() as u64) as usize;
            bytes.truncate(length);
            self.stats.truncated += 1;
        }
        self.sent += 1;
        self.under_way.push(Reverse((arrival, self.sent, label, bytes)));
    }
}

const fn is_capable(ecn: Ecn) -> bool {
    matches!(ecn, Ecn::Ect0 | Ecn::Ect1)
}

/// The first multiple of `interval` that is not before `at`.
fn next_bunch(at: Instant, interval: Duration) -> Instant {
    let interval = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
    if interval == 0 {
        return at;
    }
    Instant::from_nanos(at.as_nanos().div_ceil(interval).saturating_mul(interval))
}

/// A duration from zero up to `max`, exclusive.
fn draw(rng: &mut Rng, max: Duration) -> Duration {
    if max.is_zero() {
        return Duration::ZERO;
    }
    Duration::from_nanos(rng.below(u64::try_from(max.as_nanos()).unwrap_or(u64::MAX)))
}
