//! The rates at which the path passed datagrams in the last rounds: a pace may exceed the greatest of them
//! only by a little. A window alone goes out in bursts that a short queue does not hold.
//!
//! It is counted in the bytes that samples name, not in the fates of datagrams: an ack names sixteen and
//! more, and a round ends in its midst. A round in which less was sent than was allowed shows only a minimum
//! of the rate.

use super::SECOND;
use crate::belief::samples::Sample;
use crate::units::{Bytes, Rate, Span};

/// The rounds that count, as in BBR's filter of the bottleneck's rate.
const ROUNDS: usize = 8;

/// The path's rate varies if one of these rounds passed less than this part of what another did, although a
/// queue stood and the window was no smaller, up to a tenth: a flow to which others leave less has made its
/// own window smaller. With any window four flows on a recorded link have a Jain's index of 0.82 instead of
/// 0.99.
const VARIES: f64 = 0.7;
const NO_SMALLER: f64 = 0.9;

/// When a datagram was sent and arrived, each by its own clock, and the bytes sent and received up to it.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    sent: Span,
    at: Span,
    bytes: Bytes,
    received: Bytes,
}

/// The datagrams a second that passed in a round, with which window, and whether a queue stood.
#[derive(Clone, Copy, Debug)]
struct Round {
    rate: f64,
    window: f64,
    is_queued: bool,
}

impl Round {
    /// One that was not seen.
    const fn of(rate: f64) -> Self {
        Self { rate, window: f64::INFINITY, is_queued: false }
    }
}

/// Datagrams a second in the last rounds.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    rounds: [Round; ROUNDS],
    /// The rate in the last round, in any case, and the part of it that arrived.
    last: f64,
    kept: f64,
    /// The newest arrival, and the newest of the rounds before.
    newest: Option<Arrival>,
    began: Option<Arrival>,
}

impl Passed {
    /// Nothing has passed yet, and any rate may.
    pub(super) const fn new() -> Self {
        Self {
            rounds: [Round::of(f64::INFINITY); ROUNDS],
            last: f64::INFINITY,
            kept: 1.0,
            newest: None,
            began: None,
        }
    }

    /// The first and the last arrival of what has overrun the link.
    pub(super) fn begin(&mut self, first: &Sample, last: &Sample) {
        let arrival = |sample: &Sample| Arrival {
            sent: sample.sent,
            at: sample.at,
            bytes: sample.passed,
            received: sample.received,
        };
        (self.began, self.newest) = (Some(arrival(first)), Some(arrival(last)));
    }

    /// The rate at which datagrams arrive since the round began, each in bytes a second.
    pub(super) fn arrives(&self) -> Option<Rate> {
        let (before, newest) = (self.began?, self.newest?);
        let received = newest.received - before.received;
        let lasted = (newest.sent - before.sent).max(newest.at - before.at);
        (received > Bytes::ZERO && lasted > Span::ZERO).then(|| received / lasted)
    }

    /// Datagrams a second that the path is known to pass.
    pub(super) fn most(&self) -> f64 {
        self.rounds.iter().fold(0.0, |most, round| most.max(round.rate))
    }

    /// The greatest of these rates, if the path's rate varies. One that trains or a start have shown does not
    /// count: others may have a part of that.
    pub(super) fn varying(&self) -> Option<f64> {
        let best = self.rounds.iter().max_by(|a, b| a.rate.total_cmp(&b.rate))?;
        let is_slow = |it: &Round| it.is_queued && it.rate < VARIES * best.rate;
        let is_varied = |it: &Round| is_slow(it) && it.window >= NO_SMALLER * best.window;
        self.rounds.iter().any(is_varied).then_some(best.rate)
    }

    /// Datagrams a second in the last round.
    pub(super) const fn last(&self) -> f64 {
        self.last
    }

    /// The part of the last round's rate that arrived.
    pub(super) const fn kept(&self) -> f64 {
        self.kept
    }

    /// The path passes this many datagrams a second, and no more.
    pub(super) const fn set(&mut self, rate: f64) {
        self.rounds = [Round::of(rate); ROUNDS];
    }

    /// At least this many datagrams a second pass.
    pub(super) fn raise(&mut self, rate: f64) {
        self.rounds[0].rate = self.rounds[0].rate.max(rate);
    }

    /// Datagrams have another size: the same bytes are `times` as many datagrams.
    pub(super) fn scale(&mut self, times: f64) {
        for round in &mut self.rounds {
            (round.rate, round.window) = (times * round.rate, times * round.window);
        }
    }

    /// A datagram has arrived.
    pub(super) fn on_arrival(&mut self, sample: &Sample) {
        let (sent, at) = self.newest.map_or((sample.sent, sample.at), |it| (it.sent, it.at));
        self.newest = Some(Arrival {
            sent: sent.max(sample.sent),
            at: at.max(sample.at),
            bytes: sample.passed,
            received: sample.received,
        });
    }

    /// A round with this `window` ends. All that was sent has passed, but at most this share of it was `lost`
    /// behind the bottleneck; and it took as long as it was sent in, or arrived in. If not `is_full`, more
    /// might have; if `is_queued`, no more could.
    pub(super) fn end_round(
        &mut self,
        lost: f64,
        packet: Bytes,
        window: f64,
        (is_full, is_queued): (bool, bool),
    ) {
        let before = core::mem::replace(&mut self.began, self.newest);
        let (Some(before), Some(newest)) = (before, self.newest) else { return };
        let received = newest.received - before.received;
        let passed = (newest.bytes - before.bytes).min(received / (1.0 - lost));
        let lasted = (newest.sent - before.sent).max(newest.at - before.at);
        if passed == Bytes::ZERO || lasted == Span::ZERO {
            return;
        }
        let rate = passed / packet / (lasted / SECOND);
        (self.last, self.kept) = (rate, received / passed);
        if is_full || rate > self.most() {
            self.rounds.rotate_right(1);
            self.rounds[0] = Round { rate, window, is_queued };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes(1_000.0);

    /// A round in which this number of datagrams was sent and another arrived, each in its time; returns what
    /// is known.
    fn lossy_round(
        passed: &mut Passed,
        (sent, arrived): (f64, f64),
        is_full: bool,
        (sent_ms, at_ms): (u16, u16),
    ) -> f64 {
        let none =
            Arrival { sent: Span::ZERO, at: Span::ZERO, bytes: Bytes::ZERO, received: Bytes::ZERO };
        let before = passed.began.unwrap_or(none);
        passed.on_arrival(&Sample {
            number: 0,
            bytes: PACKET,
            at: before.at + Span::from_millis(at_ms),
            sent: before.sent + Span::from_millis(sent_ms),
            delay: Span::ZERO,
            passed: before.bytes + sent * PACKET,
            received: before.received + arrived * PACKET,
            ..Sample::ZERO
        });
        passed.end_round(0.25, PACKET, 20.0, (is_full, false));
        passed.most()
    }

    fn round(passed: &mut Passed, datagrams: f64, is_full: bool, times: (u16, u16)) -> f64 {
        lossy_round(passed, (datagrams, datagrams), is_full, times)
    }

    #[test]
    fn a_round_with_less_to_send_says_nothing_of_the_path() {
        let mut passed = Passed::new();
        let mut round = |datagrams, is_full| round(&mut passed, datagrams, is_full, (10, 10));
        assert!((0..=ROUNDS).all(|_| round(20.0, false).is_infinite()));
        assert!((1..ROUNDS).all(|_| round(20.0, true).is_infinite()));
        assert_eq!(round(20.0, true), 2_000.0);
        assert!((0..20).all(|_| round(5.0, false) == 2_000.0));
        assert_eq!(round(25.0, false), 2_500.0, "but it may show that more passes");
        assert!((1..ROUNDS).all(|_| round(5.0, true) == 2_500.0));
        assert_eq!(round(5.0, true), 500.0, "the link has become slower");
    }

    /// Where acks get lost the next one names the datagrams of two rounds, and where datagrams arrive in
    /// bunches they have passed before: neither is a fast link. With a third of acks lost one of 23 Mbit/s
    /// was taken for 800, and dropped a fifth.
    #[test]
    fn what_is_heard_at_once_or_arrives_in_a_bunch_has_not_passed_at_once() {
        let mut passed = Passed::new();
        for _ in 0..2 * ROUNDS {
            round(&mut passed, 20.0, true, (10, 1));
            round(&mut passed, 20.0, true, (1, 10));
        }
        assert_eq!(passed.most(), 2_000.0);
    }

    /// Over links whose rate changes by the quarter second the window followed each queue down, and took four
    /// rounds to grow again: 16 MiB took up to 2.8 times as long as TCP.
    #[test]
    fn a_rate_varies_if_less_passes_with_the_same_window_and_a_queue() {
        let mut passed = Passed::new();
        passed.set(9_000.0);
        let mut end = |rate: f64, window: f64, is_queued: bool| {
            passed.rounds.rotate_right(1);
            passed.rounds[0] = Round { rate, window, is_queued };
            passed.varying()
        };
        assert_eq!(end(500.0, 30.0, true), None, "a start has shown 9000, or others have the rest");
        assert!((1..ROUNDS).all(|_| end(1_000.0, 40.0, false).is_none()));
        assert_eq!(end(500.0, 40.0, false), None, "nothing was queued: less was sent");
        assert_eq!(end(500.0, 30.0, true), None, "the window was smaller");
        assert_eq!(end(750.0, 40.0, true), None);
        assert_eq!(end(690.0, 38.0, true), Some(1_000.0));
        assert!((0..ROUNDS).all(|_| end(650.0, 26.0, true) <= Some(1_000.0)));
        assert_eq!(end(650.0, 26.0, true), None, "the link has become slower");
    }

    /// A quarter is lost behind the bottleneck for all that is known: it has passed. More was dropped before.
    #[test]
    fn what_is_lost_behind_the_bottleneck_has_passed() {
        let mut passed = Passed::new();
        for _ in 0..=ROUNDS {
            lossy_round(&mut passed, (40.0, 30.0), true, (10, 10));
        }
        assert_eq!((passed.most(), passed.kept()), (4_000.0, 0.75));
        for _ in 0..ROUNDS {
            lossy_round(&mut passed, (40.0, 24.0), true, (10, 10));
        }
        assert_eq!((passed.most(), passed.kept()), (3_200.0, 0.75));
    }
}
