//! The window: how many datagrams may be in flight.
//!
//! In each round it follows the queueing delay toward a [`target`]. When more is lost than usual, it becomes
//! the number that got through, and a trial shows whether the losses are the path's own ([`trials`],
//! [`Losses`]). Without a queue it grows by a part of the acknowledged datagrams. This part doubles from
//! round to round, but is small near the window that overflowed. Where the path's rate varies, neither a
//! queue nor the growth makes it less than the maximum that passed in a round trip.
//!
//! A round ends when as many datagrams have a fate as were in flight at its beginning. The invariant: the
//! window is never below [`MIN_SPARSE`], nor above [`MAX_WINDOW`].

#[cfg(test)]
mod golden;
mod larger;
#[cfg(test)]
mod tests;
mod trials;

use libm::sqrt;

use larger::Larger;
use trials::{Cut, Overflow, TRIAL_PART, Trial};

use super::losses::Losses;
use super::sparse::Sparse;

/// The queue at which a flow neither grows nor yields, in seconds: [`MIN_TARGET`] and the larger of two
/// times. [`TARGET`] is for a flow that sends a datagram a millisecond, and grows with the root of the time
/// between datagrams (Swift's scaling by flows): slower flows want more, so that shares become equal. The
/// time of [`TARGET_DATAGRAMS`] keeps slow links busy.
const MIN_TARGET: f64 = 0.001;
const TARGET: f64 = 0.006;
const TARGET_DATAGRAMS: f64 = 4.0;

/// Below this part of the target there is no queue.
const NO_QUEUE: f64 = 0.5;

/// Before a queue was seen this limit is an eighth of the round trip within these bounds, in seconds:
/// HyStart++ (RFC 9406).
const FIRST_QUEUE: (f64, f64) = (0.004, 0.016);

/// The part of the way to the target that the window goes in a round; all of it from a queue of more than
/// twice the target. It grows by [`ADDED`] datagrams at most, and shrinks by at least as many for each target
/// by which the queue is too long: these numbers are the same for all flows, so that shares become equal
/// (AIMD).
const GAIN: f64 = 0.5;
const ADDED: f64 = 4.0;

/// The part of the acknowledged datagrams by which the window grows without a queue: at first; and at most,
/// before a queue was seen and after.
const MIN_GROWTH: f64 = 1.0 / 16.0;
const FIRST_GROWTH: f64 = 1.0;
const MAX_GROWTH: f64 = 1.0 / 2.0;

/// Where the pace holds the window back, the pace exceeds the rate that passed by this part at most: BBR's
/// gain when it probes.
const MAX_PACE: f64 = 1.0 / 4.0;

/// It grows at [`MIN_GROWTH`] from this part of a window that overflowed.
const NEAR_FULL: f64 = 0.8;

/// The part of an overflowing queue that may stand afterwards, and by which part of itself it grows again in
/// a second: by rounds, short paths would overflow several times a second. It was seen if it was longer than
/// this, in seconds and in datagrams.
const OF_FULL: f64 = 0.5;
const REGROWTH: f64 = 0.5;
const MIN_QUEUE: f64 = 0.000_5;
const MIN_QUEUE_DATAGRAMS: f64 = 2.0;

/// The difference of delays in rounds without a queue is jitter, up to this maximum. Half of the jitter is no
/// queue.
const ROUNDS: usize = 8;
const MAX_JITTER: f64 = 0.1;

/// How much more may be in flight than gets through, losses of the path's own not counted, up to a share;
/// and how much of what passed when most did, where rates vary. With all of that, or a tenth more, a recorded
/// link is used by a part in a hundred less; with twice as much, BBR's gain, its queues are twice as long.
const OVER: f64 = 1.25;
const MAX_USUAL: f64 = 0.3;

/// At most this share counts as lost behind the bottleneck, when the datagrams that pass it are counted.
const MAX_BEHIND: f64 = 0.5;

/// The minimum window: of three datagrams all may be lost. And the maximum, which limits nothing in practice.
pub(super) const MIN_WINDOW: f64 = 4.0;
const MAX_WINDOW: f64 = 1e6;

/// The minimum where the pace decides, below [`MIN_WINDOW`]. Where a round trip takes less than this in
/// seconds a queue of some packets is as long as it is, and drops what comes one by one: two flows had 9 and
/// 0.3 of 10 Mbit/s.
const MIN_SPARSE: f64 = 1.0;
const MIN_SPARSE_TRIP: f64 = 0.005;

/// The target for a flow that sends a datagram each `each` seconds.
pub(super) fn target(each: f64) -> f64 {
    MIN_TARGET + (TARGET * sqrt(1_000.0 * each)).max(TARGET_DATAGRAMS * each)
}

/// The fates of the datagrams of a round, and the delays that they met.
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
    /// How much delays differ, in seconds, and their mean.
    pub(super) spread: f64,
    pub(super) mean: f64,
    /// Datagrams that were sent apart arrived together: a delay may be jitter.
    pub(super) is_bunched: bool,
    /// A queue may be others'.
    pub(super) is_shared: bool,
    /// The maximum of datagrams that passed in a round trip, if the path's rate varies; otherwise 0.
    pub(super) peak: f64,
}

impl Seen {
    pub(super) const NOTHING: Self = Self {
        acked: 0,
        lost: 0,
        runs: 0,
        queue: f64::INFINITY,
        standing: f64::INFINITY,
        spread: 0.0,
        mean: 0.0,
        is_bunched: false,
        is_shared: false,
        peak: 0.0,
    };
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
    /// The datagrams whose fates end in this round were sent before the window was cut.
    is_stale: bool,
    /// The bounds of an objective: the growth, and the minimum number of datagrams before losses are judged.
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
    larger: Larger,
}

impl Window {
    /// Begins with `size` datagrams for a path that is known, with `in_flight` of them in flight: losses
    /// among those show nothing of the window.
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
            overflow: Overflow::NONE,
            larger: Larger::NONE,
        }
    }

    /// `lost` of the first datagrams may be lost, and losses of fewer than `told` datagrams show nothing.
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

    /// Datagrams have another size: the same bytes are `times` as many datagrams.
    pub(super) fn scale(&mut self, times: f64) {
        self.set_size(times * self.size);
        self.full *= times;
        self.scale_trials(times);
        self.larger.scale(times);
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

    /// Whether a smaller window is tried, to show whose the losses are.
    pub(super) const fn is_tried(&self) -> bool {
        self.trial.is_some()
    }

    /// How much of what passed may be sent: more by as much as the window grows, and surely less in a trial.
    pub(super) const fn gain(&self) -> f64 {
        match self.larger.gain() {
            Some(gain) => gain,
            None if self.is_tried() => TRIAL_PART,
            None => 1.0 + self.growth,
        }
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
        self.larger.stop();
        self.count_anew(in_flight);
    }

    const fn count_anew(&mut self, in_flight: u64) {
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
        self.age_cut();
        if !is_stale && seen.queue.is_finite() && seen.acked > 0 {
            let next = self.next(seen, trip);
            let passed = seen.acked as f64 / (1.0 - self.losses.usual().min(MAX_USUAL));
            let is_bound = self.has_met_queue && !self.larger.is_tried();
            let most = if is_bound { OVER * passed + MIN_WINDOW } else { MAX_WINDOW };
            let size = next.min(self.size.max(most));
            self.set_size(if seen.lost > seen.acked { size.min(most) } else { size });
        }
        if is_stale && seen.lost > seen.acked {
            // Far more than the path holds, whoever has sent it.
            self.set_size(self.size.min(OVER * seen.acked as f64 + MIN_WINDOW));
        }
        self.count_anew(in_flight);
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
        if let Some(size) = self.judge_larger(seen, trip, excess.is_some()) {
            return size;
        }
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
                let is_queue = seen.queue >= NO_QUEUE * (wanted + jitter / 2.0);
                let is_queue = is_queue && !self.is_doubtful(seen);
                let is_plain = is_queue || self.is_known_full(used);
                let size = self.cut(excess, seen, trip, target.min(self.max_queue), is_plain);
                if let Some(cut) = &mut self.cut {
                    cut.max_queue = max_queue;
                }
                size
            }
            (None, None) if is_queued && self.may_try_larger(seen) => self.try_larger(seen, trip),
            (None, None) if is_queued => self.follow(seen, trip, target),
            (None, None) => self.grow(seen),
        }
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
        // Delay alone asks for no less than a window can pace, nor than what passes soon.
        next.max(MIN_WINDOW.max(OVER * seen.peak).min(self.size))
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
        let next = (self.size + growth * seen.acked as f64).max(OVER * seen.peak);
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
