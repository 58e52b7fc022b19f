//! The symmetric state of a Noise handshake, with BLAKE2s and ChaCha20-Poly1305 (Noise, revision 34, 5.2).
//!
//! A chaining key takes in every secret, a hash every byte that was said. Each operation has the name that it
//! has on the page of Noise. The invariant: the chaining key and all that comes from it are [`Secret`]s,
//! wiped where they lie.

use alloc::vec::Vec;

use blake2::{Blake2s256, Digest};
use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Nonce};
use zeroize::Zeroize;

use super::super::Secret;
use super::{MessageKey, NoiseError};
use crate::crypto::aead::TAG_BYTES;

/// Bytes of a block of BLAKE2s: what HMAC pads its key to.
const BLOCK_BYTES: usize = 64;

/// The state that both ends compute alike, or the next message does not open.
#[derive(Clone)]
pub(super) struct Symmetric {
    chaining_key: Secret,
    hash: [u8; 32],
    /// The key of the next payload. Each mixing makes a new one, so that each seals once, with nonce 0.
    key: Secret,
    /// The associated data of the last payload.
    associated_data: [u8; 32],
}

impl Symmetric {
    /// `InitializeSymmetric`. All our names are longer than a hash.
    pub(super) fn new(protocol_name: &str) -> Self {
        let hash: [u8; 32] = Blake2s256::digest(protocol_name).into();
        let key = Secret::from_bytes([0; 32]);
        Self { chaining_key: Secret::from_bytes(hash), hash, key, associated_data: [0; 32] }
    }

    /// `MixHash`.
    pub(super) fn mix_hash(&mut self, data: &[u8]) {
        self.hash = Blake2s256::new().chain_update(self.hash).chain_update(data).finalize().into();
    }

    /// `MixKey`.
    pub(super) fn mix_key(&mut self, material: &[u8; 32]) {
        let temporary = hmac(&self.chaining_key, &[material]);
        self.chaining_key = hmac(&temporary, &[&[1]]);
        self.key = hmac(&temporary, &[self.chaining_key.as_bytes(), &[2]]);
    }

    /// `MixKeyAndHash`.
    pub(super) fn mix_key_and_hash(&mut self, material: &Secret) {
        let temporary = hmac(&self.chaining_key, &[material.as_bytes()]);
        self.chaining_key = hmac(&temporary, &[&[1]]);
        let second = hmac(&temporary, &[self.chaining_key.as_bytes(), &[2]]);
        self.mix_hash(second.as_bytes());
        self.key = hmac(&temporary, &[second.as_bytes(), &[3]]);
    }

    /// `EncryptAndHash`: appends the ciphertext of `payload` and its tag to `message`.
    pub(super) fn encrypt_and_hash(
        &mut self,
        payload: &[u8],
        message: &mut Vec<u8>,
    ) -> Result<(), NoiseError> {
        let start = message.len();
        message.extend_from_slice(payload);
        let text = message.get_mut(start..).ok_or(NoiseError::TooLong)?;
        let sealed = self.cipher().encrypt_in_place_detached(&Nonce::default(), &self.hash, text);
        message.extend_from_slice(&sealed.map_err(|_| NoiseError::TooLong)?);
        self.associated_data = self.hash;
        self.mix_hash(message.get(start..).unwrap_or_default());
        Ok(())
    }

    /// `DecryptAndHash`: the payload of a ciphertext and its tag.
    pub(super) fn decrypt_and_hash(&mut self, sealed: &[u8]) -> Result<Vec<u8>, NoiseError> {
        let (text, tag) = sealed.split_last_chunk::<TAG_BYTES>().ok_or(NoiseError::Malformed)?;
        let mut payload = text.to_vec();
        let opened = self.cipher().decrypt_in_place_detached(
            &Nonce::default(),
            &self.hash,
            &mut payload,
            tag.into(),
        );
        opened.map_err(|_| NoiseError::Refused)?;
        self.associated_data = self.hash;
        self.mix_hash(sealed);
        Ok(payload)
    }

    /// `Split`: the secrets of the two directions, the initiator's first.
    pub(super) fn split(&self) -> (Secret, Secret) {
        let temporary = hmac(&self.chaining_key, &[]);
        let first = hmac(&temporary, &[&[1]]);
        let second = hmac(&temporary, &[first.as_bytes(), &[2]]);
        (first, second)
    }

    /// What the last payload was sealed with.
    pub(super) const fn message_key(&self) -> MessageKey<'_> {
        MessageKey { key: &self.key, associated_data: &self.associated_data }
    }

    fn cipher(&self) -> ChaCha20Poly1305 {
        ChaCha20Poly1305::new(self.key.as_bytes().into())
    }
}

/// HMAC-BLAKE2s over the concatenated `parts` (RFC 2104).
fn hmac(key: &Secret, parts: &[&[u8]]) -> Secret {
    let mut pad = [0x36; BLOCK_BYTES];
    pad.iter_mut().zip(key.as_bytes()).for_each(|(pad, key)| *pad ^= key);
    let mut inner = Blake2s256::new_with_prefix(pad);
    parts.iter().for_each(|part| inner.update(part));
    // From the inner pad to the outer one.
    pad.iter_mut().for_each(|pad| *pad ^= 0x36 ^ 0x5c);
    let mut inner: [u8; 32] = inner.finalize().into();
    let mut outer: [u8; 32] =
        Blake2s256::new_with_prefix(pad).chain_update(inner).finalize().into();
    let secret = Secret::from_bytes(outer);
    pad.zeroize();
    inner.zeroize();
    outer.zeroize();
    secret
}
