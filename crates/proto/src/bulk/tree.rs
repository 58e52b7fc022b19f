//! The tree of a block's chunks: BLAKE3's own, taken apart at the chunks (STANDARD-1, 4.2.5).
//!
//! The invariant: the values of each level are made of those below in the way that BLAKE3 joins them, so the
//! topmost page joins to the BLAKE3 of the block's bytes.

use alloc::vec::Vec;

use blake3::hazmat::{
    HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root,
};

use crate::chunk::MAX_CHUNK_BYTES;

/// Values of a page, and children of a value.
pub(crate) const PAGE_VALUES: usize = 32;

/// [`PAGE_VALUES`] as a `u32`, to count with indices.
const PAGE: u32 = 32;

/// A chaining value, or the root.
pub(crate) type Value = [u8; 32];

/// The chaining value of a chunk of a block of two or more.
pub(crate) fn chunk_value(index: u32, chunk: &[u8]) -> Value {
    let offset = u64::from(index) * MAX_CHUNK_BYTES as u64;
    blake3::Hasher::new().set_input_offset(offset).update(chunk).finalize_non_root()
}

/// The chaining value of the subtree over these values, or the root of the block if it is over all of its
/// chunks, two or more. A single value goes up as it is.
pub(crate) fn join(values: &[Value], is_root: bool) -> Value {
    match values {
        [] => *blake3::hash(&[]).as_bytes(),
        [value] => *value,
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

/// The number of values on a level of the tree of this many chunks.
pub(crate) fn level_len(chunks: u32, level: u8) -> u32 {
    let mut len = chunks;
    (0..level).for_each(|_| len = len.div_ceil(PAGE));
    len
}

/// The level of the topmost page, for a block of two chunks or more.
pub(crate) fn top_level(chunks: u32) -> u8 {
    (0..=u8::MAX).find(|&level| level_len(chunks, level) <= PAGE).unwrap_or_default()
}

/// The values of all levels of a block, and its root: 33 bytes for each chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tree {
    root: Value,
    /// From the chunks up to the topmost page; none for a block of one chunk or less.
    levels: Vec<Vec<Value>>,
}

impl Tree {
    /// The tree of a block with these bytes.
    pub(crate) fn of(block: &[u8]) -> Self {
        if block.len() <= MAX_CHUNK_BYTES {
            return Self { root: *blake3::hash(block).as_bytes(), levels: Vec::new() };
        }
        let chunks = (0_u32..).zip(block.chunks(MAX_CHUNK_BYTES));
        Self::of_values(chunks.map(|(index, chunk)| chunk_value(index, chunk)).collect())
    }

    /// The tree over the values of the chunks of a block: of a single one, its BLAKE3.
    pub(crate) fn from_values(chunks: Vec<Value>) -> Self {
        match chunks.as_slice() {
            [] | [_] => Self { root: join(&chunks, true), levels: Vec::new() },
            _ => Self::of_values(chunks),
        }
    }

    /// The value of this chunk.
    pub(crate) fn value(&self, index: u32) -> &Value {
        let values = self.levels.first().map(Vec::as_slice).unwrap_or_default();
        values.get(index as usize).unwrap_or(&self.root)
    }

    /// The tree over the values of two chunks or more.
    fn of_values(chunks: Vec<Value>) -> Self {
        let mut levels = alloc::vec![chunks];
        loop {
            let top = levels.last().map(Vec::as_slice).unwrap_or_default();
            if top.len() <= PAGE_VALUES {
                return Self { root: join(top, true), levels };
            }
            levels.push(top.chunks(PAGE_VALUES).map(|page| join(page, false)).collect());
        }
    }

    /// The BLAKE3 of the block.
    pub(crate) const fn root(&self) -> &Value {
        &self.root
    }

    /// The page of this level that starts at `first`; empty if the level has no such page.
    pub(crate) fn page(&self, level: u8, first: u32) -> &[Value] {
        let values = self.levels.get(usize::from(level)).map(Vec::as_slice).unwrap_or_default();
        let rest = values.get(first as usize..).unwrap_or_default();
        rest.get(..PAGE_VALUES).unwrap_or(rest)
    }

    /// The pages that a receiver needs to verify this chunk, from the topmost down: level and first value.
    pub(crate) fn pages_of(&self, index: u32) -> impl Iterator<Item = (u8, u32)> + use<> {
        let levels = u8::try_from(self.levels.len()).unwrap_or(u8::MAX);
        (0..levels).rev().map(move |level| {
            let value = (0..level).fold(index, |value, _| value / PAGE);
            (level, value / PAGE * PAGE)
        })
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "bytes of a pattern")]
mod tests {
    use super::*;

    #[test]
    fn the_topmost_page_joins_to_the_blake3_of_the_block() {
        for bytes in [0, 1, MAX_CHUNK_BYTES, MAX_CHUNK_BYTES + 1, 5 * MAX_CHUNK_BYTES + 9] {
            let block: Vec<u8> = (0..bytes).map(|i| (i * 167 + (i >> 8) * 13) as u8).collect();
            let tree = Tree::of(&block);
            assert_eq!(tree.root(), blake3::hash(&block).as_bytes(), "{bytes}");
        }
    }

    /// 33 chunks have two pages and one above them; the second page has one value, which goes up as it is.
    #[test]
    fn a_tree_of_two_levels() {
        let block = alloc::vec![7; 32 * MAX_CHUNK_BYTES + 1];
        let tree = Tree::of(&block);
        assert_eq!(tree.root(), blake3::hash(&block).as_bytes());
        assert_eq!((tree.page(0, 0).len(), tree.page(0, 32).len()), (32, 1));
        assert_eq!(tree.page(1, 0), [join(tree.page(0, 0), false), tree.page(0, 32)[0]]);
        assert!(tree.page(1, 32).is_empty() && tree.page(2, 0).is_empty());
        assert!(tree.pages_of(32).eq([(1, 0), (0, 32)]));
        assert_eq!(
            (top_level(32), top_level(33), top_level(1025), top_level(u32::MAX)),
            (0, 1, 2, 6)
        );
        assert_eq!((level_len(1025, 1), level_len(1025, 2)), (33, 2));
    }
}
