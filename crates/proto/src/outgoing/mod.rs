//! The sending half of blocks (STANDARD-1, 4.2): which blocks are announced, which pages of their trees are
//! sent, what the peer has reported of them, and when they are done.
//!
//! [`OutgoingBlocks`] owns parts and connects them: blocks wait (`waiting`) until they are announced
//! (`announced`), and those are sent by the chunk sender of a [`Transfer`], which decides about each slice.
//! The peer cannot take its reports back (`feedback`), and the most urgent block has a minimum rate
//! (`crawl`). The frames before slices are made in `frames`.

mod ack_frequency;
mod announced;
mod announcement;
mod block;
mod blocks;
mod crawl;
mod feedback;
mod frames;
mod pages;
mod path;
mod source;
#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "numbers of a test")]
mod tests;
mod transfer;
mod tree;
mod waiting;

pub(crate) use ack_frequency::Heard;
pub(crate) use block::SendOptions;
pub use block::{Block, BlockProgress};
pub(crate) use blocks::{
    OutgoingBlocks, OutgoingConfig, OutgoingEvent, PeerLimits, SendBlockError,
};
pub(crate) use feedback::Contradiction;
pub(crate) use path::BlocksPath;
pub use source::ProvideError;
pub(crate) use source::Wanted;
pub(crate) use transfer::Transfer;
pub use tree::{BlockTree, ChunkValue, TreeError};
