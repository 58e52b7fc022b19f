//! The window: how many datagrams may be in flight, of the rate that passes.
//!
//! It is what passes in a round trip without a queue, a part more as long as it grows, and a short [`queue`]
//! that keeps the link busy. After a queue or losses it does not grow. When more is lost than the path itself
//! loses, the rate is cut by the excess where there is a queue; where there is none, the next round is a low
//! one, which shows whose the losses are ([`Losses`]). docs/decisions/0021-window.md has the whole law.
//!
//! A round ends when as many datagrams have a fate as were in flight at its beginning, and these were sent in
//! the round before. The invariant: the window is never below [`MIN_WINDOW`], nor above [`MAX_WINDOW`].

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;

use libm::sqrt;

use super::losses::Losses;

/// What a flow keeps in the queue, in datagrams: this times the root of what the path holds, so that shares
/// become equal and many flows keep little, and not less than this, which keeps slow links busy.
const QUEUED: f64 = 2.0;
const MIN_QUEUED: f64 = 4.0;

/// There is a queue from this part of what a flow keeps and of [`SLACK`], in seconds: what ticks make.
const IS_QUEUED: f64 = 0.5;
const SLACK: f64 = 0.001;

/// The part of what passes by which the window grows: after a round in which it did not, and at most, before
/// a queue or losses were seen and after. BBR probes with the last.
const FIRST_GROWTH: f64 = 1.0 / 16.0;
const MAX_FIRST_GROWTH: f64 = 1.0;
const MAX_GROWTH: f64 = 1.0 / 4.0;

/// The pace is faster than the window grows by this part, so that the window is what holds back.
const PACE: f64 = 1.0 / 16.0;

/// The part of what passes that goes in a low round: surely less than the path holds.
const LOW: f64 = 0.9;

/// A cut may be taken back for this many rounds: a late datagram is seldom later.
const LATE_ROUNDS: u32 = 2;

/// The part of an overflowing queue that may stand afterwards, and by which part of itself it grows again in
/// a second: by rounds, short paths would overflow several times a second. It was seen if it was longer than
/// [`SLACK`] and this many datagrams.
const OF_FULL: f64 = 0.5;
const REGROWTH: f64 = 0.5;
const MIN_FULL: f64 = 2.0;

/// By how much delays differ in rounds without a queue is jitter, up to this in seconds. Half of it is no
/// queue, and a part of the round trip.
const ROUNDS: usize = 8;
const MAX_JITTER: f64 = 0.2;

/// The least window: what is lost of three datagrams may be all of them. And the most, which is no limit.
const MIN_WINDOW: f64 = 4.0;
const MAX_WINDOW: f64 = 1e6;

/// The queue that a flow keeps where `holds` datagrams pass in a round trip, in datagrams.
fn queue(holds: f64) -> f64 {
    (QUEUED * sqrt(holds)).max(MIN_QUEUED)
}

/// A path: its round trip without a queue in seconds, and the datagrams that pass in a second, at most and in
/// the last round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) trip: f64,
    pub(super) passes: f64,
    pub(super) last: f64,
}

impl Route {
    /// Datagrams that pass in a round trip.
    pub(super) const fn holds(&self) -> f64 {
        self.passes * self.trip
    }

    /// The queue that a flow keeps, in seconds, and what ticks make.
    pub(super) fn target(&self) -> f64 {
        SLACK + queue(self.holds()) / self.passes
    }
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
    /// How much delays differ, in seconds.
    pub(super) spread: f64,
}

impl Seen {
    pub(super) const NOTHING: Self =
        Self { acked: 0, lost: 0, runs: 0, queue: f64::INFINITY, spread: 0.0 };
}

/// A rate that was cut because of losses, and for how long that may be taken back.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// The part of the rate that was left, and the queue that might stand before.
    part: f64,
    full: f64,
    /// Those losses, and what of them was not lost, but late.
    lost: f64,
    spurious: f64,
    rounds: u32,
}

/// The window, in datagrams, and the round that is under way.
#[derive(Clone, Debug)]
pub(super) struct Window {
    size: f64,
    growth: f64,
    max_growth: f64,
    /// The queue that may stand where one was seen to overflow, in seconds.
    full: f64,
    losses: Losses,
    cut: Option<Cut>,
    /// How much delays differed in the last rounds, in seconds.
    spreads: [f64; ROUNDS],
    /// Whether little is sent in this round, was in the last one, and in the one before.
    low: [bool; 3],
    /// The part of what passes that goes in a low round.
    low_part: f64,
    /// Datagrams in flight at the beginning of the round.
    began_with: u64,
    /// What has its fate in this round was sent before a cut.
    is_stale: bool,
    /// Beside a game: of how many datagrams at least losses are judged, and whether little is to be sent.
    min_told: f64,
    rests: Option<bool>,
    /// There was a queue or an excess since that was asked.
    has_yielded: bool,
}

impl Window {
    /// Begins with so many datagrams for a path that is known, of which some are in flight: what is lost of
    /// those says nothing of it.
    pub(super) const fn new(size: f64, in_flight: u64) -> Self {
        Self {
            size: size.clamp(MIN_WINDOW, MAX_WINDOW),
            growth: 0.0,
            max_growth: MAX_FIRST_GROWTH,
            full: f64::INFINITY,
            losses: Losses::new(0.0),
            cut: None,
            spreads: [f64::INFINITY; ROUNDS],
            low: [false; 3],
            low_part: 1.0,
            began_with: in_flight,
            is_stale: true,
            min_told: 0.0,
            rests: None,
            has_yielded: false,
        }
    }

    /// So many of the first datagrams may be lost, and of less than `told` losses say nothing.
    pub(super) const fn bear(&mut self, lost: f64, told: f64) {
        (self.losses, self.min_told) = (Losses::new(lost), told);
    }

    /// From now on no queue may stand that is longer than this in seconds, growth is at most this, and a
    /// round is low if the flow `rests`.
    pub(super) const fn bound(&mut self, max_queue: f64, max_growth: f64, rests: bool) {
        (self.full, self.rests) = (max_queue, Some(rests));
        self.max_growth = (max_growth - PACE).max(0.0);
    }

    /// Whether the window had to yield to a queue, or to losses, since this was asked.
    pub(super) const fn poll_yielded(&mut self) -> bool {
        core::mem::replace(&mut self.has_yielded, false)
    }

    /// Datagrams that may be in flight.
    pub(super) const fn size(&self) -> f64 {
        self.size
    }

    pub(super) const fn set_size(&mut self, size: f64) {
        self.size = size.clamp(MIN_WINDOW, MAX_WINDOW);
    }

    /// Datagrams have another size: as much is so many times as many.
    pub(super) const fn scale(&mut self, times: f64) {
        self.set_size(times * self.size);
    }

    /// The path holds this many datagrams, unless a queue or losses were seen.
    pub(super) fn raise(&mut self, size: f64) {
        if self.max_growth == MAX_FIRST_GROWTH {
            self.set_size(self.size.max(size));
        }
    }

    /// How much of what passes may be sent.
    pub(super) const fn gain(&self) -> f64 {
        if self.is_low() { self.low_part } else { 1.0 + PACE + self.growth }
    }

    /// Whether this round is one that shows whose losses are. A flow that rests has a share of its own.
    const fn is_low(&self) -> bool {
        self.low[0] && self.rests.is_none()
    }

    /// Whether what had its fate last was sent with all of the window.
    pub(super) const fn is_all_used(&self) -> bool {
        !self.low[1]
    }

    /// The share of losses that are the path's own.
    pub(super) fn own(&self) -> f64 {
        self.losses.own()
    }

    /// Whether there is room for one more, while only this part of it may be used.
    pub(super) fn has_room(&self, in_flight: u64, slices: u64, part: f64) -> bool {
        // A game's packets are not held back: they would keep a small window full for good.
        (slices as f64) < MIN_WINDOW || (in_flight + 1) as f64 <= part * self.size
    }

    /// A router has marked a datagram: this queue, in seconds, is too long. What passes, and the window,
    /// become less by this part.
    pub(super) fn on_mark(&mut self, part: f64, queue: f64) {
        self.hold();
        self.has_yielded = true;
        self.full = self.full.min(OF_FULL * queue.max(SLACK));
        self.set_size(self.size * (1.0 - part));
        self.is_stale = true;
    }

    /// It does not grow, and from now on only slowly.
    const fn hold(&mut self) {
        self.growth = 0.0;
        self.max_growth = self.max_growth.min(MAX_GROWTH);
    }

    /// A datagram that was taken for lost has arrived. Where the rate was cut for such, it is what it was:
    /// returns so many times as much as it is.
    pub(super) fn on_spurious(&mut self) -> Option<f64> {
        self.losses.on_spurious();
        let cut = self.cut.as_mut()?;
        cut.spurious += 1.0;
        if 2.0 * cut.spurious < cut.lost {
            return None;
        }
        let Cut { part, full, .. } = *cut;
        self.set_size(self.size / part);
        self.full = self.full.max(full);
        (self.cut, self.low) = (None, [false; 3]);
        self.losses.begin();
        Some(1.0 / part)
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

    /// Whether more is lost in this round than the path itself loses; if so, it is counted anew.
    pub(super) fn is_lossy(&mut self, seen: &Seen) -> bool {
        let is_any = self.losses.is_any(seen);
        if is_any {
            self.losses.begin();
        }
        is_any
    }

    /// The next round begins, and this one says nothing.
    pub(super) const fn begin_round(&mut self, in_flight: u64, is_low: bool) {
        self.began_with = in_flight;
        self.low = [is_low, self.low[0], self.low[1]];
    }

    /// Judges a round, and begins the next. Returns the part of what passes that is left.
    pub(super) fn judge(&mut self, seen: &Seen, mut route: Route, in_flight: u64) -> f64 {
        self.forget_cut();
        let is_stale = core::mem::take(&mut self.is_stale);
        let mut part = 1.0;
        let mut is_low = self.rests.unwrap_or(false);
        if !is_stale && seen.queue.is_finite() && seen.acked > 0 {
            let jitter = self.jitter(seen.spread);
            route.trip += jitter;
            (part, is_low) = self.verdict(seen, route, jitter);
            route.passes *= part;
            // Of what passes some get lost on the way: surely less than arrives.
            self.low_part = LOW * (1.0 - self.losses.own()) * (route.last / route.passes).min(1.0);
            is_low &= self.rests.is_some() || self.low_part * route.holds() >= MIN_WINDOW;
            self.begin_round(in_flight, is_low);
            self.set_size(self.wanted(route));
        } else {
            self.begin_round(in_flight, is_low);
        }
        part
    }

    fn forget_cut(&mut self) {
        self.cut = self.cut.map(|cut| Cut { rounds: cut.rounds + 1, ..cut });
        self.cut = self.cut.filter(|cut| cut.rounds <= LATE_ROUNDS);
    }

    /// Half of the least spread of delays in the last rounds: in one of them the queue did not change.
    fn jitter(&mut self, spread: f64) -> f64 {
        self.spreads.rotate_right(1);
        self.spreads[0] = spread;
        self.spreads.iter().copied().fold(MAX_JITTER, f64::min) / 2.0
    }

    /// The window for what passes now.
    fn wanted(&self, route: Route) -> f64 {
        let holds = route.holds();
        if self.is_low() {
            return self.low_part * holds;
        }
        holds * (1.0 + self.growth) + queue(holds).min(self.full * route.passes)
    }

    /// The part of what passes that a round leaves, and whether the next one is low.
    fn verdict(&mut self, seen: &Seen, route: Route, jitter: f64) -> (f64, bool) {
        let full = self.full;
        let is_queued = seen.queue >= IS_QUEUED * route.target().min(full) + jitter;
        self.full *= 1.0 + REGROWTH * (route.trip + seen.queue);
        let was_low = self.low[1];
        // Where no less can be sent than is, each round is a low one.
        if was_low || self.low_part * route.holds() < MIN_WINDOW {
            self.losses.on_low(seen, seen.queue + seen.spread / 2.0 <= SLACK + 2.0 * jitter);
        }
        let excess = if was_low { None } else { self.losses.excess(seen) };
        let excess = excess.filter(|_| self.losses.recent() >= self.min_told);
        let is_low = self.rests.unwrap_or(false);
        if let Some(excess) = excess {
            self.hold();
            self.has_yielded = true;
            self.note_full(seen, route, jitter);
            if is_queued {
                return (self.cut(excess, full), is_low);
            }
            self.losses.begin();
            return (1.0, is_low || !self.low[0] && !was_low);
        }
        if is_queued {
            self.hold();
            self.has_yielded = true;
        } else if self.losses.is_any(seen) && !was_low {
            self.hold();
        } else if !was_low {
            self.growth = (2.0 * self.growth).max(FIRST_GROWTH).min(self.max_growth);
        }
        (1.0, is_low)
    }

    /// A queue that overflowed may be half as long.
    fn note_full(&mut self, seen: &Seen, route: Route, jitter: f64) {
        let longest = seen.queue + seen.spread - 2.0 * jitter;
        if longest > SLACK.max(MIN_FULL / route.passes) {
            self.full = OF_FULL * longest;
        }
    }

    /// More is lost than the path itself loses, with a queue: what passes is less by the excess. Before it
    /// might have been `full` long.
    fn cut(&mut self, excess: f64, full: f64) -> f64 {
        let part = 1.0 - excess;
        let lost = self.losses.recent_lost();
        self.cut = Some(Cut { part, full, lost, spurious: 0.0, rounds: 0 });
        self.is_stale = true;
        self.losses.begin();
        part
    }
}
