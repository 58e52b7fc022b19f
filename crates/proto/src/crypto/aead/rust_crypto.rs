//! The suites in Rust alone: ChaCha20-Poly1305 always, AES-256-GCM with the feature `rust-crypto`.

use alloc::boxed::Box;

#[cfg(feature = "rust-crypto")]
use aes_gcm::Aes256Gcm;
use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInPlace, KeyInit};

use super::{KeyError, OpenError, SealError, TAG_BYTES};
use crate::crypto::{Secret, Suite};

pub(super) enum Cipher {
    ChaCha(Box<ChaCha20Poly1305>),
    /// Its round keys take about a kilobyte.
    #[cfg(feature = "rust-crypto")]
    Aes(Box<Aes256Gcm>),
}

impl Cipher {
    pub(super) fn new(secret: &Secret, suite: Suite) -> Result<Self, KeyError> {
        let key = secret.as_bytes().into();
        match suite {
            Suite::ChaCha20Poly1305 => Ok(Self::ChaCha(Box::new(ChaCha20Poly1305::new(key)))),
            #[cfg(feature = "rust-crypto")]
            Suite::Aes256Gcm => Ok(Self::Aes(Box::new(Aes256Gcm::new(key)))),
            #[cfg(not(feature = "rust-crypto"))]
            Suite::Aes256Gcm => Err(KeyError),
        }
    }

    pub(super) fn seal(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        in_out: &mut [u8],
    ) -> Result<[u8; TAG_BYTES], SealError> {
        let nonce = &nonce.into();
        let tag = match self {
            Self::ChaCha(key) => key.encrypt_in_place_detached(nonce, aad, in_out),
            #[cfg(feature = "rust-crypto")]
            Self::Aes(key) => key.encrypt_in_place_detached(nonce, aad, in_out),
        };
        tag.map(Into::into).map_err(|_| SealError)
    }

    pub(super) fn open(
        &self,
        nonce: [u8; 12],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> Result<(), OpenError> {
        let (nonce, tag) = (&nonce.into(), tag.into());
        match self {
            Self::ChaCha(key) => key.decrypt_in_place_detached(nonce, aad, in_out, tag),
            #[cfg(feature = "rust-crypto")]
            Self::Aes(key) => key.decrypt_in_place_detached(nonce, aad, in_out, tag),
        }
        .map_err(|_| OpenError)
    }
}
