//! Whose losses are: cuts, and the trials that show it.
//!
//! A queue that overflows drops less when the window is smaller, and a path that loses on its own does not.
//! So a window that meets losses without a queue becomes a tenth smaller than the number that got through,
//! and the losses then show whether the queue was full or the losses are the path's. A cut is taken back
//! where its losses were late.

use super::super::losses::{Losses, MAX_EXCESS};
use super::{MIN_GROWTH, NEAR_FULL, Seen, Window};

/// A cut for an excess is to the number that got through, but not below the first part of the window
/// (CUBIC's); a trial is made with the second part of that, so that it is surely less than the path holds.
/// With all of it, or 0.95, 4 MiB over random links are within a twentieth of the better TCP on 2 to 9 % more
/// of them, but a queue of two or three datagrams that overflows is taken for the path's own losses, 19 to 44
/// % of all (`proofs/window`, `search-losses`).
const MAX_CUT: f64 = 0.7;
pub(super) const TRIAL_PART: f64 = 0.9;

/// A mean queueing delay below this, in seconds, and half of the jitter is that of an empty queue, which
/// drops nothing.
const EMPTY: f64 = 0.000_5;

/// A cut may be taken back for this many rounds: a late datagram is seldom later.
const LATE_ROUNDS: u32 = 2;

/// A trial that has shown a full queue speaks for this number of excesses after it, if the window is no
/// smaller and losses come one by one, in runs of less than two: so a queue drops what is paced. With a trial
/// for each, a link behind 8 KiB was used at nine tenths for half of the time; with none for good, 0.9697 of
/// a Wi-Fi link is used in the lab's test (0.97). Runs are a radio's, and what ended in the trial was one.
const KNOWN: u32 = 8;
const SINGLE: f64 = 2.0;

/// An excess above this is believed after [`TRIES`] trials, each at half of the window of the one before.
const HEAVY: f64 = 0.15;
const TRIES: u32 = 2;

/// Losses that were found to be the path's own are tried again by a window that is this many times as large:
/// a flow that has a fiftieth of a link changes nothing by yielding, and one that has half of it does. One of
/// fifty flows found them with four datagrams, kept to that, and took most of the link on four of ten seeds.
const OUTGROWN: f64 = 2.0;

/// A smaller window that shows whose the losses are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    /// The window before, and the number of its datagrams that got through.
    size: f64,
    passed: f64,
    excess: f64,
    tries: u32,
    /// The queueing delays that losses since have met, in seconds, and how many these are.
    met: (f64, f64),
}

/// The state of the window before it was cut because of losses, and for how long the cut may be taken back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    size: f64,
    pub(super) max_queue: f64,
    had_met_queue: bool,
    growth: f64,
    /// The number of those losses, and of those that were only late.
    lost: f64,
    spurious: f64,
    /// Rounds since then without a trial.
    rounds: u32,
}

/// A window that a trial has found to overflow a queue, and the number of cuts for which that is believed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overflow {
    size: f64,
    cuts: u32,
}

impl Overflow {
    pub(super) const NONE: Self = Self { size: 0.0, cuts: 0 };
}

impl Window {
    /// Datagrams have another size: what is known of cuts and trials becomes this multiple.
    pub(super) fn scale_trials(&mut self, times: f64) {
        self.learned *= times;
        self.overflow.size *= times;
        self.trial =
            self.trial.map(|it| Trial { size: times * it.size, passed: times * it.passed, ..it });
        self.cut = self.cut.map(|it| Cut { size: times * it.size, ..it });
    }

    /// A round ends. After [`LATE_ROUNDS`] a cut is not taken back any more; those of a trial do not count.
    pub(super) fn age_cut(&mut self) {
        if let Some(cut) = self.cut.as_mut().filter(|_| self.trial.is_none()) {
            cut.rounds += 1;
        }
        self.cut = self.cut.filter(|cut| cut.rounds <= LATE_ROUNDS);
    }

    /// A datagram that was taken for lost has arrived. If the window was cut for such datagrams, it becomes
    /// what it was before.
    pub(in super::super) fn on_spurious(&mut self) {
        self.losses.on_spurious();
        let Some(cut) = &mut self.cut else { return };
        cut.spurious += 1.0;
        if 2.0 * cut.spurious < cut.lost {
            return;
        }
        let Cut { size, max_queue, had_met_queue, growth, .. } = *cut;
        self.set_size(self.size.max(size));
        (self.full, self.has_met_queue, self.growth) = (0.0, had_met_queue, growth);
        self.max_queue = self.max_queue.max(max_queue);
        self.losses.begin();
        (self.trial, self.cut, self.overflow.cuts) = (None, None, 0);
    }

    /// Whether a trial has shown that this number of datagrams in flight overflows a queue.
    pub(super) fn is_known_full(&mut self, used: f64) -> bool {
        let Overflow { size, cuts } = self.overflow;
        let is_known = cuts > 0 && used >= NEAR_FULL * size && self.losses.run() < SINGLE;
        self.overflow.cuts -= u32::from(is_known);
        is_known
    }

    /// Whether it has become much larger than it was when its losses were found to be the path's own. Not
    /// beside a game, where growth is bounded and each queue makes it smaller.
    pub(super) fn has_outgrown(&self) -> bool {
        let is_larger = self.size > OUTGROWN * self.learned;
        is_larger && self.max_growth.is_none() && self.losses.usual() > MAX_EXCESS
    }

    /// A trial of losses that are usual, at half of the window.
    pub(super) fn try_once_more(&mut self) -> f64 {
        let (used, excess) = (self.size.min(self.most as f64), self.losses.usual());
        let passed = used * (1.0 - excess);
        self.trial = Some(Trial { size: used, passed, excess, tries: TRIES, met: (0.0, 0.0) });
        self.losses = Losses::new(0.0, 0.0);
        (self.is_stale, self.growth, self.learned) = (true, MIN_GROWTH, f64::INFINITY);
        used / 2.0
    }

    /// More is lost than usual: the window becomes what got through. With a queue it is plain whose losses
    /// these are; without one a trial shows it.
    pub(super) fn cut(
        &mut self,
        excess: f64,
        seen: &Seen,
        trip: f64,
        target: f64,
        is_plain: bool,
    ) -> f64 {
        let used = self.size.min(self.most as f64);
        let share = seen.lost as f64 / (seen.acked + seen.lost) as f64 - self.losses.usual();
        // A window that doubles has overflowed with what was in flight a round before.
        let began = if self.has_met_queue { used } else { self.began_with as f64 + 1.0 };
        let filled = used.min(began) * (1.0 - share);
        let passed = (used * (1.0 - excess)).min(filled.max(MAX_CUT * used));
        let passed = passed * (trip + target.min(seen.queue)) / (trip + seen.queue);
        let trial = Trial { size: used, passed, excess, tries: 1, met: (0.0, 0.0) };
        self.cut = Some(Cut {
            size: used,
            max_queue: self.max_queue,
            had_met_queue: self.has_met_queue,
            growth: self.growth,
            lost: self.losses.recent_lost(),
            spurious: 0.0,
            rounds: 0,
        });
        self.trial = (!is_plain).then_some(trial);
        (self.has_met_queue, self.growth) = (true, MIN_GROWTH);
        (self.is_stale, self.full) = (true, used);
        self.losses.begin();
        self.has_yielded |= is_plain;
        if is_plain { passed } else { TRIAL_PART * passed }
    }

    /// The window in a trial, or after it. A queue is there if it has a target.
    pub(super) fn go_on(
        &mut self,
        mut trial: Trial,
        seen: &Seen,
        trip: f64,
        queued: Option<f64>,
    ) -> f64 {
        let lost = seen.lost as f64;
        trial.met = (trial.met.0 + lost * seen.queue, trial.met.1 + lost);
        self.trial = Some(trial);
        let Some(is_lossy) = self.losses.goes_on(trial.excess) else {
            return match queued {
                Some(target) => self.follow(seen, trip, target).min(self.size),
                None => self.size,
            };
        };
        self.trial = None;
        if !is_lossy {
            self.losses.begin();
            self.has_yielded = true;
            self.overflow = Overflow { size: trial.size, cuts: KNOWN };
            return trial.passed;
        }
        let is_empty = trial.met.0 <= (EMPTY + self.least_spread() / 2.0) * trial.met.1;
        if !is_empty && !seen.is_bunched {
            // Others fill the queue.
            return self.cut(trial.excess, seen, trip, seen.queue, false);
        }
        if trial.excess > HEAVY && trial.tries < TRIES {
            self.trial = Some(Trial { tries: trial.tries + 1, met: (0.0, 0.0), ..trial });
            self.is_stale = true;
            self.losses.begin();
            return self.size.min(self.most as f64) / 2.0;
        }
        self.losses.learn();
        (self.growth, self.overflow.cuts) = (MIN_GROWTH, 0);
        self.learned = trial.size.max(self.size);
        self.learned
    }
}
