//! Files and directories over haulier: streamed from and to disk, verified as they come, resumed, and only
//! what is missing. `docs/FILES.md` is the design.
//!
//! [`giver::Giver`] and [`taker::Taker`] are the two ends of a transfer, without I/O. What they say to each
//! other is in [`messages`], [`offer`], [`pieces`] and [`BlockTag`]; STANDARD-1, section 8, has the bytes.
//!
//! Their disk is here too, on a few threads of a [`DiskPool`](pool::DiskPool), for systems with Unix's files:
//! [`writer`] writes what comes and keeps a [`journal`] of it; [`reader`] reads ahead, hashes, and reads
//! pipes; [`tree_cache`] keeps what was hashed; [`cut`] finds the pieces of a file; [`packing`] makes chunks
//! smaller.
//!
//! [`session`] is both together, for any connection: what a program that gives or takes files drives.

#![allow(
    clippy::single_range_in_vec_init,
    reason = "spans of a file are lists of ranges, often of one"
)]

pub mod chunks;
mod collisions;
pub mod cut;
pub mod errors;
mod fields;
mod folder;
pub mod giver;
pub mod journal;
pub mod listing;
pub mod messages;
mod mode;
pub mod model;
#[cfg(test)]
mod moments;
pub mod names;
pub mod offer;
mod only;
pub mod packing;
pub mod pieces;
pub mod pool;
mod progress;
mod quota;
mod ranges;
pub mod reader;
pub mod reason;
pub mod session;
pub mod storage;
mod system;
mod tag;
pub mod taker;
pub mod tree_cache;
pub mod unfinished;
pub mod writer;

pub use collisions::{Collision, check_collisions};
pub use fields::FormatError;
pub use mode::Mode;
pub use only::{Only, PatternError};
pub use progress::Progress;
pub use quota::{DEFAULT_MAX_FILES, InboxQuota};
pub use ranges::{MAX_WIRE_RANGES, Ranges};
pub use tag::{BlockTag, MAX_FILE_BYTES, PART_UNIT};

/// The example of the README is compiled and run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
