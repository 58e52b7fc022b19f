//! Numbers that wrap: the only place where wrap-around arithmetic happens.
//!
//! A 16-bit number on the wire comes round every 65,536 packets, 18 minutes at 60 a second. Of two such
//! numbers the newer is the one less than half a turn ahead. Exactly half a turn apart, the numerically
//! larger one is newer, so that the order stays antisymmetric (STANDARD §6.1).

/// Half a turn of a 16-bit sequence.
const HALF: u16 = 32_768;

/// A 16-bit number that wraps. It has no `Ord`: "less than" is not transitive round a circle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sequence(u16);

impl Sequence {
    /// The sequence with this number.
    #[must_use]
    pub const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The number on the wire.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// The number after this one; 0 follows 65,535.
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
        Self(self.0.wrapping_add(steps))
    }

    /// This number moved `steps` back.
    #[must_use]
    pub const fn minus(self, steps: u16) -> Self {
        Self(self.0.wrapping_sub(steps))
    }

    /// Whether this is newer than `other`.
    ///
    /// ```
    /// # use haulier_proto::Sequence;
    /// assert!(Sequence::new(2).is_newer_than(Sequence::new(65_530)));
    /// assert!(!Sequence::new(7).is_newer_than(Sequence::new(7)));
    /// ```
    #[must_use]
    pub const fn is_newer_than(self, other: Self) -> bool {
        let ahead = self.0.wrapping_sub(other.0);
        (ahead != 0 && ahead < HALF) || (ahead == HALF && self.0 > other.0)
    }

    /// The signed distance from `other` to this, from -32,768 to 32,768; its sign agrees with
    /// [`is_newer_than`](Self::is_newer_than).
    #[must_use]
    pub const fn distance_from(self, other: Self) -> i32 {
        let ahead = self.0.wrapping_sub(other.0) as i32;
        if self.is_newer_than(other) || ahead == 0 { ahead } else { ahead - 65_536 }
    }
}

/// The older, three-argument comparison of *Reliability, Ordering and Congestion Avoidance over UDP*,
/// for numbers in `[0, max]`. With a `max` of 65,535 it disagrees with [`Sequence::is_newer_than`] at a
/// distance of exactly 32,768, because `max / 2` rounds down. Nothing here uses it; it is for peers that
/// follow that article to the letter.
#[must_use]
pub const fn is_more_recent(s1: u32, s2: u32, max: u32) -> bool {
    (s1 > s2 && s1 - s2 <= max / 2) || (s2 > s1 && s2 - s1 > max / 2)
}
