//! Telling a peer that started over from packets that are merely old.

use core::time::Duration;

use crate::{Instant, PACKET_WINDOW, SequenceNumber};

/// How long they must go on for. Packets older than the window are far behind, and a program is not back
/// in less than a second. A duplicate may be one that the link made, up to a second late.
const SILENCE_TOO_OLD: Duration = Duration::from_secs(1);
const SILENCE_DUPLICATE: Duration = Duration::from_secs(3);

/// What the time from one of them to the next counts for at most, so that five of them are needed: one or two
/// may be strays that a slow path held back, and a clock that jumps is no silence.
const GAP: Duration = Duration::from_millis(250);

/// How near to the newest of the new life a packet must be: a window's width.
const NEAR: i64 = PACKET_WINDOW as i64;

/// Why a packet brings nothing new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stale {
    /// It is older than the window.
    TooOld,
    /// It is here already.
    Duplicate,
}

/// Watches the packets that bring nothing new: those older than a window, and duplicates. A peer that
/// starts over sends such, each newer than the one before, and nothing else. Reordering, copies and replay
/// are mixed with packets that are accepted, or do not go forward (STANDARD A-5.4h; RFC 3550, A.1, has a
/// test of this kind).
#[derive(Clone, Debug, Default)]
pub struct RestartWatch<S> {
    seen: Option<Seen<S>>,
}

#[derive(Clone, Copy, Debug)]
struct Seen<S> {
    newest: S,
    last_at: Instant,
    lasted: Duration,
}

impl<S: SequenceNumber> RestartWatch<S> {
    /// A packet was new and was used: the old life goes on. Merely to be within the window proves nothing,
    /// for anybody may have numbered it.
    pub fn on_used(&mut self) {
        self.seen = None;
    }

    /// A packet that is refused for this reason. Returns whether it proves a new life.
    #[must_use]
    pub fn on_refused(&mut self, now: Instant, sequence: S, stale: Stale) -> bool {
        let new = Seen { newest: sequence, last_at: now, lasted: Duration::ZERO };
        let seen = self.seen.get_or_insert(new);
        let ahead = sequence.distance_from(seen.newest);
        if ahead.abs() > NEAR {
            *seen = new;
        } else if ahead > 0 {
            seen.lasted += now.since(seen.last_at).min(GAP);
            seen.last_at = now;
            seen.newest = sequence;
        }
        let silence = match stale {
            Stale::Duplicate => SILENCE_DUPLICATE,
            Stale::TooOld => SILENCE_TOO_OLD,
        };
        let is_proof = seen.lasted >= silence;
        if is_proof {
            self.seen = None;
        }
        is_proof
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sequence;

    fn feed(watch: &mut RestartWatch<Sequence>, millis: u64, sequence: u16) -> bool {
        let now = Instant::from_millis(millis);
        watch.on_refused(now, Sequence::new(sequence), Stale::TooOld)
    }

    #[test]
    fn a_new_life_is_believed_after_five_packets_and_a_second() {
        let mut watch = RestartWatch::default();
        let proof = (0..20u16).position(|i| feed(&mut watch, u64::from(i) * 200, i));
        assert_eq!(proof, Some(5));
        let mut fast = RestartWatch::default();
        assert!(!(0..3).any(|i| feed(&mut fast, u64::from(i) * 10, i)));
        assert!(!(3..100).any(|i| feed(&mut fast, u64::from(i) * 10, i)), "not yet a second");
        assert!(feed(&mut fast, 1_000, 100));
    }

    #[test]
    fn duplicates_must_go_on_for_three_seconds() {
        let mut watch = RestartWatch::default();
        let mut refuse = |i: u16| {
            let now = Instant::from_millis(u64::from(i) * 100);
            watch.on_refused(now, Sequence::new(i), Stale::Duplicate)
        };
        assert_eq!((0..100).position(&mut refuse), Some(30));
    }

    #[test]
    fn packets_far_apart_prove_nothing_the_sooner() {
        let mut watch = RestartWatch::default();
        assert!(!feed(&mut watch, 0, 0));
        // The clock jumps by an hour; that is one gap of a quarter of a second.
        assert!(!(1..4).any(|i| feed(&mut watch, u64::from(i) * 3_600_000, i)));
        assert!(feed(&mut watch, 4 * 3_600_000, 4));
    }

    #[test]
    fn four_packets_are_no_new_life_however_long_they_take() {
        let mut watch = RestartWatch::default();
        assert!(!(0..3).any(|i| feed(&mut watch, u64::from(i) * 10_000, i)));
        // Nor is the last of them again and again.
        assert!(!(3..100).any(|i| feed(&mut watch, i * 10_000, 2)));
    }

    #[test]
    fn a_packet_that_is_used_refutes_it() {
        let mut watch = RestartWatch::default();
        for i in 0..100 {
            assert!(!feed(&mut watch, u64::from(i) * 100, i));
            if i % 8 == 2 {
                watch.on_used();
            }
        }
    }

    #[test]
    fn numbers_from_everywhere_are_no_new_life() {
        let mut watch = RestartWatch::default();
        assert!((0..100).all(|i| !feed(&mut watch, u64::from(i) * 100, i * 300)));
    }
}
