//! What a link is: its rate, its queue, its delay and its faults. The default is a perfect one.

use std::ops::Range;
use std::time::Duration;

use haulier_proto::Instant;

use crate::codel::CoDel;
use crate::marking::{EcnPath, Mtu};
use crate::{Loss, Probability, RateChange, Recorded, TokenBucket};

/// The properties of a link. The default is a perfect link: no limit, no delay, no fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkConfig {
    /// Bits per second at IP level; `None` is without limit.
    pub rate_bps: Option<u64>,
    /// Rate changes, in order of time. Queued packets keep their order.
    pub rate_changes: Vec<RateChange>,
    /// A record of what a link could deliver, in place of a rate.
    pub record: Option<Recorded>,
    /// The size of the packets that it carries.
    pub mtu: Mtu,
    /// What it does to the ECN field.
    pub ecn: EcnPath,
    /// Bytes in the queue, the packet included, above which ECN-capable packets are marked; `None` for never.
    pub mark_above_bytes: Option<u64>,
    /// The queue's manager; `None` for none.
    pub codel: Option<CoDel>,
    /// A token bucket in front of the queue.
    pub bucket: Option<TokenBucket>,
    /// Bytes that fit the queue, the packet being sent included; `None` is without limit.
    pub queue_bytes: Option<u64>,
    /// Packets continue in bunches, at multiples of this time, as on radio and cable links; with zero at
    /// once.
    pub aggregation: Duration,
    /// Propagation delay.
    pub delay: Duration,
    /// Extra delay, drawn uniformly from zero up to this.
    pub jitter: Duration,
    /// Further extra delay, exponentially distributed with this mean: mostly short, sometimes long.
    pub exponential_jitter: Duration,
    /// Whether jitter may make packets overtake each other.
    pub reorder: bool,
    /// How packets are lost.
    pub loss: Loss,
    /// How often a delivered packet is duplicated.
    pub duplicate: Probability,
    /// The maximum delay of a copy after the original.
    pub duplicate_delay: Duration,
    /// How often a packet has one to three bits flipped.
    pub corrupt: Probability,
    /// How often a packet loses its tail.
    pub truncate: Probability,
    /// Times during which everything that leaves the serializer is lost.
    pub cut_outs: Vec<Range<Instant>>,
}

impl LinkConfig {
    /// A link of this rate and delay without faults, and with an unlimited queue.
    #[must_use]
    pub fn new(rate_bps: u64, delay: Duration) -> Self {
        Self { rate_bps: Some(rate_bps), delay, ..Self::default() }
    }

    /// This link with a queue of this many bytes.
    #[must_use]
    pub fn with_queue(self, bytes: u64) -> Self {
        Self { queue_bytes: Some(bytes), ..self }
    }

    /// This link for packets of at most this many bytes, headers included.
    #[must_use]
    pub fn with_mtu(self, mtu: impl Into<Mtu>) -> Self {
        Self { mtu: mtu.into(), ..self }
    }

    /// This link with an ECN field that passes, and is marked above this many bytes in the queue.
    #[must_use]
    pub fn marking_above(self, bytes: u64) -> Self {
        Self { ecn: EcnPath::Carried, mark_above_bytes: Some(bytes), ..self }
    }

    /// This link without its faults: as slow as before.
    #[must_use]
    pub fn healed(&self) -> Self {
        let Self { rate_bps, queue_bytes, delay, .. } = *self;
        Self { rate_bps, record: self.record.clone(), queue_bytes, delay, ..Self::default() }
    }
}
