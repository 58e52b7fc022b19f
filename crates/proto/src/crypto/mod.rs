//! The cryptography of `haulier/1`: keys, encryption, checks, and Noise for the handshake.
//!
//! Only well-known primitives: BLAKE3 for key derivation and checks, Noise for key agreement, and
//! ChaCha20-Poly1305 or AES-256-GCM for encryption. Random values are passed in, so that a seed replays a
//! handshake. Comparisons with secrets are in constant time, and secrets are wiped when dropped.
//!
//! The layout of datagrams is not known here; STANDARD-1 has it.
//!
//! * [`Secret`], [`kdf`]: 32 secret bytes, and deriving others from them;
//! * [`RequestKeys`], [`CookieKey`], [`ResetKey`]: the checks of datagrams that are not encrypted;
//! * [`Initiator`], [`respond`]: the two Noise messages;
//! * [`Suites`], [`AeadKey`], [`TrafficSecret`]: the encryption of everything after them;
//! * [`Entropy`]: any number of random bytes from 32.

mod aead;
mod check;
mod entropy;
mod noise;
mod secret;
mod suite;
mod traffic;

pub use aead::{AeadKey, KeyError, OpenError, SealError, TAG_BYTES};
pub use check::{
    COOKIE_BYTES, CookieKey, RequestKeys, ResetKey, open_check, open_tag, verify_open_tag,
};
pub(crate) use check::{COOKIE_UNIT_SECONDS, address_bytes};
pub use entropy::Entropy;
pub use noise::{
    Identity, Initiator, MessageKey, NOISE_OVERHEAD_BYTES, NoiseError, Responder, SplitSecrets,
    respond,
};
pub(crate) use secret::equal;
pub use secret::{Secret, kdf};
pub use suite::{Suite, Suites};
pub use traffic::TrafficSecret;
