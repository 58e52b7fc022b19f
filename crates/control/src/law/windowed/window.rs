//! The window: how many datagrams may be in flight.
//!
//! In each round it follows the queueing delay toward a [`target`]. When more is lost than usual, it becomes
//! what got through, and a trial shows whose the losses are ([`Losses`]). Without a queue it grows by a part
//! of what was acknowledged, which doubles from round to round, but carefully near the window that
//! overflowed.
//!
//! A round ends when as many datagrams have a fate as were in flight at its beginning. The invariant: the
//! window is never below [`MIN_SPARSE`], nor above [`MAX_WINDOW`].

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

use libm::sqrt;

use super::losses::{Losses, MAX_EXCESS};
use super::sparse::Sparse;

/// The queue at which a flow neither grows nor yields, in seconds: this and the larger of two. The first is
/// that of a flow that sends a datagram a millisecond, and as its root of what one takes (Swift's scaling by
/// flows): slower flows want more, so that shares become equal. The second keeps slow links busy.
const MIN_TARGET: f64 = 0.001;
const TARGET: f64 = 0.006;
const TARGET_DATAGRAMS: f64 = 4.0;

/// Below this part of the target there is no queue.
const NO_QUEUE: f64 = 0.5;

/// And before one was seen it is an eighth of the round trip within these bounds, in seconds: HyStart++ (RFC
/// 9406).
const FIRST_QUEUE: (f64, f64) = (0.004, 0.016);

/// How far the window goes in a round toward the target; beyond twice of it all the way. It grows toward it
/// by [`ADDED`] datagrams at most, and shrinks by as many at least for each target that the queue is too
/// long: that is the same for all flows, and shares become equal (AIMD).
const GAIN: f64 = 0.5;
const ADDED: f64 = 4.0;

/// The part of what was acknowledged by which it grows without a queue: at first, and at most, before a
/// queue was seen and after.
const MIN_GROWTH: f64 = 1.0 / 16.0;
const FIRST_GROWTH: f64 = 1.0;
const MAX_GROWTH: f64 = 1.0 / 2.0;

/// Where the pace holds it back, the pace exceeds the rate that passed by this part at most: BBR's gain when
/// it probes.
const MAX_PACE: f64 = 1.0 / 4.0;

/// It grows at [`MIN_GROWTH`] from this part of a window that overflowed.
const NEAR_FULL: f64 = 0.8;

/// The cut for an excess is to what got through, but not below this part of the window (CUBIC's); a trial is
/// made with this part of that, so that it is surely less than the path holds. With all of it, or 0.95, 4
/// MiB over random links are within a twentieth of the better TCP on 2 to 9 % more of them, but a queue of
/// two or three datagrams that overflows is taken for the path's own losses, 19 to 44 % of all
/// (`proofs/window`, `search-losses`).
const MAX_CUT: f64 = 0.7;
const TRIAL_PART: f64 = 0.9;

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

/// The part of an overflowing queue that may stand afterwards, and by which part of itself it grows again in
/// a second: by rounds, short paths would overflow several times a second. It was seen if it was longer than
/// this, in seconds and in datagrams.
const OF_FULL: f64 = 0.5;
const REGROWTH: f64 = 0.5;
const MIN_QUEUE: f64 = 0.000_5;
const MIN_QUEUE_DATAGRAMS: f64 = 2.0;

/// By how much delays differ in rounds without a queue is jitter, up to this. Half of it is no queue.
const ROUNDS: usize = 8;
const MAX_JITTER: f64 = 0.1;

/// How much more may be in flight than gets through, losses of the path's own not counted, up to a share.
const OVER: f64 = 1.25;
const MAX_USUAL: f64 = 0.3;

/// And at most this share is taken for lost behind the bottleneck, when what passes it is counted.
const MAX_BEHIND: f64 = 0.5;

/// The least window: what is lost of three datagrams may be all of them. And the most, which is no limit.
pub(super) const MIN_WINDOW: f64 = 4.0;
const MAX_WINDOW: f64 = 1e6;

/// The least, as a pace where there are fewer. Where a round trip takes less than this in seconds a queue of
/// some packets is as long as it is, and drops what comes one by one: two flows had 9 and 0.3 of 10 Mbit/s.
const MIN_SPARSE: f64 = 1.0;
const MIN_SPARSE_TRIP: f64 = 0.005;

/// The target for a flow that sends a datagram each `each` seconds.
pub(super) fn target(each: f64) -> f64 {
    MIN_TARGET + (TARGET * sqrt(1_000.0 * each)).max(TARGET_DATAGRAMS * each)
}

/// What became of the datagrams of a round, and what they saw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) acked: u64,
    pub(super) lost: u64,
    /// Runs of losses one after the other.
    pub(super) runs: u64,
    /// The least queueing delay in seconds; infinite if none was reported.
    pub(super) queue: f64,
    /// The minimum of the rounds in the last 100 ms.
    pub(super) standing: f64,
    /// How much delays differ, in seconds.
    pub(super) spread: f64,
}

impl Seen {
    pub(super) const NOTHING: Self = Self {
        acked: 0,
        lost: 0,
        runs: 0,
        queue: f64::INFINITY,
        standing: f64::INFINITY,
        spread: 0.0,
    };
}

/// A smaller window that shows whose losses are.
#[derive(Clone, Copy, Debug)]
struct Trial {
    /// The window before, and what got through of it.
    size: f64,
    passed: f64,
    excess: f64,
    tries: u32,
    /// The queueing delays that losses since have met, in seconds, and how many these are.
    met: (f64, f64),
}

/// A window that was cut because of losses: what it was, and for how long that may be taken back.
#[derive(Clone, Copy, Debug)]
struct Cut {
    size: f64,
    max_queue: f64,
    had_met_queue: bool,
    growth: f64,
    /// Those losses, and what of them was not lost, but late.
    lost: f64,
    spurious: f64,
    /// Rounds since, that no trial was of.
    rounds: u32,
}

/// A window that a trial has found to overflow a queue, and the number of cuts for which that is believed.
#[derive(Clone, Copy, Debug)]
struct Overflow {
    size: f64,
    cuts: u32,
}

/// The window, in datagrams, and the round that is under way.
#[derive(Clone, Debug)]
pub(super) struct Window {
    size: f64,
    growth: f64,
    /// A queue was seen.
    has_met_queue: bool,
    /// The queue that may stand where one was seen to overflow, in seconds, and the window then.
    max_queue: f64,
    full: f64,
    losses: Losses,
    trial: Option<Trial>,
    cut: Option<Cut>,
    /// How much delays differed in the last rounds, in seconds.
    spreads: [f64; ROUNDS],
    /// Datagrams in flight at the beginning of the round, and at most since.
    began_with: u64,
    most: u64,
    /// A datagram had to wait for it.
    was_short: bool,
    /// What has its fate in this round was sent before the window was cut.
    is_stale: bool,
    /// What an objective bounds: the growth, and of how many datagrams at least losses are judged.
    max_growth: Option<f64>,
    min_told: f64,
    /// There was a queue that was this flow's doing.
    has_yielded: bool,
    /// What decides below [`MIN_WINDOW`], and the least size.
    sparse: Sparse,
    least: f64,
    /// The window at which losses were found to be the path's own; infinite if that is not to be tried again.
    learned: f64,
    overflow: Overflow,
}

impl Window {
    /// Begins with so many datagrams for a path that is known, of which some are in flight: what is lost of
    /// those says nothing of it.
    pub(super) const fn new(size: f64, in_flight: u64, losses: Losses) -> Self {
        Self {
            size: size.clamp(MIN_SPARSE, MAX_WINDOW),
            growth: MIN_GROWTH,
            has_met_queue: false,
            max_queue: f64::INFINITY,
            full: 0.0,
            losses,
            trial: None,
            cut: None,
            spreads: [f64::INFINITY; ROUNDS],
            began_with: in_flight,
            most: in_flight,
            was_short: false,
            is_stale: true,
            max_growth: None,
            min_told: 0.0,
            has_yielded: false,
            sparse: Sparse::NEW,
            least: MIN_SPARSE,
            learned: f64::INFINITY,
            overflow: Overflow { size: 0.0, cuts: 0 },
        }
    }

    /// So many of the first datagrams may be lost, and of less than `told` losses say nothing.
    pub(super) const fn bear(&mut self, lost: f64, told: f64) {
        (self.losses, self.min_told) = (Losses::new(lost, 0.0), told);
    }

    /// From now on no queue may stand that is longer than this in seconds, and growth is at most this.
    pub(super) const fn bound(&mut self, max_queue: f64, max_growth: f64) {
        let max_growth = max_growth.max(MIN_GROWTH);
        if !self.has_met_queue {
            self.growth = max_growth;
        }
        (self.max_queue, self.has_met_queue, self.max_growth) = (max_queue, true, Some(max_growth));
    }

    /// Whether the window had to yield to a queue of its own since this was asked.
    pub(super) const fn poll_yielded(&mut self) -> bool {
        core::mem::replace(&mut self.has_yielded, false)
    }

    /// Datagrams that may be in flight.
    pub(super) const fn size(&self) -> f64 {
        self.size
    }

    pub(super) const fn set_size(&mut self, size: f64) {
        self.size = size.clamp(self.least, MAX_WINDOW);
    }

    /// This many datagrams a second pass on a path that takes `trip` seconds there and back: as many are in
    /// flight as stay without a queue.
    pub(super) fn fill(&mut self, rate: f64, trip: f64) {
        self.set_size(rate * (trip + NO_QUEUE * target(1.0 / rate)));
    }

    /// Whether fewer datagrams than [`MIN_WINDOW`] may be in flight: the pace decides.
    pub(super) fn is_sparse(&self) -> bool {
        self.size < MIN_WINDOW
    }

    /// The fate of a datagram is settled.
    pub(super) fn on_settled(&mut self, is_lost: bool) {
        if self.is_sparse() {
            let usual = self.usual();
            let next = self.sparse.next(self.size, is_lost, usual);
            self.set_size(next);
        }
    }

    /// The time there and back without a queue takes this many seconds at least.
    pub(super) const fn set_least_trip(&mut self, trip: f64) {
        if trip < MIN_SPARSE_TRIP {
            self.least = MIN_WINDOW;
        }
    }

    /// Datagrams have another size: as much is so many times as many.
    pub(super) fn scale(&mut self, times: f64) {
        self.set_size(times * self.size);
        (self.full, self.learned) = (times * self.full, times * self.learned);
        self.overflow.size *= times;
        self.trial =
            self.trial.map(|it| Trial { size: times * it.size, passed: times * it.passed, ..it });
        self.cut = self.cut.map(|it| Cut { size: times * it.size, ..it });
    }

    /// The path holds this many datagrams, unless a queue was met.
    pub(super) fn raise(&mut self, size: f64) {
        if !self.has_met_queue {
            self.set_size(self.size.max(size));
        }
    }

    /// Whether a queue was seen.
    pub(super) const fn has_met_queue(&self) -> bool {
        self.has_met_queue
    }

    /// Whether a smaller window shows whose losses are.
    pub(super) const fn is_tried(&self) -> bool {
        self.trial.is_some()
    }

    /// How much of what passed may be sent: more by as much as the window grows, and surely less in a trial.
    pub(super) const fn gain(&self) -> f64 {
        if self.is_tried() { TRIAL_PART } else { 1.0 + self.growth }
    }

    /// The share of datagrams that is lost behind the bottleneck, for all that is known.
    pub(super) fn usual(&self) -> f64 {
        self.losses.usual().min(MAX_BEHIND)
    }

    /// Whether a datagram had to wait in this round.
    pub(super) const fn was_short(&self) -> bool {
        self.was_short
    }

    /// Whether there is room for one more, while only this part of it may be used.
    pub(super) fn has_room(&self, in_flight: u64, slices: u64, part: f64) -> bool {
        // A game's packets are not held back: they would keep a small window full for good.
        (slices as f64) < MIN_WINDOW || (in_flight + 1) as f64 <= part * self.size
    }

    /// A datagram was sent, with which this number is in flight.
    pub(super) const fn on_sent(&mut self, in_flight: u64, is_full: bool) {
        if in_flight > self.most {
            self.most = in_flight;
        }
        self.was_short |= is_full;
    }

    /// A router has marked a datagram: this queue, in seconds, is too long. The window becomes less by this
    /// part.
    pub(super) fn on_mark(&mut self, part: f64, queue: f64) {
        (self.full, self.growth, self.has_met_queue) = (self.size, MIN_GROWTH, true);
        self.has_yielded = true;
        self.max_queue = self.max_queue.min(OF_FULL * queue.max(MIN_QUEUE));
        self.set_size(self.size * (1.0 - part));
        self.is_stale = true;
    }

    /// A datagram that was taken for lost has arrived. Where the window was cut for such, it is what it was.
    pub(super) fn on_spurious(&mut self) {
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

    /// Whether a round is over in which this number of datagrams had a fate.
    pub(super) const fn is_due(&self, fates: u64) -> bool {
        fates > 0 && fates >= self.began_with
    }

    /// Whether half of a round is over with these fates: what is in it was sent before, for the most part.
    pub(super) const fn is_past_half(&self, before: u64, now: u64) -> bool {
        let half = self.began_with / 2;
        before < half && half <= now
    }

    /// Whether more than usual is lost in this round; if so, it is counted anew.
    pub(super) fn is_lossy(&mut self, seen: &Seen) -> bool {
        let is_any = self.losses.is_any(seen);
        if is_any {
            self.losses.begin();
        }
        is_any
    }

    /// The next round begins, and this one says nothing.
    pub(super) const fn begin_round(&mut self, in_flight: u64) {
        (self.began_with, self.most, self.was_short) = (in_flight, in_flight, false);
    }

    /// Judges a round over a path that takes `trip` seconds there and back without a queue, and begins the
    /// next.
    pub(super) fn judge(&mut self, seen: &Seen, trip: f64, in_flight: u64) {
        if self.is_sparse() {
            _ = (self.jitter(seen.spread), self.losses.excess(seen, false));
            self.trial = None;
            return self.begin_round(in_flight);
        }
        let is_stale = core::mem::take(&mut self.is_stale);
        let is_trial = self.trial.is_some();
        if let Some(cut) = self.cut.as_mut().filter(|_| !is_trial) {
            cut.rounds += 1;
        }
        self.cut = self.cut.filter(|cut| cut.rounds <= LATE_ROUNDS);
        if !is_stale && seen.queue.is_finite() && seen.acked > 0 {
            let next = self.next(seen, trip);
            let passed = seen.acked as f64 / (1.0 - self.losses.usual().min(MAX_USUAL));
            let most = if self.has_met_queue { OVER * passed + MIN_WINDOW } else { MAX_WINDOW };
            let size = next.min(self.size.max(most));
            self.set_size(if seen.lost > seen.acked { size.min(most) } else { size });
        }
        if is_stale && seen.lost > seen.acked {
            // Far more than the path holds, whoever has sent it.
            self.set_size(self.size.min(OVER * seen.acked as f64 + MIN_WINDOW));
        }
        self.begin_round(in_flight);
    }

    fn next(&mut self, seen: &Seen, trip: f64) -> f64 {
        let jitter = self.jitter(seen.spread);
        let used = self.size.min(self.most as f64).max(1.0);
        let each = (trip + seen.queue) / used;
        let wanted = target(each);
        let target = wanted.min(self.max_queue) + jitter / 2.0;
        self.max_queue *= 1.0 + REGROWTH * (trip + seen.queue);
        let max_queue = self.max_queue;
        let excess = self.losses.excess(seen, self.trial.is_some());
        let excess = excess.filter(|_| self.losses.recent() >= self.min_told);
        let is_first = !self.has_met_queue && excess.is_none();
        let first = if is_first { (trip / 8.0).clamp(FIRST_QUEUE.0, FIRST_QUEUE.1) } else { 0.0 };
        let is_queued = seen.queue >= first.max(NO_QUEUE * target);
        if self.trial.is_none() && excess.is_none() && self.has_outgrown() {
            return self.try_once_more();
        }
        match (self.trial, excess) {
            (Some(trial), _) => self.go_on(trial, seen, trip, is_queued.then_some(target)),
            (None, Some(excess)) => {
                let longest = seen.queue + seen.spread - jitter;
                if longest > MIN_QUEUE.max(MIN_QUEUE_DATAGRAMS * each) {
                    self.max_queue = OF_FULL * longest;
                }
                let is_plain =
                    seen.queue >= NO_QUEUE * (wanted + jitter / 2.0) || self.is_known_full(used);
                let size = self.cut(excess, seen, trip, target.min(self.max_queue), is_plain);
                self.cut = self.cut.map(|cut| Cut { max_queue, ..cut });
                size
            }
            (None, None) if is_queued => self.follow(seen, trip, target),
            (None, None) => self.grow(seen),
        }
    }

    /// Whether a trial has shown that this number of datagrams in flight overflows a queue.
    fn is_known_full(&mut self, used: f64) -> bool {
        let Overflow { size, cuts } = self.overflow;
        let is_known = cuts > 0 && used >= NEAR_FULL * size && self.losses.run() < SINGLE;
        self.overflow.cuts -= u32::from(is_known);
        is_known
    }

    /// Whether it has become much larger than it was when its losses were found to be the path's own. Not
    /// beside a game, where growth is bounded and each queue makes it smaller.
    fn has_outgrown(&self) -> bool {
        let is_larger = self.size > OUTGROWN * self.learned;
        is_larger && self.max_growth.is_none() && self.losses.usual() > MAX_EXCESS
    }

    /// A trial of losses that are usual, at half of the window.
    fn try_once_more(&mut self) -> f64 {
        let (used, excess) = (self.size.min(self.most as f64), self.losses.usual());
        let passed = used * (1.0 - excess);
        self.trial = Some(Trial { size: used, passed, excess, tries: TRIES, met: (0.0, 0.0) });
        self.losses = Losses::new(0.0, 0.0);
        (self.is_stale, self.growth, self.learned) = (true, MIN_GROWTH, f64::INFINITY);
        used / 2.0
    }

    /// The minimum spread of delays in the last rounds: in one of them the queue did not change.
    fn jitter(&mut self, spread: f64) -> f64 {
        self.spreads.rotate_right(1);
        self.spreads[0] = spread;
        self.least_spread()
    }

    fn least_spread(&self) -> f64 {
        self.spreads.iter().copied().fold(MAX_JITTER, f64::min)
    }

    /// More is lost than usual: the window becomes what got through. With a queue it is plain whose losses
    /// these are; without one a trial shows it.
    fn cut(&mut self, excess: f64, seen: &Seen, trip: f64, target: f64, is_plain: bool) -> f64 {
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
    fn go_on(&mut self, mut trial: Trial, seen: &Seen, trip: f64, queued: Option<f64>) -> f64 {
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
        if trial.met.0 > (EMPTY + self.least_spread() / 2.0) * trial.met.1 {
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

    /// The window that leads the queue to the target. Of a queue that is too long only what is standing makes
    /// it smaller: it may be jitter, or a rate that is back soon.
    fn follow(&mut self, seen: &Seen, trip: f64, target: f64) -> f64 {
        (self.has_met_queue, self.has_yielded, self.growth) = (true, true, MIN_GROWTH);
        let queue = seen.queue.min(seen.standing.max(target));
        self.is_stale = queue > 2.0 * target;
        let gain = if self.is_stale { 1.0 } else { GAIN };
        let step = gain * (target - queue) / (trip + queue) * self.size;
        let step = step.min(ADDED * (1.0 - queue / target));
        let next = if step > 0.0 && !self.was_short { self.size } else { self.size + step };
        // Delay alone asks for no less than a window can pace.
        next.max(MIN_WINDOW.min(self.size))
    }

    /// The window after a round without a queue.
    fn grow(&mut self, seen: &Seen) -> f64 {
        let growth = self.growth;
        if !self.was_short {
            // Its pace held it back: the next one finds out more.
            self.growth = growth.max((2.0 * growth).min(self.max_growth.unwrap_or(MAX_PACE)));
            return self.size;
        }
        let most = if self.has_met_queue { MAX_GROWTH } else { FIRST_GROWTH };
        let most = self.max_growth.unwrap_or(most);
        let next = self.size + growth * seen.acked as f64;
        let near = NEAR_FULL * self.full;
        if self.size < near && near < next {
            self.growth = MIN_GROWTH;
            return near;
        }
        let is_near = near <= self.size && self.size < self.full;
        self.growth = if is_near { MIN_GROWTH } else { (2.0 * growth).min(most) };
        next
    }
}
