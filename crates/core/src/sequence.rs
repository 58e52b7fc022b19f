//! Numbers that wrap: the only place where wrap-around arithmetic happens.
//!
//! A 16-bit number on the wire repeats every 65,536 packets, 18 minutes at 60 a second. Of two such numbers
//! the newer is the one less than half a turn ahead. Exactly half a turn apart, the numerically larger one
//! is newer, so that the order stays antisymmetric (STANDARD §6.1).
//!
//! Where 16 bits are too few there is [`Sequence32`]; what windows and acks need of a number is
//! [`SequenceNumber`].

use core::fmt::Debug;

/// What a window of packets needs of its numbers.
pub trait SequenceNumber: Copy + Debug + Default + PartialEq {
    /// The number after this one.
    #[must_use]
    fn next(self) -> Self;

    /// This number moved `steps` ahead.
    #[must_use]
    fn plus(self, steps: u16) -> Self;

    /// This number moved `steps` back.
    #[must_use]
    fn minus(self, steps: u16) -> Self;

    /// Whether this is newer than `other`: less than half a turn ahead, or exactly half a turn and the
    /// larger number.
    #[must_use]
    fn is_newer_than(self, other: Self) -> bool;

    /// The signed distance from `other` to this; its sign agrees with
    /// [`is_newer_than`](Self::is_newer_than).
    #[must_use]
    fn distance_from(self, other: Self) -> i64;

    /// The low 16 bits, which determine the place of this number in a ring of up to 65,536 entries.
    #[must_use]
    fn low_bits(self) -> u16;
}

macro_rules! sequence {
    ($(#[doc = $doc:literal])+ $name:ident, $number:ident, $half:literal, $turn:literal) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name($number);

        impl $name {
            /// The sequence with this number.
            #[must_use]
            pub const fn new(number: $number) -> Self {
                Self(number)
            }

            /// The number on the wire.
            #[must_use]
            pub const fn get(self) -> $number {
                self.0
            }

            /// The number after this one; 0 follows the largest.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.wrapping_add(1))
            }

            /// The number before this one.
            #[must_use]
            pub const fn previous(self) -> Self {
                Self(self.0.wrapping_sub(1))
            }

            /// This number moved `steps` ahead.
            #[must_use]
            pub const fn plus(self, steps: u16) -> Self {
                Self(self.0.wrapping_add(steps as $number))
            }

            /// This number moved `steps` back.
            #[must_use]
            pub const fn minus(self, steps: u16) -> Self {
                Self(self.0.wrapping_sub(steps as $number))
            }

            /// Whether this is newer than `other`.
            #[must_use]
            pub const fn is_newer_than(self, other: Self) -> bool {
                let ahead = self.0.wrapping_sub(other.0);
                (ahead != 0 && ahead < $half) || (ahead == $half && self.0 > other.0)
            }

            /// The signed distance from `other` to this, from minus half a turn to half a turn; its sign
            /// agrees with [`is_newer_than`](Self::is_newer_than).
            #[must_use]
            pub const fn distance_from(self, other: Self) -> i64 {
                let ahead = self.0.wrapping_sub(other.0) as i64;
                if self.is_newer_than(other) || ahead == 0 { ahead } else { ahead - $turn }
            }
        }

        impl SequenceNumber for $name {
            fn next(self) -> Self {
                self.next()
            }

            fn plus(self, steps: u16) -> Self {
                self.plus(steps)
            }

            fn minus(self, steps: u16) -> Self {
                self.minus(steps)
            }

            fn is_newer_than(self, other: Self) -> bool {
                self.is_newer_than(other)
            }

            fn distance_from(self, other: Self) -> i64 {
                self.distance_from(other)
            }

            #[allow(clippy::cast_possible_truncation, reason = "the low bits are what is asked for")]
            fn low_bits(self) -> u16 {
                self.0 as u16
            }
        }
    };
}

sequence! {
    /// A 16-bit number that wraps. It has no `Ord`: "less than" is not transitive on a circle.
    ///
    /// ```
    /// # use haulier_core::Sequence;
    /// assert!(Sequence::new(2).is_newer_than(Sequence::new(65_530)));
    /// assert!(!Sequence::new(7).is_newer_than(Sequence::new(7)));
    /// ```
    Sequence, u16, 32_768, 65_536
}

sequence! {
    /// A 32-bit number that wraps, for senders so fast that 65,536 packets take little time: the size that
    /// *Reliability, Ordering and Congestion Avoidance over UDP* uses. Neither wire of haulier does.
    Sequence32, u32, 0x8000_0000, 0x1_0000_0000
}
