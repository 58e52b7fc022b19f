//! Files and directories over haulier: streamed from and to disk, verified as they come, resumed, and only
//! what is missing. `docs/FILES.md` is the design.
//!
//! [`giver::Giver`] and [`taker::Taker`] are the two ends of a transfer, without I/O. What they say to
//! each other is in [`messages`], [`offer`], [`pieces`] and [`BlockTag`]; STANDARD-1, section 8, has the
//! bytes.

#![allow(
    clippy::single_range_in_vec_init,
    reason = "spans of a file are lists of ranges, often of one"
)]

mod collisions;
mod fields;
pub mod giver;
pub mod listing;
pub mod messages;
pub mod names;
pub mod offer;
mod only;
pub mod pieces;
mod progress;
mod quota;
mod ranges;
pub mod reason;
mod tag;
pub mod taker;

pub use collisions::{Collision, check_collisions};
pub use fields::FormatError;
pub use only::{Only, PatternError};
pub use progress::Progress;
pub use quota::InboxQuota;
pub use ranges::{MAX_WIRE_RANGES, Ranges};
pub use tag::{BlockTag, MAX_FILE_BYTES, PART_UNIT};
