//! How often a sender of blocks wants acks: the faster, the fewer for each datagram; the shorter the round
//! trip, the sooner (STANDARD-1, 4.1).
//!
//! A way up that is too thin for the acks drops some of them, and the larger datagrams of others before: the
//! requests of those who join, for which a full queue of small acks never has room. So where some of
//! the peer's datagrams are missing, acks are thinned: they are for more datagrams, and wait for them.

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

/// Numbers of the peer's datagrams after which the missing ones are judged: a join of 256 KiB seldom has as
/// many acks. And after which few of them are believed.
const COUNTED: u32 = 32;
const BELIEVED: u32 = 128;

/// Above the first share of them, in percent, acks are thinned by a step, above the second by three; at most
/// the third is few.
const MISSING_PERCENT: (u32, u32, u32) = (8, 25, 1);

/// A step halves what they take of the way up. If after [`BELIEVED`]
/// numbers half as many as before it are missing, and not twice as many, they get lost for another reason,
/// and come as often as before the step. More than this percent beyond that is news.
const HELPS: u64 = 2;
const WORSE: u64 = 2;
const NEWS: u8 = 4;

/// A thinned ack is for twice as many datagrams with each step, from these on, and waits so long for them at
/// most.
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

    /// With so many `steps` of thinning.
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
    /// The percent that were missing when they were thinned, and that are missing whatever is done.
    before: u8,
    usual: u8,
}

impl AckFrequency {
    pub(super) const fn new() -> Self {
        let (asked, judged) = (Wanted::UNASKED, (0, 0));
        Self { asked, is_lost: false, steps: 0, judged, before: 0, usual: 0 }
    }

    /// These datagrams of the peer have arrived. Where many are missing, fewer are wanted, if that helps.
    pub(super) fn judge(&mut self, heard: Heard) {
        // They wrap with the counts.
        let low = |count: u64| u32::try_from(count & u64::from(u32::MAX)).unwrap_or_default();
        let (next, received) = (low(heard.next), low(heard.received));
        let numbers = next.wrapping_sub(self.judged.0);
        if numbers < COUNTED {
            return;
        }
        let arrived = received.wrapping_sub(self.judged.1).min(numbers);
        let missing = u64::from(numbers - arrived) * 100 / u64::from(numbers);
        let (some, many, few) = MISSING_PERCENT;
        let before = u64::from(self.before);
        let is_worse = self.steps == 0 || missing > WORSE * before;
        if numbers < BELIEVED && !is_worse {
            return;
        }
        let news = if self.usual > 0 { self.usual.saturating_add(NEWS) } else { 0 };
        if missing > u64::from(some).max(news.into()) {
            let percent = u8::try_from(missing).unwrap_or(u8::MAX);
            if !is_worse && missing > before / HELPS {
                (self.steps, self.usual) = (0, percent);
            } else {
                let more = if missing > many.into() { 3 } else { 1 };
                (self.steps, self.before) = ((self.steps + more).min(MAX_STEPS), percent);
            }
        } else if numbers < BELIEVED {
            return;
        } else if missing <= u64::from(few) + u64::from(self.usual) {
            self.steps = self.steps.saturating_sub(1);
        }
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

    /// Of 32 datagrams of the peer so many are missing.
    fn lose(frequency: &mut AckFrequency, heard: &mut Heard, missing: u64) {
        (heard.next, heard.received) = (heard.next + 32, heard.received + 32 - missing);
        frequency.judge(*heard);
    }

    #[test]
    fn acks_are_thinned_where_they_get_lost() {
        let (mut frequency, mut heard) = (AckFrequency::new(), Heard::default());
        let rtt = Some(Duration::from_millis(100));
        let asked =
            |frequency: &AckFrequency| frequency.due(8, rtt).map(|it| (it.datagrams, it.micros));
        for _ in 0..100 {
            lose(&mut frequency, &mut heard, 2);
        }
        assert_eq!(asked(&frequency), None, "a link may lose some");
        lose(&mut frequency, &mut heard, 3);
        // Four datagrams at 80 in a second.
        assert_eq!(asked(&frequency), Some((32, 50_000)));
        lose(&mut frequency, &mut heard, 20);
        assert_eq!(asked(&frequency), Some((64, 250_000)));
        for _ in 0..16 {
            lose(&mut frequency, &mut heard, 0);
        }
        assert_eq!(asked(&frequency), None, "it goes back");
    }

    /// A way up that loses a third had acks four times a second, and a window of 4 MiB took twice as long.
    #[test]
    fn acks_that_get_lost_anyway_come_as_often_as_before() {
        let (mut frequency, mut heard) = (AckFrequency::new(), Heard::default());
        let mut lose = |missing| {
            (heard.next, heard.received) = (heard.next + 32, heard.received + 32 - missing);
            frequency.judge(heard);
            frequency.steps
        };
        let thinned = (0..200).filter(|round| lose([11, 9, 10][round % 3]) > 0);
        assert!(thinned.count() <= 8, "and never again");
        assert!(lose(20) > 0, "but if more get lost");
    }

    #[test]
    fn a_receiver_that_does_it_anyway_is_not_asked() {
        let rtt = Some(Duration::from_millis(100));
        assert_eq!(AckFrequency::new().due(500, rtt), None);
        assert_eq!(AckFrequency::new().due(20, Some(MIN_DELAY)), None, "a short block");
    }
}
