//! The time of day, for the times in tokens.
//!
//! The invariant: it never goes back. The system's clock may be set back, and a token that was expired, or
//! used and forgotten, would be valid again. So after a clock was ahead by mistake, tokens that expire before
//! that time are refused until it has passed, or the server is restarted.

use crate::Instant;

/// A clock of the time of day.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnixClock {
    /// When the driver reported the time, and the time.
    reported: (Instant, u64),
    /// The latest time so far.
    latest: u64,
    started: u64,
}

impl UnixClock {
    pub(super) const fn new(now: Instant, unix_time: u64) -> Self {
        Self { reported: (now, unix_time), latest: unix_time, started: unix_time }
    }

    pub(super) fn set(&mut self, now: Instant, unix_time: u64) {
        self.read(now);
        self.reported = (now, unix_time);
    }

    /// In seconds since 1970.
    pub(super) fn read(&mut self, now: Instant) -> u64 {
        let (then, unix_time) = self.reported;
        self.latest = self.latest.max(unix_time.saturating_add(now.since(then).as_secs()));
        self.latest
    }

    /// The time when the server was started.
    pub(super) const fn started(&self) -> u64 {
        self.started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stands_still_until_a_clock_that_was_set_back_has_caught_up() {
        let at = Instant::from_millis;
        let mut clock = UnixClock::new(at(0), 1000);
        assert_eq!(clock.read(at(5_500)), 1005);
        clock.set(at(6_000), 900);
        assert_eq!([clock.read(at(6_000)), clock.read(at(100_000))], [1006; 2]);
        assert_eq!(clock.read(at(120_000)), 1014);
        clock.set(at(120_000), 2000);
        assert_eq!((clock.read(at(121_000)), clock.started()), (2001, 1000));
    }
}
