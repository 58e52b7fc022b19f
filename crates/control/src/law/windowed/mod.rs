//! The law of long transfers: one [`window`] bounds the datagrams in flight, and the rate is the one that
//! sends a window in a round trip.
//!
//! Its aim is an [`objective`]: [`beside_game`] it takes what is idle. It has no mode for links that vary,
//! and no bound of its own for losses: all of that is in the window. Its pace is bounded by what has
//! [`passed`], so that a short queue is not overrun. [`others`] is what it takes beside TCP. A
//! classic mark of ECN makes it smaller by [`DECREASE`]. docs/SENDER.md, 5, says why.

mod beside_game;
mod delays;
mod losses;
mod objective;
mod others;
mod passed;
mod sparse;
mod window;

use beside_game::Yielding;
use delays::Delays;
use losses::Losses;
use objective::{LOAD_SCREEN, Objective};
use others::{Found, Others};
use passed::Passed;
use window::{Seen, Window, target};

use super::link::Link;
use super::pace::Pace;
use crate::belief::samples::Sample;
use crate::tuning::ACK_DELAY;
use crate::tuning::TICK;
use crate::tuning::flow::DECREASE;
use crate::tuning::near::is_fast;
use crate::tuning::rate_finder::TRAIN_ABOVE;
use crate::tuning::start::PART;
use crate::units::{Bytes, Rate, Span};
use haulier_core::Instant;

/// How fast the window may go out, in windows of a round trip: before a queue was seen, and after.
const FIRST_PACE: f64 = 1.5;
const PACE: f64 = 1.2;

/// Datagrams of the first window beside those that the known rate keeps in flight.
const MIN_FIRST: f64 = 4.0;

/// An ack is sent after 16 datagrams, and is heard before these have been sent.
const ACKED: f64 = 32.0;

/// The maximum of what is made up for after a late timer, relative to the link's rate. It bounds the work of
/// a call, which the acks that arrive together do not.
const MAX_BURST: f64 = 4.0;

/// The weight of an arrival in the mean time from sending to hearing, less the queueing delay. The window is
/// judged by at most [`MAX_TRIP`] times its minimum: a queue that is taken for the path makes it longer.
const WEIGHT: f64 = 0.1;
const MAX_TRIP: f64 = 1.5;

const SECOND: Span = Span::from_secs(1);

/// The flight that a window began with has overrun the link. Until it is settled the pace is the rate at
/// which datagrams arrive.
#[derive(Clone, Copy, Debug)]
struct Overrun {
    /// The number after the flight.
    next: u64,
    /// The greatest pace until then: a receiver may report arrivals at any rate.
    most: Rate,
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
    delays: Delays,
    /// The number after the newest that was lost.
    lost_before: u64,
    in_flight: u64,
    slices: u64,
    passed: Passed,
    /// The number after the last datagram sent when a mark was heard of.
    marked_before: u64,
    /// The rate that the link is known to have.
    known: Rate,
    /// The mean and the least time from sending to hearing, less the queueing delay.
    mean: Span,
    least: Span,
    /// The path has become longer, and by how much.
    longer: Option<Span>,
    overrun: Option<Overrun>,
}

impl Windowed {
    /// Begins at this pace on a link that is known to have another, with this minimum round trip, and
    /// with datagrams in flight, of which the second number have a slice. If it is alone for sure, the
    /// losses until now are the path's own.
    pub(super) fn new(
        pace: Pace,
        known: Rate,
        rtt: Span,
        in_flight: (u32, u32),
        packet: Bytes,
    ) -> Self {
        let (now, rate) = (pace.sent_at(), pace.rate());
        let trip = rtt + ACK_DELAY.min(ACKED * packet / rate);
        let losses = Losses::new(0.0, 0.0);
        Self {
            window: Window::new(MIN_FIRST + rate * trip / packet, in_flight.0.into(), losses),
            others: Others::new(now, rate.max(PART * known) * trip / packet),
            pace,
            objective: &LOAD_SCREEN,
            yielding: Yielding::NOTHING,
            seen: Seen::NOTHING,
            delays: Delays::NONE,
            lost_before: u64::MAX,
            in_flight: in_flight.0.into(),
            slices: in_flight.1.into(),
            passed: Passed::new(),
            marked_before: 0,
            known,
            mean: trip,
            least: trip,
            longer: None,
            overrun: None,
        }
    }

    /// The rate that the link is known to have has passed already, as far as arrivals in order show.
    pub(super) fn set_passed(&mut self, packet: Bytes) {
        self.passed.set(self.known * SECOND / packet);
    }

    /// The flight before number `next` has overrun the link, and of it this was heard of first and last.
    /// Until all of it has arrived or is lost the pace is the rate at which datagrams arrive, `most` at most,
    /// so that as many are sent as leave the path; then it is the window.
    pub(super) fn overrun(&mut self, next: u64, most: Rate, (first, last): &(Sample, Sample)) {
        self.overrun = Some(Overrun { next, most });
        self.passed.begin(first, last);
    }

    fn end_overrun(&mut self, packet: Bytes) {
        self.overrun = None;
        if let Some(rate) = self.passed.arrives() {
            self.window.fill(rate * SECOND / packet, self.trip());
        }
        self.seen = Seen::NOTHING;
        self.delays.begin();
        self.passed.end_round(self.lost_behind(), packet, f64::INFINITY, (false, false));
        self.window.begin_round(self.in_flight);
    }

    /// Whether it yields to a game.
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

    /// Datagrams have another size: the same bytes are `times` as many datagrams.
    pub(super) fn set_packet(&mut self, times: f64) {
        self.window.scale(times);
        self.passed.scale(times);
        self.others.scale(times);
    }

    /// Whether as much is in flight as may be.
    pub(super) fn is_full(&self) -> bool {
        let is_bounded = self.overrun.is_none() && !self.has_train();
        is_bounded && !self.window.has_room(self.in_flight, self.slices, self.others.part())
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
        let catch_up = self.catch_up(link);
        self.pace.on_sent(now, bytes, catch_up);
        self.in_flight += 1;
        self.slices += 1;
        let is_full = self.is_full();
        self.window.on_sent(self.in_flight, is_full);
    }

    /// A router has marked a datagram no older than `number`, and `next` is sent next. Those that were sent
    /// before the last mark was heard of met the same queue.
    pub(super) fn on_mark(&mut self, number: u64, next: u64) {
        if number >= self.marked_before {
            self.marked_before = next;
            self.window.on_mark(DECREASE, self.delays.longest());
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
        self.window.on_settled(is_lost);
        if self.window.is_past_half(before, before + 1) {
            self.delays.begin();
        }
    }

    /// One that was taken for lost has arrived.
    pub(super) fn on_spurious(&mut self) {
        if self.seen.lost == 0 {
            return self.window.on_spurious();
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
        if self.overrun.is_some_and(|flight| sample.number >= flight.next) {
            self.end_overrun(packet);
        }
        self.passed.on_arrival(sample);
        self.mean += WEIGHT * (way - self.mean);
        self.least = self.least.min(way);
        if self.others.on_delay(now, sample.sent, delay, fell) {
            self.begin_drain();
        }
        self.window.set_least_trip(self.least / SECOND);
        let lasts = now - self.delays.began();
        if lasts < 0.5 * self.objective.min_round {
            self.delays.begin();
        }
        self.delays.on_arrival(sample, delay / SECOND);
        let fates = self.seen.acked + self.seen.lost;
        let is_told = lasts >= self.objective.min_round && fates >= self.objective.min_fates;
        if is_told && self.window.is_due(fates) {
            self.end_round(now, packet);
        }
        self.set_pace(now, packet);
    }

    /// The window goes out in less than a round trip, but not much faster than what passes, and never slower
    /// than a datagram in a round trip.
    fn set_pace(&mut self, now: Span, packet: Bytes) {
        if let Some(flight) = self.overrun {
            let arrives = self.passed.arrives().unwrap_or(Rate::ZERO);
            return self.pace.set(arrives.min(flight.most).max(packet / self.mean));
        }
        if self.window.is_sparse() {
            let around = (self.trip() + self.delays.last_queue().unwrap_or(0.0)) * SECOND;
            return self.pace.set(self.window.size() * packet / around);
        }
        let pace = if self.window.has_met_queue() { PACE } else { FIRST_PACE };
        let pace = pace * self.window.size() * packet / self.mean;
        let gain = self.window.gain();
        let gain =
            if now < self.yielding.rests_until { gain.min(self.objective.share) } else { gain };
        let most = gain * self.passed.most() * packet / SECOND;
        let most = most.max(packet / self.mean);
        self.pace.set(pace.min(most));
    }

    /// The time there and back without a queue, in seconds.
    fn trip(&self) -> f64 {
        self.mean.min(MAX_TRIP * self.least) / SECOND
    }

    fn begin_drain(&mut self) {
        self.others.begin_drain(self.trip());
        self.window.begin_round(self.in_flight);
    }

    /// By how much the path has become longer, if that was just found out: it is no queue.
    pub(super) const fn poll_longer(&mut self) -> Option<Span> {
        self.longer.take()
    }

    fn on_longer(&mut self, by: Span) {
        self.longer = Some(by);
        (self.mean, self.least) = (self.mean + by, self.least + by);
        self.delays = Delays::NONE;
    }

    fn end_round(&mut self, now: Span, packet: Bytes) {
        if self.overrun.is_some() {
            return self.end_overrun(packet);
        }
        self.delays.end_round(now, self.objective, &mut self.seen);
        let mut seen = core::mem::replace(&mut self.seen, Seen::NOTHING);
        let (trip, queue, size) = (self.trip(), seen.queue, self.window.size());
        let rests = self.yielding.poll_rest(now);
        let is_full = self.window.was_short() && !self.window.is_tried() && !rests;
        let is_queued = queue >= target((trip + queue) / size);
        self.passed.end_round(self.lost_behind(), packet, size, (is_full, is_queued));
        seen.is_shared = self.others.is_suspected();
        seen.peak = self.peak();
        if self.others.is_draining() {
            match self.others.end_drain_round(size, trip, packet / self.known / SECOND) {
                None => {}
                Some(Found::Others(size)) => self.window.set_size(size),
                Some(Found::Longer(by, size)) => {
                    self.window.set_size(size);
                    self.on_longer(by * SECOND);
                }
            }
            return self.window.begin_round(self.in_flight);
        }
        let (is_short, window) = (self.window.was_short(), &mut self.window);
        if let Some(size) =
            self.others.compete(size, (queue, trip), is_short, || window.is_lossy(&seen))
        {
            self.window.set_size(size);
            return self.window.begin_round(self.in_flight);
        }
        if self.gives_way() {
            self.bound(rests);
        }
        let was_tried = self.window.is_tried();
        self.window.judge(&seen, trip, self.in_flight);
        if self.gives_way() && self.give_way(was_tried) {
            return;
        }
        if self.others.is_doubtful(now, queue, trip, self.window.size()) {
            self.begin_drain();
        }
    }

    /// What passed in a round trip when most did, if the path's rate varies. A window that has met no queue
    /// has not filled the path; beside a game what was full a moment ago is too much; and a queue that a
    /// drain has not emptied may be others'.
    fn peak(&self) -> f64 {
        let is_known =
            self.window.has_met_queue() && !self.gives_way() && !self.others.is_suspected();
        self.passed.varying().filter(|_| is_known).map_or(0.0, |most| most * self.trip())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_with_a_queue_that_does_not_stand_leaves_the_window() {
        let (rate, packet) = (Rate::from_kbps(10_000), Bytes(1_228.0));
        let mut law = Windowed::new(Pace::new(rate), rate, Span::from_millis(60), (60, 60), packet);
        let mut round = |ms: u16, least: f64| {
            law.delays.push(60, least);
            law.seen.acked = 60;
            law.end_round(Span::from_millis(ms), packet);
            law.window.size()
        };
        round(100, 0.0);
        let before = round(150, 0.0);
        assert!(round(195, 0.05) >= before);
        assert!(round(300, 0.05) < before, "it stands");
    }

    const PACKET: Bytes = Bytes(1_228.0);

    /// A window of 40 datagrams, and what it has heard of last.
    fn begun() -> (Windowed, Sample) {
        let (rate, trip) = (Rate::from_kbps(5_000), Span::from_millis(60));
        (Windowed::new(Pace::new(rate), rate, trip, (60, 60), PACKET), Sample::ZERO)
    }

    /// A window of 40 datagrams after this number of drains that have left a queue.
    fn begun_after(drains: u8) -> (Windowed, Sample) {
        let mut it = begun();
        for _ in 0..drains {
            it.0.others.begin_drain(0.06);
            (0..2).for_each(|_| _ = it.0.others.end_drain_round(40.0, 0.06, 0.001));
        }
        it
    }

    /// A round in which 40 datagrams pass in this time, with this queue. Returns the window after it.
    fn round((law, sample): &mut (Windowed, Sample), took_ms: u16, queue: f64) -> f64 {
        let at = sample.at + Span::from_millis(took_ms);
        let passed = sample.passed + 40.0 * PACKET;
        *sample = Sample { at, sent: at, passed, received: passed, ..*sample };
        law.passed.on_arrival(sample);
        law.delays.push(40, queue);
        law.seen.acked = 40;
        law.window.on_sent(40, true);
        law.end_round(at, PACKET);
        law.window.size()
    }

    /// Beside four flows of TCP, and of four on a recorded link, one that kept its window had four tenths of
    /// its share, and one had three quarters of the link.
    #[test]
    fn a_window_is_kept_where_the_rate_varies_but_not_beside_others() {
        let sizes = |drains: u8| {
            let mut it = begun_after(drains);
            let before = (0..8).map(|_| round(&mut it, 60, 0.010_5)).last();
            (before.unwrap(), (0..4).map(|_| round(&mut it, 240, 0.16)).last().unwrap())
        };
        let ((before, after), (alone, beside)) = (sizes(0), sizes(1));
        assert_eq!(after, before, "it is kept");
        assert!(beside < 0.7 * alone, "{alone} {beside}");
    }

    #[test]
    fn a_larger_window_is_tried_unless_a_drain_has_left_a_queue() {
        let is_tried = |drains: u8| {
            let mut it = begun_after(drains);
            (0..2).any(|_| {
                it.0.delays.push_bunched(40, 0.02);
                round(&mut it, 60, 0.02) > 1.4 * 40.0
            })
        };
        assert!(is_tried(0) && !is_tried(1));
    }

    #[test]
    fn what_passes_at_most_is_known_only_of_a_full_path() {
        let peak = |fast: f64, slow: f64| {
            let mut it = begun();
            (0..8).for_each(|_| _ = round(&mut it, 60, fast));
            round(&mut it, 240, slow);
            it.0
        };
        let mut law = peak(0.010_5, 0.16);
        assert!(law.peak() > 40.0, "{}", law.peak());
        law.objective = &objective::DURING_PLAY;
        assert_eq!(law.peak(), 0.0, "beside a game");
        assert_eq!(peak(0.010_5, 0.0).peak(), 0.0, "less was sent");
        assert_eq!(peak(0.0, 0.007).peak(), 0.0, "no queue was met: it is less than HyStart's");
    }

    /// What arrives of a flood may be the share of others a moment later.
    #[test]
    fn what_overran_the_link_is_not_what_passes() {
        let mut it = begun();
        (0..9).for_each(|_| _ = round(&mut it, 60, 0.010_5));
        it.0.overrun = Some(Overrun { next: 0, most: Rate::INFINITY });
        round(&mut it, 20, 0.010_5);
        (0..2).for_each(|_| _ = round(&mut it, 60, 0.02));
        assert_eq!(it.0.peak(), 0.0);
    }

    /// A round ends at the first arrival of an ack. Where acks before it were lost it names the datagrams of
    /// several: with all of them, in the time up to the first, a link of a datagram a millisecond was taken
    /// for twice as fast.
    #[test]
    fn a_round_that_ends_in_the_midst_of_an_ack_shows_no_faster_link() {
        let (packet, rtt) = (Bytes(1_228.0), Span::from_millis(20));
        let rate = packet / Span::from_millis(1);
        let mut law = Windowed::new(Pace::new(rate), rate, rtt, (24, 24), packet);
        law.passed.set(0.0);
        let mut next = 0;
        for of_ack in [16, 16, 16, 48].into_iter().cycle().take(40) {
            let numbers = next..next + of_ack;
            next += of_ack;
            let now = Span::from_millis(next) + rtt;
            numbers.clone().for_each(|number| law.on_settled(number.into(), false));
            law.set_in_flight(24, 24);
            for number in numbers {
                let (sent, passed) = (Span::from_millis(number), f64::from(number + 1) * packet);
                let sample = Sample {
                    number: number.into(),
                    bytes: packet,
                    at: sent + rtt,
                    sent,
                    delay: rtt,
                    passed,
                    received: passed,
                    ..Sample::ZERO
                };
                law.on_delay(now, &sample, Span::ZERO, Span::ZERO, packet);
            }
        }
        let most = law.passed.most();
        assert!((most / 1_000.0 - 1.0).abs() < 1e-9, "{most} a second");
    }
}
