//! What a client does with blocks.

use core::ffi::c_void;

use bytes::Bytes;
use haulier::{BlockHandle, BlockNumber, BlockOptions};

use super::haulier_client;
use crate::block::haulier_block;
use crate::memory::{bytes, handle, put_if_wanted};
use crate::result::{Failure, border, done, haulier_result};
use crate::settings::urgency;
use crate::source::{haulier_wanted_chunk, provided, put_wanted};
use haulier_result::HAULIER_OK;

/// For haulier_client_send_block_with(): the urgency of the connection's settings.
pub const HAULIER_URGENCY_OF_CONNECTION: u32 = 2;

/// Sends a block, which arrives whole: HAULIER_EVENT_BLOCK_SENT says so. Its bytes are not copied, and it may
/// be freed at once.
///
/// handle: where its number goes, which names it in events and below; may be null.
///
/// Returns HAULIER_ERROR_NOT_OPEN before HAULIER_EVENT_CONNECTED and after the end, HAULIER_ERROR_FULL,
/// HAULIER_ERROR_USAGE if it is larger than what the server accepts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_send_block(
    client: *const haulier_client,
    block: *const haulier_block,
    handle: *mut u32,
) -> haulier_result {
    // SAFETY: what is asked of this function's caller is asked of that one's.
    unsafe {
        haulier_client_send_block_with(client, block, 0, 0, HAULIER_URGENCY_OF_CONNECTION, handle)
    }
}

/// Sends a block beside others.
///
/// priority: 0 to 255; the highest goes first. weight: the share beside others of its priority, 0 to 65535;
/// 0: after those that have none either. urgency: a haulier_urgency, or HAULIER_URGENCY_OF_CONNECTION.
/// handle: as for haulier_client_send_block().
///
/// Returns as haulier_client_send_block() does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_send_block_with(
    client: *const haulier_client,
    block: *const haulier_block,
    priority: u32,
    weight: u32,
    urgency: u32,
    handle: *mut u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { self::handle(client, "client") }?;
        // SAFETY: null or a block, as the caller promises.
        let block = unsafe { self::handle(block, "block") }?;
        let options = options_of(priority, weight, urgency)?;
        let sent = client.client.send_block_with(&block.block, options)?;
        // SAFETY: null, or a number can be written there, as the caller promises.
        unsafe { put_if_wanted(handle, sent.to_bits()) };
        Ok(HAULIER_OK)
    })
}

/// Takes the next chunk that is wanted of a block that was made with haulier_block_from_values(): each is
/// wanted once, and a few ahead of the chunk that is being sent. Any thread may ask, read and provide: the
/// network does not wait for it.
///
/// chunk: where it goes.
///
/// Returns HAULIER_NOTHING if no more are wanted now: HAULIER_EVENT_CHUNKS_WANTED says when more are wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_want_chunk(
    client: *const haulier_client,
    chunk: *mut haulier_wanted_chunk,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { self::handle(client, "client") }?;
        // SAFETY: null, or a chunk can be written there, as the caller promises.
        unsafe { put_wanted(chunk, || client.client.want_chunk()) }
    })
}

/// Provides a chunk that was wanted, in any order and at any time. The program must provide the right bytes:
/// with others the server closes the connection (haulier_block_is_chunk()). A program that cannot provide one
/// gives the block up, with haulier_client_cancel_block().
///
/// handle, index: of the wanted chunk. data: copied; as many bytes as were wanted.
///
/// Returns HAULIER_NOTHING if the chunk is not needed any more: the server has the block, or declined it, or
/// the connection is gone. HAULIER_ERROR_USAGE for a chunk that was not wanted, was provided before, or has
/// another length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_provide_chunk(
    client: *const haulier_client,
    handle: u32,
    index: u32,
    data: *const c_void,
    data_bytes: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { self::handle(client, "client") }?;
        // SAFETY: `data` has `data_bytes` bytes, as the caller promises.
        let data = Bytes::copy_from_slice(unsafe { bytes(data, data_bytes, "data") }?);
        provided(client.client.provide_chunk(BlockHandle::from_bits(handle), index, data))
    })
}

/// Gives a block up. The server receives the code, which is the program's own. There is no event.
///
/// Returns HAULIER_NOTHING if it was not on its way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_cancel_block(
    client: *const haulier_client,
    handle: u32,
    code: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { self::handle(client, "client") }?;
        Ok(done(client.client.cancel_block(BlockHandle::from_bits(handle), code)))
    })
}

/// Pauses a block: no further chunk of it is begun, and it has no time limit.
///
/// Returns HAULIER_NOTHING if it is not on its way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_pause_block(
    client: *const haulier_client,
    handle: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { self::handle(client, "client") }?;
        Ok(done(client.client.pause_block(BlockHandle::from_bits(handle))))
    })
}

/// Goes on with a block that was paused.
///
/// Returns HAULIER_NOTHING if it is not on its way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_resume_block(
    client: *const haulier_client,
    handle: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { self::handle(client, "client") }?;
        Ok(done(client.client.resume_block(BlockHandle::from_bits(handle))))
    })
}

/// Sets which bytes of a block are sent first, as far as chunks may be open (256 MiB); the others follow. It
/// can be changed at any time.
///
/// begin_bytes, end_bytes: the first byte, and the one after the last; the usual order if they are equal.
///
/// Returns HAULIER_NOTHING if it is not on its way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_prefer_range(
    client: *const haulier_client,
    handle: u32,
    begin_bytes: u64,
    end_bytes: u64,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { self::handle(client, "client") }?;
        let block = BlockHandle::from_bits(handle);
        Ok(done(client.client.prefer_range(block, begin_bytes..end_bytes)))
    })
}

/// Changes the priority of a block, 0 to 255, from now on.
///
/// Returns HAULIER_NOTHING if it is not on its way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_set_block_priority(
    client: *const haulier_client,
    handle: u32,
    priority: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { self::handle(client, "client") }?;
        let block = BlockHandle::from_bits(handle);
        Ok(done(client.client.set_block_priority(block, priority_of(priority)?)))
    })
}

/// Declines the rest of a block that the server announced, and sends it the code, which is the program's own.
///
/// block: from HAULIER_EVENT_BLOCK_ANNOUNCED.
///
/// Returns HAULIER_NOTHING if it was not being received.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_decline_block(
    client: *const haulier_client,
    block: u32,
    code: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { self::handle(client, "client") }?;
        Ok(done(client.client.decline_block(BlockNumber::from_bits(block), code)))
    })
}

/// Says that the program has a block already, for example on its disk: when the server announces it,
/// HAULIER_EVENT_BLOCK_HERE takes the place of HAULIER_EVENT_BLOCK, and its bytes are not sent.
///
/// digest: the BLAKE3 of the block, 32 bytes.
///
/// Returns HAULIER_NOTHING if it is not remembered: at most 64 are, once there is a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_have_block(
    client: *const haulier_client,
    digest: *const u8,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { self::handle(client, "client") }?;
        // SAFETY: null or 32 bytes, as the caller promises.
        let digest = unsafe { self::handle(digest.cast::<[u8; 32]>(), "digest") }?;
        Ok(done(client.client.have_block(*digest)))
    })
}

/// Says that the program has some chunks of a block already, verified: only the others are sent and handed
/// out. With HAULIER_DELIVERY_CHUNKS and HAULIER_DELIVERY_IN_ORDER.
///
/// digest: the BLAKE3 of the block, 32 bytes. map: bit i, the lowest of each byte first, is the chunk from
/// byte i * 262144 on; copied.
///
/// Returns HAULIER_NOTHING if it is not remembered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_have_chunks(
    client: *const haulier_client,
    digest: *const u8,
    map: *const u8,
    map_bytes: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { self::handle(client, "client") }?;
        // SAFETY: null or 32 bytes, as the caller promises.
        let digest = unsafe { self::handle(digest.cast::<[u8; 32]>(), "digest") }?;
        // SAFETY: `map` has `map_bytes` bytes, as the caller promises.
        let map = unsafe { bytes(map.cast(), map_bytes, "map") }?;
        Ok(done(client.client.have_chunks(*digest, map)))
    })
}

/// How a block is sent beside others, from the numbers of C.
pub(crate) fn options_of(priority: u32, weight: u32, of: u32) -> Result<BlockOptions, Failure> {
    let mut options = BlockOptions::default().with_priority(priority_of(priority)?);
    options.weight = u16::try_from(weight)
        .map_err(|_| Failure::usage(format!("{weight} is no weight: 0 to 65535 are")))?;
    if of != HAULIER_URGENCY_OF_CONNECTION {
        options.urgency = Some(urgency(of)?);
    }
    Ok(options)
}

/// A priority of C.
pub(crate) fn priority_of(number: u32) -> Result<u8, Failure> {
    let priority = u8::try_from(number);
    priority.map_err(|_| Failure::usage(format!("{number} is no priority: 0 to 255 are")))
}
