//! Distinguishes a restarted peer from late packets.

use core::time::Duration;

use crate::{Instant, PACKET_WINDOW, SequenceNumber};

/// How long a streak must last to prove a restart. Packets older than the window are far behind, and a
/// program needs a second to come back. A packet within the window may be a copy that the link made.
const MIN_STREAK_TOO_OLD: Duration = Duration::from_secs(1);
const MIN_STREAK_IN_WINDOW: Duration = Duration::from_secs(3);

/// The maximum time that a gap between two packets of a streak counts for, so that a restart takes at least
/// five packets: one or two may be strays from a slow path, and a clock jump must not count in full.
const MAX_GAP: Duration = Duration::from_millis(250);

/// The maximum distance between the numbers of two packets of a streak: one window.
const MAX_STEP: i64 = PACKET_WINDOW as i64;

/// How late a copy made by the link may arrive. A packet that is further back than the streak, and later
/// than this after it, is no copy of one of its packets and starts a new streak. Otherwise a stray from just
/// before the restart, far ahead of the new numbers, would block detection until they have passed it.
const MAX_COPY_DELAY: Duration = Duration::from_secs(1);

/// Detects a restart of the peer from the packets that are not newer than every packet used before: too old,
/// duplicates, and packets that fill a gap. A restarted peer sends only such packets, each newer than the one
/// before it: a streak. Reordering, copies and replay are mixed with newer packets, or do not increase
/// (STANDARD A-5.4h; RFC 3550, A.1, has a similar test).
///
/// A packet that fills a gap does not disprove a restart. If it did, a restarted peer whose numbers fall
/// into the old window would be received only where packets had been lost before, and not acknowledged even
/// there, until it had passed the whole window: 25 s at 10 packets a second.
#[derive(Clone, Debug, Default)]
pub struct RestartWatch<S> {
    newest_used: Option<S>,
    streak: Option<Streak<S>>,
}

#[derive(Clone, Copy, Debug)]
struct Streak<S> {
    began_at: Instant,
    newest: S,
    last_at: Instant,
    lasted: Duration,
}

impl<S: SequenceNumber> RestartWatch<S> {
    /// A packet was used. One that is newer than all before disproves a restart. Receiving it is not enough,
    /// because its number may be forged.
    pub fn on_used(&mut self, sequence: S) {
        if self.is_newest(sequence) {
            self.newest_used = Some(sequence);
            self.streak = None;
        }
    }

    /// A packet arrived. If it proves a restart, returns when the first packet of the streak arrived:
    /// packets since then were sent after the restart.
    pub fn on_received(&mut self, now: Instant, sequence: S, is_too_old: bool) -> Option<Instant> {
        if !is_too_old && self.is_newest(sequence) {
            return None;
        }
        let new = Streak { began_at: now, newest: sequence, last_at: now, lasted: Duration::ZERO };
        let streak = self.streak.get_or_insert(new);
        let step = sequence.distance_from(streak.newest);
        let is_over = step < 0 && now.since(streak.last_at) > MAX_COPY_DELAY;
        if is_over || step.abs() > MAX_STEP {
            *streak = new;
        } else if step > 0 {
            streak.lasted += now.since(streak.last_at).min(MAX_GAP);
            streak.last_at = now;
            streak.newest = sequence;
            let min = if is_too_old { MIN_STREAK_TOO_OLD } else { MIN_STREAK_IN_WINDOW };
            if streak.lasted >= min {
                let began_at = streak.began_at;
                *self = Self { newest_used: None, streak: None };
                return Some(began_at);
            }
        }
        None
    }

    fn is_newest(&self, sequence: S) -> bool {
        self.newest_used.is_none_or(|newest| sequence.is_newer_than(newest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sequence;

    fn receive(
        watch: &mut RestartWatch<Sequence>,
        millis: u64,
        sequence: u16,
        is_too_old: bool,
    ) -> Option<Instant> {
        watch.on_received(Instant::from_millis(millis), Sequence::new(sequence), is_too_old)
    }

    fn too_old(watch: &mut RestartWatch<Sequence>, millis: u64, sequence: u16) -> bool {
        receive(watch, millis, sequence, true).is_some()
    }

    /// A watch that has used a packet newer than all those of the tests.
    fn watch_at_200() -> RestartWatch<Sequence> {
        let mut watch = RestartWatch::default();
        watch.on_used(Sequence::new(200));
        watch
    }

    #[test]
    fn a_restart_takes_five_packets_and_a_second() {
        let mut watch = RestartWatch::default();
        let proof = (0..20u16).position(|i| too_old(&mut watch, u64::from(i) * 200, i));
        assert_eq!(proof, Some(5));
        let mut fast = RestartWatch::default();
        assert!(!(0..3).any(|i| too_old(&mut fast, u64::from(i) * 10, i)));
        assert!(!(3..100).any(|i| too_old(&mut fast, u64::from(i) * 10, i)), "not yet a second");
        assert!(too_old(&mut fast, 1_000, 100));
    }

    #[test]
    fn packets_within_the_window_take_three_seconds() {
        let mut watch = watch_at_200();
        let mut feed = |i: u16| receive(&mut watch, 7_000 + u64::from(i) * 100, i, false);
        assert_eq!((0..30).find_map(&mut feed), None);
        assert_eq!(feed(30), Some(Instant::from_millis(7_000)), "the start of the streak");
    }

    #[test]
    fn packets_that_fill_gaps_do_not_disprove_a_restart() {
        let mut watch = watch_at_200();
        let proof = (0..40u16).position(|i| {
            let proof = receive(&mut watch, u64::from(i) * 100, i, false);
            watch.on_used(Sequence::new(i));
            proof.is_some()
        });
        assert_eq!(proof, Some(30));
    }

    /// A copy of the last packet before the restart, far ahead of those after it.
    #[test]
    fn a_stray_ahead_does_not_block_detection() {
        let mut watch = watch_at_200();
        assert_eq!(receive(&mut watch, 0, 199, false), None);
        let mut feed = |i: u16| receive(&mut watch, 1_100 + u64::from(i) * 100, i, false);
        assert_eq!((0..30).find_map(&mut feed), None);
        assert_eq!(feed(30), Some(Instant::from_millis(1_100)));
    }

    /// Copies of the streak's own packets, a second late, come between its packets.
    #[test]
    fn late_copies_of_a_streak_do_not_end_it() {
        let mut watch = watch_at_200();
        let mut feed = |i: u16, at: u16| receive(&mut watch, u64::from(at) * 20, i, false);
        assert_eq!((0..50).find_map(|i| feed(i, i)), None);
        assert_eq!((50..150).find_map(|i| feed(i, i).or(feed(i - 50, i))), None);
        assert_eq!(feed(150, 150), Some(Instant::ZERO));
    }

    #[test]
    fn a_long_gap_counts_as_a_short_one() {
        let mut watch = RestartWatch::default();
        assert!(!too_old(&mut watch, 0, 0));
        // The clock jumps by an hour; that is one gap of a quarter of a second.
        assert!(!(1..4).any(|i| too_old(&mut watch, u64::from(i) * 3_600_000, i)));
        assert!(too_old(&mut watch, 4 * 3_600_000, 4));
    }

    #[test]
    fn four_packets_prove_no_restart() {
        let mut watch = RestartWatch::default();
        assert!(!(0..3).any(|i| too_old(&mut watch, u64::from(i) * 10_000, i)));
        // Copies of the last of them prove no restart either.
        assert!(!(3..100).any(|i| too_old(&mut watch, i * 10_000, 2)));
    }

    #[test]
    fn a_newer_packet_that_is_used_disproves_a_restart() {
        let mut watch = RestartWatch::default();
        for i in 0..100 {
            assert!(!too_old(&mut watch, u64::from(i) * 100, i));
            if i % 8 == 2 {
                watch.on_used(Sequence::new(1_000 + i));
            }
        }
    }

    #[test]
    fn random_numbers_prove_no_restart() {
        let mut watch = RestartWatch::default();
        assert!((0..100).all(|i| !too_old(&mut watch, u64::from(i) * 100, i * 300)));
    }
}
