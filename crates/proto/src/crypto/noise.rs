//! The two messages of the handshake: Noise NNpsk0, or NKpsk0 if the client knows the server's identity.
//!
//! The patterns are Noise's, to the byte, checked against its published vectors and against `snow`. They are
//! written out here because no library wipes what it computes: the chaining key of a handshake is enough to
//! read its connection ([decision 0016](../../../../docs/decisions/0016-noise.md)). The invariant: whatever
//! keys are derived from is a [`Secret`], and a message that cannot be read changes nothing.
//!
//! Neither message can be made without the pre-shared key, and pattern NK cannot be answered without the
//! server's private key.

mod symmetric;

use alloc::vec::Vec;

use curve25519_dalek::montgomery::MontgomeryPoint;
use zeroize::Zeroize;

use super::{Secret, TAG_BYTES, TrafficSecret};
use symmetric::Symmetric;

const NN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const NK: &str = "Noise_NKpsk0_25519_ChaChaPoly_BLAKE2s";

/// Bytes by which a message is longer than its payload: an ephemeral public key and a tag.
pub const NOISE_OVERHEAD_BYTES: usize = 32 + TAG_BYTES;

/// The longest message: what a datagram holds. Both real messages are shorter.
const MAX_MESSAGE_BYTES: usize = 1200;

/// A server's X25519 private key. Its clients have the public key.
///
/// # Examples
/// ```
/// use haulier_proto::credentials::{Identity, Secret};
///
/// let identity = Identity::new(Secret::from_bytes([7; 32])); // yours: 32 random bytes, kept in a file
/// let public = identity.public(); // for tickets, tokens, and clients
/// assert_ne!(public, [7; 32]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(Secret);

impl Identity {
    /// The identity with this private key: any 32 random bytes.
    #[must_use]
    pub const fn new(private: Secret) -> Self {
        Self(private)
    }

    /// The public key, for tickets and tokens.
    #[must_use]
    pub fn public(&self) -> [u8; 32] {
        public_key(&self.0)
    }

    /// The private key, to be compared with others.
    #[must_use]
    pub(crate) const fn private(&self) -> &Secret {
        &self.0
    }
}

/// The result of a handshake: one secret for each direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitSecrets {
    /// The client's datagrams are sealed with it.
    pub client_to_server: TrafficSecret,
    /// The server's datagrams are sealed with it.
    pub server_to_client: TrafficSecret,
}

impl SplitSecrets {
    fn of(state: &Symmetric) -> Self {
        let (first, second) = state.split();
        Self {
            client_to_server: TrafficSecret::new(first),
            server_to_client: TrafficSecret::new(second),
        }
    }
}

/// The key that opens one payload of a handshake: ChaCha20-Poly1305 with nonce 0.
#[derive(Clone, Copy, Debug)]
pub struct MessageKey<'a> {
    /// The key.
    pub key: &'a Secret,
    /// The associated data: the hash of the handshake up to this payload.
    pub associated_data: &'a [u8; 32],
}

/// The client's state between the two messages; `None` after the second.
pub struct Initiator(Option<Sent>);

/// The state after message 1, and its ephemeral private key.
struct Sent {
    state: Symmetric,
    ephemeral: Secret,
}

impl Initiator {
    /// The client's state, and message 1 with `hello` in it. The message can be retransmitted as it is.
    /// `ephemeral` is the private key of this handshake: 32 random bytes, never used twice.
    ///
    /// # Errors
    /// [`NoiseError::TooLong`] for a hello of more than 1152 bytes.
    pub fn new(
        psk: &Secret,
        server_identity: Option<&[u8; 32]>,
        prologue: &[u8],
        ephemeral: Secret,
        hello: &[u8],
    ) -> Result<(Self, Vec<u8>), NoiseError> {
        let mut state = begin(psk, server_identity, prologue);
        let mut message = new_message(hello)?;
        let public = public_key(&ephemeral);
        message.extend_from_slice(&public);
        mix_ephemeral(&mut state, &public);
        if let Some(identity) = server_identity {
            mix_agreed(&mut state, &ephemeral, identity);
        }
        state.encrypt_and_hash(hello, &mut message)?;
        Ok((Self(Some(Sent { state, ephemeral })), message))
    }

    /// What message 1 was sealed with; `None` after the end of the handshake.
    #[must_use]
    pub fn message_key(&self) -> Option<MessageKey<'_>> {
        self.0.as_ref().map(|sent| sent.state.message_key())
    }

    /// Reads the server's message. Returns its payload, which is the welcome, and the keys.
    ///
    /// A message that fails changes nothing, because anyone can send one; the right one can still be read.
    ///
    /// # Errors
    /// [`NoiseError::Refused`] for a message that is not from this server for this client,
    /// [`NoiseError::Finished`] after a message was read.
    pub fn finish(&mut self, message: &[u8]) -> Result<(Vec<u8>, SplitSecrets), NoiseError> {
        self.finish_seen(message, |_| {})
    }

    /// The same; `see` is called with what the message was sealed with.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_seen(
        &mut self,
        message: &[u8],
        see: impl FnOnce(&MessageKey<'_>),
    ) -> Result<(Vec<u8>, SplitSecrets), NoiseError> {
        let Sent { state, ephemeral } = self.0.as_ref().ok_or(NoiseError::Finished)?;
        let mut state = state.clone();
        let (theirs, sealed) = read_ephemeral(&mut state, message)?;
        mix_agreed(&mut state, ephemeral, theirs);
        let welcome = state.decrypt_and_hash(sealed)?;
        see(&state.message_key());
        self.0 = None;
        Ok((welcome, SplitSecrets::of(&state)))
    }
}

/// The server's state after it has read the client's message.
pub struct Responder {
    hello: Vec<u8>,
    state: Symmetric,
    client_ephemeral: [u8; 32],
}

/// Reads a client's message, in pattern NK if there is an `identity`.
///
/// # Errors
/// [`NoiseError::Refused`] for a message with another key, identity, pattern or prologue, or a changed one.
pub fn respond(
    psk: &Secret,
    identity: Option<&Identity>,
    prologue: &[u8],
    message: &[u8],
) -> Result<Responder, NoiseError> {
    let public = identity.map(Identity::public);
    let mut state = begin(psk, public.as_ref(), prologue);
    let (theirs, sealed) = read_ephemeral(&mut state, message)?;
    if let Some(identity) = identity {
        mix_agreed(&mut state, &identity.0, theirs);
    }
    let hello = state.decrypt_and_hash(sealed)?;
    Ok(Responder { hello, state, client_ephemeral: *theirs })
}

impl Responder {
    /// What the client's message was sealed with.
    #[must_use]
    pub const fn message_key(&self) -> MessageKey<'_> {
        self.state.message_key()
    }

    /// The payload of the client's message. It can be a replay.
    #[must_use]
    pub fn hello(&self) -> &[u8] {
        &self.hello
    }

    /// Message 2 with `welcome` in it, and the keys. `ephemeral` is the private key of this handshake: 32
    /// random bytes, never used twice.
    ///
    /// # Errors
    /// [`NoiseError::TooLong`] for a welcome of more than 1152 bytes.
    pub fn answer(
        self,
        ephemeral: &Secret,
        welcome: &[u8],
    ) -> Result<(Vec<u8>, SplitSecrets), NoiseError> {
        self.answer_seen(ephemeral, welcome, |_| {})
    }

    /// The same; `see` is called with what the message is sealed with.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn answer_seen(
        mut self,
        ephemeral: &Secret,
        welcome: &[u8],
        see: impl FnOnce(&MessageKey<'_>),
    ) -> Result<(Vec<u8>, SplitSecrets), NoiseError> {
        let state = &mut self.state;
        let mut message = new_message(welcome)?;
        let public = public_key(ephemeral);
        message.extend_from_slice(&public);
        mix_ephemeral(state, &public);
        mix_agreed(state, ephemeral, &self.client_ephemeral);
        state.encrypt_and_hash(welcome, &mut message)?;
        see(&state.message_key());
        Ok((message, SplitSecrets::of(state)))
    }
}

crate::debug_as! { Initiator: |_key| }

crate::debug_as! { Responder: |_key| }

/// Why a Noise message could not be made or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoiseError {
    /// The payload does not fit a datagram.
    #[error("the payload is too long for a handshake message")]
    TooLong,
    /// The message is too short or too long.
    #[error("this is not a handshake message")]
    Malformed,
    /// The message cannot be decrypted: another key, identity, pattern or prologue, or it was changed.
    #[error("the handshake message cannot be decrypted with this key")]
    Refused,
    /// The handshake is already finished.
    #[error("the handshake is already finished")]
    Finished,
}

/// The state before message 1: prologue, the identity in pattern NK, and the pre-shared key.
fn begin(psk: &Secret, identity: Option<&[u8; 32]>, prologue: &[u8]) -> Symmetric {
    let mut state = Symmetric::new(if identity.is_some() { NK } else { NN });
    state.mix_hash(prologue);
    if let Some(identity) = identity {
        state.mix_hash(identity);
    }
    state.mix_key_and_hash(psk);
    state
}

/// Room for a message with this payload.
fn new_message(payload: &[u8]) -> Result<Vec<u8>, NoiseError> {
    let length = payload.len().saturating_add(NOISE_OVERHEAD_BYTES);
    if length > MAX_MESSAGE_BYTES {
        return Err(NoiseError::TooLong);
    }
    Ok(Vec::with_capacity(length))
}

/// Token `e`. With a pre-shared key it is mixed into the key too (Noise, 9.2).
fn mix_ephemeral(state: &mut Symmetric, public: &[u8; 32]) {
    state.mix_hash(public);
    state.mix_key(public);
}

/// Token `e` of the other end, and what follows it.
fn read_ephemeral<'a>(
    state: &mut Symmetric,
    message: &'a [u8],
) -> Result<(&'a [u8; 32], &'a [u8]), NoiseError> {
    if !(NOISE_OVERHEAD_BYTES..=MAX_MESSAGE_BYTES).contains(&message.len()) {
        return Err(NoiseError::Malformed);
    }
    let (theirs, sealed) = message.split_first_chunk().ok_or(NoiseError::Malformed)?;
    mix_ephemeral(state, theirs);
    Ok((theirs, sealed))
}

/// Tokens `ee` and `es`: mixes what X25519 agrees on.
fn mix_agreed(state: &mut Symmetric, private: &Secret, public: &[u8; 32]) {
    let mut agreed = MontgomeryPoint(*public).mul_clamped(*private.as_bytes());
    state.mix_key(agreed.as_bytes());
    agreed.zeroize();
}

fn public_key(private: &Secret) -> [u8; 32] {
    MontgomeryPoint::mul_base_clamped(*private.as_bytes()).to_bytes()
}

#[cfg(test)]
mod tests;
