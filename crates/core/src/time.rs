//! Time as a machine sees it: nanoseconds since an origin that the caller picks.
//!
//! The machine never reads a clock. A driver maps its own clock onto this one, a simulation simply counts,
//! and both may start at zero. All arithmetic saturates, so a clock that jumps makes a transfer slow, never
//! wrong. Why not `std::time::Instant`: `docs/decisions/0001-own-instant.md`.

use core::ops::{Add, Sub};
use core::time::Duration;

/// A moment: nanoseconds since the caller's origin. Covers 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The caller's origin.
    pub const ZERO: Self = Self(0);

    /// The moment `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The moment `millis` milliseconds after the origin, saturating.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it lies ahead, as it may after a clock jumped.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub<Self> for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// The earlier of two deadlines, where `None` means "no deadline".
#[must_use]
pub fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (some, None) | (None, some) => some,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_jumps_backwards_measures_zero() {
        assert_eq!(Instant::from_millis(5) - Instant::from_millis(9), Duration::ZERO);
    }

    #[test]
    fn the_end_of_time_is_not_passed() {
        assert_eq!(Instant::from_nanos(u64::MAX) + Duration::MAX, Instant::from_nanos(u64::MAX));
    }

    #[test]
    fn no_deadline_is_later_than_any() {
        let soon = Some(Instant::from_millis(1));
        assert_eq!(earliest(soon, None), soon);
        assert_eq!(earliest(None, soon), soon);
        assert_eq!(earliest(soon, Some(Instant::ZERO)), Some(Instant::ZERO));
        assert_eq!(earliest(None, None), None);
    }
}
