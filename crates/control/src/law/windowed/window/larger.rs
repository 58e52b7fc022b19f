//! Whether a delay is a queue or jitter, where arrivals are bunched.
//!
//! Jitter that keeps datagrams in order delays all of a round, as a queue does, and a window that follows
//! that delay stays as small as it is: 4 MiB over 23 Mbit/s with 33 ms of jitter took four times as long as
//! TCP. A larger window shows what it is. Datagrams of a full link take as much longer as the window is
//! larger, and over jitter they take as long as before (Little's law). Other flows hide that, so that nothing
//! is tried near the window that overflowed last, nor while a queue may be theirs.

use super::{MIN_GROWTH, NEAR_FULL, Seen, Window};

/// The window that is tried is this many times as large, and this part of the time that a queue of its own
/// would add may be chance. With half as much larger 4 MiB over links of jitter in order take a percent
/// longer, and with twice as much their queues drop one datagram in a hundred more.
const LARGER: f64 = 1.5;
const CHANCE: f64 = 0.5;

/// Rounds until the next trial after one in a queue of its own: at first, at most, and by what they become
/// more. Bunches are also what a mobile network schedules: with fewer rests its queue is longer.
const RESTS: (u32, u32) = (4, 256);
const RARER: u32 = 4;

/// A larger window, and what was before.
#[derive(Clone, Copy, Debug)]
struct Tried {
    size: f64,
    /// The mean time there and back of a datagram, in seconds.
    time: f64,
}

/// The larger windows that are tried.
#[derive(Clone, Debug)]
pub(super) struct Larger {
    tried: Option<Tried>,
    /// Rounds until the next one, and after the next one that fails.
    rests: u32,
    next_rests: u32,
}

impl Larger {
    pub(super) const NONE: Self = Self { tried: None, rests: 0, next_rests: RESTS.0 };

    /// Whether one is tried.
    pub(super) const fn is_tried(&self) -> bool {
        self.tried.is_some()
    }

    /// How much of what passed it sends.
    pub(super) const fn gain(&self) -> Option<f64> {
        if self.is_tried() { Some(LARGER) } else { None }
    }

    /// What happens in this round shows nothing of the larger window.
    pub(super) const fn stop(&mut self) {
        self.tried = None;
    }

    /// Datagrams have another size: the window is this many times as many of them.
    pub(super) fn scale(&mut self, times: f64) {
        self.tried = self.tried.map(|it| Tried { size: times * it.size, ..it });
    }

    fn rest(&mut self) {
        self.rests = self.next_rests;
        self.next_rests = (RARER * self.next_rests).min(RESTS.1);
    }
}

impl Window {
    /// Judges a larger window by a round. Returns the window to go on with; nothing if none was tried.
    pub(super) fn judge_larger(&mut self, seen: &Seen, trip: f64, is_lossy: bool) -> Option<f64> {
        self.larger.rests = self.larger.rests.saturating_sub(1);
        let tried = self.larger.tried.take()?;
        let longest = tried.time * (1.0 + CHANCE * (LARGER - 1.0));
        if !is_lossy && trip + seen.mean < longest {
            self.larger.rests = 0;
            return Some(self.size);
        }
        self.larger.rest();
        self.is_stale = true;
        // What losses leave of the window is for them to say.
        (!is_lossy).then_some(tried.size)
    }

    /// Whether a delay is as well jitter as a queue, and a larger window far from overflowing.
    pub(super) fn is_doubtful(&self, seen: &Seen) -> bool {
        let is_near_full = self.full > 0.0 && LARGER * self.size >= NEAR_FULL * self.full;
        seen.is_bunched && !seen.is_shared && !is_near_full
    }

    /// Whether a larger window shows which of the two it is. Not beside a game, for which any queue is too
    /// long.
    pub(super) fn may_try_larger(&self, seen: &Seen) -> bool {
        let may_show = self.was_short && self.larger.rests == 0 && self.max_growth.is_none();
        may_show && self.is_doubtful(seen)
    }

    /// A larger window.
    pub(super) fn try_larger(&mut self, seen: &Seen, trip: f64) -> f64 {
        self.larger.tried = Some(Tried { size: self.size, time: trip + seen.mean });
        (self.has_met_queue, self.has_yielded) = (true, true);
        (self.is_stale, self.growth) = (true, MIN_GROWTH);
        LARGER * self.size
    }
}
