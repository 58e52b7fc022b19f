//! The chunks of a file: their number and their places. Their BLAKE3 values are in the protocol's
//! [`BlockTree`](haulier_proto::connection::BlockTree): a file as a whole is a block.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use haulier_proto::connection::ChunkValue;

/// Bytes of a chunk, the last one of a file excepted: the unit that is verified, written and noted.
pub const CHUNK_BYTES: usize = ChunkValue::CHUNK_BYTES;

/// A chunk of a hole. It is made once, and not 256 KiB of the program.
pub(crate) fn zeros() -> &'static Bytes {
    static ZEROS: OnceLock<Bytes> = OnceLock::new();
    ZEROS.get_or_init(|| vec![0; CHUNK_BYTES].into())
}

/// The longest file that has a tree, a chunk below 2^50 bytes: its chunks are counted with 32 bits.
pub const MAX_TREE_BYTES: u64 = u32::MAX as u64 * CHUNK_BYTES as u64;

/// The number of chunks of a file of this length; none of an empty file.
///
/// A longer file than [`MAX_TREE_BYTES`] has as many chunks as one of that length.
#[must_use]
pub const fn chunk_count(length: u64) -> u32 {
    let count = length.div_ceil(CHUNK_BYTES as u64);
    if count > u32::MAX as u64 { u32::MAX } else { count as u32 }
}

/// Where the bytes of a chunk are, in a file of this length; empty behind its end.
#[must_use]
pub fn chunk_range(length: u64, index: u32) -> Range<u64> {
    let start = u64::from(index) * CHUNK_BYTES as u64;
    start.min(length)..(start + CHUNK_BYTES as u64).min(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_a_file() {
        let length = 2 * CHUNK_BYTES as u64 + 5;
        assert_eq!((chunk_count(0), chunk_count(1), chunk_count(length)), (0, 1, 3));
        assert_eq!(chunk_range(length, 2), length - 5..length);
        assert!(chunk_range(length, 3).is_empty() && chunk_range(length, u32::MAX).is_empty());
        assert_eq!(chunk_count(MAX_TREE_BYTES), u32::MAX);
    }
}
