//! One key of an AEAD: encrypts and decrypts in place, without allocating.
//!
//! The nonce is the packet number, so the caller must never seal a number twice with one key (STANDARD-1,
//! H-2.2a). Key schedules are on the heap, because a connection has up to three keys and should be small.

#[cfg(feature = "aws-lc")]
mod aws_lc;
#[cfg(any(test, not(feature = "aws-lc")))]
mod rust_crypto;

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
    /// The key of this suite with these 32 bytes.
    ///
    /// # Errors
    /// [`KeyError`] if this build does not have the suite.
    pub fn new(secret: &Secret, suite: Suite) -> Result<Self, KeyError> {
        Cipher::new(secret, suite).map(Self)
    }

    /// Encrypts `in_out` in place. Returns the tag over it and `aad`, the bytes before it.
    ///
    /// # Errors
    /// [`SealError`] for more bytes than the cipher accepts, some gigabytes; never for a datagram.
    pub fn seal(
        &self,
        packet_number: u64,
        aad: &[u8],
        in_out: &mut [u8],
    ) -> Result<[u8; TAG_BYTES], SealError> {
        self.0.seal(nonce(packet_number), aad, in_out)
    }

    /// Encrypts what `sealed` begins with, and behind it the bytes `rest`, which are elsewhere and stay as
    /// they are. What `sealed` has at its end is overwritten: as many bytes as `rest` has, and the tag.
    ///
    /// # Errors
    /// [`SealError`] as [`seal`](Self::seal), or if `sealed` is shorter than that.
    pub fn seal_from(
        &self,
        packet_number: u64,
        aad: &[u8],
        sealed: &mut [u8],
        rest: &[u8],
    ) -> Result<(), SealError> {
        let head_bytes = sealed.len().checked_sub(rest.len() + TAG_BYTES).ok_or(SealError)?;
        #[cfg(feature = "aws-lc")]
        if self.0.seals_from_elsewhere() {
            let (head, out) = sealed.split_at_mut_checked(head_bytes).ok_or(SealError)?;
            return self.0.seal_from(nonce(packet_number), aad, (head, rest), out);
        }
        let (text, tag) = sealed.split_last_chunk_mut::<TAG_BYTES>().ok_or(SealError)?;
        text.get_mut(head_bytes..).ok_or(SealError)?.copy_from_slice(rest);
        *tag = self.seal(packet_number, aad, text)?;
        Ok(())
    }

    /// Decrypts the ciphertext `in_out` in place.
    ///
    /// # Errors
    /// [`OpenError`] if number, `aad`, ciphertext, tag and key do not match. The content of `in_out` is then
    /// unspecified.
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

crate::debug_as! { AeadKey: |_key| }

/// Four zero bytes, then the packet number.
fn nonce(packet_number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    if let Some(number) = nonce.last_chunk_mut() {
        *number = packet_number.to_le_bytes();
    }
    nonce
}

/// This build does not have the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this build does not have the cipher suite")]
pub struct KeyError;

/// There are too many bytes to encrypt at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many bytes to encrypt at once")]
pub struct SealError;

/// The tag is wrong. What exactly does not match must not be revealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the tag is wrong")]
pub struct OpenError;

#[cfg(test)]
mod tests;
