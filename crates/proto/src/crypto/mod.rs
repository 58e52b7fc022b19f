//! The cryptography of `haulier/1`: keys, seals, checks and the handshake's Noise.
//!
//! Nothing here is invented: BLAKE3 derives and checks, Noise agrees on keys, ChaCha20-Poly1305 or
//! AES-256-GCM seals. Randomness comes in as bytes, so that a seed replays a handshake. Every comparison
//! with a secret takes the same time whatever the bytes are, and secrets are wiped when dropped.
//!
//! Which datagram carries what is not known here; STANDARD-1 gives the section of each part.
//!
//! * [`Secret`], [`kdf`]: 32 bytes that nobody prints, and how others come from them;
//! * [`RequestKeys`], [`CookieKey`], [`ResetKey`]: the checks of datagrams that have no seal;
//! * [`Initiator`], [`respond`]: the two Noise messages;
//! * [`Suites`], [`AeadKey`], [`TrafficSecret`]: the seal of everything after them;
//! * [`Entropy`]: many random bytes out of 32.

mod aead;
mod check;
mod entropy;
mod noise;
mod secret;
mod suite;
mod traffic;

pub use aead::{AeadKey, KeyError, OpenError, SealError, TAG_BYTES};
pub use check::{
    COOKIE_BYTES, COOKIE_UNIT_SECONDS, CookieKey, RequestKeys, ResetKey, open_check, open_tag,
    verify_open_check, verify_open_tag,
};
pub use entropy::Entropy;
pub use noise::{
    Identity, Initiator, NOISE_OVERHEAD_BYTES, NoiseError, Opened, SplitSecrets, respond,
};
pub use secret::{Secret, equal, kdf};
pub use suite::{Suite, Suites};
pub use traffic::TrafficSecret;
