//! How many chunks the sender may have opened in all, and how the window grows (STANDARD-1, 4.2.3).
//!
//! Counted are the chunks of which a slice arrived, and announcements. The invariant: the credit only grows,
//! is at most the window above what was released, and at most what the memory has room for.

use core::time::Duration;

use super::Fault;
use crate::Instant;

/// The round trip that is assumed before one was measured (RFC 9002, 6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// Whether the credit was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raised {
    No,
    Yes,
    /// No credit was left: the sender may be waiting, and this must be reported to it at once (H-4.2h).
    FromNothing,
}

/// The credit of a sender.
#[derive(Debug)]
pub(super) struct Credit {
    credit: u64,
    /// The number of chunks and announcements that the receiver knows of.
    seen: u64,
    /// The number of these that are no longer in progress.
    released: u64,
    /// Chunks that may be in progress.
    window: u64,
    max_window: u64,
    rtt: Duration,
    /// When half a window was last released, and how much was released in all at that time.
    mark: (Instant, u64),
}

impl Credit {
    pub(super) const fn new(initial: u64, max_window: u64) -> Self {
        let (window, mark) = (initial, (Instant::ZERO, 0));
        Self { credit: initial, seen: 0, released: 0, window, max_window, rtt: INITIAL_RTT, mark }
    }

    /// As a progress frame says it.
    pub(super) const fn get(&self) -> u64 {
        self.credit
    }

    /// What the sender has left, if all that it opened was seen.
    pub(super) const fn left(&self) -> u64 {
        self.credit - self.seen
    }

    /// Chunks in progress.
    pub(super) const fn in_progress(&self) -> u64 {
        self.seen - self.released
    }

    /// Chunks that may be in progress at most.
    #[cfg(test)]
    pub(super) const fn window(&self) -> u64 {
        self.window
    }

    pub(super) const fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// `more` chunks or announcements were seen.
    pub(super) const fn count(&mut self, more: u64) -> Result<(), Fault> {
        if more > self.left() {
            return Err(Fault::Credit);
        }
        self.seen += more;
        Ok(())
    }

    /// `more` of those seen are no longer in progress: done, or given up.
    pub(super) fn release(&mut self, more: u64) {
        self.released += more.min(self.in_progress());
    }

    /// `more` of those seen are given up with their block. They were of no use, so the window does not grow
    /// because of them.
    pub(super) fn give_up(&mut self, more: u64) {
        let before = self.released;
        self.release(more);
        self.mark.1 += self.released - before;
    }

    /// Raises it as far as there is `room` for more chunks in memory. The window is doubled when the sender
    /// uses up half of it within two round trips: then it may be what limits the sender.
    pub(super) fn raise(&mut self, now: Instant, room: u64) -> Raised {
        let (marked_at, marked) = self.mark;
        if self.released - marked >= (self.window / 2).max(1) {
            self.mark = (now, self.released);
            let is_fast = now.since(marked_at) < self.rtt.saturating_mul(2);
            if is_fast && room > self.window {
                self.window = (2 * self.window).min(self.max_window).max(self.window);
            }
        }
        let target = (self.released + self.window).min(self.seen.saturating_add(room));
        if target <= self.credit {
            return Raised::No;
        }
        let raised = if self.left() == 0 { Raised::FromNothing } else { Raised::Yes };
        self.credit = target;
        raised
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.released <= self.seen && self.seen <= self.credit);
        assert!(self.credit <= self.released + self.window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUCH: u64 = 1 << 20;

    #[test]
    fn credit_follows_what_is_released_and_never_falls() {
        let mut credit = Credit::new(4, 4);
        let now = Instant::from_millis(10_000);
        assert_eq!(credit.count(5), Err(Fault::Credit));
        assert_eq!((credit.count(3), credit.left()), (Ok(()), 1));
        assert_eq!(credit.raise(now, MUCH), Raised::No, "nothing was released");
        credit.release(1);
        assert_eq!((credit.raise(now, MUCH), credit.get()), (Raised::Yes, 5));
        assert_eq!(credit.count(2), Ok(()));
        credit.release(2);
        assert_eq!((credit.raise(now, 0), credit.get()), (Raised::No, 5));
        assert_eq!((credit.raise(now, 1), credit.get()), (Raised::FromNothing, 6));
        assert_eq!((credit.raise(now, 0), credit.get()), (Raised::No, 6), "never lower");
        credit.check_invariants();
    }

    /// 400 chunks in a round trip of 100 ms, while a window is less than that; then the window stays.
    #[test]
    fn the_window_grows_to_what_a_round_trip_uses() {
        let mut credit = Credit::new(32, 1024);
        credit.set_rtt(Duration::from_millis(100));
        for n in 1..20_000u64 {
            credit.count(1).unwrap();
            credit.release(1);
            credit.raise(Instant::from_nanos(n * 250_000), MUCH);
            credit.check_invariants();
        }
        assert_eq!(credit.window(), 1024);
        let mut slow = Credit::new(32, 1024);
        slow.set_rtt(Duration::from_millis(10));
        for n in 1..2000u64 {
            slow.count(1).unwrap();
            slow.release(1);
            slow.raise(Instant::from_millis(n * 2), MUCH);
        }
        assert_eq!(slow.window(), 32, "5 chunks in a round trip");
    }

    #[test]
    fn the_window_does_not_grow_beyond_the_memory() {
        let mut credit = Credit::new(32, 1024);
        for n in 1..1000 {
            credit.count(1).unwrap();
            credit.release(1);
            credit.raise(Instant::from_nanos(n), 40);
        }
        assert_eq!(credit.window(), 64, "that is above the room, and was not before");
    }
}
