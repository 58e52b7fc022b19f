//! Blocks whose bytes are somewhere else, such as on a disk: the values that such a block is made of, and the
//! chunks that its connections want.

use core::ffi::c_void;

use haulier::{Block, BlockTree, ChunkValue, ProvideError, WantedChunk};

use crate::block::{MAX_TAG, haulier_block, put_box};
use crate::memory::{bytes, handle, list, put};
use crate::result::{Failure, border, haulier_result, looked};
use haulier_result::{HAULIER_NOTHING, HAULIER_OK};

/// Bytes of each chunk of a block except the last, which has the remaining ones.
pub const HAULIER_CHUNK_BYTES: u32 = 262_144;

const _: () = assert!(HAULIER_CHUNK_BYTES as usize == ChunkValue::CHUNK_BYTES);

/// A chunk that is to be provided.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct haulier_wanted_chunk {
    /// The tag of its block.
    pub tag: u64,
    /// Where it begins in the block, in bytes.
    pub offset_bytes: u64,
    /// The length of the chunk, in bytes.
    pub length_bytes: usize,
    /// Its block, as haulier_client_send_block() gave it.
    pub handle: u32,
    /// Which chunk of the block it is, from 0.
    pub index: u32,
}

impl From<WantedChunk> for haulier_wanted_chunk {
    fn from(wanted: WantedChunk) -> Self {
        let WantedChunk { block, tag, index, offset, length, .. } = wanted;
        Self { tag, offset_bytes: offset, length_bytes: length, handle: block.to_bits(), index }
    }
}

/// Writes the value of a chunk, 32 bytes: what is kept of it to make its block with
/// haulier_block_from_values(). Values may be computed in any order and by any number of threads, and kept
/// beside the file.
///
/// block_bytes: the length of the whole block. index: which chunk of it this is, from 0. chunk: its
/// HAULIER_CHUNK_BYTES, or fewer of the last one. value: 32 bytes.
///
/// Returns HAULIER_ERROR_USAGE if the chunk with this index of such a block has another length, or does not
/// exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_chunk_value(
    block_bytes: u64,
    index: u32,
    chunk: *const c_void,
    chunk_bytes: usize,
    value: *mut u8,
) -> haulier_result {
    border(|| {
        // SAFETY: the head of the header says what the caller owes: chunk has chunk_bytes.
        let chunk = unsafe { bytes(chunk, chunk_bytes, "chunk") }?;
        let begin = u64::from(index) * u64::from(HAULIER_CHUNK_BYTES);
        let expected = block_bytes.saturating_sub(begin).min(HAULIER_CHUNK_BYTES.into());
        if expected != chunk.len() as u64 || expected == 0 {
            return Err(Failure::usage(format!(
                "chunk {index} of a block of {block_bytes} bytes has {expected}, and {chunk_bytes} were \
                 given"
            )));
        }
        let made = *ChunkValue::of(block_bytes, index, chunk).as_bytes();
        // SAFETY: null, or 32 bytes can be written there.
        unsafe { put(value.cast::<[u8; 32]>(), made, "value") }?;
        Ok(HAULIER_OK)
    })
}

/// Makes a block whose bytes are somewhere else, for example on a disk, and never all in memory. It is sent
/// as any other, and HAULIER_EVENT_CHUNKS_WANTED says when its chunks are to be provided:
///
///     haulier_wanted_chunk wanted;
///     while (haulier_server_want_chunk(server, connection, &wanted) == HAULIER_OK) {
///         ... read wanted.length_bytes from wanted.offset_bytes on ...
///         haulier_server_provide_chunk(server, connection, wanted.handle, wanted.index, bytes,
///                                      wanted.length_bytes);
///     }
///
/// tag, block: as for haulier_block_new(). block_bytes: its length. values: 32 bytes for each chunk of
/// HAULIER_CHUNK_BYTES, as haulier_chunk_value() wrote them, in the order of the chunks; copied. value_count:
/// how many chunks there are; 0 for a block of no bytes.
///
/// Returns HAULIER_ERROR_USAGE if such a block has not as many chunks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_block_from_values(
    tag: u64,
    block_bytes: u64,
    values: *const u8,
    value_count: usize,
    block: *mut *mut haulier_block,
) -> haulier_result {
    border(|| {
        // SAFETY: `values` has `value_count` values of 32 bytes, as the caller promises.
        let values = unsafe { list(values.cast::<[u8; 32]>(), value_count, "values") }?;
        if tag > MAX_TAG {
            return Err(Failure::usage(format!("the tag {tag} is larger than 2^62 - 1")));
        }
        let values = values.iter().map(|value| ChunkValue::from_bytes(*value)).collect();
        let tree = BlockTree::from_values(block_bytes, values).map_err(Failure::usage)?;
        // SAFETY: a pointer can be written to block, as the caller promises.
        unsafe { put_box(block, haulier_block { block: Block::from_source(tag, tree) }, "block") }
    })
}

/// Whether these are the bytes of this chunk of a block: for a file that may have changed since its values
/// were computed. False for null.
///
/// block: of any kind. index, chunk, chunk_bytes: as for haulier_chunk_value().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_block_is_chunk(
    block: *const haulier_block,
    index: u32,
    chunk: *const c_void,
    chunk_bytes: usize,
) -> bool {
    looked(false, || {
        // SAFETY: null or a block, as the caller promises.
        let block = unsafe { handle(block, "block") }?;
        // SAFETY: chunk has chunk_bytes, as the caller promises.
        let chunk = unsafe { bytes(chunk, chunk_bytes, "chunk") }?;
        Ok(block.block.tree().is_chunk(index, chunk))
    })
}

/// Writes the chunk that a connection wants, or nothing.
///
/// # Safety
/// `chunk` is null, or a wanted chunk can be written there.
pub(crate) unsafe fn put_wanted(
    chunk: *mut haulier_wanted_chunk,
    want: impl FnOnce() -> Option<WantedChunk>,
) -> Result<haulier_result, Failure> {
    // Before one is taken: each is wanted once.
    if chunk.is_null() {
        return Err(Failure::usage("`chunk` is a null pointer"));
    }
    let Some(wanted) = want() else { return Ok(HAULIER_NOTHING) };
    // SAFETY: the caller's promise.
    unsafe { put(chunk, wanted.into(), "chunk") }?;
    Ok(HAULIER_OK)
}

/// The result of providing a chunk: a chunk that is not needed any more is no error.
pub(crate) fn provided(result: Result<(), ProvideError>) -> Result<haulier_result, Failure> {
    match result {
        Ok(()) => Ok(HAULIER_OK),
        Err(ProvideError::UnknownBlock) => Ok(HAULIER_NOTHING),
        Err(error) => Err(Failure::usage(error)),
    }
}
