//! What a [`ChunkSender`] reports to its application: for a chunk by its handle, for the chunk in flight by
//! slices, and for all by counters.
//!
//! The invariant: an error that a later attempt may avoid returns the bytes, and none of these prints them.

use core::time::Duration;

use bytes::Bytes;
use thiserror::Error;

use crate::chunk::{ChunkId, SliceCount};
#[cfg(doc)]
use crate::chunk::{ChunkSender, ChunkSenderConfig};

/// Identifies a chunk from [`ChunkSender::send_chunk`] to its [`ChunkSenderEvent`]. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkHandle(pub(super) u64);

/// Why a chunk was not queued. The error returns the bytes where a later attempt may succeed.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendChunkError {
    /// The chunk has no bytes.
    #[error("a chunk needs at least one byte")]
    Empty,
    /// The chunk has more than `max` bytes: cut it into a run of chunks.
    #[error("a chunk has at most {max} bytes")]
    TooLarge {
        /// The largest chunk, in bytes.
        max: usize,
    },
    /// [`ChunkSenderConfig::max_queued`] chunks wait already; try again after a [`ChunkSenderEvent`].
    #[error("the send queue is full: wait for an event, or raise max_queued")]
    QueueFull(Bytes),
    /// A chunk failed in flight; both ends need a reset first.
    #[error("a chunk failed in flight: reset both ends first")]
    Stopped(Bytes),
}

/// Without the bytes: an `unwrap` must not print a world.
impl core::fmt::Debug for SendChunkError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SendChunkError({self})")
    }
}

/// The fate of a chunk. Every queued chunk ends in exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChunkSenderEvent {
    /// Every slice is acked: the receiver has the chunk.
    Sent {
        /// The chunk.
        handle: ChunkHandle,
        /// The time from its first slice to its last ack.
        elapsed: Duration,
    },
    /// The chunk did not get through.
    Failed {
        /// The chunk.
        handle: ChunkHandle,
        /// Why.
        reason: SendFailure,
    },
}

/// Why a chunk did not get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendFailure {
    /// No slice was newly acked for [`ChunkSenderConfig::give_up_after`].
    NoProgress,
    /// The receiver acked slices and later lacked them: it dropped the incomplete chunk, or restarted.
    PeerForgot,
    /// The application cancelled it.
    Cancelled,
    /// A chunk before it failed in flight, and the run ended with that.
    RunEnded,
    /// The application called [`ChunkSender::reset`].
    Reset,
}

/// The effect of [`ChunkSender::cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It was still in the queue; the run goes on without it.
    Queued,
    /// It was in flight: the run ends here, and both ends need a reset.
    InFlight,
    /// It has ended, or never existed.
    Unknown,
}

/// The progress of the chunk in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendProgress {
    /// The chunk.
    pub handle: ChunkHandle,
    /// Its number on the wire.
    pub chunk_id: ChunkId,
    /// Its size.
    pub bytes: usize,
    /// Its slices.
    pub slices: SliceCount,
    /// How many of them are acked.
    pub acked: usize,
}

/// The state of one slice of the chunk in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceState {
    /// Not sent yet.
    Unsent,
    /// Sent and not acked.
    InFlight {
        /// How often it was sent.
        sends: u32,
    },
    /// Acked.
    Acked,
}

/// Counters of a sender, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkSenderStats {
    /// Chunks acked whole.
    pub chunks_sent: u64,
    /// Chunks that failed.
    pub chunks_failed: u64,
    /// Slices sent, retransmissions included.
    pub slices_sent: u64,
    /// Slices retransmitted.
    pub slices_resent: u64,
    /// Bytes of those slices on the wire, with headers as configured.
    pub wire_bytes: u64,
    /// Acks for the chunk in flight.
    pub acks_received: u64,
}
