//! The measurements of a run.

use std::time::Duration;

/// The virtual time after which a run counts as hung.
pub const HUNG: Duration = Duration::from_secs(60);

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The time until the client had the whole block; [`HUNG`] if it never had.
    pub took: Duration,
    /// The physical limit of the link.
    pub limit: Duration,
    /// The time until the sender knew this, if it did. Everything below is counted up to then.
    pub known_after: Option<Duration>,
    /// The slices that the block was cut into.
    pub slices: u64,
    /// Slices sent, including resends and repair slices.
    pub slices_sent: u64,
    /// Bytes that the full queue of the bottleneck dropped, headers included.
    pub dropped_bytes: u64,
    /// The maximum number of bytes in the bottleneck's queue.
    pub peak_queue_bytes: u64,
    /// The mean queueing delay of a packet.
    pub mean_wait: Duration,
    /// Why the block did not arrive in time, if it did not.
    pub hang: Option<String>,
}

impl Outcome {
    /// The time as a multiple of the physical limit. A hung run counts as done at the end.
    pub fn ratio(&self) -> f64 {
        self.took.as_nanos() as f64 / self.limit.as_nanos() as f64
    }

    /// Slices sent beyond those of the block, as a fraction of these. Includes replaced losses.
    pub fn waste(&self) -> f64 {
        self.slices_sent as f64 / self.slices as f64 - 1.0
    }
}

/// A snapshot of a run, counted from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Time since the start.
    pub after: Duration,
    /// Slices sent.
    pub slices_sent: u64,
    /// Packets that the full queue dropped.
    pub dropped: u64,
    /// Packets lost behind the queue.
    pub lost: u64,
    /// Packets that reached the client.
    pub arrived: u64,
    /// Whether the client has the block.
    pub is_whole: bool,
}
