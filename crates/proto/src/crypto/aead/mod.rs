//! One key of an AEAD: seals and opens in place, without taking memory.
//!
//! The nonce is the packet number, so a number must never be sealed twice with one key; that is the
//! caller's duty (STANDARD-1, H-2.2a). Key schedules lie on the heap: the struct itself is a few words,
//! for a connection has up to four.

#[cfg(feature = "aws-lc")]
mod aws_lc;
#[cfg(any(test, not(feature = "aws-lc")))]
mod rust_crypto;

use core::fmt;

use super::{Secret, Suite};

#[cfg(feature = "aws-lc")]
use aws_lc::Cipher;
#[cfg(not(feature = "aws-lc"))]
use rust_crypto::Cipher;

/// Bytes in a tag.
pub const TAG_BYTES: usize = 16;

/// A key of one direction and one key phase.
pub struct AeadKey(Cipher);

impl AeadKey {
    /// The key of `suite` with these 32 bytes.
    ///
    /// # Errors
    /// [`KeyError`] if this build does not have the suite.
    pub fn new(secret: &Secret, suite: Suite) -> Result<Self, KeyError> {
        Cipher::new(secret, suite).map(Self)
    }

    /// Encrypts `in_out` in place and returns the tag over it and over `aad`, what stands before it.
    ///
    /// # Errors
    /// [`SealError`] if there are more bytes than the cipher takes, some gigabytes; never for a datagram.
    pub fn seal(
        &self,
        packet_number: u64,
        aad: &[u8],
        in_out: &mut [u8],
    ) -> Result<[u8; TAG_BYTES], SealError> {
        self.0.seal(nonce(packet_number), aad, in_out)
    }

    /// Decrypts the ciphertext `in_out` in place.
    ///
    /// # Errors
    /// [`OpenError`] if number, `aad`, ciphertext, tag and key do not belong together. What is in `in_out`
    /// then is not said, and is neither ciphertext nor plaintext to rely on.
    pub fn open(
        &self,
        packet_number: u64,
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> Result<(), OpenError> {
        self.0.open(nonce(packet_number), aad, in_out, tag)
    }
}

impl fmt::Debug for AeadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AeadKey(..)")
    }
}

/// Four zero bytes, then the packet number.
fn nonce(packet_number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    if let Some(number) = nonce.last_chunk_mut() {
        *number = packet_number.to_le_bytes();
    }
    nonce
}

/// There is no such key: this build does not have the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this build does not have the cipher suite")]
pub struct KeyError;

/// Too many bytes to seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many bytes for one seal")]
pub struct SealError;

/// A seal that does not hold. It does not say which part is wrong, for nobody may learn that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the seal does not hold")]
pub struct OpenError;

#[cfg(test)]
mod tests;
