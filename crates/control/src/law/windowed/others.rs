//! Others on the link that fill its queue: how they are found out, and the window beside them.
//!
//! All flows of this law drain the queue in step ([`Drains`]): each sends less until its own part of the
//! queue is gone. A queue that stays afterwards is made by others. If that is so several times, and this flow
//! has yielded, it competes as they do, by CUBIC (RFC 9438), until a drain empties the queue.
//!
//! Unless it is no queue: a flow that sends less makes any queue shorter, but not a path that has become
//! longer ([`Left`]).

use super::super::cubic::{self, CUT};
use super::super::drains::Drains;
use super::SECOND;
use super::window::target;
use crate::tuning::delay::{
    DRAINED, HOT, HOT_ROUNDS, MAX_FAILED, MAX_HOT, MIN_EMPTY, TEST_AFTER, YIELDED,
};
use crate::units::Span;

/// How much more than the queue is drained, in seconds; twice and four times as much after drains that have
/// not emptied it. And the least part of the window during a drain.
const MARGIN: f64 = 0.001;
const MIN_PART: f64 = 0.4;

/// A flow that seems to have this part of a queue has all of it.
const ALONE: f64 = 0.8;

/// The window beside others begins at the one before, by as much larger as their queue makes the round trip
/// longer, up to this: where the link has become slower, its own queue is longer still.
const MAX_LONGER: f64 = 3.0;

/// What a cut below the last one leaves of the window that was (RFC 9438, 4.7).
const CONVERGENCE: f64 = 0.85;

/// The window grows in a round by this factor at most.
const MAX_STEP: f64 = 1.5;

/// The window before a flow yielded is forgotten in this time, in seconds: where it yields slowly the queue
/// is at the target now and then.
const FORGOTTEN: f64 = 3.0;

/// A path has become longer if this number of drains in succession have left the same delay. Delays are the
/// same if they differ by at most the first of these in seconds, or this part of the least; and a queue's
/// would differ by [`TOLD`] times as much, because this flow had fewer datagrams in flight in one of them.
const SAME_LEFT: usize = 3;
const SAME: (f64, f64) = (0.001, 1.0 / 20.0);
const TOLD: f64 = 3.0;

/// What a drain that has not emptied the queue has left.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// The least delay, in seconds, and the datagrams in flight with it.
    least: f64,
    used: f64,
}

impl Left {
    const NOTHING: Self = Self { least: f64::INFINITY, used: 0.0 };
}

/// What a drain has shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found {
    /// Others fill the queue: the window to go on with.
    Others(f64),
    /// The path has become longer by this many seconds. Returns the window to go on with.
    Longer(f64, f64),
}

/// A drain: in its first round what was sent before arrives.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// The queueing delay before it, in seconds, and the part of the window that is used.
    before: f64,
    part: f64,
    is_second: bool,
}

/// What is known of others.
#[derive(Clone, Debug)]
pub(super) struct Others {
    drains: Drains,
    drain: Option<Drain>,
    /// Drains since one that emptied the queue, and how many of them began with a long one.
    failed: u32,
    blamed: u32,
    /// What the last ones have left, the newest first.
    left: [Left; SAME_LEFT],
    /// Rounds with a long queue, and when a drain may look at the next.
    hot: u32,
    test_at: Span,
    /// The window before this flow yielded.
    before: f64,
    /// The queueing delay of the last round, and the minimum of this one, in seconds.
    delay: f64,
    least: f64,
    cubic: Option<Cubic>,
    /// Whether it takes its part beside them.
    competes: bool,
}

impl Others {
    /// Begins where the path holds such a window.
    pub(super) fn new(now: Span, window: f64) -> Self {
        Self {
            drains: Drains::new(now),
            drain: None,
            failed: 0,
            blamed: 0,
            left: [Left::NOTHING; SAME_LEFT],
            hot: 0,
            test_at: Span::ZERO,
            before: window,
            delay: 0.0,
            least: f64::INFINITY,
            cubic: None,
            competes: true,
        }
    }

    /// Datagrams have another size: the same bytes are `times` as many datagrams.
    pub(super) fn scale(&mut self, times: f64) {
        self.before *= times;
        self.left.iter_mut().for_each(|left| left.used *= times);
        self.cubic = self.cubic.map(|cubic| Cubic { full: times * cubic.full, ..cubic });
    }

    /// Makes this flow yield to others of every kind.
    pub(super) const fn yielding(mut self) -> Self {
        self.competes = false;
        self
    }

    /// The part of the window that may be used.
    pub(super) fn part(&self) -> f64 {
        self.drain.map_or(1.0, |drain| drain.part)
    }

    /// A datagram sent at `sent` met this queueing delay, which is below the previous minimum by `fell`.
    /// Returns whether it is time to drain.
    pub(super) fn on_delay(&mut self, now: Span, sent: Span, delay: Span, fell: Span) -> bool {
        if delay <= MIN_EMPTY {
            self.drains.on_empty(sent, fell);
        }
        self.least = self.least.min(delay / SECOND);
        self.drains.poll(now) && self.drain.is_none()
    }

    /// Whether the last drain has not emptied the queue.
    pub(super) const fn is_suspected(&self) -> bool {
        self.failed > 0
    }

    pub(super) fn begin_drain(&mut self, trip: f64) {
        let queue = (self.delay + MARGIN) * f64::from(1 << self.failed.min(2));
        let part = (trip / (trip + queue)).max(MIN_PART);
        self.drain = Some(Drain { before: self.delay, part, is_second: false });
    }

    /// A round of a drain is over, on a link that passes a datagram in `each` seconds. Returns what is found
    /// out.
    pub(super) fn end_drain_round(&mut self, size: f64, trip: f64, each: f64) -> Option<Found> {
        let drain = self.drain.as_mut()?;
        let least = core::mem::replace(&mut self.least, f64::INFINITY);
        if !core::mem::replace(&mut drain.is_second, true) {
            return None;
        }
        let Drain { before, part, .. } = *drain;
        self.drain = None;
        // One that this flow has filled becomes shorter by what it holds back, and of a long one more than a
        // quarter is left; others' does not.
        let own = (1.0 - ALONE * (1.0 - part)) * (trip + before) - trip;
        let left = own.max(DRAINED * before);
        if least <= left.max(MIN_EMPTY / SECOND) {
            self.on_emptied();
            return None;
        }
        if !self.competes {
            return None;
        }
        self.left.rotate_right(1);
        self.left[0] = Left { least, used: part * size };
        if self.is_same_left(each) {
            self.on_emptied();
            self.hot = 0;
            let longer = ((trip + least) / trip).min(MAX_LONGER);
            return Some(Found::Longer(least, (self.before * longer).max(size)));
        }
        self.failed += 1;
        self.blamed += u32::from(self.is_hot(before, trip));
        let has_yielded = self.blamed >= MAX_FAILED && size < YIELDED * self.before;
        if self.cubic.is_some() || !has_yielded && self.failed < 2 * MAX_FAILED {
            return None;
        }
        // As much as it had passes with their queue in as much longer a round trip.
        let longer = ((trip + before) / trip).min(MAX_LONGER);
        let full = (self.before * longer).max(size);
        self.cubic = Some(Cubic::at(full));
        Some(Found::Others(full))
    }

    /// No part of the queue is made by others.
    const fn on_emptied(&mut self) {
        (self.failed, self.blamed, self.cubic) = (0, 0, None);
        self.left = [Left::NOTHING; SAME_LEFT];
    }

    /// Whether what the last drains have left is no queue.
    fn is_same_left(&self, each: f64) -> bool {
        let range = |of: fn(&Left) -> f64| {
            let values = self.left.iter().map(of);
            values.fold((f64::INFINITY, 0.0_f64), |(a, b), it| (a.min(it), b.max(it)))
        };
        let ((least, most), (fewest, used)) = (range(|it| it.least), range(|it| it.used));
        let same = SAME.0.max(SAME.1 * least);
        most - least <= same && (used - fewest) * each >= TOLD * same
    }

    /// Whether a round of a drain is under way.
    pub(super) const fn is_draining(&self) -> bool {
        self.drain.is_some()
    }

    /// The window beside others after a round with this queue in seconds; `None` without others.
    pub(super) fn compete(
        &mut self,
        size: f64,
        (queue, trip): (f64, f64),
        is_short: bool,
        mut is_lossy: impl FnMut() -> bool,
    ) -> Option<f64> {
        self.delay = queue;
        if queue < MIN_EMPTY / SECOND {
            self.cubic = None;
        }
        let cubic = self.cubic.as_mut()?;
        cubic.lasted += trip + queue;
        let was_cut = core::mem::take(&mut cubic.was_cut);
        if !is_lossy() {
            let next = cubic.window(trip + queue).clamp(size, MAX_STEP * size);
            return Some(if is_short { next } else { size });
        }
        if was_cut {
            // These were sent before the cut.
            return Some(size);
        }
        let full = if size < cubic.full { CONVERGENCE * size } else { size };
        *cubic = Cubic { full, lasted: 0.0, was_cut: true };
        Some(CUT * size)
    }

    /// A round without others has ended, with this queue in seconds. Returns whether a drain should show
    /// whose it is.
    pub(super) fn is_doubtful(&mut self, now: Span, queue: f64, trip: f64, size: f64) -> bool {
        if queue <= target((trip + queue) / size) {
            let part = ((trip + queue) / FORGOTTEN).min(1.0);
            self.before = size.max(self.before + part * (size - self.before));
        }
        self.hot = if self.is_hot(queue, trip) { self.hot + 1 } else { 0 };
        if self.hot < HOT_ROUNDS || size >= self.before || now < self.test_at {
            return false;
        }
        self.hot = 0;
        self.test_at = now + TEST_AFTER.max(2.0 * trip * SECOND);
        true
    }

    /// The queue is far longer than flows of this law would make it.
    fn is_hot(&self, queue: f64, trip: f64) -> bool {
        queue > (HOT * target((trip + queue) / self.before.max(1.0))).min(MAX_HOT / SECOND)
    }
}

/// The window of CUBIC.
#[derive(Clone, Copy, Debug)]
struct Cubic {
    /// The window that overflowed, and the seconds since.
    full: f64,
    lasted: f64,
    was_cut: bool,
}

impl Cubic {
    /// At this window, from which it grows.
    fn at(full: f64) -> Self {
        Self { full, lasted: cubic::until_full(full), was_cut: false }
    }

    fn window(&self, rtt: f64) -> f64 {
        cubic::window(self.full, self.lasted, rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIP: f64 = 0.05;
    const EACH: f64 = 0.001;

    /// Two rounds of a drain of 100 ms, at the end of which such a delay is the least.
    fn drained(others: &mut Others, least: f64) -> Option<f64> {
        others.delay = 0.1;
        others.begin_drain(TRIP);
        assert_eq!(others.end_drain_round(10.0, TRIP, EACH), None, "what was sent before");
        others.least = least;
        match others.end_drain_round(10.0, TRIP, EACH)? {
            Found::Others(size) => Some(size),
            Found::Longer(..) => panic!("it is a queue"),
        }
    }

    #[test]
    fn a_queue_that_no_drain_empties_is_of_others_until_one_does() {
        let mut others = Others::new(Span::ZERO, 100.0);
        let found: alloc::vec::Vec<_> = (0..3).map(|_| drained(&mut others, 0.09)).collect();
        assert_eq!(found, [None, None, Some(300.0)]);
        let beside = others.compete(100.0, (0.1, TRIP), true, || false).unwrap();
        assert!(beside > 100.0, "{beside}");
        assert_eq!(others.compete(100.0, (0.1, TRIP), true, || true), Some(70.0));
        assert_eq!(
            others.compete(70.0, (0.1, TRIP), true, || true),
            Some(70.0),
            "of before the cut"
        );
        // Of 150 ms with the queue a drain to four tenths leaves 60 if all of it is this flow's, and 105
        // beside one that has as much of it.
        assert_eq!(drained(&mut others, 0.055), None);
        assert!(others.compete(70.0, (0.1, TRIP), true, || false).is_some(), "half of it");
        assert_eq!(drained(&mut others, 0.027), None, "all of it, and still a quarter stands");
        assert_eq!(others.compete(70.0, (0.1, TRIP), true, || false), None);
    }

    /// Beside one that takes its place slowly the queue is at the target for most of the time.
    #[test]
    fn a_flow_that_gives_way_slowly_remembers_what_it_had() {
        let mut others = Others::new(Span::ZERO, 100.0);
        let mut size = 100.0;
        while size > 60.0 {
            size -= 2.0;
            others.is_doubtful(Span::ZERO, 0.004, TRIP, size);
        }
        assert!(others.before > 75.0, "{}", others.before);
        (0..200).for_each(|_| _ = others.is_doubtful(Span::ZERO, 0.004, TRIP, size));
        assert!(others.before < 65.0, "{}", others.before);
    }

    #[test]
    fn flows_that_drain_in_step_are_no_others() {
        let mut others = Others::new(Span::ZERO, 100.0);
        for _ in 0..20 {
            assert_eq!(drained(&mut others, 0.001), None);
        }
    }

    /// Where the link becomes a twentieth of what it was, an own queue of a second stands after a drain to
    /// four tenths, if shorter; and others' make the first window no more than three times larger.
    #[test]
    fn a_queue_of_seconds_is_an_own_one_if_a_drain_makes_it_shorter() {
        let drained = |least| {
            let mut others = Others::new(Span::ZERO, 100.0);
            others.delay = 1.0;
            (0..3).find_map(|_| {
                others.begin_drain(TRIP);
                others.end_drain_round(10.0, TRIP, EACH);
                others.least = least;
                others.end_drain_round(10.0, TRIP, EACH)
            })
        };
        assert_eq!(drained(0.4), None);
        assert_eq!(drained(0.9), Some(Found::Others(300.0)));
    }

    /// A flow that yields has 46, 20 and 12 datagrams on a link that passes one in a millisecond. A queue
    /// of others would become shorter by 19 and 23 ms, if they fill nothing of it; a longer path does not.
    #[test]
    fn a_delay_that_no_window_changes_is_the_paths() {
        let found = |leasts: [f64; 3]| {
            let mut others = Others::new(Span::ZERO, 50.0);
            others.delay = 0.03;
            leasts.into_iter().zip([46.0, 20.0, 12.0]).find_map(|(least, size)| {
                others.begin_drain(TRIP);
                others.end_drain_round(size, TRIP, EACH);
                others.least = least;
                others.end_drain_round(size, TRIP, EACH)
            })
        };
        assert_eq!(found([0.030, 0.031, 0.030]), Some(Found::Longer(0.030, 80.0)));
        for queue in [[0.030, 0.024, 0.020], [0.030, 0.030, 0.034]] {
            assert!(matches!(found(queue), Some(Found::Others(_))), "{queue:?}");
        }
    }
}
