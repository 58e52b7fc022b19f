//! Blocks over chunks: what the application sends, of any size, as a run of chunks (STANDARD-1, 4.2).
//!
//! A block frame announces number, tag, length and digest; the chunk sender sends the chunks without copying
//! them. At the receiver a chunk waits in the chunk receiver until its block is announced.

mod incoming;
mod outgoing;

pub(crate) use incoming::IncomingBlocks;
pub(crate) use outgoing::OutgoingBlocks;

pub(super) use crate::outgoing::max_block_time;
pub use crate::outgoing::{Block, BlockProgress};

/// Blocks announced and not finished: enough that the next one follows without a pause, and so few that a
/// receiver needs little memory for them.
const MAX_ANNOUNCED: usize = 8;
