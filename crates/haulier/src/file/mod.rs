//! Files of any size, from 0 bytes up, as a run of chunks: STANDARD §8.
//!
//! [`Outgoing`] reads a file and gives chunks; [`Incoming`] takes chunks and writes a file. A header with
//! the name goes in front, a trailer with size and BLAKE3 behind, and a [`Receipt`] comes back in the
//! other direction when the file is safe. Both ends stream: neither holds more than a chunk.

mod incoming;
mod outgoing;
mod receipt;
mod wire;

pub use haulier_core::names::{MAX_NAME_BYTES, is_invisible, plain_name};
pub use incoming::{FileError, Finished, Incoming, Sink};
pub use outgoing::Outgoing;
pub use receipt::{Receipt, Status};
pub use wire::Header;

/// The BLAKE3 of a file's bytes.
pub use blake3::Hash as Digest;
