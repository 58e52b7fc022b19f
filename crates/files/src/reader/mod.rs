//! What is served from a disk: files, read ahead and compared with their trees; pipes; and the hashing of a
//! file.
//!
//! A giver asks a [`FileReader`] for the chunks that its connection wants, and takes them when they are
//! there. A file that shrinks, grows or is written to meanwhile is an error in words
//! ([`ReadError::Changed`]), never other bytes.
//!
//! [`ReadError::Changed`]: crate::errors::ReadError::Changed

mod ahead;
mod hash;
mod parts;
mod pipe;
mod source;

pub(crate) use ahead::read_spans;
pub use ahead::{AskError, Expected, FileReader, MAX_READ_AHEAD};
pub use hash::{HashProgress, hash_file};
pub use parts::{FileHasher, hash_spans};
pub use pipe::{PipeRead, PipeReader};
pub(crate) use source::Stream;
pub use source::{FileVersion, Source, SourceFile};
#[cfg(test)]
mod tests;
