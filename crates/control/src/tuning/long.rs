//! Constants of long transfers that several files use, and of what ends a start. The others are in
//! `law/windowed`.
//!
//! Times are of the queueing delay above the base. Most were found in `lab/tests/links/share.rs` and
//! `lab/tests/links/harm.rs`, with one to ten flows.

use crate::units::{Rate, Span};

/// A queue, and whose it is.
pub(crate) mod delay {
    use super::{Rate, Span};

    /// The queue of flows of [`REFERENCE`] that share a link, less [`MIN_TARGET`].
    pub(crate) const TARGET: Span = Span(3_500.0);
    pub(crate) const REFERENCE: Rate = Rate::from_kbps(10_000);

    /// That of a flow without limit: what the ticks of senders make.
    pub(crate) const MIN_TARGET: Span = Span(500.0);

    /// The minimum square root of the rate relative to [`REFERENCE`]: slower flows use the target of a
    /// four-hundredth of it. Avoids a division by zero.
    pub(crate) const MIN_ROOT: f64 = 0.05;

    /// A delay below this is no queue.
    pub(crate) const MIN_EMPTY: Span = Span(300.0);

    /// The time from one drain to the next.
    pub(crate) const DRAIN_AFTER: Span = Span::from_secs(4);

    /// A queue of less than this part of what was there before was drained.
    pub(crate) const DRAINED: f64 = 0.25;

    /// A delay of this many targets, or of [`MAX_HOT`], in this many rounds may be made by others; it is if
    /// this many drains in succession have not emptied the queue, and this flow has less than a part of what
    /// it had.
    pub(crate) const HOT: f64 = 2.0;
    pub(crate) const HOT_ROUNDS: u32 = 2;
    pub(crate) const MAX_HOT: Span = Span::from_millis(25);
    pub(crate) const MAX_FAILED: u32 = 3;
    pub(crate) const YIELDED: f64 = 0.6;

    /// The least time from one drain for that to the next.
    pub(crate) const TEST_AFTER: Span = Span::from_millis(600);
}

/// The start of a transfer: `law/start.rs`.
pub(crate) mod start {
    /// A round has at least this many arrivals.
    pub(crate) const MIN_ARRIVALS: usize = 8;

    /// Others are on a link that delivers less than this part of its rate while a queue stands, and on one
    /// that delivers less than its square of this number of datagrams: few links lose half on their own.
    pub(crate) const CROWDED: f64 = 0.7;
    pub(crate) const MIN_FATES: u32 = 32;

    /// Nobody else is on a link that passes at least this part of its rate whenever a queue stands.
    pub(crate) const ALONE: f64 = 0.95;

    /// Rounds in succession with such a queue after which a transfer does not wait until it is long: one may
    /// be jitter. With one in place of two 16 MiB take 1.52 L over 15 ms of jitter in order (1.4).
    pub(crate) const SURE: u32 = 2;

    /// The part of what was delivered that a newcomer takes at first: it grows faster than flows that have
    /// more yield.
    pub(crate) const PART: f64 = 0.5;

    /// A share of losses that has to be explained before the known rate is used for long; and where nobody
    /// else is seen.
    pub(crate) const LOSSY: f64 = 0.12;
    pub(crate) const LOSSY_ALONE: f64 = 0.25;
}
