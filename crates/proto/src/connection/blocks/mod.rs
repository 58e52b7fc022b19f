//! Blocks over chunks: what the application sends, of any size, as a run of chunks (STANDARD-1, 4.2).
//!
//! A block frame announces number, tag, length and digest; the chunks follow on the chunk sender, without a
//! copy. On the other side a chunk waits in the chunk receiver until its block is announced.

mod incoming;
mod outgoing;

pub(crate) use incoming::IncomingBlocks;
pub(crate) use outgoing::OutgoingBlocks;

use core::time::Duration;

use bytes::Bytes;

use crate::bulk::BlockRepair;

/// Blocks announced and not finished: enough that the next one follows without a pause, few enough that a
/// receiver needs no memory for them.
const MAX_ANNOUNCED: usize = 8;

/// What a block may take beside its size at the least rate.
const LEAST_BLOCK_TIME: Duration = Duration::from_secs(60);

/// A block with its digest, which is computed once, however many connections send it; so are the repair
/// slices that its chunks may need. Cheap to clone. Equal blocks have the same tag and bytes. Its `Debug`
/// prints the length, never the bytes.
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
    /// A block that the receiver will know by `tag`.
    #[must_use]
    pub fn new(tag: u64, data: impl Into<Bytes>) -> Self {
        let data = data.into();
        let digest = *blake3::hash(&data).as_bytes();
        let repair = BlockRepair::of_block(data.len());
        Self { tag, data, digest, repair }
    }

    /// The application's name for it.
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

/// How far the block in flight is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockProgress {
    /// The application's name for it.
    pub tag: u64,
    /// Bytes that are through, in whole chunks and slices.
    pub done: u64,
    /// Bytes it has.
    pub length: u64,
}

/// What a block of this size may take at this rate, in bits per second (H-5.1b).
fn longest_time(bytes: u64, rate: u64) -> Duration {
    Duration::from_secs(bytes.saturating_mul(8) / rate).saturating_add(LEAST_BLOCK_TIME)
}
