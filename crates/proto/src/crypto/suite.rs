//! The two AEADs of a connection, and how one of them is chosen.
//!
//! ChaCha20-Poly1305 runs everywhere, in constant time. AES-256-GCM is chosen if both ends have it in
//! hardware: in software it is slower, and hard to make constant-time.

/// An AEAD with a key of 32 bytes, a nonce of 12 and a tag of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Suite {
    /// RFC 8439. In every build.
    ChaCha20Poly1305 = 0,
    /// NIST SP 800-38D. In builds with the feature `aws-lc` or `rust-crypto`.
    Aes256Gcm = 1,
}

impl Suite {
    /// The suite of a number in a welcome, if there is one.
    #[doc(hidden)]
    #[must_use]
    pub const fn from_u8(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::ChaCha20Poly1305),
            1 => Some(Self::Aes256Gcm),
            _ => None,
        }
    }

    /// Whether this build has it.
    #[doc(hidden)]
    #[must_use]
    pub const fn is_built_in(self) -> bool {
        match self {
            Self::ChaCha20Poly1305 => true,
            Self::Aes256Gcm => cfg!(any(feature = "aws-lc", feature = "rust-crypto")),
        }
    }
}

/// The suites an end can use: ChaCha20-Poly1305 always, AES-256-GCM perhaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Suites {
    aes: bool,
}

impl Suites {
    const CHACHA: u8 = 1 << Suite::ChaCha20Poly1305 as u8;
    const AES: u8 = 1 << Suite::Aes256Gcm as u8;

    /// The suites that this build can use, on a processor with AES instructions or without.
    #[must_use]
    pub const fn available(has_aes: bool) -> Self {
        Self { aes: has_aes && Suite::Aes256Gcm.is_built_in() }
    }

    /// The set in a hello. `None` if ChaCha20-Poly1305 is not in it. Other bits are ignored: they are suites
    /// of later versions, and a suite is chosen that both ends know.
    #[must_use]
    pub(crate) const fn from_bits(bits: u8) -> Option<Self> {
        if bits & Self::CHACHA == 0 {
            return None;
        }
        Some(Self { aes: bits & Self::AES != 0 })
    }

    /// The bits in a hello.
    #[must_use]
    pub const fn bits(self) -> u8 {
        if self.aes { Self::CHACHA | Self::AES } else { Self::CHACHA }
    }

    /// Whether a suite is in the set.
    #[must_use]
    pub(crate) const fn contains(self, suite: Suite) -> bool {
        match suite {
            Suite::ChaCha20Poly1305 => true,
            Suite::Aes256Gcm => self.aes,
        }
    }

    /// The suite of a connection between two ends (STANDARD-1, H-3.2b).
    #[must_use]
    pub const fn choose(self, other: Self) -> Suite {
        if self.aes && other.aes { Suite::Aes256Gcm } else { Suite::ChaCha20Poly1305 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_suites_match() {
        for number in 0..=u8::MAX {
            let suite = Suite::from_u8(number);
            assert_eq!(suite.is_some(), number < 2);
            assert!(suite.is_none_or(|suite| suite as u8 == number));
        }
    }

    #[test]
    fn every_set_holds_chacha() {
        for bits in 0..=u8::MAX {
            let set = Suites::from_bits(bits);
            assert_eq!(set.is_some(), bits & 1 == 1, "{bits}");
            assert!(set.is_none_or(|set| set.bits() == bits & 3), "{bits}");
            assert!(set.is_none_or(|set| set.contains(Suite::ChaCha20Poly1305)), "{bits}");
        }
        assert_eq!(Suites::available(false), Suites { aes: false });
    }

    /// H-3.2b: AES only if both ends can use it.
    #[test]
    fn the_choice_is_the_same_from_both_ends() {
        let (with, without) = (Suites { aes: true }, Suites { aes: false });
        assert_eq!(with.choose(with), Suite::Aes256Gcm);
        assert_eq!(with.choose(without), Suite::ChaCha20Poly1305);
        assert_eq!(without.choose(with), Suite::ChaCha20Poly1305);
        assert_eq!(without.choose(without), Suite::ChaCha20Poly1305);
    }
}
