//! The units that the sender reckons in: microseconds, bytes, and bytes per microsecond (1 is 8 Mbit/s).

use core::time::Duration;

use crate::Instant;

/// A moment, in microseconds.
#[expect(clippy::cast_precision_loss, reason = "2^53 ns are 104 days")]
pub(super) fn micros(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1000.0
}

/// A span, in microseconds.
pub(super) fn micros_of(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

/// The first moment that is not before so many microseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub(super) fn instant(micros: f64) -> Instant {
    Instant::from_nanos((micros * 1000.0) as u64 + 1)
}
