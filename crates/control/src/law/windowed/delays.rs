//! The queueing delays that a transfer has seen: in this round, and in the last ones.
//!
//! A round is judged by its least delay, because every datagram met at least the queue that stood all through
//! the round. Two things are no queue and look like one: a rate that falls for a moment, which is why what
//! stood for [`STANDING`] counts as well; and jitter that keeps datagrams in order, which holds up all that
//! follow one that is held up. Those then arrive together, in bunches, as they leave no queue.

use super::objective::Objective;
use super::window::Seen;
use crate::belief::samples::{Bunch, Sample};
use crate::units::Span;

/// Delays are those of the rounds within [`Objective::lately`], two at most, and of more rounds until there
/// are [`Objective::min_delays`]: one datagram may be late alone.
const LAST_ROUNDS: usize = 2;
const ROUNDS: usize = 8;

/// A queue that is empty within this time is not standing: CoDel's interval (RFC 8289). With four rounds at
/// least 4 MiB over random links are half of a percent faster, but where the rate varies a queue of a second
/// is let stand.
const STANDING: Span = Span::from_millis(100);

/// Arrivals are bunched if this part of them is: a program that is held up makes single bunches.
const BUNCHED: f64 = 0.2;

/// The queueing delays of a round, in seconds.
#[derive(Clone, Copy, Debug)]
struct Round {
    least: f64,
    longest: f64,
    sum: f64,
    count: u32,
    /// Of these, those that arrived at once with others that were sent long before.
    bunched: u32,
}

impl Round {
    const NONE: Self = Self { least: f64::INFINITY, longest: 0.0, sum: 0.0, count: 0, bunched: 0 };

    fn push(&mut self, other: Self) {
        self.least = self.least.min(other.least);
        self.longest = self.longest.max(other.longest);
        self.sum += other.sum;
        self.count += other.count;
        self.bunched += other.bunched;
    }
}

/// The delays of this round, and those of the last ones and when they ended, the newest first.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    round: Round,
    rounds: [(Span, Round); ROUNDS],
    bunch: Bunch,
}

impl Delays {
    pub(super) const NONE: Self = Self {
        round: Round::NONE,
        rounds: [(Span::ZERO, Round::NONE); ROUNDS],
        bunch: Bunch::NONE,
    };

    /// What this round has seen does not count.
    pub(super) const fn begin(&mut self) {
        self.round = Round::NONE;
    }

    /// A datagram arrived with this queueing delay, in seconds.
    pub(super) fn on_arrival(&mut self, sample: &Sample, delay: f64) {
        let bunched = u32::from(self.bunch.takes(sample));
        self.round.push(Round { least: delay, longest: delay, sum: delay, count: 1, bunched });
    }

    /// The longest of this round.
    pub(super) const fn longest(&self) -> f64 {
        self.round.longest
    }

    /// When this round began.
    pub(super) const fn began(&self) -> Span {
        self.rounds[0].0
    }

    /// The queue of the last round, if anything was seen of it.
    pub(super) fn last_queue(&self) -> Option<f64> {
        Some(self.rounds[0].1.least).filter(|queue| queue.is_finite())
    }

    /// This round ends: what its delays say.
    pub(super) fn end_round(&mut self, now: Span, objective: &Objective, seen: &mut Seen) {
        self.rounds.rotate_right(1);
        self.rounds[0] = (now, core::mem::replace(&mut self.round, Round::NONE));
        let lately = self.lately(now, objective);
        // A round in which no delay was seen has that of the rounds before.
        let of = if self.rounds[0].1.count > 0 { self.rounds[0].1 } else { lately };
        seen.mean = of.sum / f64::from(of.count.max(1));
        seen.queue = lately.least;
        seen.spread = (lately.longest - lately.least).max(0.0);
        seen.is_bunched = f64::from(lately.bunched) > BUNCHED * f64::from(lately.count);
        seen.standing = self.standing(now);
    }

    /// The last rounds together.
    fn lately(&self, now: Span, objective: &Objective) -> Round {
        let mut lately = Round::NONE;
        for (n, (at, round)) in self.rounds.into_iter().enumerate() {
            let is_old = now - at >= objective.lately || n >= LAST_ROUNDS;
            if is_old && lately.count >= objective.min_delays {
                break;
            }
            lately.push(round);
        }
        lately
    }

    /// The least queueing delay of the rounds within [`STANDING`].
    fn standing(&self, now: Span) -> f64 {
        let recent = self.rounds.iter().take_while(|(at, _)| now - *at < STANDING);
        recent.fold(f64::INFINITY, |least, (_, round)| least.min(round.least))
    }

    /// This number of datagrams arrived with this delay.
    #[cfg(test)]
    pub(super) fn push(&mut self, count: u32, delay: f64) {
        let sum = f64::from(count) * delay;
        self.round.push(Round { least: delay, longest: delay, sum, count, bunched: 0 });
    }

    /// And all of them in bunches.
    #[cfg(test)]
    pub(super) fn push_bunched(&mut self, count: u32, delay: f64) {
        self.push(count, delay);
        self.round.bunched += count;
    }
}

#[cfg(test)]
mod tests {
    use super::super::objective::LOAD_SCREEN;
    use super::*;

    fn end(delays: &mut Delays, ms: u16) -> Seen {
        let mut seen = Seen::NOTHING;
        delays.end_round(Span::from_millis(ms), &LOAD_SCREEN, &mut seen);
        seen
    }

    /// Over jitter that reorders, one late datagram was all that a round had seen: it was taken for a queue.
    #[test]
    fn a_single_late_datagram_is_no_queue() {
        let mut delays = Delays::NONE;
        let mut lately = |ms: u16, least: f64, count: u32| {
            delays.push(count, least);
            end(&mut delays, ms).queue
        };
        assert_eq!(lately(100, 0.001, 60), 0.001);
        assert_eq!(lately(200, 0.034, 1), 0.001, "the round before counts, too");
        assert_eq!(lately(300, 0.034, 60), 0.034, "sixty are a queue");
    }

    #[test]
    fn the_mean_is_of_the_round_and_of_those_before_if_it_saw_nothing() {
        let mut delays = Delays::NONE;
        delays.push(60, 0.010);
        assert!((end(&mut delays, 100).mean - 0.010).abs() < 1e-9);
        delays.push(60, 0.030);
        assert!((end(&mut delays, 120).mean - 0.030).abs() < 1e-9);
        assert!((end(&mut delays, 130).mean - 0.030).abs() < 1e-9, "none is no short one");
    }

    /// Over 15 ms of jitter in order, or where the rate falls for a moment, the window shrank for nothing: 4
    /// MiB took three times as long.
    #[test]
    fn a_queue_is_standing_that_was_there_for_all_of_a_tenth_of_a_second() {
        let mut delays = Delays::NONE;
        let mut standing = |ms: u16, least: f64| {
            delays.push(60, least);
            end(&mut delays, ms).standing
        };
        assert_eq!(standing(100, 0.001), 0.001);
        assert_eq!(standing(150, 0.020), 0.001);
        assert_eq!(standing(199, 0.030), 0.001);
        assert_eq!(standing(201, 0.030), 0.020);
        assert_eq!(standing(400, 0.030), 0.030);
    }

    /// What a link passes one by one is no bunch, however fast: datagrams sent together arrive together.
    #[test]
    fn bunches_are_what_was_sent_apart_and_arrives_together() {
        let is_bunched = |each: f64, held: u32, apart: f64| {
            let mut delays = Delays::NONE;
            for n in 0..60_u32 {
                let sent = Span(f64::from(n) * apart);
                let at = Span(f64::from((n / held + 1) * held) * apart + f64::from(n) * each);
                delays.on_arrival(&Sample { sent, at, ..Sample::ZERO }, 0.001);
            }
            end(&mut delays, 100).is_bunched
        };
        assert!(is_bunched(0.0, 6, 1_000.0), "six that were sent in 5 ms");
        assert!(!is_bunched(0.0, 6, 100.0), "sent together");
        assert!(!is_bunched(100.0, 6, 1_000.0), "a link of 100 Mbit/s after an outage of 6 ms");
        assert!(!is_bunched(0.0, 2, 1_000.0), "two are closer than what holds up");
    }

    #[test]
    fn a_bunch_alone_is_of_a_program_that_was_held_up() {
        let mut delays = Delays::NONE;
        for n in 0..60_u16 {
            let at = Span::from_millis(if (10..16).contains(&n) { 15 } else { n });
            let sample = Sample { sent: Span::from_millis(n), at, ..Sample::ZERO };
            delays.on_arrival(&sample, 0.001);
        }
        assert!(!end(&mut delays, 100).is_bunched);
    }
}
