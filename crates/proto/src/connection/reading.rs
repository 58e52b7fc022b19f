//! How late this end reads datagrams after they arrive. It reports that to its peer (STANDARD-1, 4.2.3,
//! `lateness`).
//!
//! A runner hands in each datagram with the time at which it arrived, and then lets the connection send. The
//! time between the two is how long the datagram waited in the socket's buffer: next to nothing in a program
//! that is woken up, up to a frame in one that reads once a frame. The invariant: a turn counts once, with
//! the oldest of its datagrams.

use core::time::Duration;

use crate::Instant;

/// Turns after which older ones are forgotten. At most twice this number count: a tenth of a second of a
/// game's frames. So a single short turn does not hide the others, and one pause does not count for long.
const TURNS: u8 = 4;

/// No datagram was handed in since the last turn.
const NONE: Instant = Instant::from_nanos(u64::MAX);

/// The waits of the newest turns. Small, because an idle connection has one, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// When the oldest datagram arrived that was handed in since the last turn.
    oldest: Instant,
    /// The longest wait in ms, and that of the turns before.
    longest_ms: u16,
    longest_before_ms: u16,
    /// Turns since the longest wait was put aside.
    turns: u8,
}

impl Reading {
    pub(super) const fn new() -> Self {
        Self { oldest: NONE, longest_ms: 0, longest_before_ms: 0, turns: 0 }
    }

    /// A datagram was handed in that arrived then.
    pub(super) fn on_datagram(&mut self, arrived: Instant) {
        self.oldest = self.oldest.min(arrived);
    }

    /// The connection may send. Only the first time after datagrams were handed in counts.
    pub(super) fn on_turn(&mut self, now: Instant) {
        let oldest = core::mem::replace(&mut self.oldest, NONE);
        if oldest == NONE {
            return;
        }
        if self.turns == TURNS {
            (self.turns, self.longest_before_ms) = (0, core::mem::take(&mut self.longest_ms));
        }
        self.turns += 1;
        let waited = u16::try_from(now.since(oldest).as_millis()).unwrap_or(u16::MAX);
        self.longest_ms = self.longest_ms.max(waited);
    }

    /// The longest wait of the last turns.
    pub(super) fn lateness(&self) -> Duration {
        Duration::from_millis(self.longest_ms.max(self.longest_before_ms).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Datagrams that arrived at these times are read at the last one.
    fn turn(reading: &mut Reading, arrivals: &[u64], now: u64) -> u128 {
        arrivals.iter().for_each(|&at| reading.on_datagram(ms(at)));
        reading.on_turn(ms(now));
        reading.on_turn(ms(now + 500));
        reading.lateness().as_millis()
    }

    #[test]
    fn the_oldest_datagram_of_a_turn_counts() {
        let mut reading = Reading::new();
        assert_eq!(turn(&mut reading, &[], 100), 0);
        assert_eq!(turn(&mut reading, &[105, 101, 115], 116), 15);
        assert_eq!(turn(&mut reading, &[130], 132), 15, "a short wait hides no longer one");
        assert_eq!(turn(&mut reading, &[140], 120), 15, "a clock that went back");
    }

    #[test]
    fn a_pause_is_forgotten_after_some_turns() {
        let mut reading = Reading::new();
        assert_eq!(turn(&mut reading, &[0], 2_000), 2_000);
        let late: [u128; 8] = core::array::from_fn(|n| {
            let at = 3_000 + 16 * n as u64;
            turn(&mut reading, &[at], at + 1)
        });
        assert_eq!((late[6], late[7]), (2_000, 1));
    }
}
