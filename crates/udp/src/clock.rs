//! The real clock, as the machine wants it.

use std::time::Duration;

use haulier_core::Instant;

/// Counts nanoseconds from its making.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock whose origin is now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Instant {
        let elapsed = self.origin.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    /// The time until `at`; zero if `at` is past.
    #[must_use]
    pub fn until(&self, at: Instant) -> Duration {
        at.since(self.now())
    }
}
