//! What a run is measured by.

use std::time::Duration;

/// After this long, in virtual time, a run hangs.
pub const HUNG: Duration = Duration::from_secs(60);

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Until the client had the whole block; [`HUNG`] if it never had.
    pub took: Duration,
    /// The physical limit of the link.
    pub limit: Duration,
    /// Until the sender knew it, if it came to know. Everything below is counted up to here.
    pub known_after: Option<Duration>,
    /// Slices sent, resends and repair slices counted.
    pub slices_sent: u64,
    /// Bytes that the full queue of the bottleneck dropped, headers counted.
    pub dropped_bytes: u64,
    /// The most bytes that the bottleneck's queue held.
    pub peak_queue_bytes: u64,
    /// How long a packet waited in that queue, on average.
    pub mean_wait: Duration,
    /// Why there was no block in time, if there was none.
    pub hang: Option<String>,
}

impl Outcome {
    /// How many times the physical limit it took. One that hangs counts as if it had been done at the end.
    pub fn ratio(&self) -> f64 {
        self.took.as_nanos() as f64 / self.limit.as_nanos() as f64
    }

    /// Slices sent beyond those of the block, as a part of these. What is lost and replaced is in it.
    pub fn waste(&self) -> f64 {
        self.slices_sent as f64 / super::SLICES as f64 - 1.0
    }
}

/// What a run looks like on its way, counted from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Time since the beginning.
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
