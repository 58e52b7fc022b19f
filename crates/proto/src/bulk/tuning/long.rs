//! Constants of the laws of long transfers: `pacing/delay.rs` and what it uses.
//!
//! Times are of the queueing delay above the base. Most were found in `lab/tests/links/share.rs` and
//! `lab/tests/links/harm.rs`, with one to ten flows. The invariant: nothing here is used before a transfer
//! has a rate of its own, but for what ends its start.

use crate::bulk::units::{Rate, Span};

/// The rate of a long transfer: `pacing/delay.rs`.
pub(crate) mod delay {
    use super::{Rate, Span};

    /// The target delay of a flow of [`REFERENCE`], less [`MIN_TARGET`].
    pub(crate) const TARGET: Span = Span(3_500.0);
    pub(crate) const REFERENCE: Rate = Rate::from_kbps(10_000);

    /// The target of a flow without limit: what the ticks of senders make.
    pub(crate) const MIN_TARGET: Span = Span(500.0);

    /// The minimum square root of the rate relative to [`REFERENCE`]: slower flows use the target of a
    /// four-hundredth of it. Avoids a division by zero.
    pub(crate) const MIN_ROOT: f64 = 0.05;

    /// The rate is judged over this part of a round trip, another one after it was set, and goes this part of
    /// the way to the target.
    pub(crate) const ROUNDS: f64 = 2.0;
    pub(crate) const SHORT_ROUND: Span = Span::from_millis(50);
    pub(crate) const GAIN: f64 = 0.5;

    /// The maximum decrease in a round for the queue, and the maximum growth toward it.
    pub(crate) const MAX_CUT: f64 = 0.3;
    pub(crate) const MAX_GROWTH: f64 = 0.1;

    /// The most that a round delivers of the rate: while a queue drains, more arrives than is sent.
    pub(crate) const MAX_DELIVERED: f64 = 1.25;

    /// Beyond what the link last delivered growth doubles from round to round, up to this, and to so many
    /// targets of queue in a round trip.
    pub(crate) const LEFT_MARGIN: f64 = 0.05;
    pub(crate) const MAX_JUMP: (f64, f64) = (0.08, 0.3);
    pub(crate) const MAX_OVERSHOOT: f64 = 1.5;

    /// Where datagrams overtake each other by more than a round, the rate of trains is too low. Until a
    /// queue is seen it grows by this factor after so many arrivals. One is seen when the newest of them are
    /// later than this part of the disorder and so many packets.
    pub(crate) const SEARCH: f64 = 2.0;
    pub(crate) const SEARCHED_ARRIVALS: usize = 8;
    pub(crate) const OVERSHOT: f64 = 0.12;
    pub(crate) const OVERSHOT_PACKETS: f64 = 2.0;

    /// The weight of a round in what is known of jitter.
    pub(crate) const HELD_UP_WEIGHT: f64 = 0.2;

    /// Jitter makes a least delay of this times the part of arrivals that came at once with the one before,
    /// less the second, over the square of the others, in intervals of sending: of even jitter of up to 15
    /// times the interval, within a tenth. Not below this interval, where clocks do not tell arrivals
    /// apart, and no more than this: bunches look the same.
    pub(crate) const JITTER: f64 = 1.67;
    pub(crate) const FEW_HELD_UP: f64 = 0.13;
    pub(crate) const MIN_APART: f64 = 0.01;
    pub(crate) const MIN_INTERVAL: Span = Span(50.0);
    pub(crate) const MAX_NOISE: Span = Span::from_millis(25);

    /// It is believed after this many rounds in which the link has shown one rate: one that delivers in
    /// bursts holds datagrams up as well.
    pub(crate) const STEADY: u32 = 32;

    /// A delay below this, or this part of the target, is no queue.
    pub(crate) const MIN_EMPTY: Span = Span(300.0);
    pub(crate) const EMPTY_PART: f64 = 0.2;

    /// The time from one drain to the next, how much more than the queue is drained, and the least in
    /// datagrams.
    pub(crate) const DRAIN_AFTER: Span = Span::from_secs(4);
    pub(crate) const DRAIN_MARGIN: Span = Span::from_millis(1);
    pub(crate) const DRAIN_PACKETS: f64 = 8.0;

    /// The part of the rate that is sent meanwhile.
    pub(crate) const DRAIN_PART: f64 = 0.4;
    pub(crate) const MAX_DRAIN_TIME: Span = Span::from_millis(250);

    /// A queue of less than this part of what was there before was drained.
    pub(crate) const DRAINED: f64 = 0.25;

    /// A delay of so many targets in so many rounds may be made by others; it is if so many drains in
    /// succession have not emptied the queue.
    pub(crate) const HOT: f64 = 2.0;
    pub(crate) const HOT_ROUNDS: u32 = 2;
    pub(crate) const MIN_HOT: Span = Span::from_millis(2);
    pub(crate) const MAX_HOT: Span = Span::from_millis(25);
    pub(crate) const MAX_FAILED: u32 = 3;
    pub(crate) const TEST_AFTER: Span = Span::from_millis(600);
    pub(crate) const YIELDED: f64 = 0.6;

    /// A base that falls by more in a trial was that of a queue that drops.
    pub(crate) const MIN_FALL: Span = Span::from_millis(10);

    /// Excess losses reduce what was delivered by this part of their share, and by this at least.
    pub(crate) const TRIAL_CUT: f64 = 0.5;
    pub(crate) const MIN_CUT: f64 = 0.03;

    /// Where excess losses come with a queue below the target, the target becomes this part of it, until that
    /// has grown again, by so much in each round without.
    pub(crate) const FULL_CAP: f64 = 0.4;
    pub(crate) const CAP_GROWTH: f64 = 1.01;
}

/// The link's own losses: `pacing/usual.rs`.
pub(crate) mod usual {
    use super::Span;

    /// What is taken for usual before anything was seen, and how many datagrams that is worth.
    pub(crate) const PRIOR: f64 = 0.001;
    pub(crate) const PRIOR_PACKETS: f64 = 50.0;

    /// Datagrams after which earlier ones count less.
    pub(crate) const MEMORY: f64 = 500.0;

    /// Losses beyond the usual ones that are an excess: a share, standard deviations and single ones.
    pub(crate) const EXCESS: f64 = 0.005;
    pub(crate) const SIGMAS: f64 = 3.0;
    pub(crate) const SINGLE: f64 = 1.5;

    /// Datagrams over which losses are counted.
    pub(crate) const WINDOW: u32 = 256;

    /// A trial lasts until so many should be lost, if it ends none of the losses, within these numbers.
    pub(crate) const TRIAL_LOST: f64 = 12.0;
    pub(crate) const ENDED: f64 = 0.35;

    /// On weak links a trial ends after this time, if so many datagrams were seen; then all losses have to be
    /// gone.
    pub(crate) const MAX_TRIAL: Span = Span::from_secs(2);
    pub(crate) const MIN_SEEN: f64 = 12.0;

    /// An excess above this is believed after this many trials, each at half of the rate of the one before.
    pub(crate) const HEAVY: f64 = 0.2;
    pub(crate) const TRIES: u32 = 2;

    /// A trial has this part of the rate at least: where most is lost whatever is sent, little arrives that
    /// could tell it.
    pub(crate) const MIN_TRIAL: f64 = 0.5;

    /// After a trial without an effect the rate grows again from this many times that of the trial.
    pub(crate) const MAX_RETURN: f64 = 2.0;

    /// Drains that have to confirm what a trial has shown, and their least length in datagrams.
    pub(crate) const CONFIRMED: u32 = 2;
    pub(crate) const CONFIRM_PACKETS: f64 = 64.0;
    pub(crate) const TRIAL_PACKETS: (f64, f64) = (16.0, 300.0);
}

/// The start of a transfer: `pacing/start.rs`.
pub(crate) mod start {
    /// What is delivered is looked at so often in a round trip, over so many arrivals at least.
    pub(crate) const ROUNDS: f64 = 2.0;
    pub(crate) const MIN_ARRIVALS: usize = 8;

    /// Others are on a link that delivers less than this part of its rate while a queue stands, and on one
    /// that loses more than the square of it leaves, of so many datagrams: few links lose half on their own.
    pub(crate) const CROWDED: f64 = 0.7;
    pub(crate) const MIN_FATES: u32 = 32;

    /// Nobody else is on a link that passes at least this part of its rate whenever a queue stands.
    pub(crate) const ALONE: f64 = 0.95;

    /// Rounds in succession with such a queue after which a transfer does not wait until it is long.
    pub(crate) const SURE: u32 = 1;

    /// So much less than what was delivered is a newcomer's share at first: it grows faster than those that
    /// have more give way.
    pub(crate) const PART: f64 = 0.5;

    /// A share of losses that has to be explained before the known rate is used for long; and where nobody
    /// else is seen.
    pub(crate) const LOSSY: f64 = 0.12;
    pub(crate) const LOSSY_ALONE: f64 = 0.25;
}

/// Sharing a queue that others fill: `pacing/beside_tcp.rs`.
pub(crate) mod beside_tcp {
    /// The rate is judged so often in a round trip: each loss counts.
    pub(crate) const ROUNDS: f64 = 4.0;

    /// A drain lasts this many round trips at least: flows of this law are less well in step.
    pub(crate) const DRAIN_TRIPS: f64 = 1.0;

    /// The maximum growth in a round.
    pub(crate) const MAX_STEP: f64 = 1.5;

    /// A loss counts as a sign of a full queue when the delay is at least this fraction of the longest seen.
    pub(crate) const FULL_QUEUE: f64 = 0.5;

    /// It also takes more losses than usual, by this many standard deviations.
    pub(crate) const SIGMAS: f64 = 2.0;
}
