//! The settings of a sender, and its counters.

use core::time::Duration;

use haulier_control::Urgency;

use super::credit::Credit;
use super::cut::SliceSize;

/// The settings of a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderConfig {
    pub(crate) urgency: Urgency,
    pub(crate) max_rate_bps: u64,
    pub(crate) min_rate_bps: u64,
    pub(crate) give_up_after: Duration,
    /// In ms: each connection has one of these.
    pub(crate) idle_timeout_ms: u32,
    /// The number of the first datagram that can carry a slice.
    pub(crate) first_number: u64,
    /// Bytes of the largest slice frame that the path carries.
    pub(crate) slice_room: usize,
    /// The largest slices that it may use.
    pub(crate) max_slice: SliceSize,
    /// Chunks that may be open at most.
    pub(crate) max_open: usize,
    /// The receiver uses repair slices.
    pub(crate) has_repair: bool,
    /// Bytes that wait for the receiver's program at most; 0 if that is not known.
    pub(crate) receive_buffer: u64,
    pub(crate) credit: Credit,
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
