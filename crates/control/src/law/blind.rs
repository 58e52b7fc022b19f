//! Pacing while no rate is known: an initial guess.
//!
//! Trains and what arrives give a rate soon, unless most of it is dropped at a full queue; and a flow that
//! keeps its guess keeps that queue full: ten of them on one link dropped 82 % of what they sent. So where
//! two fifths of what was sent at a guess are lost, behind the train that shows a rate, it has overrun the
//! link, and a window takes its place. While nothing at all is heard, only the datagrams in flight have a
//! bound ([`allowance`](super::allowance)).
//!
//! The few reports before a rate is known bound the guess: where even the closest two of the datagrams that
//! were sent together arrived far apart, the link is slow ([`pairs`](super::pairs)).

use super::pairs::Pairs;
use super::seen::Seen;
use crate::belief::samples::Sample;
use crate::tuning::blind::{
    AHEAD, AT_ONCE_RATE, FIRST_RATE, FIRST_SLICES, FIRST_WINDOW, FLOODED, HINT_GAIN, LATER_RATE,
    MAX_TRAIN, MIN_AT_ONCE, MIN_SLOW_RTT, PAIR_WAIT,
};
use crate::tuning::trains;
use crate::units::{Bytes, Rate, Span};
use haulier_core::Instant;

/// Pacing without a rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blind {
    /// The initial rate, if one was measured.
    hint: Option<Rate>,
    /// Slices sent, their bytes, and when the first was.
    sent: usize,
    bytes: Bytes,
    since: Option<Instant>,
    /// When the next slice is due at the current rate.
    paced_at: Span,
    /// The number after the first train.
    next_after_train: u64,
    pairs: Pairs,
    /// Most of the datagrams sent arrived at once, and none after them yet.
    is_at_once: bool,
    /// When it was first heard that a datagram arrived.
    heard_at: Option<Instant>,
    /// The arrivals that were first and last.
    arrivals: Option<(Sample, Sample)>,
    /// What a router's mark has left of the guess.
    marked: Option<Rate>,
    /// What became of the datagrams by which it is judged next.
    seen: Seen,
}

impl Blind {
    pub(crate) const fn new(hint: Option<Rate>) -> Self {
        Self {
            hint,
            sent: 0,
            bytes: Bytes::ZERO,
            since: None,
            paced_at: Span::ZERO,
            next_after_train: u64::MAX,
            pairs: Pairs::new(),
            is_at_once: false,
            heard_at: None,
            arrivals: None,
            marked: None,
            seen: Seen::new(),
        }
    }

    /// Sets the initial rate, as measured on the reverse path.
    pub(crate) const fn set_hint(&mut self, rate: Rate) {
        self.hint = Some(rate);
    }

    /// A slice was sent while no rate was known.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: Bytes) {
        self.count(now, bytes);
        self.paced_at = self.paced_at.max(now.into()) + bytes / self.rate();
    }

    /// A slice of a train was sent while no rate was known: it is not paced. `next` is its number.
    pub(super) fn on_train_sent(&mut self, now: Instant, bytes: Bytes, next: u64) {
        self.count(now, bytes);
        if self.heard_at.is_none() {
            self.next_after_train = next + 1;
        }
    }

    fn count(&mut self, now: Instant, bytes: Bytes) {
        self.since.get_or_insert(now);
        (self.sent, self.bytes) = (self.sent + 1, self.bytes + bytes);
    }

    /// When a link of this rate has passed all that was sent, if it drops nothing.
    pub(super) fn passed_at(&self, rate: Rate) -> Span {
        self.since.map_or(Span::ZERO, |since| Span::from(since) + self.bytes / rate)
    }

    /// The fate of a datagram is settled. Returns whether what was sent has overrun the link: a train alone
    /// may be too much for a short queue.
    pub(super) fn on_settled(&mut self, number: u64, is_lost: bool) -> bool {
        if self.is_of_train(number) {
            return false;
        }
        self.seen.on_settled(is_lost);
        self.seen.total() >= FIRST_WINDOW && core::mem::take(&mut self.seen).share() > FLOODED
    }

    /// A datagram that counted as lost has arrived.
    pub(super) fn on_spurious(&mut self, number: u64) {
        if !self.is_of_train(number) {
            self.seen.on_spurious();
        }
    }

    fn is_of_train(&self, number: u64) -> bool {
        self.next_after_train != u64::MAX && number < self.next_after_train
    }

    /// The arrivals that were first and last.
    pub(super) const fn arrivals(&self) -> Option<(Sample, Sample)> {
        self.arrivals
    }

    /// A router has marked what was sent at this rate: it is halved.
    pub(super) fn on_mark(&mut self) {
        self.marked = Some(0.5 * self.rate());
    }

    /// It was heard at `now` that a datagram arrived.
    pub(super) fn on_arrival(&mut self, now: Instant, sample: &Sample) {
        self.heard_at.get_or_insert(now);
        self.pairs.on_arrival(sample);
        let (first, last) = self.arrivals.unwrap_or((*sample, *sample));
        let first = if sample.at < first.at { *sample } else { first };
        self.arrivals = Some((first, if sample.at > last.at { *sample } else { last }));
        // Datagrams in flight show more soon: more is guessed only where none are in flight.
        self.is_at_once = self.pairs.at_once() >= MIN_AT_ONCE.max(self.sent / 2);
    }

    /// Whether the slices after a train wait until it is known whether the link is slow. Where the round trip
    /// is short they do not wait.
    pub(super) fn is_unsure(&self, now: Instant, rtt: Span) -> bool {
        let is_heard = self.heard_at.is_some_and(|heard_at| now < heard_at + PAIR_WAIT);
        is_heard && self.pairs.is_empty() && self.hint.is_none() && rtt > MIN_SLOW_RTT
    }

    /// Whether the next slice must wait, for a caller that is this late.
    pub(crate) fn is_early(&self, now: Instant, late: Span) -> bool {
        self.paced_at > Span::from(now) + AHEAD + late
    }

    /// The number after the first train: what follows it is paced.
    pub(super) const fn next_after_train(&self) -> u64 {
        self.next_after_train
    }

    /// The guessed rate.
    pub(super) fn rate(&self) -> Rate {
        let unhinted = if self.sent < FIRST_SLICES { FIRST_RATE } else { LATER_RATE };
        let guess = self.hint.map_or(unhinted, |hint| hint * HINT_GAIN);
        let guess = if self.is_at_once { guess.max(AT_ONCE_RATE) } else { guess };
        self.marked.unwrap_or(guess).min(self.pairs.bound())
    }

    /// Whether the link is so slow that a train is too much at once.
    pub(super) fn is_slow(&self) -> bool {
        trains::BYTES / self.pairs.bound() > MAX_TRAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::FULL_PACKET;

    /// Sends slices, each as soon as allowed. Returns when the last was sent, in ms.
    fn send(blind: &mut Blind, from_ms: u64, slices: usize) -> u64 {
        let mut ms = from_ms;
        for _ in 0..slices {
            while blind.is_early(Instant::from_millis(ms), Span::ZERO) {
                ms += 1;
            }
            blind.on_sent(Instant::from_millis(ms), Bytes(1_088.0));
        }
        ms
    }

    fn mbit(blind: &Blind) -> f64 {
        blind.rate() / Rate::from_kbps(1_000)
    }

    #[test]
    fn slices_go_at_the_guess() {
        let mut blind = Blind::new(Some(Rate::from_kbps(100_000)));
        // 95 Mbit/s are 10.9 slices in a millisecond.
        let ms = send(&mut blind, 1_000, 250);
        assert!((1_020..=1_024).contains(&ms) && (mbit(&blind) - 95.0).abs() < 0.1, "{ms}");
        let mut blind = Blind::new(None);
        assert!((mbit(&blind) - 20.0).abs() < 1e-9);
        send(&mut blind, 0, 256);
        assert!((mbit(&blind) - 4.0).abs() < 1e-9, "nothing says that the link is so fast");
    }

    #[test]
    fn a_mark_halves_the_rate() {
        let mut blind = Blind::new(None);
        blind.on_mark();
        assert!((mbit(&blind) - 10.0).abs() < 1e-9, "{}", mbit(&blind));
    }

    /// Reports what became of these datagrams, of which one of `one_in` arrived; returns whether they have
    /// overrun the link.
    fn settle(blind: &mut Blind, mut numbers: core::ops::Range<u64>, one_in: u64) -> bool {
        numbers.any(|number| blind.on_settled(number, !number.is_multiple_of(one_in)))
    }

    /// Ten flows kept their guesses, and dropped 82 % of what they sent.
    #[test]
    fn a_guess_that_is_mostly_lost_has_overrun_the_link() {
        let mut blind = Blind::new(None);
        assert!(!settle(&mut blind, 0..7, 4), "seven say nothing");
        assert!(settle(&mut blind, 7..8, 4));
        assert!(!settle(&mut blind, 8..80, 1));
    }

    /// A link of 79 Mbit/s behind 19 KiB drops most of a train, and nothing of what is paced.
    #[test]
    fn the_losses_of_a_train_are_not_those_of_the_guess() {
        let mut blind = Blind::new(None);
        (0..20).for_each(|n| blind.on_train_sent(Instant::ZERO, FULL_PACKET, n));
        assert!(!settle(&mut blind, 0..20, 4));
        assert!(settle(&mut blind, 20..28, 4));
    }

    /// Arrivals of datagrams that were sent at once, `apart` from each other, heard of at 1 s.
    fn arrive(blind: &mut Blind, datagrams: u32, apart: Span) {
        for n in 0..datagrams {
            let passed = Bytes(1_250.0) * f64::from(n);
            let (number, sent, at) = (n.into(), Span::ZERO, f64::from(n) * apart);
            let bytes = Bytes(1_250.0);
            let sample = Sample {
                number,
                bytes,
                at,
                sent,
                delay: at,
                passed,
                received: passed,
                ..Sample::ZERO
            };
            blind.on_arrival(Instant::from_millis(1_000), &sample);
        }
    }

    #[test]
    fn a_guess_is_at_most_twice_the_rate_of_the_first_arrivals() {
        let mut blind = Blind::new(None);
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
        let mut blind = Blind::new(Some(Rate::from_kbps(20_000)));
        (0..12).for_each(|n| blind.on_train_sent(Instant::ZERO, FULL_PACKET, n));
        arrive(&mut blind, 12, Span::ZERO);
        assert!((mbit(&blind) - 60.0).abs() < 1e-9, "{}", mbit(&blind));
        arrive(&mut blind, 2, Span::from_millis(1));
        assert!((mbit(&blind) - 19.0).abs() < 1e-9, "{}", mbit(&blind));
        (0..20).for_each(|n| blind.on_train_sent(Instant::ZERO, FULL_PACKET, n));
        arrive(&mut blind, 12, Span::ZERO);
        assert!((mbit(&blind) - 19.0).abs() < 1e-9, "{}", mbit(&blind));
    }

    #[test]
    fn after_a_slow_handshake_the_first_arrivals_are_waited_for() {
        let mut blind = Blind::new(None);
        let (soon, later) = (Instant::from_millis(1_030), Instant::from_millis(1_061));
        let (slow, fast) = (Span::from_millis(400), Span::from_millis(100));
        assert!(!blind.is_unsure(soon, slow), "nothing is heard");
        arrive(&mut blind, 1, Span::ZERO);
        assert!(blind.is_unsure(soon, slow) && !blind.is_unsure(soon, fast));
        assert!(!blind.is_unsure(later, slow), "not for long");
        arrive(&mut blind, 1, Span::ZERO);
        assert!(!blind.is_unsure(soon, slow), "a pair says enough");
    }

    #[test]
    fn what_is_late_was_not_lost() {
        let mut blind = Blind::new(None);
        for number in 0..80 {
            assert!(!blind.on_settled(number, number % 2 == 0));
            if number % 2 == 0 {
                blind.on_spurious(number);
            }
        }
    }
}
