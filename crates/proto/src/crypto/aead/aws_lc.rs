//! Both suites from AWS-LC, which selects the fastest code for the CPU at run time.

use aws_lc_rs::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

use super::{KeyError, OpenError, SealError, TAG_BYTES};
use crate::crypto::{Secret, Suite};

/// A small handle. Its key schedule is on the C heap and is wiped there.
pub(super) struct Cipher(LessSafeKey);

impl Cipher {
    pub(super) fn new(secret: &Secret, suite: Suite) -> Result<Self, KeyError> {
        let algorithm = match suite {
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
            Suite::Aes256Gcm => &AES_256_GCM,
        };
        // It fails for a key of the wrong length, which this is not, or if memory runs out.
        let key = UnboundKey::new(algorithm, secret.as_bytes()).map_err(|_| KeyError)?;
        Ok(Self(LessSafeKey::new(key)))
    }

    pub(super) fn seal(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        in_out: &mut [u8],
    ) -> Result<[u8; TAG_BYTES], SealError> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(aad), in_out);
        tag.ok().and_then(|tag| tag.as_ref().try_into().ok()).ok_or(SealError)
    }

    /// Whether [`seal_from`](Self::seal_from) is faster than a copy: for ChaCha20-Poly1305 AWS-LC takes the
    /// second part of a text a block at a time.
    pub(super) fn seals_from_elsewhere(&self) -> bool {
        self.0.algorithm() == &AES_256_GCM
    }

    /// Encrypts the first part in place and the second into `out`, with the tag behind it.
    pub(super) fn seal_from(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        (in_out, rest): (&mut [u8], &[u8]),
        out: &mut [u8],
    ) -> Result<(), SealError> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = self.0.seal_in_place_scatter(nonce, Aad::from(aad), in_out, rest, out);
        sealed.map_err(|_| SealError)
    }

    pub(super) fn open(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> Result<(), OpenError> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = self.0.open_in_place_separate_tag(nonce, Aad::from(aad), tag, in_out);
        opened.map(|_| ()).map_err(|_| OpenError)
    }
}
