//! How a chunk is cut: counts, indices, slices and acks.
//!
//! The types here have no illegal values. A [`SliceIndex`] comes only out of a [`SliceCount`], and a
//! [`Slice`] only with as many bytes as its index allows, so no later code has to check again.
//!
//! The 2016 original kept both as plain integers and compared them with `<=` where `<` was meant, in an
//! assert that release builds drop. Slice 2 "of 2" then counted as received and a chunk was delivered
//! with a hole in it.

use super::SliceSet;
use crate::Sequence;
use crate::debug_as;

/// Bytes in every slice but the last. With its header a slice stays below 1200 bytes, which fit every path
/// that games meet (*Sending Large Blocks of Data*, "Packet Structure").
pub const SLICE_BYTES: usize = 1024;

/// Slices in the largest chunk: an 8-bit field counts them, and an ack has 32 bytes.
pub const MAX_SLICES: usize = 256;

/// Bytes in the largest chunk: 256 KiB.
pub const MAX_CHUNK_BYTES: usize = SLICE_BYTES * MAX_SLICES;

/// The number of a chunk: counts up by one with each chunk and wraps.
pub type ChunkId = Sequence;

/// How many slices a chunk has: 1 to 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SliceCount(u16);

impl SliceCount {
    /// One slice.
    pub const ONE: Self = Self(1);

    /// The count, if it is from 1 to 256.
    #[must_use]
    pub const fn new(count: usize) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "checked to be at most 256")]
        if count >= 1 && count <= MAX_SLICES { Some(Self(count as u16)) } else { None }
    }

    /// The slices that `bytes` need, if a chunk of that size exists (1 byte to 256 KiB).
    #[must_use]
    pub const fn for_bytes(bytes: usize) -> Option<Self> {
        Self::new(bytes.div_ceil(SLICE_BYTES))
    }

    /// The count.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0 as usize
    }

    /// The index with this number, if the chunk has such a slice. The only way to make an index.
    #[must_use]
    pub const fn index(self, index: usize) -> Option<SliceIndex> {
        if index < self.get() {
            #[expect(clippy::cast_possible_truncation, reason = "under 256")]
            Some(SliceIndex { index: index as u8, count: self })
        } else {
            None
        }
    }

    /// The first slice, which every chunk has.
    #[must_use]
    pub const fn first(self) -> SliceIndex {
        SliceIndex { index: 0, count: self }
    }

    /// All slices, from the first to the last.
    pub fn indices(self) -> impl Iterator<Item = SliceIndex> {
        (0..self.get()).filter_map(move |i| self.index(i))
    }
}

/// Which slice of a chunk: always below the count it was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SliceIndex {
    index: u8,
    count: SliceCount,
}

impl SliceIndex {
    /// The number of the slice, from 0.
    #[must_use]
    pub const fn get(self) -> usize {
        self.index as usize
    }

    /// The count of the chunk that this slice belongs to.
    #[must_use]
    pub const fn count(self) -> SliceCount {
        self.count
    }

    /// Whether this is the last slice, the only one that may be shorter.
    #[must_use]
    pub const fn is_last(self) -> bool {
        self.index as u16 + 1 == self.count.0
    }

    /// The slice after this one, and after the last the first.
    #[must_use]
    pub const fn next_cyclic(self) -> Self {
        if self.is_last() { self.count.first() } else { Self { index: self.index + 1, ..self } }
    }

    /// Where the slice starts in its chunk, in bytes.
    #[must_use]
    pub const fn offset(self) -> usize {
        self.get() * SLICE_BYTES
    }
}

/// One slice of a chunk, as it crosses the wire.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Slice<'a> {
    chunk_id: ChunkId,
    index: SliceIndex,
    data: &'a [u8],
}

debug_as! {
    Slice['_]: |slice| chunk_id = slice.chunk_id, index = slice.index, bytes = slice.data.len()
}

impl<'a> Slice<'a> {
    /// A slice, if `data` has the length that its index requires: 1024 bytes, or 1 to 1024 for the last.
    #[must_use]
    pub const fn new(chunk_id: ChunkId, index: SliceIndex, data: &'a [u8]) -> Option<Self> {
        let fits = data.len() == SLICE_BYTES
            || (index.is_last() && !data.is_empty() && data.len() < SLICE_BYTES);
        if fits { Some(Self { chunk_id, index, data }) } else { None }
    }

    /// The slice at `index` of the chunk with these bytes; `None` if the index is of another chunk.
    #[must_use]
    pub fn of_chunk(chunk_id: ChunkId, index: SliceIndex, chunk: &'a [u8]) -> Option<Self> {
        let rest = chunk.get(index.offset()..)?;
        Self::new(chunk_id, index, rest.get(..SLICE_BYTES).unwrap_or(rest))
    }

    /// The chunk it belongs to.
    #[must_use]
    pub const fn chunk_id(&self) -> ChunkId {
        self.chunk_id
    }

    /// Which slice, and of how many.
    #[must_use]
    pub const fn index(&self) -> SliceIndex {
        self.index
    }

    /// Its bytes.
    #[must_use]
    pub const fn data(&self) -> &'a [u8] {
        self.data
    }
}

/// What a receiver has of a chunk: always the whole state, so that the next ack makes up for a lost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The chunk it is about.
    pub chunk_id: ChunkId,
    /// The slices received; its count is the chunk's.
    pub received: SliceSet,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_below_its_count() {
        for count in 1..=MAX_SLICES {
            let count = SliceCount::new(count).unwrap();
            for index in 0..=MAX_SLICES {
                assert_eq!(count.index(index).is_some(), index < count.get());
            }
        }
        assert_eq!(SliceCount::new(0), None);
        assert_eq!(SliceCount::new(257), None);
    }

    #[test]
    fn sizes_to_counts() {
        let count = |bytes| SliceCount::for_bytes(bytes).map(SliceCount::get);
        assert_eq!(count(0), None);
        assert_eq!(count(1), Some(1));
        assert_eq!(count(1024), Some(1));
        assert_eq!(count(1025), Some(2));
        assert_eq!(count(MAX_CHUNK_BYTES), Some(256));
        assert_eq!(count(MAX_CHUNK_BYTES + 1), None);
    }

    #[test]
    fn only_the_last_slice_may_be_short() {
        let two = SliceCount::new(2).unwrap();
        let (first, last) = (two.index(0).unwrap(), two.index(1).unwrap());
        let id = ChunkId::new(7);
        assert!(Slice::new(id, first, &[0; 1023]).is_none());
        assert!(Slice::new(id, first, &[0; 1024]).is_some());
        assert!(Slice::new(id, last, &[0; 1]).is_some());
        assert!(Slice::new(id, last, &[]).is_none());
        assert!(Slice::new(id, last, &[0; 1025]).is_none());
        assert_eq!(last.next_cyclic(), first);
        assert_eq!(first.next_cyclic(), last);
    }
}
