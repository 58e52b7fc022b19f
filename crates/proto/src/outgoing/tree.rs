//! The tree of a block, as its program makes it: of bytes that are in memory, or of the values of chunks that
//! were read, and perhaps hashed by several threads, one after the other.
//!
//! The invariant: a tree has a value for each chunk that its length has, and its digest is the BLAKE3 of the
//! bytes if the values are those of its chunks.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::bulk::cut::{chunk_bytes, chunk_count};
use crate::bulk::tree::{Tree, Value, chunk_value};
use crate::chunk::MAX_CHUNK_BYTES;

/// The longest block, in bytes: 2^32 - 1 chunks (STANDARD-1, 4.2).
const MAX_BLOCK_BYTES: u64 = (1 << 50) - MAX_CHUNK_BYTES as u64;

/// The value of one chunk in the [`BlockTree`] of its block: all that is kept of the chunk when it is hashed.
///
/// # Examples
/// ```
/// use haulier_proto::connection::{BlockTree, ChunkValue};
///
/// let bytes = vec![7; 600_000];
/// // Each may be computed by another thread.
/// let values = (0..).zip(bytes.chunks(262_144)).map(|(index, chunk)| ChunkValue::of(600_000, index, chunk));
/// let tree = BlockTree::from_values(600_000, values.collect())?;
/// assert_eq!(tree, BlockTree::of(&bytes));
/// # Ok::<(), haulier_proto::connection::TreeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChunkValue(Value);

impl ChunkValue {
    /// Bytes of a chunk, except of the last one of a block, which may be shorter.
    pub const CHUNK_BYTES: usize = MAX_CHUNK_BYTES;

    /// The value of the chunk with this index, which has these bytes, of a block of this length. Chunks may
    /// be hashed in any order, and on any number of threads.
    #[must_use]
    pub fn of(block_length: u64, index: u32, chunk: &[u8]) -> Self {
        match block_length {
            // A single chunk is the block, and its value the block's BLAKE3.
            0..=CHUNK => Self(*blake3::hash(chunk).as_bytes()),
            _ => Self(chunk_value(index, chunk)),
        }
    }

    /// One that was kept as bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// As bytes, to be kept.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

const CHUNK: u64 = MAX_CHUNK_BYTES as u64;

/// Why a tree could not be made.
///
/// # Examples
/// ```
/// use haulier_proto::connection::{BlockTree, TreeError};
///
/// let no_values = BlockTree::from_values(600_000, Vec::new());
/// assert_eq!(no_values, Err(TreeError::Values { expected: 3, given: 0 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TreeError {
    /// The block is longer than the wire can say.
    #[error("a block has at most {MAX_BLOCK_BYTES} bytes")]
    TooLong,
    /// There are not as many values as the block has chunks.
    #[error("a block of this length has {expected} chunks, and {given} values were given")]
    Values {
        /// Chunks of 256 KiB.
        expected: u32,
        /// Values.
        given: usize,
    },
}

/// The tree over the chunks of a block: its length, its BLAKE3, and 33 bytes for each chunk of 256 KiB (13 MB
/// for 100 GB). Cheap to clone.
///
/// # Examples
/// ```
/// use haulier_proto::connection::{Block, BlockTree};
///
/// let bytes = vec![7; 600_000];
/// let tree = BlockTree::of(&bytes); // keep it beside the file
/// assert_eq!(tree.chunk_count(), 3);
/// assert!(tree.is_chunk(0, &bytes[..262_144]));
/// let block = Block::from_source(1, tree); // its bytes are asked for, chunk by chunk
/// assert_eq!(block.length(), 600_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTree {
    length: u64,
    tree: Arc<Tree>,
}

impl BlockTree {
    /// The tree of a block with these bytes.
    #[must_use]
    pub fn of(block: &[u8]) -> Self {
        Self { length: block.len() as u64, tree: Arc::new(Tree::of(block)) }
    }

    /// The tree of a block of this length with these values, one for each of its chunks, in their order.
    ///
    /// # Errors
    /// [`TreeError`].
    pub fn from_values(length: u64, values: Vec<ChunkValue>) -> Result<Self, TreeError> {
        let expected = chunk_count(length).ok_or(TreeError::TooLong)?;
        if u32::try_from(values.len()) != Ok(expected) {
            return Err(TreeError::Values { expected, given: values.len() });
        }
        let values = values.into_iter().map(|value| value.0).collect();
        Ok(Self { length, tree: Arc::new(Tree::from_values(values)) })
    }

    /// The length of the block in bytes.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// The BLAKE3 of the block.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        self.tree.root()
    }

    /// The number of its chunks.
    #[must_use]
    pub fn chunk_count(&self) -> u32 {
        chunk_count(self.length).unwrap_or(0)
    }

    /// The number of bytes of this chunk; `None` if the block has no such chunk.
    #[must_use]
    pub fn chunk_bytes(&self, index: u32) -> Option<usize> {
        chunk_bytes(self.length, index)
    }

    /// The value of this chunk; `None` if the block has no such chunk.
    #[must_use]
    pub fn value(&self, index: u32) -> Option<ChunkValue> {
        (index < self.chunk_count()).then(|| ChunkValue(*self.tree.value(index)))
    }

    /// Whether these are the bytes of this chunk. A program that reads them from a disk asks before it
    /// provides them, because a file may have changed since its tree was made.
    #[must_use]
    pub fn is_chunk(&self, index: u32, chunk: &[u8]) -> bool {
        self.chunk_bytes(index) == Some(chunk.len())
            && self.value(index) == Some(ChunkValue::of(self.length, index, chunk))
    }

    pub(super) fn pages(&self) -> &Tree {
        &self.tree
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "bytes of a pattern")]
mod tests {
    use super::*;

    fn values(block: &[u8]) -> Vec<ChunkValue> {
        let chunks = (0..).zip(block.chunks(MAX_CHUNK_BYTES));
        chunks.map(|(n, chunk)| ChunkValue::of(block.len() as u64, n, chunk)).collect()
    }

    #[test]
    fn a_tree_of_values_is_that_of_the_bytes() {
        for bytes in [0, 1, MAX_CHUNK_BYTES - 1, MAX_CHUNK_BYTES, MAX_CHUNK_BYTES + 1, 9_000_000] {
            let block: Vec<u8> =
                (0..bytes).map(|i| (i * 167 + (i >> 8) * 13 + (i >> 18)) as u8).collect();
            let tree = BlockTree::from_values(bytes as u64, values(&block)).unwrap();
            assert_eq!(tree, BlockTree::of(&block));
            assert_eq!(tree.digest(), blake3::hash(&block).as_bytes(), "{bytes}");
            assert_eq!(tree.chunk_count() as usize, bytes.div_ceil(MAX_CHUNK_BYTES));
            for (index, chunk) in (0..).zip(block.chunks(MAX_CHUNK_BYTES)) {
                assert!(tree.is_chunk(index, chunk) && !tree.is_chunk(index + 1, chunk));
                assert!(!tree.is_chunk(index, &chunk[1..]));
            }
            assert_eq!(tree.value(tree.chunk_count()), None);
        }
    }

    #[test]
    fn a_tree_has_a_value_for_each_chunk_and_a_length_that_the_wire_can_say() {
        let few = BlockTree::from_values(300_000, values(&[7; 1000]));
        assert_eq!(few, Err(TreeError::Values { expected: 2, given: 1 }));
        assert_eq!(BlockTree::from_values(1 << 50, Vec::new()), Err(TreeError::TooLong));
        let last = BlockTree::from_values(MAX_BLOCK_BYTES, Vec::new());
        assert_eq!(last, Err(TreeError::Values { expected: u32::MAX, given: 0 }));
    }
}
