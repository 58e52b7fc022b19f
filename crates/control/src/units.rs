//! The units of the sender's estimates, as types: a rate cannot be mistaken for a time span.
//!
//! All are floating point, because estimates are not exact. A point in time is the [`Span`] since the origin
//! of the clock.

use core::ops::{Add, AddAssign, Div, Mul, MulAssign, Sub};
use core::time::Duration;

use haulier_core::Instant;

/// Arithmetic within a unit, and with plain numbers.
macro_rules! unit {
    ($(#[$docs:meta])* $unit:ident) => {
        $(#[$docs])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $unit(#[doc = "The number."] pub f64);

        #[allow(dead_code, reason = "each unit has all of it")]
        impl $unit {
            /// None of it.
            pub const ZERO: Self = Self(0.0);
            /// Without end.
            pub const INFINITY: Self = Self(f64::INFINITY);

            /// The smaller of both.
            #[must_use]
            pub const fn min(self, other: Self) -> Self {
                Self(self.0.min(other.0))
            }

            /// The larger of both.
            #[must_use]
            pub const fn max(self, other: Self) -> Self {
                Self(self.0.max(other.0))
            }

            /// At least `min`, and at most `max`.
            #[must_use]
            pub const fn clamp(self, min: Self, max: Self) -> Self {
                Self(self.0.clamp(min.0, max.0))
            }

            /// Whether it has an end.
            #[must_use]
            pub const fn is_finite(self) -> bool {
                self.0.is_finite()
            }
        }

        impl Add for $unit {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl Sub for $unit {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl AddAssign for $unit {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl Mul<f64> for $unit {
            type Output = Self;
            fn mul(self, by: f64) -> Self {
                Self(self.0 * by)
            }
        }

        impl Mul<$unit> for f64 {
            type Output = $unit;
            fn mul(self, of: $unit) -> $unit {
                $unit(self * of.0)
            }
        }

        impl MulAssign<f64> for $unit {
            fn mul_assign(&mut self, by: f64) {
                self.0 *= by;
            }
        }

        impl Div<f64> for $unit {
            type Output = Self;
            fn div(self, by: f64) -> Self {
                Self(self.0 / by)
            }
        }

        /// The ratio of the two.
        impl Div for $unit {
            type Output = f64;
            fn div(self, other: Self) -> f64 {
                self.0 / other.0
            }
        }
    };
}

unit! {
    /// Microseconds; or a point in time, as microseconds since the origin of the clock.
    Span
}

unit! {
    /// Bytes on the wire, UDP and IP included.
    Bytes
}

unit! {
    /// Bytes per microsecond.
    Rate
}

impl Span {
    /// A span in milliseconds.
    #[must_use]
    pub const fn from_millis(millis: u16) -> Self {
        Self(millis as f64 * 1e3)
    }

    /// A span in seconds.
    #[must_use]
    pub const fn from_secs(secs: u16) -> Self {
        Self(secs as f64 * 1e6)
    }

    /// The span as a duration, which is not negative.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub const fn duration(self) -> Duration {
        Duration::from_nanos((self.0 * 1000.0) as u64)
    }

    /// The first instant of the clock that is not before this one.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub fn instant(self) -> Instant {
        Instant::from_nanos(((self.0 * 1000.0) as u64).saturating_add(1))
    }
}

#[expect(clippy::cast_precision_loss, reason = "2^53 ns are 104 days")]
impl From<Instant> for Span {
    fn from(at: Instant) -> Self {
        Self(at.as_nanos() as f64 / 1000.0)
    }
}

impl From<Duration> for Span {
    fn from(span: Duration) -> Self {
        Self(span.as_secs_f64() * 1e6)
    }
}

#[expect(clippy::cast_precision_loss, reason = "no datagram is so large")]
impl From<usize> for Bytes {
    fn from(bytes: usize) -> Self {
        Self(bytes as f64)
    }
}

impl Bytes {
    /// How many times `unit` is in it, rounded down.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub fn in_units_of(self, unit: Self) -> usize {
        (self / unit) as usize
    }

    /// As a whole number, rounded down.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub const fn saturating_u32(self) -> u32 {
        self.0 as u32
    }
}

impl Rate {
    /// The minimum rate, 8 bit/s, so that no division is by zero.
    pub const MIN: Self = Self(1e-6);

    /// A rate in thousand bits per second.
    #[must_use]
    pub const fn from_kbps(kbps: u32) -> Self {
        Self(kbps as f64 / 8e3)
    }

    /// Bits per second.
    #[expect(clippy::cast_precision_loss, reason = "no rate is that exact")]
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps as f64 / 8e6)
    }

    /// In bits per second, rounded down.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub const fn bps(self) -> u64 {
        (self.0 * 8e6) as u64
    }
}

impl Div<Rate> for Bytes {
    type Output = Span;
    fn div(self, rate: Rate) -> Span {
        Span(self.0 / rate.0)
    }
}

impl Div<Span> for Bytes {
    type Output = Rate;
    fn div(self, span: Span) -> Rate {
        Rate(self.0 / span.0)
    }
}

impl Mul<Span> for Rate {
    type Output = Bytes;
    fn mul(self, span: Span) -> Bytes {
        Bytes(self.0 * span.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_bytes_in_a_span() {
        let rate = Rate::from_kbps(8_000);
        assert_eq!((rate, rate.bps()), (Rate(1.0), 8_000_000));
        assert_eq!(Bytes(1_000.0) / rate, Span::from_millis(1));
        assert_eq!(rate * Span::from_millis(2), Bytes(2_000.0));
        assert_eq!(Bytes(2_000.0) / Span::from_millis(2), rate);
    }

    #[test]
    fn an_instant_is_never_before_its_span() {
        let at = Instant::from_nanos(1_234_567);
        assert!(Span::from(at).instant() > at);
        assert_eq!(Span::INFINITY.instant(), Instant::from_nanos(u64::MAX));
        assert!(Span::from(at).instant().since(at) <= Duration::from_nanos(2));
    }
}
