//! The keys of one direction: a secret gives a key, and the secret of the next key.
//!
//! A stolen secret gives access to later keys, never to earlier ones (STANDARD-1, 2.3).

use super::{AeadKey, KeyError, Secret, Suite, kdf};

/// The secret of one direction and one key phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrafficSecret(Secret);

impl TrafficSecret {
    /// The first secret of a direction, from Noise's split.
    #[must_use]
    pub const fn new(secret: Secret) -> Self {
        Self(secret)
    }

    /// The key of the datagrams of this phase.
    ///
    /// # Errors
    /// [`KeyError`] if this build does not have the suite.
    pub fn key(&self, suite: Suite) -> Result<AeadKey, KeyError> {
        AeadKey::new(&self.key_secret(), suite)
    }

    /// The secret of the next key phase.
    #[must_use]
    pub fn next(&self) -> Self {
        Self(kdf("haulier/1 2026 next", &[self.0.as_bytes()]))
    }

    /// The bytes of the key, to be compared with golden ones.
    #[must_use]
    pub fn key_secret(&self) -> Secret {
        kdf("haulier/1 2026 key", &[self.0.as_bytes()])
    }

    /// The secret itself, to be compared with golden bytes.
    #[must_use]
    pub const fn secret(&self) -> &Secret {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A datagram of one phase does not open in another, and no key equals the secret that it comes from.
    #[test]
    fn phases_are_independent() {
        let first = TrafficSecret::new(Secret::from_bytes([9; 32]));
        let second = first.next();
        assert_ne!(first, second);
        assert_ne!(first.key_secret(), second.key_secret());
        assert_ne!(&first.key_secret(), first.secret());
        assert_ne!(&first.key_secret(), second.secret());
        let (suite, mut bytes) = (Suite::ChaCha20Poly1305, *b"frames");
        let tag = first.key(suite).unwrap().seal(5, b"head", &mut bytes).unwrap();
        let mut copy = bytes;
        assert!(second.key(suite).unwrap().open(5, b"head", &mut copy, &tag).is_err());
        first.key(suite).unwrap().open(5, b"head", &mut bytes, &tag).unwrap();
        assert_eq!(&bytes, b"frames");
    }
}
