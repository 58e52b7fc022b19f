//! Secrets of 32 bytes, and how one is derived from another.
//!
//! A [`Secret`] is wiped when dropped, compared in constant time, and never printed. It can be cloned,
//! because every connection of a server needs it; each clone is wiped too.

use subtle::ConstantTimeEq;
use zeroize::Zeroize;

/// 32 secret bytes: a key, a ticket's secret, a private key.
///
/// # Examples
/// ```
/// use haulier_proto::credentials::Secret;
///
/// let secret = Secret::from_bytes([7; 32]); // yours: `haulier::random_secret`, or a file
/// assert!(!format!("{secret:?}").contains('7')); // it is never printed, and wiped when it is dropped
/// ```
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// The secret with these bytes. The caller should wipe its own copy.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes, to be used and not kept.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

crate::debug_as! { Secret: |_key| }

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        equal(&self.0, &other.0)
    }
}

impl Eq for Secret {}

/// BLAKE3's derive_key mode: the secret for one purpose, the `context`, from the concatenated `parts`.
///
/// Boundaries between parts have no effect, so each part must have a fixed length.
#[must_use]
pub fn kdf(context: &str, parts: &[&[u8]]) -> Secret {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        hasher.update(part);
    }
    let mut hash = hasher.finalize();
    let secret = Secret(*hash.as_bytes());
    hash.zeroize();
    hasher.zeroize();
    secret
}

/// Whether two byte strings are equal, in a time that depends only on their lengths.
#[must_use]
pub(crate) fn equal(a: &[u8], b: &[u8]) -> bool {
    a.ct_eq(b).into()
}

/// The first `N` bytes (at most 32) of BLAKE3 keyed with `key` over the concatenated `parts`.
pub(super) fn keyed<const N: usize>(key: &Secret, parts: &[&[u8]]) -> [u8; N] {
    const { assert!(N <= blake3::OUT_LEN) };
    let mut hasher = blake3::Hasher::new_keyed(key.as_bytes());
    for part in parts {
        hasher.update(part);
    }
    let mut first = [0; N];
    // Of what is longer than 1024 bytes the reader begins with the key.
    let mut reader = hasher.finalize_xof();
    reader.fill(&mut first);
    reader.zeroize();
    hasher.zeroize();
    first
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn a_secret_does_not_print_itself() {
        assert_eq!(format!("{:?}", Secret::from_bytes([7; 32])), "Secret { .. }");
    }

    #[test]
    fn secrets_differ_by_any_bit() {
        let secret = Secret::from_bytes([7; 32]);
        assert_eq!(secret, secret.clone());
        for bit in 0..256 {
            let mut other = [7; 32];
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(secret, Secret::from_bytes(other));
        }
    }

    #[test]
    fn strings_of_different_lengths_are_not_equal() {
        assert!(equal(b"", b""));
        assert!(!equal(b"a", b""));
        assert!(!equal(b"a", b"ab"));
    }

    /// The vector of length 0 in BLAKE3's own test_vectors.json, and one by parts.
    #[test]
    fn kdf_is_blake3s_derive_key() {
        let context = "BLAKE3 2019-12-27 16:29:52 test vectors context";
        let start = [0x2c, 0xc3, 0x97, 0x83, 0xc2, 0x23, 0x15, 0x4f];
        assert_eq!(kdf(context, &[]).as_bytes()[..8], start);
        assert_eq!(kdf(context, &[b"ab", b"", b"c"]), kdf(context, &[b"abc"]));
        assert_ne!(kdf(context, &[b"abc"]), kdf("another", &[b"abc"]));
    }

    #[test]
    fn a_keyed_check_is_the_start_of_a_keyed_hash() {
        let key = Secret::from_bytes([3; 32]);
        let whole = blake3::keyed_hash(key.as_bytes(), b"onetwo");
        assert_eq!(keyed::<16>(&key, &[b"one", b"two"]), whole.as_bytes()[..16]);
    }
}
