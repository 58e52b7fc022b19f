//! Pacing while no rate is known: an initial guess, reduced the longer no rate is measured.
//!
//! A train that is dropped at a full queue gives no rate, and a flow that keeps its guess keeps that queue
//! full: ten of them on one link dropped 82 % of what they sent. So the guess is used for a chunk and a
//! round trip. Then it is halved with each half chunk, down to the floor, until a rate is measured. Where
//! slices arrive, another train is sent to measure it.
//!
//! What little is heard before a rate is known bounds the guess: where even the closest two of the datagrams
//! that were sent together arrived far apart, the link is slow ([`pairs`](super::pairs)).

use super::super::samples::Sample;
use super::super::tuning::blind::{
    AHEAD, AT_ONCE_RATE, BELIEVED_SLICES, FIRST_RATE, FIRST_SLICES, HALVED_AFTER, HINT_GAIN,
    LATER_RATE, MAX_HALVINGS, MAX_TRAIN, MIN_AT_ONCE, MIN_SLOW_RTT, PAIR_WAIT, TRAIN_INTERVAL,
};
use super::super::tuning::trains;
use super::super::units::{Bytes, Rate, Span};
use super::pairs::Pairs;
use crate::Instant;

/// Pacing without a rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blind {
    floor: Rate,
    /// The initial rate, if one was measured.
    hint: Option<Rate>,
    /// Slices sent, and when the first was.
    sent: usize,
    since: Option<Instant>,
    /// Slices sent after the time at which a rate should be known.
    late: usize,
    /// When the next slice is due at the current rate.
    paced_at: Span,
    train_at: Instant,
    /// The next slice waited for the server's uplink, and a rate is overdue although no guess is to blame.
    is_held_back: bool,
    is_overdue: bool,
    pairs: Pairs,
    /// Most of what was sent arrived at once, and nothing after it yet.
    is_at_once: bool,
    /// When it was first heard that a datagram arrived.
    heard_at: Option<Instant>,
}

impl Blind {
    pub(crate) const fn new(floor: Rate, hint: Option<Rate>) -> Self {
        Self {
            floor,
            hint,
            sent: 0,
            since: None,
            late: 0,
            paced_at: Span::ZERO,
            train_at: Instant::ZERO,
            is_held_back: false,
            is_overdue: false,
            pairs: Pairs::new(),
            is_at_once: false,
            heard_at: None,
        }
    }

    /// Sets the initial rate, as measured on the reverse path.
    pub(crate) const fn set_hint(&mut self, rate: Rate) {
        self.hint = Some(rate);
    }

    /// A slice was sent while no rate was known. Below a configured `limit` that is smaller than the guess,
    /// the guess is not halved: no train can be sent then, so no rate is expected.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: Bytes, rtt: Span, limit: Rate) {
        self.sent += 1;
        let since = *self.since.get_or_insert(now);
        let rate = self.rate();
        let is_late = self.sent > BELIEVED_SLICES && Span::from(now.since(since)) > rtt;
        let is_held_back = core::mem::take(&mut self.is_held_back);
        self.late += usize::from(is_late && rate < limit && !is_held_back);
        self.is_overdue |= is_late && is_held_back;
        self.paced_at = self.paced_at.max(now.into()) + bytes / rate;
    }

    /// The same for a slice of a train, which is not paced.
    pub(super) fn on_train_sent(&mut self, now: Instant) {
        self.sent += 1;
        self.since.get_or_insert(now);
    }

    /// A router has marked what was sent at this rate: it is halved, and no train follows soon.
    pub(super) fn on_mark(&mut self, now: Instant) {
        self.late += HALVED_AFTER;
        self.train_at = now + TRAIN_INTERVAL;
    }

    /// The next slice waits for the server's uplink. Less is sent than was guessed then, in no train, and the
    /// guess is not halved.
    pub(super) const fn on_held_back(&mut self) {
        self.is_held_back = true;
    }

    /// It was heard at `now` that a datagram arrived.
    pub(super) fn on_arrival(&mut self, now: Instant, sample: &Sample) {
        self.heard_at.get_or_insert(now);
        self.pairs.on_arrival(sample);
        // What is on its way shows more soon: only where nothing is, more is guessed.
        self.is_at_once = self.pairs.at_once() >= MIN_AT_ONCE.max(self.sent / 2);
    }

    /// Whether what is beyond a train waits until it is known whether the link is slow. Where the round trip
    /// is short it is not.
    pub(super) fn is_unsure(&self, now: Instant, rtt: Span) -> bool {
        let is_heard = self.heard_at.is_some_and(|heard_at| now < heard_at + PAIR_WAIT);
        is_heard && self.pairs.is_empty() && self.hint.is_none() && rtt > MIN_SLOW_RTT
    }

    /// Whether the next slice must wait, for a caller that is this late.
    pub(crate) fn is_early(&self, now: Instant, late: Span) -> bool {
        self.paced_at > Span::from(now) + AHEAD + late
    }

    /// Whether to send another train to measure the rate, now that slices arrive.
    pub(super) fn poll_train(&mut self, now: Instant) -> bool {
        let is_due = (self.halvings() > 0 || self.is_overdue) && now >= self.train_at;
        if is_due {
            self.train_at = now + TRAIN_INTERVAL;
        }
        is_due
    }

    /// The guessed rate.
    pub(super) fn rate(&self) -> Rate {
        let unhinted = if self.sent < FIRST_SLICES { FIRST_RATE } else { LATER_RATE };
        let first = self.hint.map_or(unhinted, |hint| hint * HINT_GAIN);
        let first = if self.is_at_once { first.max(AT_ONCE_RATE) } else { first };
        let halved = (0..self.halvings()).fold(first, |rate, _| rate / 2.0);
        halved.max(self.floor.min(first)).min(self.pairs.bound())
    }

    /// Whether the link is so slow that a train is too much at once.
    pub(super) fn is_slow(&self) -> bool {
        trains::BYTES / self.pairs.bound() > MAX_TRAIN
    }

    fn halvings(&self) -> usize {
        (self.late / HALVED_AFTER).min(MAX_HALVINGS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(50);
    const FLOOR: Rate = Rate::from_kbps(200);

    /// Sends slices under this limit, each as soon as allowed. Returns when the last was sent, in ms.
    fn send(blind: &mut Blind, from_ms: u64, slices: usize, limit: Rate) -> u64 {
        let mut ms = from_ms;
        for _ in 0..slices {
            while blind.is_early(Instant::from_millis(ms), Span::ZERO) {
                ms += 1;
            }
            blind.on_sent(Instant::from_millis(ms), Bytes(1_088.0), RTT, limit);
        }
        ms
    }

    fn mbit(blind: &Blind) -> f64 {
        blind.rate() / Rate::from_kbps(1_000)
    }

    #[test]
    fn the_initial_rate_is_kept_for_a_round_trip() {
        let mut blind = Blind::new(FLOOR, Some(Rate::from_kbps(100_000)));
        // 95 Mbit/s are 10.9 slices in a millisecond.
        let ms = send(&mut blind, 1_000, 540, Rate::INFINITY);
        assert!((1_045..=1_050).contains(&ms) && (mbit(&blind) - 95.0).abs() < 0.1, "{ms}");
        assert!(!blind.poll_train(Instant::from_millis(ms)));
        let ms = send(&mut blind, ms, 20 + 128, Rate::INFINITY);
        assert!((mbit(&blind) - 47.5).abs() < 0.1, "{}", mbit(&blind));
        send(&mut blind, ms, 128, Rate::INFINITY);
        assert!((mbit(&blind) - 23.75).abs() < 0.1, "{}", mbit(&blind));
    }

    #[test]
    fn the_initial_rate_is_kept_for_a_chunk() {
        let mut blind = Blind::new(FLOOR, None);
        send(&mut blind, 0, 256, Rate::INFINITY);
        assert!((mbit(&blind) - 4.0).abs() < 1e-9);
        send(&mut blind, 1_000, 128, Rate::INFINITY);
        assert!((mbit(&blind) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn halving_ends_at_the_floor() {
        let after = |floor| {
            let mut blind = Blind::new(floor, None);
            send(&mut blind, 0, 5_000, Rate::INFINITY);
            mbit(&blind)
        };
        assert!((after(FLOOR) - 0.2).abs() < 1e-9);
        assert!(after(Rate::ZERO) > 0.003, "without a floor it is not zero");
        let high = after(Rate::from_kbps(50_000));
        assert!((high - 4.0).abs() < 1e-9, "a floor does not raise the guess");
    }

    /// Under a limit that passes no train no rate can be measured.
    #[test]
    fn a_guess_above_the_limit_is_not_halved() {
        let mut blind = Blind::new(FLOOR, None);
        send(&mut blind, 0, 5_000, Rate::from_kbps(2_000));
        assert!((mbit(&blind) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_mark_halves_the_rate_and_puts_trains_off() {
        let mut blind = Blind::new(FLOOR, None);
        blind.on_mark(Instant::from_millis(100));
        assert!((mbit(&blind) - 10.0).abs() < 1e-9, "{}", mbit(&blind));
        assert!(!blind.poll_train(Instant::from_millis(1_000)));
        assert!(blind.poll_train(Instant::from_millis(1_100)));
    }

    #[test]
    fn trains_are_repeated_once_a_second() {
        let mut blind = Blind::new(FLOOR, None);
        let ms = send(&mut blind, 0, 1_000, Rate::INFINITY);
        let trains = (ms..ms + 5_000).filter(|&ms| blind.poll_train(Instant::from_millis(ms)));
        assert_eq!(trains.count(), 5);
    }

    /// Arrivals of datagrams that were sent at once, so far apart, heard of at 1 s.
    fn arrive(blind: &mut Blind, datagrams: u32, apart: Span) {
        for n in 0..datagrams {
            let passed = Bytes(1_250.0) * f64::from(n);
            let (number, sent, at) = (n.into(), Span::ZERO, f64::from(n) * apart);
            let bytes = Bytes(1_250.0);
            let sample = Sample { number, bytes, at, sent, delay: at, passed, received: passed };
            blind.on_arrival(Instant::from_millis(1_000), &sample);
        }
    }

    #[test]
    fn a_guess_is_at_most_twice_the_rate_of_the_first_arrivals() {
        let mut blind = Blind::new(FLOOR, None);
        arrive(&mut blind, 2, Span::from_millis(100));
        assert!(
            (mbit(&blind) - 20.0).abs() < 1e-9 && !blind.is_slow(),
            "of one pair, any may be late"
        );
        arrive(&mut blind, 3, Span::from_millis(100));
        assert!((mbit(&blind) - 0.2).abs() < 1e-9 && blind.is_slow(), "{}", mbit(&blind));
        arrive(&mut blind, 2, Span::from_millis(1));
        assert!((mbit(&blind) - 20.0).abs() < 1e-9 && !blind.is_slow(), "the fastest counts");
    }

    /// Of one that is all that was sent: what else is on its way shows more soon.
    #[test]
    fn a_train_that_arrives_at_once_raises_the_guess_until_more_arrives() {
        let mut blind = Blind::new(FLOOR, Some(Rate::from_kbps(20_000)));
        (0..12).for_each(|_| blind.on_train_sent(Instant::ZERO));
        arrive(&mut blind, 12, Span::ZERO);
        assert!((mbit(&blind) - 60.0).abs() < 1e-9, "{}", mbit(&blind));
        arrive(&mut blind, 2, Span::from_millis(1));
        assert!((mbit(&blind) - 19.0).abs() < 1e-9, "{}", mbit(&blind));
        (0..20).for_each(|_| blind.on_train_sent(Instant::ZERO));
        arrive(&mut blind, 12, Span::ZERO);
        assert!((mbit(&blind) - 19.0).abs() < 1e-9, "{}", mbit(&blind));
    }

    #[test]
    fn after_a_slow_handshake_the_first_arrivals_are_waited_for() {
        let mut blind = Blind::new(FLOOR, None);
        let (soon, later) = (Instant::from_millis(1_030), Instant::from_millis(1_061));
        let (slow, fast) = (Span::from_millis(400), Span::from_millis(100));
        assert!(!blind.is_unsure(soon, slow), "nothing is heard");
        arrive(&mut blind, 1, Span::ZERO);
        assert!(blind.is_unsure(soon, slow) && !blind.is_unsure(soon, fast));
        assert!(!blind.is_unsure(later, slow), "not for long");
        arrive(&mut blind, 1, Span::ZERO);
        assert!(!blind.is_unsure(soon, slow), "a pair says enough");
    }
}
