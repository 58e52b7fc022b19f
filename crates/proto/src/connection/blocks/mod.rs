//! Blocks over chunks: what the application sends, of any size, as a run of chunks (STANDARD-1, 4.2).
//!
//! A block frame announces number, tag, length and digest; the chunk sender sends the chunks without copying
//! them. At the receiver a chunk waits in the chunk receiver until its block is announced.

mod incoming;
mod outgoing;

pub(crate) use incoming::IncomingBlocks;
pub(crate) use outgoing::OutgoingBlocks;

use core::time::Duration;

use bytes::Bytes;

use crate::bulk::BlockRepair;

/// Blocks announced and not finished: enough that the next one follows without a pause, and so few that a
/// receiver needs little memory for them.
const MAX_ANNOUNCED: usize = 8;

/// The time that a block may take beyond its size at the minimum rate (H-5.1b).
const EXTRA_BLOCK_TIME: Duration = Duration::from_secs(60);

/// A block and its digest. The digest and the repair slices are computed once, however many connections send
/// the block. Cheap to clone. Blocks are equal if tag and bytes are. Its `Debug` prints the length, never the
/// bytes.
#[derive(Clone)]
pub struct Block {
    tag: u64,
    data: Bytes,
    digest: [u8; 32],
    repair: BlockRepair,
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.tag == other.tag && self.digest == other.digest
    }
}

impl Eq for Block {}

impl core::fmt::Debug for Block {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Block {{ tag: {}, {} bytes }}", self.tag, self.data.len())
    }
}

impl Block {
    /// A block. The receiver is given the `tag` with it.
    #[must_use]
    pub fn new(tag: u64, data: impl Into<Bytes>) -> Self {
        let data = data.into();
        let digest = *blake3::hash(&data).as_bytes();
        let repair = BlockRepair::of_block(data.len());
        Self { tag, data, digest, repair }
    }

    /// The tag that the application chose for it.
    #[must_use]
    pub const fn tag(&self) -> u64 {
        self.tag
    }

    /// Its bytes.
    #[must_use]
    pub const fn data(&self) -> &Bytes {
        &self.data
    }

    /// Their BLAKE3.
    #[must_use]
    pub const fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

/// The progress of a block in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockProgress {
    /// The tag that the application chose for it.
    pub tag: u64,
    /// Bytes received or acknowledged, in whole slices.
    pub done: u64,
    /// Its size in bytes.
    pub length: u64,
}

/// The time that a block of this size may take, given the minimum rate in bit/s (H-5.1b).
fn max_block_time(bytes: u64, min_rate_bps: u64) -> Duration {
    Duration::from_secs(bytes.saturating_mul(8) / min_rate_bps).saturating_add(EXTRA_BLOCK_TIME)
}
