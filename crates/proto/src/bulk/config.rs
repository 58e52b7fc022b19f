//! The settings of a sender, its events and its counters.

use core::time::Duration;

use crate::chunk::ChunkId;
use crate::urgency::Urgency;

/// The settings of a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderConfig {
    pub(crate) urgency: Urgency,
    pub(crate) max_rate_bps: u64,
    pub(crate) min_rate_bps: u64,
    pub(crate) give_up_after: Duration,
    pub(crate) first_chunk_id: ChunkId,
    /// The number of the first datagram that can carry a slice.
    pub(crate) first_number: u64,
}

/// What the sender reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SenderEvent {
    /// The peer has all of this chunk.
    Done(ChunkId),
    /// No chunk made progress for `give_up_after`.
    Failed,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SenderStats {
    /// Slices sent: source slices, repair slices and retransmissions.
    pub(crate) slices: u64,
    /// Repair slices among them.
    pub(crate) repairs: u64,
    /// Retransmissions among them.
    pub(crate) resent: u64,
}
