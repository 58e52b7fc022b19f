//! The law of long transfers: one [`window`] bounds what is in flight, and the rate is what empties it in a
//! round trip.
//!
//! What it is after is an [`objective`]: [`beside_game`] it takes what is idle. It has no mode for links
//! that vary, and no bound for what is lost of its own: window and pace are made of what has [`passed`].
//! [`others`] is what it takes beside TCP. A classic mark of ECN makes it smaller by [`DECREASE`].
//! docs/SENDER.md, "The window", says why.

mod beside_game;
mod losses;
mod objective;
mod others;
mod passed;
mod window;

use beside_game::{MAX_LOST, Yielding};
use objective::{LOAD_SCREEN, Objective};
use others::{Found, Others};
use passed::Passed;
use window::{Route, Seen, Window};

use super::super::samples::Sample;
use super::super::tuning::TICK;
use super::super::tuning::flow::DECREASE;
use super::super::tuning::near::is_fast;
use super::super::tuning::rate_finder::TRAIN_ABOVE;
use super::super::tuning::start::PART;
use super::super::tuning::window::ACK_DELAY;
use super::super::units::{Bytes, Rate, Span};
use super::link::Link;
use super::pace::Pace;
use crate::Instant;

/// Datagrams of the first window beside those that the known rate keeps in flight.
const MIN_FIRST: f64 = 4.0;

/// An ack is sent after 16 datagrams, and is heard before these have been sent.
const ACKED: f64 = 32.0;

/// How much more than the link's rate a late timer makes up for at most. It bounds the work of a call: what
/// is heard at once is no limit.
const MAX_BURST: f64 = 4.0;

/// The weight of an arrival in the mean time from sending to hearing, less the queueing delay. The window is
/// judged by at most [`MAX_TRIP`] times its minimum, and what acks wait: a queue that is taken for the path
/// makes it longer.
const WEIGHT: f64 = 0.1;
const MAX_TRIP: f64 = 1.5;

/// A round in which nothing was sent for more than this part of it, although window and pace allowed it, says
/// only how much passes at least.
const MAX_IDLE: f64 = 1.0 / 8.0;

/// Beside others its pace is this much above what passes, so that their window is what holds back.
const BESIDE: f64 = 1.25;

/// Delays are those of the last rounds, at most so many, within [`Objective::lately`], and of more until
/// there are [`Objective::min_delays`]: one may be late alone.
const LAST_ROUNDS: usize = 2;
const ROUNDS: usize = 8;

const SECOND: Span = Span::from_secs(1);

/// The least and the longest queueing delay of a round, in seconds, and of how many datagrams.
#[derive(Clone, Copy, Debug)]
struct Delays {
    least: f64,
    longest: f64,
    count: u32,
}

impl Delays {
    const NONE: Self = Self { least: f64::INFINITY, longest: 0.0, count: 0 };

    fn push(&mut self, other: Self) {
        self.least = self.least.min(other.least);
        self.longest = self.longest.max(other.longest);
        self.count += other.count;
    }
}

/// A transfer with a window.
#[derive(Clone, Debug)]
pub(super) struct Windowed {
    pub(super) pace: Pace,
    objective: &'static Objective,
    yielding: Yielding,
    window: Window,
    others: Others,
    seen: Seen,
    /// The delays of this round, and those of the last ones and when they ended.
    delays: Delays,
    rounds: [(Span, Delays); ROUNDS],
    /// The number after the newest that was lost.
    lost_before: u64,
    in_flight: u64,
    slices: u64,
    passed: Passed,
    /// The newest sample, and that of the round before.
    newest: Option<Sample>,
    before: Option<Sample>,
    /// For how long nothing was sent in this round, and whether the last one was idle, or a drain.
    idle: Span,
    was_held: bool,
    /// After the last datagram as much was in flight as may be.
    was_full: bool,
    /// The number after the last datagram sent when a mark was heard of.
    marked_before: u64,
    /// The rate that the link is known to have.
    known: Rate,
    /// The mean and the least time from sending to hearing, less the queueing delay.
    mean: Span,
    least: Span,
    /// The path has become longer, and by how much.
    longer: Option<Span>,
}

impl Windowed {
    /// Begins at this pace on a link that is known to have another, with this minimum round trip, and
    /// with datagrams in flight, of which the second number have a slice.
    pub(super) fn new(
        pace: Pace,
        known: Rate,
        rtt: Span,
        in_flight: (u32, u32),
        packet: Bytes,
    ) -> Self {
        let (now, rate) = (pace.sent_at(), pace.rate());
        let trip = rtt + ACK_DELAY.min(ACKED * packet / rate);
        Self {
            window: Window::new(MIN_FIRST + rate * trip / packet, in_flight.0.into()),
            others: Others::new(now, rate.max(PART * known) * trip / packet),
            pace,
            objective: &LOAD_SCREEN,
            yielding: Yielding::NOTHING,
            seen: Seen::NOTHING,
            delays: Delays::NONE,
            rounds: [(Span::ZERO, Delays::NONE); ROUNDS],
            lost_before: u64::MAX,
            in_flight: in_flight.0.into(),
            slices: in_flight.1.into(),
            passed: Passed::new(rate * SECOND / packet),
            newest: None,
            before: None,
            idle: Span::ZERO,
            was_held: false,
            was_full: false,
            marked_before: 0,
            known,
            mean: trip,
            least: trip,
            longer: None,
        }
    }

    /// Whether it gives way to a game.
    pub(super) const fn gives_way(&self) -> bool {
        self.objective.share < 1.0
    }

    /// Sets the number of datagrams in flight, and of those with a slice.
    pub(super) const fn set_in_flight(&mut self, in_flight: u32, slices: u32) {
        (self.in_flight, self.slices) = (in_flight as u64, slices as u64);
    }

    /// The link has this rate, by trains: a fast link is learned in steps.
    pub(super) fn learn(&mut self, known: Rate, packet: Bytes) {
        if self.gives_way() {
            return self.begin_at(known, packet);
        }
        if known > TRAIN_ABOVE * self.known && is_fast(self.known, packet) {
            self.known = known;
            self.window.raise(known * (self.trip() * SECOND) / packet);
            self.passed.raise(known * SECOND / packet);
        }
    }

    /// As much as before is so many times as many datagrams.
    pub(super) fn set_packet(&mut self, times: f64) {
        self.window.scale(times);
        self.passed.scale(times);
        self.others.scale(times);
    }

    /// Whether as much is in flight as may be.
    pub(super) fn is_full(&self) -> bool {
        !self.has_train() && !self.window.has_room(self.in_flight, self.slices, self.others.part())
    }

    /// What is made up for when a datagram is late.
    fn catch_up(&self, link: &Link) -> Span {
        if self.gives_way() {
            // So that slices are not sent back to back.
            return TICK.into();
        }
        let pace = self.pace.rate();
        let most = link.rate.map_or(1.0, |rate| (MAX_BURST * (rate / pace)).min(1.0));
        link.lateness_at(pace).max(most * link.catch_up_at(pace).min(TICK.into()))
    }

    /// A datagram was sent. Until the numbers of those in flight are set again it counts as one with a
    /// slice.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: Bytes, link: &Link) {
        let (catch_up, was_full) = (self.catch_up(link), self.was_full);
        let idle = self.pace.on_sent(now, bytes, catch_up);
        if !was_full {
            self.idle += idle;
        }
        self.in_flight += 1;
        self.slices += 1;
        self.was_full = self.is_full();
    }

    /// A router has marked a datagram no older than `number`, and `next` is sent next. Those that were sent
    /// before the last mark was heard of met the same queue.
    pub(super) fn on_mark(&mut self, number: u64, next: u64) {
        if number >= self.marked_before {
            self.marked_before = next;
            self.window.on_mark(DECREASE, self.delays.longest);
            self.passed.scale(1.0 - DECREASE);
        }
    }

    /// The fate of a datagram is settled.
    pub(super) fn on_settled(&mut self, number: u64, is_lost: bool) {
        let before = self.seen.acked + self.seen.lost;
        self.seen.acked += u64::from(!is_lost);
        if is_lost {
            self.seen.lost += 1;
            self.seen.runs += u64::from(number != self.lost_before);
            self.lost_before = number + 1;
        }
        if self.window.is_past_half(before, before + 1) {
            self.delays = Delays::NONE;
        }
    }

    /// One that was taken for lost has arrived.
    pub(super) fn on_spurious(&mut self) {
        if self.seen.lost == 0 {
            let times = self.window.on_spurious();
            return times.map_or((), |times| self.passed.scale(times));
        }
        self.seen.acked += 1;
        self.seen.lost -= 1;
        self.seen.runs = self.seen.runs.min(self.seen.lost);
    }

    /// It was heard at `now` that a full datagram arrived with this queueing delay; `fell` is by how much it
    /// is below the minimum before.
    pub(super) fn on_delay(
        &mut self,
        now: Span,
        sample: &Sample,
        delay: Span,
        fell: Span,
        packet: Bytes,
    ) {
        // A receiver may say that it arrived before it was sent, or long after that was heard.
        let way = (now - sample.sent - delay).max(Span(1.0));
        self.newest = Some(*sample);
        self.mean += WEIGHT * (way - self.mean);
        self.least = self.least.min(way);
        if self.others.on_delay(now, sample.sent, delay, fell) {
            self.begin_drain();
        }
        let delay = delay / SECOND;
        let lasts = now - self.rounds[0].0;
        if lasts < 0.5 * self.objective.min_round {
            self.delays = Delays::NONE;
        }
        self.delays.push(Delays { least: delay, longest: delay, count: 1 });
        let fates = self.seen.acked + self.seen.lost;
        let is_told = lasts >= self.objective.min_round && fates >= self.objective.min_fates;
        if is_told && self.window.is_due(fates) {
            self.end_round(now, packet);
        }
        self.set_pace(now, packet);
    }

    /// It goes out a little faster than what passes, and never slower than a datagram in a round trip.
    fn set_pace(&mut self, now: Span, packet: Bytes) {
        let gain = if self.others.are_there() { BESIDE } else { self.window.gain() };
        let rests = now < self.yielding.rests_until;
        let gain = if rests { gain.min(self.objective.share) } else { gain };
        let rate = gain * self.passed.most() * packet / SECOND;
        self.pace.set(rate.max(packet / self.mean));
    }

    /// The time there and back without a queue, in seconds.
    fn trip(&self) -> f64 {
        self.mean.min(MAX_TRIP * self.least + ACK_DELAY) / SECOND
    }

    fn route(&self) -> Route {
        Route { trip: self.trip(), passes: self.passed.most(), last: self.passed.last() }
    }

    fn begin_drain(&mut self) {
        self.others.begin_drain(self.trip());
        self.window.begin_round(self.in_flight, false);
    }

    /// By how much the path has become longer, if that was just found out: it is no queue.
    pub(super) const fn poll_longer(&mut self) -> Option<Span> {
        self.longer.take()
    }

    fn on_longer(&mut self, by: Span) {
        self.longer = Some(by);
        (self.mean, self.least) = (self.mean + by, self.least + by);
        self.rounds = [(Span::ZERO, Delays::NONE); ROUNDS];
    }

    fn end_round(&mut self, now: Span, packet: Bytes) {
        let lasted = now - self.rounds[0].0;
        (self.seen.queue, self.seen.spread) = self.lately(now);
        let seen = core::mem::replace(&mut self.seen, Seen::NOTHING);
        let rests = self.yielding.poll_rest(now);
        let is_all = self.is_all_used(lasted, rests);
        self.note_passed(is_all, packet);
        if self.others.is_draining() {
            return self.end_drain_round(packet);
        }
        if let Some(size) = self.compete(&seen) {
            self.window.set_size(size);
            return self.window.begin_round(self.in_flight, false);
        }
        if self.gives_way() {
            self.bound(rests);
        }
        let left = self.window.judge(&seen, self.route(), self.in_flight);
        self.passed.scale(left);
        if self.gives_way() && self.give_way() {
            return;
        }
        if self.others.is_doubtful(now, seen.queue, self.route(), self.window.size()) {
            self.begin_drain();
        }
    }

    /// What passed from the newest sample of the round before to that of this one. Beside a game most of what
    /// is lost has passed, as far as is known.
    fn note_passed(&mut self, is_all: bool, packet: Bytes) {
        let Some(newest) = self.newest else { return };
        let Some(before) = self.before.replace(newest) else { return };
        let lost = if self.gives_way() { MAX_LOST } else { self.window.own() };
        let (sent, received) = (newest.passed - before.passed, newest.received - before.received);
        let passed = sent.min(received / (1.0 - lost)) / packet;
        let lasted = (newest.sent - before.sent).max(newest.at - before.at);
        self.passed.end_round(passed, lasted, is_all, self.trip() * SECOND);
    }

    /// Whether as much was sent as might have been, of what has its fate in this round.
    fn is_all_used(&mut self, lasted: Span, rests: bool) -> bool {
        let is_idle = core::mem::replace(&mut self.idle, Span::ZERO) > MAX_IDLE * lasted;
        let is_held = is_idle || rests || self.others.is_draining();
        let was_held = core::mem::replace(&mut self.was_held, is_held);
        !is_held && !was_held && self.window.is_all_used()
    }

    fn end_drain_round(&mut self, packet: Bytes) {
        let (size, route) = (self.window.size(), self.route());
        match self.others.end_drain_round(size, route, packet / self.known / SECOND) {
            None => {}
            Some(Found::Others(size)) => self.window.set_size(size),
            Some(Found::Longer(by, size)) => {
                self.window.set_size(size);
                self.on_longer(by * SECOND);
            }
        }
        self.window.begin_round(self.in_flight, false);
    }

    /// The window beside others, if there are any.
    fn compete(&mut self, seen: &Seen) -> Option<f64> {
        let (size, at) = (self.window.size(), (seen.queue, self.trip()));
        let (is_short, window) = (self.was_full, &mut self.window);
        self.others.compete(size, at, is_short, || window.is_lossy(seen))
    }

    /// The least queueing delay of the last rounds, and how much delays differ in them.
    fn lately(&mut self, now: Span) -> (f64, f64) {
        self.rounds.rotate_right(1);
        self.rounds[0] = (now, core::mem::replace(&mut self.delays, Delays::NONE));
        let mut delays = Delays::NONE;
        for (n, (at, round)) in self.rounds.into_iter().enumerate() {
            let is_old = now - at >= self.objective.lately || n >= LAST_ROUNDS;
            if is_old && delays.count >= self.objective.min_delays {
                break;
            }
            delays.push(round);
        }
        (delays.least, (delays.longest - delays.least).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over jitter that reorders, one late datagram was all that a round had seen: it was taken for a queue.
    #[test]
    fn a_single_late_datagram_is_no_queue() {
        let rate = Rate::from_kbps(10_000);
        let pace = Pace::new(rate);
        let mut law = Windowed::new(pace, rate, Span::from_millis(60), (0, 0), Bytes(1_228.0));
        let mut lately = |ms: u16, least: f64, count: u32| {
            law.delays = Delays { least, longest: 0.034, count };
            law.lately(Span::from_millis(ms)).0
        };
        assert_eq!(lately(100, 0.001, 60), 0.001);
        assert_eq!(lately(200, 0.034, 1), 0.001, "the round before counts, too");
        assert_eq!(lately(300, 0.034, 60), 0.034, "sixty are a queue");
    }
}
