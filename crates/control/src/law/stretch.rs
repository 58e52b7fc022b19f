//! Whether others are on the link: by how much longer datagrams take to arrive than they took to be sent.
//!
//! A train shows the rate of the link, whoever else is there: nothing of theirs comes between datagrams that
//! wait side by side. Datagrams paced behind it are held up where others send too, because a queue serves
//! each flow by what it sends; where no other flow sends, they arrive as they were sent. That is how the free
//! rate of a path is measured by streams (Jain and Dovrolis, *End-to-end available bandwidth*, 2002), with
//! one stream that is a part of the block.

use crate::belief::samples::Sample;
use crate::tuning::blind::FIRST_RATE;
use crate::tuning::stretch::{ARRIVALS, FAST, FREE, HELD_UP, MIN_HELD_UP, PACED};
use crate::units::{Rate, Span};

/// What the arrivals have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nobody,
    Others,
}

/// The arrivals since the first of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// The rate at which a guess sends what shows others.
    guess: Rate,
    first: Option<Sample>,
    count: u32,
}

impl Stretch {
    pub(super) fn new(guess: Rate) -> Self {
        Self { guess: guess.min(FIRST_RATE), first: None, count: 0 }
    }

    /// A datagram that was not of a train arrived, over a link that is known to have this rate.
    pub(super) fn on_arrival(&mut self, sample: &Sample, known: Rate) -> Option<Found> {
        let Some(first) = self.first else {
            (self.first, self.count) = (Some(*sample), 1);
            return None;
        };
        self.count += 1;
        let bytes = sample.passed - first.passed;
        // Datagrams that are sent faster than the link passes them take its time.
        let took = (sample.sent - first.sent).max(bytes / known);
        let arrived = sample.at - first.at;
        let is_held_up = |(factor, span): (f64, Span)| arrived > factor * took + span;
        if self.count >= MIN_HELD_UP && is_held_up(HELD_UP) {
            self.first = None;
            return Some(Found::Others);
        }
        let is_paced = sample.sent - first.sent >= (PACED.0 * took).min(PACED.1);
        if self.count < ARRIVALS || !is_paced {
            return None;
        }
        self.first = None;
        // What was sent as slowly as datagrams arrive is never held up.
        let is_fast = bytes / took >= FAST * known.min(self.guess);
        (is_fast && !is_held_up(FREE)).then_some(Found::Nobody)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tuning::FULL_PACKET;

    const LINK: Rate = Rate::from_kbps(100_000);

    /// The finding where datagrams are sent, and arrive, at these distances, on a link of this rate.
    fn found_on(known: Rate, guess: Rate, sent: Span, at: Span) -> Option<Found> {
        let mut stretch = Stretch::new(guess);
        (0..ARRIVALS).find_map(|n| {
            let (times, passed) = (f64::from(n), f64::from(n) * FULL_PACKET);
            let sample =
                Sample::of((n.into(), FULL_PACKET), [times * sent, times * at], [passed, passed]);
            stretch.on_arrival(&sample, known)
        })
    }

    fn found(sent: Span, at: Span) -> Option<Found> {
        found_on(LINK, FIRST_RATE, sent, at)
    }

    /// One of 35 that joined at once on 61 Mbit/s read that rate from its train, and sent at it: 44 % of
    /// what the crowd sent was dropped. What it had paced behind its train took eleven times as long to
    /// arrive.
    #[test]
    fn what_is_paced_behind_a_train_is_held_up_by_others() {
        let paced = FULL_PACKET / FIRST_RATE;
        assert_eq!(found(paced, paced), Some(Found::Nobody));
        assert_eq!(found(paced, 11.0 * paced), Some(Found::Others));
        assert_eq!(found(paced, 1.4 * paced), None, "jitter, or one beside it");
    }

    /// Three that joined at once by ticket sent what they were allowed at once each, after one another.
    #[test]
    fn datagrams_sent_at_once_are_a_train_and_show_nothing_of_others() {
        let link = FULL_PACKET / LINK;
        assert_eq!(found(Span::ZERO, link), None);
        assert_eq!(found(0.6 * link, link), Some(Found::Nobody), "the link alone takes that long");
        assert_eq!(found(Span::ZERO, 20.0 * link), Some(Found::Others));
    }

    /// A guess of 20 Mbit/s on 5.
    #[test]
    fn a_link_that_is_slower_than_the_guess_is_not_shared_for_that() {
        let slow = Rate::from_kbps(5_000);
        let nobody = Some(Found::Nobody);
        let paced = FULL_PACKET / FIRST_RATE;
        assert_eq!(found_on(slow, FIRST_RATE, paced, FULL_PACKET / slow), nobody);
    }

    /// On 256 Mbit/s with 9 up the copies of the request gave a guess of 9, and what went at it was too slow
    /// to show anything: 4 MiB took a round trip longer.
    #[test]
    fn what_is_sent_at_a_slow_guess_shows_as_much() {
        let guess = Rate::from_kbps(9_000);
        let paced = FULL_PACKET / guess;
        assert_eq!(found_on(LINK, guess, paced, paced), Some(Found::Nobody));
        assert_eq!(found_on(LINK, guess, paced, 11.0 * paced), Some(Found::Others));
        assert_eq!(found_on(LINK, guess, 2.0 * paced, 2.0 * paced), None, "slower than that");
    }

    /// Of three datagrams one may be late for any reason.
    #[test]
    fn a_few_that_are_late_show_no_others() {
        let mut stretch = Stretch::new(FIRST_RATE);
        let late = (0..3).map(|n: u32| {
            let at = f64::from(n) * Span::from_millis(10);
            let sample = Sample::of((n.into(), FULL_PACKET), [Span::ZERO, at], [FULL_PACKET; 2]);
            stretch.on_arrival(&sample, FIRST_RATE)
        });
        assert!(late.eq([None; 3]));
    }

    /// A flow of a crowd sends one for each that arrives: as slowly as its share passes.
    #[test]
    fn what_is_sent_as_slowly_as_it_arrives_shows_nothing() {
        let slow = FULL_PACKET / Rate::from_kbps(10_000);
        assert_eq!(found(slow, slow), None);
    }
}
