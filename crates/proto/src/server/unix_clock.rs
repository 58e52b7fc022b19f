//! The time of day, for the times in tokens.
//!
//! The invariant: it never goes back. The system's clock may be set back, and a token that was expired, or
//! used and forgotten, would be valid again. So after a clock was ahead by mistake, tokens that expire before
//! that time are refused until it has passed, or the server is restarted.

use crate::Instant;

/// A clock of the time of day, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnixClock {
    /// When the driver reported the time, and the time; `None` if it does not know it.
    reported: Option<(Instant, u64)>,
    /// The latest time that was read or reported.
    latest: u64,
    /// The first time that was reported; 0 if none was.
    started: u64,
}

impl UnixClock {
    pub(super) const fn new(now: Instant, unix_time: u64) -> Self {
        Self { reported: Some((now, unix_time)), latest: unix_time, started: unix_time }
    }

    pub(super) fn set(&mut self, now: Instant, unix_time: u64) {
        self.read(now);
        self.reported = Some((now, unix_time));
        if self.started == 0 {
            self.started = unix_time;
        }
    }

    /// The time is not known until it is set.
    pub(super) const fn forget(&mut self) {
        self.reported = None;
    }

    /// The time; `None` if it is not known.
    pub(super) fn read(&mut self, now: Instant) -> Option<u64> {
        let (then, unix_time) = self.reported?;
        self.latest = self.latest.max(unix_time.saturating_add(now.since(then).as_secs()));
        Some(self.latest)
    }

    /// The latest time that was read or reported.
    pub(super) const fn latest(&self) -> u64 {
        self.latest
    }

    /// The time when the server was started, or first knew the time.
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
        assert_eq!(clock.read(at(5_500)), Some(1005));
        clock.set(at(6_000), 900);
        assert_eq!([clock.read(at(6_000)), clock.read(at(100_000))], [Some(1006); 2]);
        assert_eq!(clock.read(at(120_000)), Some(1014));
        clock.forget();
        assert_eq!((clock.read(at(121_000)), clock.latest()), (None, 1014));
        clock.set(at(121_000), 2000);
        assert_eq!((clock.read(at(122_000)), clock.started()), (Some(2001), 1000));
    }

    /// Tokens from before are refused by the first time that is known.
    #[test]
    fn a_clock_that_is_set_late_starts_then() {
        let mut clock = UnixClock::new(Instant::ZERO, 0);
        clock.forget();
        assert_eq!((clock.read(Instant::ZERO), clock.started()), (None, 0));
        clock.set(Instant::from_millis(5), 1000);
        clock.set(Instant::from_millis(6), 2000);
        assert_eq!(clock.started(), 1000);
    }
}
