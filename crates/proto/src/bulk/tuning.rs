//! Tuning constants of the choice of slices, of the chunks that may be open, and of silence, with their units
//! and reasons. Those of the pace are in the crate `haulier-control`.

use haulier_control::{Bytes, Span};

/// What a datagram with a slice has besides the frame of it: UDP and IPv4, header and tag.
pub(super) const SLICE_OVERHEAD: Bytes = Bytes(57.0);

/// Beside a game, the longest that a slice as large as the path carries may take at the transfer's rate.
/// Longer ones are cut as small as a chunk can be: at 2 Mbit/s one in a datagram of 1500 bytes takes 6 ms,
/// one of 1024 bytes 4.3, and a game's packet waits for it. Ethernet's are cut from 3.4 Mbit/s on.
pub(super) const MAX_SLICE: Span = Span::from_millis(5);

/// How many chunks may be open: `sender.rs`.
pub(super) mod window {
    use super::Bytes;

    /// Chunks that may be open at any rate: 4 MiB, the bytes in flight at 100 Mbit/s and 300 ms.
    pub(crate) const MIN_CHUNKS: usize = 16;

    /// Round trips for which more may be: a slice that is lost is missed after one, its repair is here after
    /// another half, and that the chunk is done is known after the second; the third is for a repair slice
    /// that is lost too.
    pub(crate) const ROUND_TRIPS: f64 = 3.0;

    /// Bytes of a chunk.
    pub(crate) const CHUNK: Bytes = Bytes(262_144.0);
}

/// Choice of the next slice, and the margin of repair slices: `choice.rs`, `chunk.rs`.
pub(super) mod choice {
    /// Margin in standard deviations: sent at the full rate up to `MARGIN`, then as the tail up to
    /// `TAIL_MARGIN`. Each is a base and a part in proportion to the cost of a round trip, `MAX_STAKE` at
    /// most. Found on the grid: a larger margin saves few runs a round trip, and costs every run some
    /// percent of waste.
    pub(crate) const MARGIN: (f64, f64) = (0.6, 1.0);
    pub(crate) const TAIL_MARGIN: (f64, f64) = (1.0, 2.0);
    pub(crate) const MAX_STAKE: f64 = 1.1;

    /// Expected losses of a chunk below which no repair is sent in advance: none is sent on a link that lost
    /// nothing for longer than a chunk.
    pub(crate) const NO_LOSS: f64 = 0.25;
}

/// Probe timeouts: `silence.rs`.
pub(super) mod silence {
    use core::time::Duration;

    /// The quarters of a round trip after which the datagrams in flight are given up.
    pub(crate) const RTT_QUARTERS: u32 = 5;

    /// Added to that.
    pub(crate) const SLACK: Duration = Duration::from_millis(20);

    /// The maximum of both.
    pub(crate) const MAX_WAIT: Duration = Duration::from_secs(2);

    /// How many times that doubles without an answer.
    pub(crate) const MAX_DOUBLINGS: u32 = 4;

    /// Slices that may be sent after the first timeout, and after each later one without an answer.
    pub(crate) const AFTER_FIRST: usize = 12;
    pub(crate) const AFTER_LATER: usize = 4;
}
