//! Where a chunk is, and how it is cut into slices (STANDARD-1, 4.2.1 and 4.2.2).
//!
//! The sender chooses the size of slices for each chunk, so that one fills what the path carries. The
//! invariant: a [`Cut`] has 1 to 256 slices, all of the same even size but the last.

use core::ops::Range;

use crate::chunk::{MAX_CHUNK_BYTES, MAX_SLICES};
use crate::fields::varint_len;
pub use crate::transit::ChunkAt;

/// The largest slice, in bytes: the largest datagram of UDP has room for it and its frame.
const MAX_SLICE_BYTES: u16 = 65_472;

/// The number of chunks of a block of this many bytes; `None` if it is more than an index counts.
#[must_use]
pub fn chunk_count(block_bytes: u64) -> Option<u32> {
    u32::try_from(block_bytes.div_ceil(MAX_CHUNK_BYTES as u64)).ok()
}

/// The number of bytes of a chunk of a block of this many bytes; `None` if it has no such chunk.
#[must_use]
pub fn chunk_bytes(block_bytes: u64, index: u32) -> Option<usize> {
    let rest = block_bytes.checked_sub(u64::from(index) * MAX_CHUNK_BYTES as u64)?;
    let bytes = usize::try_from(rest.min(MAX_CHUNK_BYTES as u64)).ok()?;
    Some(bytes).filter(|&bytes| bytes > 0)
}

/// The size of the slices of a chunk: even, from 2 to 65,472 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SliceSize(u16);

impl SliceSize {
    /// The size that fits every path, also beside the welcome of a response.
    pub const SMALLEST_OF_FULL_CHUNK: Self = Self(1024);

    /// This many bytes, if slices can have them.
    #[must_use]
    pub const fn new(bytes: usize) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "checked")]
        if bytes >= 2 && bytes <= MAX_SLICE_BYTES as usize && bytes.is_multiple_of(2) {
            Some(Self(bytes as u16))
        } else {
            None
        }
    }

    /// The size in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }
}

/// Bytes of the head of a slice frame of this chunk: of a last slice with its size, or of another.
pub(crate) fn head_bytes(at: ChunkAt, is_last: bool) -> usize {
    let size = if is_last { 2 } else { 0 };
    2 + varint_len(u64::from(at.block)) + varint_len(u64::from(at.index)) + size
}

/// The longest head of the slices of this chunk, with at least two bytes each for block and index: then all
/// connections that send a block cut it alike, up to 16,384 blocks and 4 GiB, and share its repair slices.
fn usual_head_bytes(at: ChunkAt) -> usize {
    let number = |number: u32| varint_len(u64::from(number)).max(2);
    4 + number(at.block) + number(at.index)
}

/// How a chunk is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    chunk_bytes: u32,
    size: SliceSize,
    /// The number of slices. It is stored because it is needed with each slice and costs a division.
    count: u16,
}

impl Cut {
    /// A chunk of this many bytes in slices of this size; `None` if no chunk has this many bytes, or if it
    /// would have more than 256 slices.
    #[must_use]
    pub const fn new(chunk_bytes: usize, size: SliceSize) -> Option<Self> {
        let count = chunk_bytes.div_ceil(size.bytes());
        let fits = chunk_bytes >= 1 && chunk_bytes <= MAX_CHUNK_BYTES && count <= MAX_SLICES;
        #[expect(clippy::cast_possible_truncation, reason = "at most 262,144, and 256")]
        let (chunk_bytes, count) = (chunk_bytes as u32, count as u16);
        if fits { Some(Self { chunk_bytes, size, count }) } else { None }
    }

    /// How a sender cuts this chunk of `chunk_bytes` bytes, 1 to 262,144, if a slice frame may have `room`
    /// bytes: into the largest slices that fit, but none smaller than 1024 bytes, and none larger than `max`.
    pub(crate) fn for_room(
        at: ChunkAt,
        chunk_bytes: usize,
        room: usize,
        max: SliceSize,
    ) -> Option<Self> {
        let largest = room.saturating_sub(usual_head_bytes(at)) & !1;
        let smallest = SliceSize::SMALLEST_OF_FULL_CHUNK;
        let size = SliceSize::new(largest.min(max.bytes())).unwrap_or(smallest).max(smallest);
        Self::new(chunk_bytes, size)
    }

    /// The chunk's size in bytes.
    #[must_use]
    pub const fn chunk_bytes(self) -> usize {
        self.chunk_bytes as usize
    }

    /// The size of its slices but the last.
    #[must_use]
    pub const fn size(self) -> SliceSize {
        self.size
    }

    /// The number of its slices: 1 to 256.
    #[must_use]
    pub const fn count(self) -> usize {
        self.count as usize
    }

    /// Whether this is the index of the last slice.
    #[must_use]
    pub const fn is_last(self, index: u8) -> bool {
        index as usize + 1 == self.count()
    }

    /// Where this slice is in the chunk; `None` if the chunk has no such slice.
    #[must_use]
    pub fn range(self, index: u8) -> Option<Range<usize>> {
        let start = usize::from(index) * self.size.bytes();
        let end = self.chunk_bytes().min(start + self.size.bytes());
        (start < end).then_some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(chunk: usize, size: usize) -> Option<Cut> {
        Cut::new(chunk, SliceSize::new(size)?)
    }

    #[test]
    fn a_chunk_has_1_to_256_slices_of_even_size() {
        assert_eq!(cut(MAX_CHUNK_BYTES, 1024).map(Cut::count), Some(256));
        assert_eq!(cut(MAX_CHUNK_BYTES, 1434).map(Cut::count), Some(183));
        assert_eq!(cut(MAX_CHUNK_BYTES, 1022), None, "257");
        assert_eq!(cut(MAX_CHUNK_BYTES + 1, 2048), None);
        assert_eq!(cut(0, 1024), None);
        assert_eq!(cut(1, 2).map(Cut::count), Some(1));
        for size in [0, 1, 1025, 65_474] {
            assert_eq!(SliceSize::new(size), None, "{size}");
        }
    }

    /// What the path carries less header, tag and head: 1200, 1472 and 8972 bytes.
    #[test]
    fn a_cut_fills_what_the_path_carries() {
        let max = SliceSize::new(65_472).unwrap();
        let cut = |room, block, index, bytes| {
            let cut = Cut::for_room(ChunkAt { block, index }, bytes, room, max).unwrap();
            (cut.size().bytes(), cut.count())
        };
        assert_eq!(cut(1200 - 29, 0, 0, MAX_CHUNK_BYTES), (1162, 226));
        assert_eq!(cut(1472 - 29, 16_383, 16_383, MAX_CHUNK_BYTES), (1434, 183));
        assert_eq!(cut(8972 - 29, 0, 0, MAX_CHUNK_BYTES), (8934, 30));
        assert_eq!(cut(1472 - 29, 16_384, 0, MAX_CHUNK_BYTES), (1432, 184));
        assert_eq!(cut(100, 0, 0, 5000), (1024, 5), "the smallest, whatever the room");
        let at = ChunkAt { block: 63, index: 64 };
        assert_eq!((head_bytes(at, false), head_bytes(at, true)), (5, 7));
    }

    #[test]
    fn slices_are_the_chunk_one_after_the_other() {
        for (chunk, size) in [(1, 1024), (1024, 1024), (1025, 1024), (MAX_CHUNK_BYTES, 1434)] {
            let cut = cut(chunk, size).unwrap();
            let mut end = 0;
            for index in 0..=255 {
                let Some(range) = cut.range(index) else { break };
                assert_eq!(range.start, end);
                assert!(range.len() == size || cut.is_last(index), "{index}");
                end = range.end;
            }
            assert_eq!(end, chunk);
        }
    }

    #[test]
    fn chunks_of_a_block() {
        let full = MAX_CHUNK_BYTES as u64;
        for (bytes, count) in [(0, 0), (1, 1), (full, 1), (full + 1, 2)] {
            assert_eq!(chunk_count(bytes), Some(count));
        }
        assert_eq!(chunk_count(1 << 62), None);
        assert_eq!(chunk_bytes(full + 1, 0), Some(MAX_CHUNK_BYTES));
        assert_eq!(chunk_bytes(full + 1, 1), Some(1));
        assert_eq!(chunk_bytes(full + 1, 2), None);
        assert_eq!(chunk_bytes(full, 1), None);
        assert_eq!(chunk_bytes(0, 0), None);
    }
}
