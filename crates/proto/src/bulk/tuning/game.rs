//! Constants of a transfer beside a game: `pacing/beside_game.rs`, and `pacing/policer.rs`, which it uses.
//!
//! Most were found in `lab/tests/links/share.rs`. The invariant: on other transfers nothing here has an
//! effect.

use crate::bulk::units::{Rate, Span};

/// Losses that a lower rate ends: `pacing/policer.rs`.
pub(crate) mod policer {
    /// Datagrams per detection window, and how far the loss share must exceed the usual one: loss bursts of
    /// eight with a mean of 5 % reach this once in a million windows.
    pub(crate) const WINDOW: u32 = 256;
    pub(crate) const UNUSUAL: f64 = 0.25;

    /// The same once a policer was found, and during a trial.
    pub(crate) const POLICED_WINDOW: u32 = 48;
    pub(crate) const POLICED: f64 = 0.06;

    /// A trial that leaves less than this fraction of the unusual losses has found a policer.
    pub(crate) const ENDED: f64 = 0.5;

    /// Weight of a window in the moving average of the usual loss share.
    pub(crate) const LEARNED: f64 = 0.3;

    /// The loss share above which the rate does not grow, whatever the cause: a higher rate would only lose
    /// more.
    pub(crate) const FUTILE: f64 = 0.5;
}

/// Beside a game: `pacing/beside_game.rs`.
pub(crate) mod beside_game {
    use super::{Rate, Span};

    /// The initial rate of a transfer beside a game: 40 full datagrams a second.
    pub(crate) const START: Rate = Rate::from_kbps(400);

    /// The part of its share of a known rate with which a transfer begins, if that is more: the path may have
    /// become slower, and the next round has the rest.
    pub(crate) const CAREFUL: f64 = 0.5;

    /// The longest that a train may take at the rate of the way back, with which a transfer over an unknown
    /// path begins: a game's packet waits for it once. Ten packets are a train from 20 Mbit/s on.
    pub(crate) const MAX_TRAIN: Span = Span::from_millis(5);

    /// The longest that a slice as large as the path carries may take at the transfer's rate. Longer ones are
    /// cut as small as a chunk can be: at 2 Mbit/s one in a datagram of 1500 bytes takes 6 ms, one of 1024
    /// bytes 4.3, and a game's packet waits for it. Ethernet's are cut from 3.4 Mbit/s on.
    pub(crate) const MAX_SLICE: Span = Span::from_millis(5);

    /// The fraction of the link's rate that a transfer uses: at 2 Mbit/s a slice takes 4.9 ms, and a game's
    /// packet should queue behind one slice at most.
    pub(crate) const SHARE: f64 = 0.7;

    /// Growth per round while it searches for that rate: the excess then queues for an eighth of a round
    /// trip.
    pub(crate) const GROWTH: f64 = 1.15;

    /// The same on a near path until a queue is seen, and the arrivals of such a round: the excess of one
    /// round queues for a round, which is 20 ms, and then the rate is known.
    pub(crate) const STEEP_GROWTH: f64 = 2.0;
    pub(crate) const STEEP_ARRIVALS: usize = 4;

    /// On long paths growth is limited further, so that a round trip of excess makes no longer a queue.
    pub(crate) const MAX_QUEUE: Span = Span::from_millis(25);

    /// The first search for a higher rate starts after this time, and grows more gently. The interval
    /// doubles after each search without a result, up to the second: then less than one round in twenty has
    /// a queue.
    pub(crate) const FIRST_SEARCH: Span = Span::from_secs(8);
    pub(crate) const MAX_SEARCH: Span = Span::from_secs(32);
    pub(crate) const SEARCH_GROWTH: f64 = 1.05;

    /// Consecutive rounds with a queue before the rate is reduced: a single one is jitter, unless the queue
    /// is twice as long.
    pub(crate) const ROUNDS: u32 = 2;

    /// The delay of eight consecutive datagrams that counts as a queue: more than jitter adds to the
    /// smallest of them.
    pub(crate) const QUEUED: Span = Span(1_500.0);
    pub(crate) const ARRIVALS: usize = 8;

    /// The newest four to eight arrivals of a round are judged, so that a queue shows in the round that
    /// caused it.
    pub(crate) const TAIL: usize = 4;

    /// Growth waits for the next round when the newest four datagrams were delayed by so much more than the
    /// four before them. Jitter does that as well, but a round is short, and what is sent until a queue shows
    /// in a whole one is a round trip's worth.
    pub(crate) const RISING: Span = Span(250.0);

    /// The queue grows when less than this fraction of the sending rate is delivered.
    pub(crate) const SQUEEZED: f64 = 0.93;

    /// Rounds that a queue may take to drain. If it takes longer, the available rate is lower than assumed.
    pub(crate) const MAX_DRAINS: u32 = 3;

    /// The maximum delay of a tick that is made up for: one tick, so that slices are not sent back to back
    /// unless a tick is due more than one.
    pub(crate) const CATCH_UP: Span = Span::from_millis(1);
}
