//! The settings of the receiving end, and the memory that follows from them.
//!
//! The invariant: the budget has room for what has to be held at once, so that blocks that are sent one after
//! the other always come to their end: for one of the largest blocks where they are handed out whole, and for
//! some chunks where these are.

use core::time::Duration;

use super::delivery::{Delivery, PART_COST};
use crate::chunk::MAX_CHUNK_BYTES;

/// Chunks that fit the memory in any case, so that a block can always be finished.
const MIN_CHUNKS: u64 = 4;

/// Bytes that an open chunk costs at most besides its data: a last slice of one byte takes the place of a
/// full one, and each slice has a place in the order.
const CHUNK_COST: u64 = 66 << 10;

/// The settings of the receiving end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IncomingConfig {
    /// The largest block accepted, in bytes; with 0 nothing is kept.
    pub(crate) max_block_bytes: u64,
    /// Bytes of received blocks that may wait to be read, besides one of the largest in progress; of chunks,
    /// where these are handed out, with those in progress.
    pub(crate) max_unread_bytes: u64,
    /// Chunks that may be opened before the first progress frame, if the memory has room for them.
    pub(crate) initial_credit: u32,
    /// The maximum number of chunks in progress. The window grows up to it as the sender uses it.
    pub(crate) max_window: u32,
    /// A block without progress for twice this long ends the connection (H-5.1b).
    pub(crate) no_progress_timeout: Duration,
    /// The longest time of silence that does not count in that.
    pub(crate) idle_timeout: Duration,
    /// A block that takes longer than twice 60 s and its size at this rate does too; 0 disables it.
    pub(crate) min_block_rate_bps: u64,
    /// In which form the application gets blocks.
    pub(crate) delivery: Delivery,
}

impl IncomingConfig {
    /// Bytes that a chunk in progress costs at most.
    pub(super) fn chunk_cost(&self) -> u64 {
        self.max_block_bytes.min(MAX_CHUNK_BYTES as u64) + CHUNK_COST
    }

    /// Bytes that blocks in progress and unread ones may cost together.
    pub(super) fn budget(&self) -> u64 {
        if self.delivery != Delivery::Blocks {
            return self.max_unread_bytes.max(MIN_CHUNKS * self.chunk_cost());
        }
        let parts = self.max_block_bytes.div_ceil(MAX_CHUNK_BYTES as u64) * PART_COST as u64;
        let min = MIN_CHUNKS * self.chunk_cost() + parts;
        self.max_block_bytes.saturating_add(self.max_unread_bytes).saturating_add(min)
    }

    /// Parameter 6: what may be opened before the first progress frame.
    pub(crate) fn first_credit(&self) -> u64 {
        match self.max_block_bytes {
            0 => 0,
            _ => u64::from(self.initial_credit).clamp(1, self.budget() / self.chunk_cost()),
        }
    }
}
