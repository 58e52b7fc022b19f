//! A block to send, and what its application chose for it.

use alloc::sync::Arc;
use core::time::Duration;

use bytes::Bytes;

use crate::bulk::BlockRepair;
use crate::bulk::tree::Tree;
use crate::urgency::Urgency;

/// The time that a block may take beyond its size at the minimum rate (H-5.1b).
const EXTRA_BLOCK_TIME: Duration = Duration::from_secs(60);

/// A block and its BLAKE3. The tree over its chunks and the repair slices are computed once, however many
/// connections send the block. Cheap to clone. Blocks are equal if tag and bytes are. Its `Debug` prints the
/// length, never the bytes.
#[derive(Clone)]
pub struct Block {
    tag: u64,
    data: Bytes,
    tree: Arc<Tree>,
    repair: BlockRepair,
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.tag == other.tag && self.digest() == other.digest()
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
        let tree = Arc::new(Tree::of(&data));
        let repair = BlockRepair::of_block(data.len());
        Self { tag, data, tree, repair }
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
    pub fn digest(&self) -> &[u8; 32] {
        self.tree.root()
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) const fn repair(&self) -> &BlockRepair {
        &self.repair
    }

    pub(crate) fn len(&self) -> u64 {
        self.data.len() as u64
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

impl BlockProgress {
    pub(crate) const fn new(tag: u64, done: u64, length: u64) -> Self {
        Self { tag, done, length }
    }
}

/// How a block is sent beside others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SendOptions {
    /// Blocks of a higher priority go first.
    pub(crate) priority: u8,
    /// The share beside others of its priority; those with 0 go one after the other.
    pub(crate) weight: u16,
    /// How much of the link it may take; `None` is what the connection's blocks may.
    pub(crate) urgency: Option<Urgency>,
}

/// The time that a block of this size may take, given the minimum rate in bit/s (H-5.1b).
pub(crate) fn max_block_time(bytes: u64, min_rate_bps: u64) -> Duration {
    Duration::from_secs(bytes.saturating_mul(8) / min_rate_bps).saturating_add(EXTRA_BLOCK_TIME)
}
