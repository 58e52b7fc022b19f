//! A block to send, and what its application chose for it.

use bytes::Bytes;
use haulier_control::Urgency;

use super::tree::BlockTree;
use crate::bulk::tree::Tree;
use crate::bulk::{BlockRepair, Content};

/// A block and its tree. All of its bytes are here ([`new`](Self::new)), or none are, and connections ask
/// for them chunk by chunk ([`from_source`](Self::from_source)). The tree, and the repair slices of bytes
/// that are here, are computed once, however many connections send the block. Cheap to clone. Blocks are
/// equal if tag and bytes are. Its `Debug` prints the length, never the bytes.
///
/// # Examples
/// ```
/// use haulier_proto::connection::Block;
///
/// let world = Block::new(1, vec![7; 500_000]); // hashed here, once
/// let to_another_client = world.clone(); // a pointer
/// assert_eq!(to_another_client.digest(), world.digest());
/// assert_eq!((world.tag(), world.length()), (1, 500_000));
/// ```
#[derive(Clone)]
pub struct Block {
    tag: u64,
    tree: BlockTree,
    data: Bytes,
    /// None for a block from a source.
    repair: Option<BlockRepair>,
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.tag == other.tag && self.digest() == other.digest()
    }
}

impl Eq for Block {}

impl core::fmt::Debug for Block {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Block {{ tag: {}, {} bytes }}", self.tag, self.length())
    }
}

impl Block {
    /// A block whose bytes are all here. The receiver is given the `tag` with it, up to 2^62 - 1: a
    /// connection refuses a block with a larger one.
    #[must_use]
    pub fn new(tag: u64, data: impl Into<Bytes>) -> Self {
        let data = data.into();
        let tree = BlockTree::of(&data);
        let repair = Some(BlockRepair::new());
        Self { tag, tree, data, repair }
    }

    /// A block whose bytes are somewhere else, for example on a disk, and are never all in memory. A
    /// connection that sends it asks for its chunks ([`want_chunk`]) and is given them ([`provide_chunk`]).
    ///
    /// [`want_chunk`]: crate::connection::Connection::want_chunk
    /// [`provide_chunk`]: crate::connection::Connection::provide_chunk
    #[must_use]
    pub fn from_source(tag: u64, tree: BlockTree) -> Self {
        Self { tag, tree, data: Bytes::new(), repair: None }
    }

    /// The tag that the application chose for it.
    #[must_use]
    pub const fn tag(&self) -> u64 {
        self.tag
    }

    /// Its bytes; empty for a block [from a source](Self::from_source).
    #[must_use]
    pub const fn data(&self) -> &Bytes {
        &self.data
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.tree.length()
    }

    /// The BLAKE3 of its bytes.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        self.tree.digest()
    }

    /// The tree over its chunks.
    #[must_use]
    pub const fn tree(&self) -> &BlockTree {
        &self.tree
    }

    pub(crate) fn pages(&self) -> &Tree {
        self.tree.pages()
    }

    /// Its bytes, for a connection that sends it.
    pub(super) fn content(&self) -> Content {
        match &self.repair {
            Some(repair) => Content::shared(self.data.clone(), repair.clone()),
            None => Content::from_source(self.length()),
        }
    }
}

/// The progress of a block in flight.
///
/// # Examples
/// ```
/// use haulier_proto::connection::BlockProgress;
///
/// /// For a bar.
/// fn percent(progress: &BlockProgress) -> u64 {
///     100 * progress.done / progress.length.max(1)
/// }
/// # let _ = percent;
/// ```
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
    /// Its program has paused it.
    pub(crate) is_paused: bool,
    /// Chunks that go before its others: the first, and the one after the last.
    pub(crate) preferred: (u32, u32),
}
