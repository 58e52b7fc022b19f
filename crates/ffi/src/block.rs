//! Blocks to send, and memory for them.

use core::ffi::c_void;

use bytes::Bytes;
use haulier::Block;

use crate::memory::{bytes, handle, put, put_if_wanted};
use crate::result::{Failure, border, haulier_result, looked};
use haulier_result::HAULIER_OK;

/// A block: bytes of any size that arrive whole and verified, with a tag of the program's. It is made once,
/// which hashes it, and may be sent to any number of clients at the same time, by any thread.
pub struct haulier_block {
    pub(crate) block: Block,
}

/// Memory that a block is made of without a copy.
pub struct haulier_buffer {
    bytes: Vec<u8>,
}

/// Makes a block of a copy of these bytes, and hashes it: about a millisecond for a megabyte on one core.
///
/// tag: the program's, up to 2^62 - 1; the receiver is given it. data: may be freed after the call; may be
/// null if data_bytes is 0. block: where the new block goes, to be freed with haulier_block_free(), which
/// may be done at once when it has been sent: what is on its way keeps its bytes.
///
/// Returns HAULIER_ERROR_USAGE for null pointers, or a tag that is too large.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_block_new(
    tag: u64,
    data: *const c_void,
    data_bytes: usize,
    block: *mut *mut haulier_block,
) -> haulier_result {
    border(|| {
        // SAFETY: the head of the header says what the caller owes: data has data_bytes.
        let data = unsafe { bytes(data, data_bytes, "data") }?;
        // SAFETY: and a pointer can be written to block.
        unsafe { put_block(tag, || Bytes::copy_from_slice(data), block) }
    })
}

/// Makes memory for a block of this many bytes, all of them 0. Fill it (haulier_buffer_data()), and make a
/// block of it with haulier_block_from_buffer(): that copies nothing.
///
/// buffer: where the new one goes. It is freed with haulier_buffer_free(), or becomes a block.
///
/// Returns HAULIER_ERROR_IO if the system does not have this memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_buffer_new(
    data_bytes: usize,
    buffer: *mut *mut haulier_buffer,
) -> haulier_result {
    border(|| {
        let mut bytes = Vec::new();
        let is_there = bytes.try_reserve_exact(data_bytes);
        is_there.map_err(|error| Failure::new(haulier_result::HAULIER_ERROR_IO, error))?;
        bytes.resize(data_bytes, 0);
        // SAFETY: a pointer can be written to buffer, as the caller promises.
        unsafe { put_box(buffer, haulier_buffer { bytes }, "buffer") }
    })
}

/// Returns where the bytes of the buffer are: as many as it was made with, to be written by one thread at a
/// time. Null for a null buffer. Valid until the buffer is freed or becomes a block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_buffer_data(buffer: *mut haulier_buffer) -> *mut u8 {
    // SAFETY: null or a buffer that this thread alone uses now, as the caller promises.
    let buffer = unsafe { buffer.as_mut() };
    buffer.map_or(core::ptr::null_mut(), |buffer| buffer.bytes.as_mut_ptr())
}

/// Frees a buffer that has not become a block. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_buffer_free(buffer: *mut haulier_buffer) {
    // SAFETY: null, or from haulier_buffer_new and not freed before, as the caller promises.
    unsafe { free(buffer) }
}

/// Makes a block of a buffer, without a copy, and hashes it. The buffer is the block's from then on, and the
/// caller's pointer to it is set to null; if the call fails, all is as before.
///
/// tag, block: as for haulier_block_new(). buffer: points to the pointer that haulier_buffer_new() gave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_block_from_buffer(
    tag: u64,
    buffer: *mut *mut haulier_buffer,
    block: *mut *mut haulier_block,
) -> haulier_result {
    border(|| {
        // SAFETY: null, or points to a pointer, as the caller promises.
        let pointer = *unsafe { handle(buffer, "buffer") }?;
        // SAFETY: that one is null, or a buffer.
        let _there = unsafe { handle(pointer, "buffer") }?;
        let take = || {
            // SAFETY: it is a buffer that was not freed, and its pointer is not used after this.
            let taken = unsafe { Box::from_raw(pointer) };
            // SAFETY: a pointer was read from there.
            unsafe { buffer.write(core::ptr::null_mut()) };
            Bytes::from(taken.bytes)
        };
        // SAFETY: a pointer can be written to block, as the caller promises.
        unsafe { put_block(tag, take, block) }
    })
}

/// Frees a block. Sending it goes on. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_block_free(block: *mut haulier_block) {
    // SAFETY: null, or from this library and not freed before, as the caller promises.
    unsafe { free(block) }
}

/// Returns the length of a block in bytes; 0 for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_block_length(block: *const haulier_block) -> u64 {
    // SAFETY: null or a block, as the caller promises.
    looked(0, || Ok(unsafe { handle(block, "block") }?.block.length()))
}

/// Writes the BLAKE3 of a block's bytes, 32 bytes: what haulier_client_have_block() takes at the other end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_block_digest(
    block: *const haulier_block,
    digest: *mut u8,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a block, as the caller promises.
        let block = unsafe { handle(block, "block") }?;
        // SAFETY: null, or 32 bytes can be written there.
        unsafe { put(digest.cast::<[u8; 32]>(), *block.block.digest(), "digest") }?;
        Ok(HAULIER_OK)
    })
}

/// The largest tag: what the wire has for it.
pub(crate) const MAX_TAG: u64 = (1 << 62) - 1;

/// # Safety
/// As for [`put`].
unsafe fn put_block(
    tag: u64,
    data: impl FnOnce() -> Bytes,
    block: *mut *mut haulier_block,
) -> Result<haulier_result, Failure> {
    if tag > MAX_TAG {
        return Err(Failure::usage(format!("the tag {tag} is larger than 2^62 - 1")));
    }
    if block.is_null() {
        return Err(Failure::usage("`block` is a null pointer"));
    }
    let made = haulier_block { block: Block::new(tag, data()) };
    // SAFETY: the caller's promise.
    unsafe { put_box(block, made, "block") }
}

/// Gives a new object to the caller.
///
/// # Safety
/// As for [`put`].
pub(crate) unsafe fn put_box<T>(
    to: *mut *mut T,
    object: T,
    name: &str,
) -> Result<haulier_result, Failure> {
    let pointer = Box::into_raw(Box::new(object));
    // SAFETY: the caller's promise.
    let written = unsafe { put(to, pointer, name) };
    if written.is_err() {
        // SAFETY: it was made above, and no other code has it.
        drop(unsafe { Box::from_raw(pointer) });
    }
    written.map(|()| HAULIER_OK)
}

/// Sets a pointer to null, so that a caller that ignores the result has no wild pointer.
///
/// # Safety
/// As for [`put`].
pub(crate) unsafe fn put_null<T>(to: *mut *mut T) {
    // SAFETY: the caller's promise.
    unsafe { put_if_wanted(to, core::ptr::null_mut()) };
}

/// Takes an object back, and drops it.
///
/// # Safety
/// `pointer` is null, or came from [`put_box`] and was not freed.
pub(crate) unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        border(|| {
            // SAFETY: not null, and the rest is the caller's promise.
            drop(unsafe { Box::from_raw(pointer) });
            Ok(HAULIER_OK)
        });
    }
}
