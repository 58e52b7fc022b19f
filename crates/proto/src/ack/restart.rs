//! Telling a peer that started over from packets that are merely old.

use core::time::Duration;

use super::PACKET_WINDOW;
use crate::{Instant, SequenceNumber};

/// Packets of a new life that must be seen. Four: one or two may be strays that a slow path held back.
const PACKETS: u8 = 4;

/// How long nothing of the old life may have come. A program is not back in less; the strays of a link are.
const SILENCE: Duration = Duration::from_secs(1);

/// How near to the newest of the new life a packet must be: a window's width.
const NEAR: i64 = PACKET_WINDOW as i64;

/// Watches the packets that are older than a window. A peer that starts over sends such, each newer than
/// the one before, and nothing else; reordering and replay are mixed with packets of the window, or do not
/// go forward (STANDARD A-5.4h; RFC 3550, A.1, has a test of this kind).
#[derive(Clone, Debug, Default)]
pub(crate) struct RestartWatch<S> {
    seen: Option<Seen<S>>,
}

#[derive(Clone, Copy, Debug)]
struct Seen<S> {
    newest: S,
    since: Instant,
    packets: u8,
}

impl<S: SequenceNumber> RestartWatch<S> {
    /// A packet within the window, or newer: the old life goes on.
    pub(crate) fn on_current(&mut self) {
        self.seen = None;
    }

    /// A packet older than the window. Returns whether that proves a new life.
    pub(crate) fn on_too_old(&mut self, now: Instant, sequence: S) -> bool {
        let new = Seen { newest: sequence, since: now, packets: 1 };
        let seen = self.seen.get_or_insert(new);
        let ahead = sequence.distance_from(seen.newest);
        if ahead.abs() > NEAR {
            *seen = new;
        } else if ahead > 0 {
            seen.newest = sequence;
            seen.packets = seen.packets.saturating_add(1);
        }
        let is_proof = seen.packets >= PACKETS && now.since(seen.since) >= SILENCE;
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
        watch.on_too_old(Instant::from_millis(millis), Sequence::new(sequence))
    }

    #[test]
    fn a_new_life_is_believed_after_four_packets_and_a_second() {
        let mut watch = RestartWatch::default();
        assert!(!feed(&mut watch, 0, 0));
        assert!(!feed(&mut watch, 300, 1));
        assert!(!feed(&mut watch, 600, 2));
        assert!(!feed(&mut watch, 900, 3));
        assert!(feed(&mut watch, 1_000, 4));
    }

    #[test]
    fn one_old_packet_over_and_over_is_no_new_life() {
        let mut watch = RestartWatch::default();
        assert!((0..100).all(|i| !feed(&mut watch, i * 100, 7)));
    }

    #[test]
    fn a_packet_of_the_window_refutes_it() {
        let mut watch = RestartWatch::default();
        for i in 0..100 {
            assert!(!feed(&mut watch, u64::from(i) * 100, i));
            if i % 4 == 2 {
                watch.on_current();
            }
        }
    }

    #[test]
    fn numbers_from_everywhere_are_no_new_life() {
        let mut watch = RestartWatch::default();
        assert!((0..100).all(|i| !feed(&mut watch, u64::from(i) * 100, i * 300)));
    }
}
