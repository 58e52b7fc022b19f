//! The values of a file's chunks, and the root that they join to: BLAKE3's own tree, taken apart at the
//! chunks (STANDARD-1, 4.2.5).
//!
//! The invariant: the root of a [`FileTree`] is the BLAKE3 of the file whose values it has. Several threads
//! compute values in any order, because each needs its index and its bytes alone.

use std::ops::Range;

use blake3::hazmat::{
    HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root,
};

use crate::offer::Root;

/// Bytes of a chunk, the last one of a file excepted: the unit that is verified, written and noted
/// (STANDARD-1).
pub const CHUNK_BYTES: usize = 256 * 1024;

/// The largest file, a chunk below 2^50 bytes: its chunks are counted with 32 bits.
pub const MAX_TREE_BYTES: u64 = u32::MAX as u64 * CHUNK_BYTES as u64;

/// The number of chunks of a file of this length; none of an empty file.
///
/// A longer file than [`MAX_TREE_BYTES`] has as many chunks as one of that length.
pub fn chunk_count(length: u64) -> u32 {
    u32::try_from(length.div_ceil(CHUNK_BYTES as u64)).unwrap_or(u32::MAX)
}

/// Where the bytes of a chunk are, in a file of this length; empty behind its end.
pub fn chunk_range(length: u64, index: u32) -> Range<u64> {
    let start = u64::from(index) * CHUNK_BYTES as u64;
    start.min(length)..(start + CHUNK_BYTES as u64).min(length)
}

/// What BLAKE3 makes of one chunk, at its place in a longer file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkValue([u8; 32]);

impl ChunkValue {
    /// The value of the chunk with this index, which has at least a byte and at most [`CHUNK_BYTES`].
    pub fn of(index: u32, chunk: &[u8]) -> Self {
        let offset = u64::from(index) * CHUNK_BYTES as u64;
        Self(blake3::Hasher::new().set_input_offset(offset).update(chunk).finalize_non_root())
    }

    /// A value that was kept.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// What is kept of it.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The length of a file, the values of its chunks, and its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTree {
    length: u64,
    root: Root,
    /// None for a file of one chunk or less: its root is the one value that counts.
    values: Vec<ChunkValue>,
}

impl FileTree {
    /// The tree of a file with these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let values =
            (0..).zip(bytes.chunks(CHUNK_BYTES)).map(|(i, chunk)| ChunkValue::of(i, chunk));
        let length = bytes.len() as u64;
        match chunk_count(length) {
            0 | 1 => Self { length, root: *blake3::hash(bytes).as_bytes(), values: Vec::new() },
            _ => Self::joined(length, values.collect()),
        }
    }

    /// The tree over the values of two chunks or more; `None` if there are not as many as the length wants,
    /// or fewer than two: the bytes of a single chunk are hashed as they are, with [`FileTree::of`].
    pub fn from_values(length: u64, values: Vec<ChunkValue>) -> Option<Self> {
        let is_right = values.len() >= 2 && values.len() == chunk_count(length) as usize;
        (is_right && length <= MAX_TREE_BYTES).then(|| Self::joined(length, values))
    }

    /// The tree of a file of one chunk or less with this root.
    pub(crate) const fn of_one_chunk(length: u64, root: Root) -> Self {
        Self { length, root, values: Vec::new() }
    }

    fn joined(length: u64, values: Vec<ChunkValue>) -> Self {
        Self { length, root: join(&values, true), values }
    }

    /// The length of the file.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// The BLAKE3 of the file.
    pub const fn root(&self) -> &Root {
        &self.root
    }

    /// The values of its chunks, in order; none if it has one chunk or less.
    pub fn values(&self) -> &[ChunkValue] {
        &self.values
    }

    /// Whether these are the bytes of the chunk with this index.
    pub fn is_chunk(&self, index: u32, bytes: &[u8]) -> bool {
        let range = chunk_range(self.length, index);
        if range.end - range.start != bytes.len() as u64 || index >= chunk_count(self.length).max(1)
        {
            return false;
        }
        match self.values.get(index as usize) {
            Some(value) => *value == ChunkValue::of(index, bytes),
            None => {
                index == 0 && self.values.is_empty() && self.root == *blake3::hash(bytes).as_bytes()
            }
        }
    }
}

/// The value of the subtree over these values, or the root if it is over all of them, two or more.
fn join(values: &[ChunkValue], is_root: bool) -> [u8; 32] {
    match values {
        [] => *blake3::hash(&[]).as_bytes(),
        [value] => value.0,
        _ => {
            // BLAKE3 splits a length in bytes: with each value for one of its leaves, the split is the same.
            let left = left_subtree_len(values.len() as u64 * 1024) / 1024;
            let (left, right) = values.split_at(usize::try_from(left).unwrap_or(1));
            let (left, right) = (join(left, false), join(right, false));
            match is_root {
                true => *merge_subtrees_root(&left, &right, Mode::Hash).as_bytes(),
                false => merge_subtrees_non_root(&left, &right, Mode::Hash),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_blake3_of_the_file() {
        for length in [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 5 * CHUNK_BYTES + 9] {
            let file: Vec<u8> =
                (0..length).map(|i| (i * 167 + (i >> 8) * 13).to_le_bytes()[0]).collect();
            let tree = FileTree::of(&file);
            assert_eq!(tree.root(), blake3::hash(&file).as_bytes(), "{length}");
            let again = FileTree::from_values(tree.length(), tree.values().to_vec());
            assert_eq!(again.is_some(), length > CHUNK_BYTES);
            assert!(again.is_none_or(|again| again == tree));
        }
    }

    #[test]
    fn a_chunk_is_known_at_its_place_alone() {
        let file = vec![7; 2 * CHUNK_BYTES + 5];
        let tree = FileTree::of(&file);
        assert!(tree.is_chunk(0, &file[..CHUNK_BYTES]) && tree.is_chunk(2, &file[..5]));
        assert!(!tree.is_chunk(0, &file[..5]) && !tree.is_chunk(3, &[]) && !tree.is_chunk(1, &[]));
        assert!(FileTree::of(&[]).is_chunk(0, &[]));
        let small = FileTree::of(b"small");
        assert!(small.is_chunk(0, b"small") && !small.is_chunk(0, b"smell"));
        assert!(!small.is_chunk(1, b"small"));
    }

    #[test]
    fn chunks_cover_a_file() {
        let length = 2 * CHUNK_BYTES as u64 + 5;
        assert_eq!((chunk_count(0), chunk_count(1), chunk_count(length)), (0, 1, 3));
        assert_eq!(chunk_range(length, 2), length - 5..length);
        assert!(chunk_range(length, 3).is_empty() && chunk_range(length, u32::MAX).is_empty());
        assert_eq!(chunk_count(MAX_TREE_BYTES), u32::MAX);
    }
}
