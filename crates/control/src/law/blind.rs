//! Pacing while no rate is known: an initial guess.
//!
//! Trains and what arrives give a rate soon, unless most of it is dropped at a full queue; and a flow that
//! keeps its guess keeps that queue full: ten of them on one link dropped 82 % of what they sent. So where
//! two fifths of what was sent at a guess are lost, it becomes what got through; and where that goes on, it
//! is a share of the link, which loses a part when a tenth is lost, and grows by a part of a packet a round
//! trip else. What a train shows then is the link's rate and not what is free of it, and is not used before
//! nothing is lost. While nothing at all is heard the guess falls with the time (STANDARD-1, H-4.5a).
//!
//! What little is heard before a rate is known bounds the guess: where even the closest two of the datagrams
//! that were sent together arrived far apart, the link is slow ([`pairs`](super::pairs)).

use super::blamed::Blamed;
use super::pairs::Pairs;
use super::seen::Seen;
use crate::belief::samples::Sample;
use crate::tuning::blind::{
    AHEAD, AT_ONCE_RATE, CALM, FIRST_RATE, FIRST_SLICES, FIRST_WINDOW, FLOODED, GROWTH, HINT_GAIN,
    LATER_RATE, MAX_TRAIN, MIN_AT_ONCE, MIN_LEFT, MIN_SLOW_RTT, PAIR_WAIT, SHARED_LOSS, SURE_CUTS,
    UNHEARD, WINDOW,
};
use crate::tuning::{FULL_PACKET, trains};
use crate::units::{Bytes, Rate, Span};
use haulier_core::Instant;

/// What losses have made of a guess.
#[derive(Clone, Copy, Debug)]
struct Guess {
    /// What heavy losses have left of it, how often they have reduced it, and the windows in succession in
    /// which nothing was lost.
    share: Option<Rate>,
    cuts: u32,
    calm: u32,
    /// What became of the datagrams by which it is judged next.
    seen: Seen,
}

/// Pacing without a rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blind {
    floor: Rate,
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
    /// Most of what was sent arrived at once, and nothing after it yet.
    is_at_once: bool,
    /// When it was first heard that a datagram arrived.
    heard_at: Option<Instant>,
    guess: Guess,
    /// What it was before losses last reduced it, and these.
    before: Option<(Guess, Blamed)>,
    /// Datagrams before this were sent at a higher rate.
    fresh_from: u64,
}

impl Blind {
    pub(crate) const fn new(floor: Rate, hint: Option<Rate>) -> Self {
        Self {
            floor,
            hint,
            sent: 0,
            bytes: Bytes::ZERO,
            since: None,
            paced_at: Span::ZERO,
            next_after_train: u64::MAX,
            pairs: Pairs::new(),
            is_at_once: false,
            heard_at: None,
            guess: Guess { share: None, cuts: 0, calm: 0, seen: Seen::new() },
            before: None,
            fresh_from: 0,
        }
    }

    /// Sets the initial rate, as measured on the reverse path.
    pub(crate) const fn set_hint(&mut self, rate: Rate) {
        self.hint = Some(rate);
    }

    /// A slice was sent while no rate was known.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: Bytes) {
        self.count(now, bytes);
        self.paced_at = self.paced_at.max(now.into()) + bytes / self.rate_at(now);
    }

    /// The same for a slice of a train, which is not paced. `next` is its number.
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

    /// The fate of a datagram is settled, and `next` is the number after the last one sent. Where most is
    /// lost the guess becomes what was left of it, and from then on a share of the link: it follows what
    /// gets through, and grows slowly.
    pub(super) fn on_settled(&mut self, number: u64, is_lost: bool, next: u64, rtt: Span) {
        if number < self.fresh_from {
            return;
        }
        self.guess.seen.on_settled(is_lost);
        let window = if self.guess.share.is_some() { WINDOW } else { FIRST_WINDOW };
        if self.guess.seen.total() < window {
            return;
        }
        let seen = core::mem::take(&mut self.guess.seen);
        let (lost, blamed) = (seen.share(), seen.lost());
        let packet = FULL_PACKET / rtt.max(Span(1.0));
        // On a near path that is more than the floor.
        let least = packet.min(self.floor.max(FULL_PACKET / Span::from_secs(1)));
        let is_sure = self.share().is_some();
        let max = if is_sure { SHARED_LOSS } else { FLOODED };
        let (rate, before) = (self.rate(), self.guess);
        let guess = &mut self.guess;
        if lost > max {
            self.before = Some((before, Blamed::new(next, blamed)));
            guess.share = Some((rate * (1.0 - lost).max(MIN_LEFT)).max(least.min(rate)));
            (guess.calm, guess.cuts) = (0, guess.cuts + 1);
            self.fresh_from = next;
        } else if is_sure {
            guess.share = Some(rate + GROWTH * packet.min(rate));
            guess.calm = if lost > 0.0 { 0 } else { guess.calm + 1 };
        } else {
            // It was bad luck.
            (guess.share, guess.cuts) = (None, 0);
        }
    }

    /// A datagram that counted as lost has arrived. If most of the losses were none that have reduced the
    /// guess, it is what it was.
    pub(super) fn on_spurious(&mut self, number: u64) {
        if number >= self.fresh_from {
            self.guess.seen.on_spurious();
        }
        if let Some((guess, _)) = self.before.take_if(|(_, lost)| lost.is_refuted_by(number)) {
            self.guess = Guess { seen: self.guess.seen, ..guess };
        }
    }

    /// The share of a link that is full for sure: no rate that a train shows is taken for what is free of it.
    pub(super) fn share(&self) -> Option<Rate> {
        self.guess.share.filter(|_| self.guess.cuts >= SURE_CUTS)
    }

    /// Whether hardly anything is lost at it, so that it may be left.
    pub(super) const fn is_calm(&self) -> bool {
        self.guess.calm >= CALM
    }

    /// A router has marked what was sent at this rate: it is halved.
    pub(super) fn on_mark(&mut self) {
        self.guess.share = Some(0.5 * self.rate());
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

    /// The number after the first train: what follows it is paced.
    pub(super) const fn next_after_train(&self) -> u64 {
        self.next_after_train
    }

    /// The guessed rate.
    pub(super) fn rate(&self) -> Rate {
        let unhinted = if self.sent < FIRST_SLICES { FIRST_RATE } else { LATER_RATE };
        let guess = self.hint.map_or(unhinted, |hint| hint * HINT_GAIN);
        let guess = if self.is_at_once { guess.max(AT_ONCE_RATE) } else { guess };
        self.guess.share.unwrap_or(guess).min(self.pairs.bound())
    }

    /// The same after a time in which nothing was heard: less, the longer that is.
    fn rate_at(&self, now: Instant) -> Rate {
        let rate = self.rate();
        let since = self.since.filter(|_| self.heard_at.is_none());
        let unheard = since.map_or(Span::ZERO, |since| Span::from(now) - Span::from(since));
        if unheard > UNHEARD { (UNHEARD / unheard * rate).max(self.floor.min(rate)) } else { rate }
    }

    /// Whether the link is so slow that a train is too much at once.
    pub(super) fn is_slow(&self) -> bool {
        trains::BYTES / self.pairs.bound() > MAX_TRAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(50);
    const FLOOR: Rate = Rate::from_kbps(200);

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
        let mut blind = Blind::new(FLOOR, Some(Rate::from_kbps(100_000)));
        // 95 Mbit/s are 10.9 slices in a millisecond.
        let ms = send(&mut blind, 1_000, 250);
        assert!((1_020..=1_024).contains(&ms) && (mbit(&blind) - 95.0).abs() < 0.1, "{ms}");
        let mut blind = Blind::new(FLOOR, None);
        assert!((mbit(&blind) - 20.0).abs() < 1e-9);
        send(&mut blind, 0, 256);
        assert!((mbit(&blind) - 4.0).abs() < 1e-9, "nothing says that the link is so fast");
    }

    /// [H-4.5a] In a crowd the first ack comes after a queue of several round trips, and all of that time
    /// each flow went on at its guess.
    #[test]
    fn while_nothing_is_heard_a_guess_falls_to_the_floor() {
        let rate = |floor, ms: u64| {
            let mut blind = Blind::new(floor, Some(Rate::from_kbps(100_000)));
            blind.on_sent(Instant::from_millis(1_000), Bytes(1_088.0));
            blind.rate_at(Instant::from_millis(1_000 + ms)) / Rate::from_kbps(1_000)
        };
        assert!((rate(FLOOR, 60) - 95.0).abs() < 0.1 && (rate(FLOOR, 120) - 47.5).abs() < 0.1);
        assert!((rate(Rate::from_kbps(50_000), 240) - 50.0).abs() < 0.1);
        let high = rate(Rate::from_kbps(200_000), 240);
        assert!((high - 95.0).abs() < 0.1, "a floor does not raise the guess");
        let mut blind = Blind::new(FLOOR, None);
        blind.on_sent(Instant::ZERO, Bytes(1_088.0));
        arrive(&mut blind, 1, Span::ZERO);
        assert!((blind.rate_at(Instant::from_millis(5_000)) / blind.rate() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_mark_halves_the_rate() {
        let mut blind = Blind::new(FLOOR, None);
        blind.on_mark();
        assert!((mbit(&blind) - 10.0).abs() < 1e-9, "{}", mbit(&blind));
    }

    /// Reports what became of the next `datagrams`, each sent after the one before, of which one of `one_in`
    /// arrived.
    fn settle(blind: &mut Blind, next: &mut u64, datagrams: u64, one_in: u64) {
        for _ in 0..datagrams {
            blind.on_settled(*next, !next.is_multiple_of(one_in), *next + 1, RTT);
            *next += 1;
        }
    }

    #[test]
    fn a_guess_that_is_mostly_lost_becomes_what_got_through() {
        let (mut blind, mut next) = (Blind::new(FLOOR, None), 0);
        settle(&mut blind, &mut next, 8, 4);
        assert!((mbit(&blind) - 5.0).abs() < 1e-9, "{}", mbit(&blind));
        assert!(blind.share().is_none(), "it may be bad luck");
        settle(&mut blind, &mut next, 16, 2);
        assert!((mbit(&blind) - 2.5).abs() < 1e-9, "{}", mbit(&blind));
        assert!(blind.share().is_some() && !blind.is_calm());
        settle(&mut blind, &mut next, 64, 1);
        assert!(blind.is_calm());
        settle(&mut blind, &mut next, 2_000, 1_000_000);
        let least = FLOOR.min(FULL_PACKET / RTT);
        assert!((blind.rate() / least - 1.0).abs() < 1e-9, "a packet a round trip");
    }

    /// What was sent before the guess was reduced says nothing about what is sent since.
    #[test]
    fn a_guess_is_reduced_once_a_round_trip() {
        let mut blind = Blind::new(FLOOR, None);
        for number in 0..100_u64 {
            blind.on_settled(number, !number.is_multiple_of(4), 100, RTT);
        }
        assert!((mbit(&blind) - 5.0).abs() < 1e-9, "{}", mbit(&blind));
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

    /// Of the first eight datagrams at a guess four count as lost, and it is halved. Two of them arrive.
    #[test]
    fn a_guess_that_was_cut_for_nothing_is_what_it_was() {
        let mut blind = Blind::new(FLOOR, None);
        let before = blind.rate();
        (0..8).for_each(|number| blind.on_settled(number, number % 2 == 0, 8, RTT));
        assert!(blind.rate() < before);
        blind.on_spurious(9);
        blind.on_spurious(0);
        assert!(blind.rate() < before, "one of four");
        blind.on_spurious(2);
        assert_eq!(blind.rate(), before);
        for number in 8..16 {
            blind.on_settled(number, number % 2 == 0, 16, RTT);
            if number % 2 == 0 {
                blind.on_spurious(number);
            }
        }
        assert_eq!(blind.rate(), before, "what is late before it is judged was no loss");
    }
}
