//! The two messages of the handshake: Noise NNpsk0, or NKpsk0 if the client knows the server's identity.
//!
//! `snow` runs the pattern. Here it is given its one random value by the caller, and a client that reads a
//! forged answer can still read the right one. Neither message can be made without the pre-shared key, and
//! pattern NK cannot be answered without the server's private key.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;

use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver, FallbackResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::Zeroize;

use super::{Secret, TrafficSecret};

const NN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const NK: &str = "Noise_NKpsk0_25519_ChaChaPoly_BLAKE2s";

/// Bytes by which a message is longer than its payload: an ephemeral public key and a tag.
pub const NOISE_OVERHEAD_BYTES: usize = 32 + 16;

/// The longest message: what a datagram holds. Both real messages are shorter.
const MAX_MESSAGE_BYTES: usize = 1200;

/// A server's X25519 private key. Its clients have the public key.
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
        let mut public = [0; 32];
        if let Some(mut dh) = DefaultResolver.resolve_dh(&DHChoice::Curve25519) {
            dh.set(self.0.as_bytes());
            public.iter_mut().zip(dh.pubkey()).for_each(|(to, from)| *to = *from);
        }
        public
    }

    /// The private key, to be stored.
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
    fn of(state: &mut HandshakeState) -> Self {
        let (mut first, mut second) = state.dangerously_get_raw_split();
        let split = Self {
            client_to_server: TrafficSecret::new(Secret::from_bytes(first)),
            server_to_client: TrafficSecret::new(Secret::from_bytes(second)),
        };
        first.zeroize();
        second.zeroize();
        split
    }
}

/// The client's state between the two messages.
pub struct Initiator(Box<HandshakeState>);

impl Initiator {
    /// The client's state, and message 1 with `hello` in it. The message can be retransmitted as it is.
    /// `ephemeral_entropy` is 32 random bytes, never used twice.
    ///
    /// # Errors
    /// [`NoiseError::TooLong`] for a hello of more than 1152 bytes.
    pub fn new(
        psk: &Secret,
        server_identity: Option<&[u8; 32]>,
        prologue: &[u8],
        ephemeral_entropy: [u8; 32],
        hello: &[u8],
    ) -> Result<(Self, Vec<u8>), NoiseError> {
        let name = if server_identity.is_some() { NK } else { NN };
        let mut builder = builder(name, psk, prologue, ephemeral_entropy)?;
        if let Some(identity) = server_identity {
            builder = builder.remote_public_key(identity)?;
        }
        let mut state = Box::new(builder.build_initiator()?);
        let message = write(&mut state, hello)?;
        Ok((Self(state), message))
    }

    /// Reads the server's message. Returns its payload, which is the welcome, and the keys.
    ///
    /// A message that fails changes nothing, because anyone can send one; the right one can still be read.
    ///
    /// # Errors
    /// [`NoiseError::Refused`] for a message that is not from this server for this client,
    /// [`NoiseError::Finished`] after a message was read.
    pub fn finish(&mut self, message: &[u8]) -> Result<(Vec<u8>, SplitSecrets), NoiseError> {
        // A failed read leaves snow's chaining key and hash unchanged, and its cipher with a wrong key.
        // Message 2 starts with an ephemeral key, and mixing that in replaces the cipher's key before it is
        // used.
        let welcome = read(&mut self.0, message)?;
        Ok((welcome, SplitSecrets::of(&mut self.0)))
    }
}

/// The server's state after it has read the client's message.
pub struct Responder {
    hello: Vec<u8>,
    state: Box<HandshakeState>,
}

/// Reads a client's message, in pattern NK if there is an `identity`. `ephemeral_entropy` is for the answer:
/// 32 random bytes, never used twice.
///
/// # Errors
/// [`NoiseError::Refused`] for a message with another key, identity, pattern or prologue, or a changed one.
pub fn respond(
    psk: &Secret,
    identity: Option<&Identity>,
    prologue: &[u8],
    ephemeral_entropy: [u8; 32],
    message: &[u8],
) -> Result<Responder, NoiseError> {
    let name = if identity.is_some() { NK } else { NN };
    let mut builder = builder(name, psk, prologue, ephemeral_entropy)?;
    if let Some(identity) = identity {
        builder = builder.local_private_key(identity.0.as_bytes())?;
    }
    let mut state = Box::new(builder.build_responder()?);
    let hello = read(&mut state, message)?;
    Ok(Responder { hello, state })
}

impl Responder {
    /// The payload of the client's message. It can be a replay.
    #[must_use]
    pub fn hello(&self) -> &[u8] {
        &self.hello
    }

    /// Message 2 with `welcome` in it, and the keys.
    ///
    /// # Errors
    /// [`NoiseError::TooLong`] for a welcome of more than 1152 bytes.
    pub fn answer(mut self, welcome: &[u8]) -> Result<(Vec<u8>, SplitSecrets), NoiseError> {
        let message = write(&mut self.state, welcome)?;
        Ok((message, SplitSecrets::of(&mut self.state)))
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
    /// `snow` does not support what the pattern needs: a fault of this crate.
    #[error("the handshake could not be set up")]
    Internal,
}

impl From<snow::Error> for NoiseError {
    fn from(error: snow::Error) -> Self {
        match error {
            snow::Error::Decrypt | snow::Error::Dh => Self::Refused,
            snow::Error::Input => Self::Malformed,
            snow::Error::State(_) => Self::Finished,
            _ => Self::Internal,
        }
    }
}

fn write(state: &mut HandshakeState, payload: &[u8]) -> Result<Vec<u8>, NoiseError> {
    let length = payload.len().saturating_add(NOISE_OVERHEAD_BYTES);
    if length > MAX_MESSAGE_BYTES {
        return Err(NoiseError::TooLong);
    }
    let mut message = vec![0; length];
    let written = state.write_message(payload, &mut message)?;
    message.truncate(written);
    Ok(message)
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Result<Vec<u8>, NoiseError> {
    // snow has its own bounds; these make it plain that no other length from the wire gets there.
    if !(NOISE_OVERHEAD_BYTES..=MAX_MESSAGE_BYTES).contains(&message.len()) {
        return Err(NoiseError::Malformed);
    }
    let mut payload = vec![0; message.len()];
    let read = state.read_message(message, &mut payload)?;
    payload.truncate(read);
    Ok(payload)
}

fn builder<'a>(
    name: &str,
    psk: &'a Secret,
    prologue: &'a [u8],
    entropy: [u8; 32],
) -> Result<Builder<'a>, NoiseError> {
    let entropy = Box::new(CallersEntropy(Cell::new(Some(Secret::from_bytes(entropy)))));
    let resolver = FallbackResolver::new(entropy, Box::new(DefaultResolver));
    let builder = Builder::with_resolver(name.parse()?, Box::new(resolver));
    Ok(builder.prologue(prologue)?.psk(0, psk.as_bytes())?)
}

/// Gives snow the caller's random bytes, once. It never uses the system's generator.
struct CallersEntropy(Cell<Option<Secret>>);

impl CryptoResolver for CallersEntropy {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(OneDraw(self.0.take())))
    }

    fn resolve_dh(&self, _: &DHChoice) -> Option<Box<dyn Dh>> {
        None
    }

    fn resolve_hash(&self, _: &HashChoice) -> Option<Box<dyn Hash>> {
        None
    }

    fn resolve_cipher(&self, _: &CipherChoice) -> Option<Box<dyn Cipher>> {
        None
    }
}

/// A generator that gives 32 bytes once: an ephemeral private key.
struct OneDraw(Option<Secret>);

impl Random for OneDraw {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        let secret = self.0.take().ok_or(snow::Error::Rng)?;
        if dest.len() != secret.as_bytes().len() {
            return Err(snow::Error::Rng);
        }
        dest.copy_from_slice(secret.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
