//! How often a sender of blocks wants acks: at higher rates fewer for each datagram, and with a shorter round
//! trip sooner (STANDARD-1, 4.1).
//!
//! A way back that is too thin for the acks drops some of them, and before them the larger datagrams of other
//! clients: the requests of clients that join, for which a full queue of small acks never has room. So where
//! some of the peer's datagrams are missing, and the way back has a queue, acks are thinned: each is for more
//! datagrams, and waits for them. Without a queue acks are lost by chance, and fewer would only show less.

use core::time::Duration;

/// Datagrams in flight for which one ack is wanted. A round trip has some 32 acks then.
const IN_FLIGHT_PER_ACK: u64 = 32;

/// The range of datagrams per ack: a receiver starts with the first, and the wire has no more than the last.
const DATAGRAMS: (u64, u64) = (16, 64);

/// The least number of acks in a round trip, unless they would be closer than [`MIN_DELAY`].
const ACKS_PER_RTT: u32 = 8;

/// The range of the delay: the wire has no shorter one, and a receiver starts with the longest.
const MIN_DELAY: Duration = Duration::from_millis(1);
const MAX_DELAY: Duration = Duration::from_millis(10);

/// Datagrams in flight below which the receiver's own rule does: a join of a few slices needs no frame.
const FEW_IN_FLIGHT: u64 = 32;

/// Numbers of the peer's datagrams after which it is judged whether many are missing: a join of 256 KiB
/// seldom has as many acks. And after which it is believed that few are.
const COUNTED: u32 = 32;
const BELIEVED: u32 = 128;

/// More than this part of them, in percent, is many.
const MISSING_PERCENT: u32 = 8;

/// A thinned ack waits for the time in which this number of datagrams is sent. The number doubles with each
/// of at most [`MAX_STEPS`] steps, and the time is at most [`MAX_THINNED_DELAY`].
const THINNED: u32 = 2;
const MAX_STEPS: u8 = 4;
const MAX_THINNED_DELAY: Duration = Duration::from_millis(250);

/// The datagrams of the peer, all of which have numbers in one sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// The number after the largest one that arrived.
    pub(crate) next: u64,
    /// How many have arrived.
    pub(crate) received: u64,
}

impl Heard {
    /// How many have not arrived, though later ones have.
    pub(crate) const fn missing(self) -> u64 {
        self.next.saturating_sub(self.received)
    }
}

/// How often acks are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// At the latest after this many datagrams.
    pub(crate) datagrams: u8,
    /// And after this time, in microseconds, which is what the wire has.
    micros: u32,
}

impl Wanted {
    /// What a receiver does unasked.
    const UNASKED: Self = Self { datagrams: 16, micros: MAX_DELAY.subsec_micros() };

    /// The wanted frequency with `steps` steps of thinning.
    fn of(in_flight: u64, rtt: Duration, steps: u8) -> Self {
        let datagrams = (in_flight / IN_FLIGHT_PER_ACK).clamp(DATAGRAMS.0, DATAGRAMS.1);
        let datagrams = (datagrams << steps).min(DATAGRAMS.1);
        let mut delay = (rtt / ACKS_PER_RTT).clamp(MIN_DELAY, MAX_DELAY);
        if steps > 0 {
            let each = rtt / u32::try_from(in_flight.max(1)).unwrap_or(u32::MAX);
            delay = delay.max((each * (THINNED << steps)).min(MAX_THINNED_DELAY));
        }
        let micros = u32::try_from(delay.as_micros()).unwrap_or(u32::MAX);
        Self { datagrams: u8::try_from(datagrams).unwrap_or(u8::MAX), micros }
    }

    /// And after this time.
    pub(crate) const fn delay(self) -> Duration {
        Duration::from_micros(self.micros as u64)
    }

    /// Whether one of the two is another by a factor of 3/2 and more.
    fn is_far_from(self, other: Self) -> bool {
        let is_far = |a: u128, b: u128| 2 * a.max(b) >= 3 * a.min(b);
        is_far(self.datagrams.into(), other.datagrams.into())
            || is_far(self.micros.into(), other.micros.into())
    }
}

/// What the receiver was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckFrequency {
    asked: Wanted,
    is_lost: bool,
    /// By how many steps acks are thinned, and the peer's datagrams when that was judged.
    steps: u8,
    judged: (u32, u32),
}

impl AckFrequency {
    pub(super) const fn new() -> Self {
        Self { asked: Wanted::UNASKED, is_lost: false, steps: 0, judged: (0, 0) }
    }

    /// These datagrams of the peer have arrived. Where many are missing, and the way back has a queue, fewer
    /// are wanted; `is_queued` is asked once for each verdict.
    pub(super) fn judge(&mut self, heard: Heard, is_queued: impl FnOnce() -> bool) {
        // They wrap with the counts.
        let low = |count: u64| u32::try_from(count & u64::from(u32::MAX)).unwrap_or_default();
        let (next, received) = (low(heard.next), low(heard.received));
        let numbers = next.wrapping_sub(self.judged.0);
        if numbers < COUNTED {
            return;
        }
        let arrived = received.wrapping_sub(self.judged.1).min(numbers);
        let missing = u64::from(numbers - arrived) * 100;
        let is_missing = missing > u64::from(MISSING_PERCENT) * u64::from(numbers);
        if numbers < BELIEVED && !is_missing {
            return;
        }
        self.steps = match is_queued() && is_missing {
            true => (self.steps + 1).min(MAX_STEPS),
            false => self.steps.saturating_sub(1),
        };
        self.judged = (next, received);
    }

    /// What to ask for now, if that is far from what was asked.
    pub(super) fn due(&self, in_flight: u64, rtt: Option<Duration>) -> Option<Wanted> {
        let wanted = rtt.map(|rtt| Wanted::of(in_flight, rtt, self.steps));
        let is_thin = self.steps > 0 || self.asked.delay() > MAX_DELAY;
        let wanted = wanted.filter(|_| in_flight >= FEW_IN_FLIGHT || is_thin);
        match wanted.filter(|wanted| wanted.is_far_from(self.asked)) {
            None => self.is_lost.then_some(self.asked),
            wanted => wanted,
        }
    }

    pub(super) const fn on_sent(&mut self, wanted: Wanted) {
        (self.asked, self.is_lost) = (wanted, false);
    }

    /// A frame is lost: perhaps not the newest, but they are rare.
    pub(super) const fn on_lost(&mut self) {
        self.is_lost = true;
    }

    /// By how much later than unasked acks come.
    pub(super) const fn later(&self) -> Duration {
        self.asked.delay().saturating_sub(MAX_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acks_follow_what_is_in_flight_and_the_round_trip() {
        let wanted = |in_flight, ms| {
            let Wanted { datagrams, micros } = Wanted::of(in_flight, Duration::from_millis(ms), 0);
            (datagrams, micros)
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

    /// The peer has sent 32 datagrams, of which `missing` are missing.
    fn lose(frequency: &mut AckFrequency, heard: &mut Heard, missing: u64, is_queued: bool) {
        (heard.next, heard.received) = (heard.next + 32, heard.received + 32 - missing);
        frequency.judge(*heard, || is_queued);
    }

    #[test]
    fn acks_are_thinned_where_they_get_lost_in_a_queue() {
        let (mut frequency, mut heard) = (AckFrequency::new(), Heard::default());
        let rtt = Some(Duration::from_millis(100));
        let asked =
            |frequency: &AckFrequency| frequency.due(8, rtt).map(|it| (it.datagrams, it.micros));
        for _ in 0..100 {
            lose(&mut frequency, &mut heard, 2, true);
        }
        assert_eq!(asked(&frequency), None, "a link may lose some");
        lose(&mut frequency, &mut heard, 3, true);
        // Four datagrams at 80 in a second.
        assert_eq!(asked(&frequency), Some((32, 50_000)));
        for _ in 0..3 {
            lose(&mut frequency, &mut heard, 20, true);
        }
        assert_eq!(asked(&frequency), Some((64, 250_000)));
        for _ in 0..16 {
            lose(&mut frequency, &mut heard, 0, true);
        }
        assert_eq!(asked(&frequency), None, "it goes back");
    }

    /// A way up that loses a third had acks four times a second, and a window of 4 MiB took twice as long.
    #[test]
    fn acks_that_get_lost_by_chance_come_as_often_as_before() {
        let (mut frequency, mut heard) = (AckFrequency::new(), Heard::default());
        for round in 0..200 {
            lose(&mut frequency, &mut heard, [11, 9, 10, 20][round % 4], false);
            assert_eq!(frequency.steps, 0);
        }
    }

    #[test]
    fn a_receiver_that_does_it_anyway_is_not_asked() {
        let rtt = Some(Duration::from_millis(100));
        assert_eq!(AckFrequency::new().due(500, rtt), None);
        assert_eq!(AckFrequency::new().due(20, Some(MIN_DELAY)), None, "a short block");
    }
}
