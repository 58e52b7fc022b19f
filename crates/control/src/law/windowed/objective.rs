//! The aim of a transfer. These numbers are all that makes a window behave differently beside a game.

use crate::units::{Rate, Span};

/// How much of a link a transfer uses, and how much of it stays free.
#[derive(Debug)]
pub(in super::super) struct Objective {
    /// The part of the passing rate that is used after a queue was seen, and the minimum and the maximum time
    /// for which it is used: then more is tried.
    pub(super) share: f64,
    pub(super) rests: (Span, Span),
    /// The first rest lasts for this number of rounds, within the times of `rests`.
    pub(super) rested: f64,
    /// The queue that may stand, in seconds, and the one that a round of growth may make.
    pub(super) max_queue: f64,
    pub(super) max_grown: Span,
    /// The minimum time of a round, and its minimum number of datagrams. The delays of the first half of that
    /// time belong to the round before.
    pub(super) min_round: Span,
    pub(super) min_fates: u64,
    /// Rounds within this time are judged together, and older ones too until they have `min_delays` delays.
    pub(super) lately: Span,
    pub(super) min_delays: u32,
}

/// All of a link, and a fair part of it beside others. The same jitter may hold up all datagrams of some
/// milliseconds, so that two short rounds count together.
pub(in super::super) const LOAD_SCREEN: Objective = Objective {
    share: 1.0,
    rests: (Span::ZERO, Span::ZERO),
    rested: 0.0,
    max_queue: f64::INFINITY,
    max_grown: Span::INFINITY,
    min_round: Span::ZERO,
    min_fates: 0,
    lately: Span::from_millis(40),
    min_delays: 4,
};

/// What is idle. At 2 Mbit/s a slice takes 4.9 ms, and a game's packet should wait behind one at most: so
/// three tenths stay free. A queue is one from half of what may stand on, more than jitter adds to the least
/// of some delays. One round trip in ten seconds that tries a sixteenth more is not felt. On a near path a
/// round of twenty milliseconds has enough arrivals to tell.
pub(in super::super) const DURING_PLAY: Objective = Objective {
    share: 0.7,
    rests: (Span::from_secs(2), Span::from_secs(32)),
    rested: 40.0,
    max_queue: 0.003,
    max_grown: Span::from_millis(20),
    min_round: Span::from_millis(20),
    min_fates: 8,
    lately: Span::from_millis(20),
    min_delays: 8,
};

/// The rate with which a transfer begins whose link is not known: 40 full datagrams a second.
pub(in super::super) const START: Rate = Rate::from_kbps(400);
