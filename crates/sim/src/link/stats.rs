//! What became of packets: of one, and counted.

use std::time::Duration;

/// The result of sending a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It will arrive.
    Carried,
    /// The queue was full.
    QueueFull,
    /// Lost on the link.
    Lost,
    /// Lost in an outage.
    CutOut,
    /// The token bucket had too few tokens.
    Policed,
    /// The queue's manager dropped it.
    Managed,
    /// It was larger than the link carries.
    TooLarge,
}

/// Counters of one link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets offered.
    pub offered: u64,
    /// Bytes offered, headers included.
    pub offered_bytes: u64,
    /// Packets dropped at the full queue.
    pub queue_full: u64,
    /// Bytes of these, headers included.
    pub queue_full_bytes: u64,
    /// The queueing time of all packets together.
    pub waited: Duration,
    /// Packets dropped by the token bucket.
    pub policed: u64,
    /// Packets dropped by the queue's manager.
    pub managed: u64,
    /// Bytes of the packets dropped by queue, manager and bucket, headers included.
    pub dropped_bytes: u64,
    /// Packets that were larger than the link carries.
    pub too_large: u64,
    /// Packets marked because of the queue, by its length or its manager.
    pub marked: u64,
    /// Packets lost on the link.
    pub lost: u64,
    /// Packets lost in outages.
    pub cut_out: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets with flipped bits.
    pub corrupted: u64,
    /// Packets that lost their tail.
    pub truncated: u64,
    /// Packets delivered, copies included.
    pub delivered: u64,
    /// The maximum number of bytes in the queue since [`Link::forget_peak`](super::Link::forget_peak).
    pub queue_bytes_max: u64,
}
