//! What a sender is told, and what it tells.

use core::time::Duration;

use crate::chunk::ChunkId;
use crate::urgency::Urgency;

/// How a sender behaves.
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

/// What the sender tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SenderEvent {
    /// The peer has all of this chunk.
    Done(ChunkId),
    /// Nothing of what was sent gets there.
    Failed,
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SenderStats {
    /// Slices sent: sources, repair slices and what was sent twice.
    pub(crate) slices: u64,
    /// Repair slices among them.
    pub(crate) repairs: u64,
    /// Those sent before among them.
    pub(crate) resent: u64,
}
