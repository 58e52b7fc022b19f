//! The parts of the machines by name, for what must see inside: the vectors and the tests of this crate, the
//! fuzzers and attackers of the simulator, the benches, and `haulier inspect`.
//!
//! **No part of the API.** These names follow the code and may change with any version; what lasts is the
//! wire, in STANDARD-1 and its vectors.

pub use crate::bulk::repair::encode as encode_repair;
pub use crate::connection::state::ConnectionTrigger;
pub use crate::credentials::token::{OpenedToken, TokenError};
pub use crate::crypto::{
    AeadKey, COOKIE_BYTES, CookieKey, Entropy, Initiator, KeyError, MessageKey,
    NOISE_OVERHEAD_BYTES, NoiseError, OpenError, RequestKeys, ResetKey, Responder, SealError,
    SplitSecrets, Suites, TAG_BYTES, TrafficSecret, kdf, open_check, open_tag, respond,
    verify_open_tag,
};
pub use crate::transit::{
    AckFrame, AckRanges, ArrivalsFrame, EcnCounts, ReceivedDatagrams, expand_number,
};
pub use crate::wire::answer::{InLine, Refusal, Retry, read_reset, write_reset};
pub use crate::wire::frames::{Frame, Frames};
pub use crate::wire::header::{DATA_HEADER_BYTES, DataHeader, ResponseHeader, Role};
pub use crate::wire::hello::{Hello, Versions, Welcome};
pub use crate::wire::parameters::{EndParameters, REED_SOLOMON};
pub use crate::wire::request::{Mode, REQUEST_BYTES, RequestParts, Source};
pub use crate::wire::{Kind, OPEN_TAG_BYTES, VERSION, WireId};
pub use crate::work::Work;

/// The frames, and how a chunk is cut.
pub mod frames {
    pub use crate::bulk::cut::{ChunkAt, Cut, SliceSize, chunk_bytes, chunk_count};
    pub use crate::wire::frames::*;
}
