//! Constants of long transfers on links that change their own rate: `pacing/varied.rs` and
//! `pacing/varying.rs`.
//!
//! Most were found on the two records of the simulator, two measured ones, and others of other seeds and
//! steps. The invariant: nothing here applies to a flow whose link has one rate.

use crate::bulk::units::{Rate, Span};

/// Whether the link changes its own rate: `pacing/varied.rs`.
pub(crate) mod varied {
    use super::Span;

    /// What is delivered is compared over this time and so many arrivals: bunches of 30 ms are then no
    /// change.
    pub(crate) const WINDOW: Span = Span::from_millis(80);
    pub(crate) const MIN_ARRIVALS: u32 = 8;

    /// A delay above this is a queue, and no jitter.
    pub(crate) const QUEUED: Span = Span::from_millis(8);

    /// A change by a smaller factor may be of others, and one by a larger one counts as that; logarithms.
    pub(crate) const MIN_CHANGE: f64 = 0.35;
    pub(crate) const MAX_CHANGE: f64 = 1.0;

    /// After this time a change counts e times less.
    pub(crate) const FORGOTTEN_AFTER: Span = Span::from_secs(20);

    /// A flow's own start says nothing of the link: for this time others give way to it.
    pub(crate) const MIN_AGE: Span = Span::from_secs(2);

    /// Datagrams lost in a window, and the part of it beside these, that are of a full queue.
    pub(crate) const MAX_LOST: (f64, f64) = (2.0, 0.1);

    /// With less change of both kinds together than a single one, the link has one rate.
    pub(crate) const STEADY: f64 = 0.3;

    /// With so much change, of either kind, the link varies. Ten flows on a link of one rate showed 0.6.
    pub(crate) const VARIES: f64 = 0.9;
}

/// The law there: `pacing/varying.rs`.
pub(crate) mod varying {
    use super::{Rate, Span};

    /// The law applies until the link varies less than this.
    pub(crate) const ENDED: f64 = 0.2;

    /// The queue beside what is on the way, at [`REFERENCE`]; it falls with the root of the rate, as that of
    /// the law for other links, so that flows come to equal shares. And the most.
    pub(crate) const QUEUE: Span = Span::from_millis(35);
    pub(crate) const REFERENCE: Rate = Rate::from_kbps(10_000);
    pub(crate) const MAX_QUEUE: Span = Span::from_millis(200);

    /// While the delay is less than this, this part of a round trip may queue: the link may have more.
    pub(crate) const EMPTY: Span = Span::from_millis(4);
    pub(crate) const PROBE: f64 = 0.5;

    /// What is delivered is measured over a round trip within these, and so many datagrams, by marks.
    pub(crate) const SPAN: (Span, Span) = (Span::from_millis(50), Span::from_millis(200));
    pub(crate) const MIN_ARRIVALS: f64 = 5.0;
    pub(crate) const STEPS: usize = 24;

    /// Datagrams that may be in flight at any rate, the factor of the delivered rate at which they go, and
    /// the part of a round trip's window.
    pub(crate) const MIN_PACKETS: usize = 3;
    pub(crate) const PACE: f64 = 3.0;
    pub(crate) const MIN_PACE: f64 = 0.25;

    /// Weight of an arrival in the mean of the round trip, and in that of the rate.
    pub(crate) const SMOOTHED: f64 = 0.1;
    pub(crate) const MEAN: f64 = 0.003;

    /// Acks take at most this many times longer than at best: while they stand still nothing is known.
    pub(crate) const MAX_WAY: f64 = 1.5;

    /// A queue that has so many times this flow's length for so many arrivals and so long is filled by
    /// others: after an outage what is in flight is gone sooner.
    pub(crate) const FILLED: f64 = 3.0;
    pub(crate) const FILLED_FOR: (u32, Span) = (128, Span::from_secs(4));

    /// What a link keeps at least of what it passes, where most is lost behind it.
    pub(crate) const MIN_KEPT: f64 = 0.2;
}
