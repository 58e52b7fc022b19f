//! How often a sender of blocks wants acks: the faster, the fewer for each datagram; the shorter the round
//! trip, the sooner (STANDARD-1, 4.1).

use core::time::Duration;

/// Datagrams in flight for which one ack is wanted. A round trip has some 32 acks then.
const IN_FLIGHT_PER_ACK: u64 = 32;

/// The range of datagrams per ack: a receiver starts with the first, and the wire has no more than the last.
const DATAGRAMS: (u64, u64) = (16, 64);

/// A round trip has at least so many acks, unless they would be closer than [`MIN_DELAY`].
const ACKS_PER_RTT: u32 = 8;

/// The range of the delay: the wire has no shorter one, and a receiver starts with the longest.
const MIN_DELAY: Duration = Duration::from_millis(1);
const MAX_DELAY: Duration = Duration::from_millis(10);

/// Datagrams in flight below which the receiver's own rule does: a join of a few slices needs no frame.
const FEW_IN_FLIGHT: u64 = 32;

/// How often acks are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// At the latest after this many datagrams.
    pub(crate) datagrams: u8,
    /// And after this time.
    pub(crate) delay: Duration,
}

impl Wanted {
    /// What a receiver does unasked.
    const UNASKED: Self = Self { datagrams: 16, delay: MAX_DELAY };

    fn of(in_flight: u64, rtt: Duration) -> Self {
        let datagrams = (in_flight / IN_FLIGHT_PER_ACK).clamp(DATAGRAMS.0, DATAGRAMS.1);
        let delay = (rtt / ACKS_PER_RTT).clamp(MIN_DELAY, MAX_DELAY);
        // The wire has whole microseconds.
        let delay = Duration::from_micros(u64::try_from(delay.as_micros()).unwrap_or(u64::MAX));
        Self { datagrams: u8::try_from(datagrams).unwrap_or(u8::MAX), delay }
    }

    /// Whether one of the two is another by a factor of 3/2 and more.
    fn is_far_from(self, other: Self) -> bool {
        let is_far = |a: u128, b: u128| 2 * a.max(b) >= 3 * a.min(b);
        is_far(self.datagrams.into(), other.datagrams.into())
            || is_far(self.delay.as_micros(), other.delay.as_micros())
    }
}

/// What the receiver was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckFrequency {
    asked: Wanted,
    is_lost: bool,
}

impl AckFrequency {
    pub(super) const fn new() -> Self {
        Self { asked: Wanted::UNASKED, is_lost: false }
    }

    /// What to ask for now, if that is far from what was asked.
    pub(super) fn due(&self, in_flight: u64, rtt: Option<Duration>) -> Option<Wanted> {
        let wanted = rtt.map(|rtt| Wanted::of(in_flight, rtt));
        let wanted = wanted.filter(|_| in_flight >= FEW_IN_FLIGHT);
        match wanted.filter(|wanted| wanted.is_far_from(self.asked)) {
            None => self.is_lost.then_some(self.asked),
            wanted => wanted,
        }
    }

    pub(super) const fn on_sent(&mut self, wanted: Wanted) {
        *self = Self { asked: wanted, is_lost: false };
    }

    /// A frame is lost: perhaps not the newest, but they are rare.
    pub(super) const fn on_lost(&mut self) {
        self.is_lost = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acks_follow_what_is_in_flight_and_the_round_trip() {
        let wanted = |in_flight, ms| {
            let Wanted { datagrams, delay } = Wanted::of(in_flight, Duration::from_millis(ms));
            (datagrams, delay.as_micros())
        };
        assert_eq!(wanted(100, 300), (16, 10_000));
        assert_eq!(wanted(1_000, 40), (31, 5_000));
        assert_eq!(wanted(100_000, 2), (64, 1_000));
    }

    #[test]
    fn the_frame_is_rare() {
        let mut frequency = AckFrequency::new();
        let mut frames = 0;
        // A transfer that grows to 3000 datagrams in flight, and a round trip that jitters by a fifth.
        for step in 0..10_000_u64 {
            let rtt = Duration::from_micros(40_000 + step * 7_919 % 8_000);
            if let Some(wanted) = frequency.due(step.min(3_000), Some(rtt)) {
                frequency.on_sent(wanted);
                frames += 1;
            }
        }
        assert!((1..=5).contains(&frames), "{frames}");
        frequency.on_lost();
        assert!(frequency.due(0, None).is_some(), "a lost one is sent again");
    }

    #[test]
    fn a_receiver_that_does_it_anyway_is_not_asked() {
        let rtt = Some(Duration::from_millis(100));
        assert_eq!(AckFrequency::new().due(500, rtt), None);
        assert_eq!(AckFrequency::new().due(20, Some(MIN_DELAY)), None, "a short block");
    }
}
