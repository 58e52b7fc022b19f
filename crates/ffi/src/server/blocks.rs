//! What a server does with blocks of one connection.

use core::ffi::c_void;

use bytes::Bytes;
use haulier::{BlockHandle, BlockNumber};

use super::{haulier_server, id_of};
use crate::block::haulier_block;
use crate::client::blocks::{HAULIER_URGENCY_OF_CONNECTION, options_of, priority_of};
use crate::memory::{bytes, handle, put_if_wanted};
use crate::result::{border, done, haulier_result};
use crate::source::{haulier_wanted_chunk, provided, put_wanted};
use haulier_result::HAULIER_OK;

/// Sends a block, which arrives whole: HAULIER_EVENT_BLOCK_SENT says so. Its bytes are not copied, and it may
/// be freed at once.
///
/// handle: where its number goes, which names it in events and below; may be null.
///
/// Returns HAULIER_ERROR_NOT_OPEN for a connection that is gone, HAULIER_ERROR_FULL,
/// HAULIER_ERROR_USAGE if it is larger than what the client accepts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_send_block(
    server: *const haulier_server,
    connection: u64,
    block: *const haulier_block,
    handle: *mut u32,
) -> haulier_result {
    // SAFETY: what is asked of this function's caller is asked of that one's.
    unsafe {
        haulier_server_send_block_with(
            server,
            connection,
            block,
            0,
            0,
            HAULIER_URGENCY_OF_CONNECTION,
            handle,
        )
    }
}

/// Sends a block beside others.
///
/// priority: 0 to 255; the highest goes first. weight: the share beside others of its priority, 0 to 65535;
/// 0: after those that have none either. urgency: a haulier_urgency, or HAULIER_URGENCY_OF_CONNECTION.
/// handle: as for haulier_server_send_block().
///
/// Returns as haulier_server_send_block() does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_send_block_with(
    server: *const haulier_server,
    connection: u64,
    block: *const haulier_block,
    priority: u32,
    weight: u32,
    urgency: u32,
    handle: *mut u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { self::handle(server, "server") }?;
        let id = id_of(connection)?;
        // SAFETY: null or a block, as the caller promises.
        let block = unsafe { self::handle(block, "block") }?;
        let options = options_of(priority, weight, urgency)?;
        let sent = server.server.send_block_with(id, &block.block, options)?;
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
pub unsafe extern "C" fn haulier_server_want_chunk(
    server: *const haulier_server,
    connection: u64,
    chunk: *mut haulier_wanted_chunk,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { self::handle(server, "server") }?;
        let id = id_of(connection)?;
        // SAFETY: null, or a chunk can be written there, as the caller promises.
        unsafe { put_wanted(chunk, || server.server.want_chunk(id)) }
    })
}

/// Provides a chunk that was wanted, in any order and at any time. The program must provide the right bytes:
/// with others the client closes the connection (haulier_block_is_chunk()). A program that cannot provide one
/// gives the block up, with haulier_server_cancel_block().
///
/// handle, index: of the wanted chunk. data: copied; as many bytes as were wanted.
///
/// Returns HAULIER_NOTHING if the chunk is not needed any more: the client has the block, or declined it, or
/// the connection is gone. HAULIER_ERROR_USAGE for a chunk that was not wanted, was provided before, or has
/// another length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_provide_chunk(
    server: *const haulier_server,
    connection: u64,
    handle: u32,
    index: u32,
    data: *const c_void,
    data_bytes: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { self::handle(server, "server") }?;
        let id = id_of(connection)?;
        // SAFETY: `data` has `data_bytes` bytes, as the caller promises.
        let data = Bytes::copy_from_slice(unsafe { bytes(data, data_bytes, "data") }?);
        provided(server.server.provide_chunk(id, BlockHandle::from_bits(handle), index, data))
    })
}

/// Gives a block up. The client receives the code, which is the program's own. There is no event.
///
/// Returns HAULIER_NOTHING if it was not on its way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_cancel_block(
    server: *const haulier_server,
    connection: u64,
    handle: u32,
    code: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { self::handle(server, "server") }?;
        let id = id_of(connection)?;
        Ok(done(server.server.cancel_block(id, BlockHandle::from_bits(handle), code)))
    })
}

/// Pauses a block: no further chunk of it is begun, and it has no time limit.
///
/// Returns HAULIER_NOTHING if it is not on its way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_pause_block(
    server: *const haulier_server,
    connection: u64,
    handle: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { self::handle(server, "server") }?;
        let id = id_of(connection)?;
        Ok(done(server.server.pause_block(id, BlockHandle::from_bits(handle))))
    })
}

/// Goes on with a block that was paused.
///
/// Returns HAULIER_NOTHING if it is not on its way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_resume_block(
    server: *const haulier_server,
    connection: u64,
    handle: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { self::handle(server, "server") }?;
        let id = id_of(connection)?;
        Ok(done(server.server.resume_block(id, BlockHandle::from_bits(handle))))
    })
}

/// Sets which bytes of a block are sent first, as far as chunks may be open (256 MiB); the others follow. It
/// can be changed at any time.
///
/// begin_bytes, end_bytes: the first byte, and the one after the last; the usual order if they are equal.
///
/// Returns HAULIER_NOTHING if it is not on its way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_prefer_range(
    server: *const haulier_server,
    connection: u64,
    handle: u32,
    begin_bytes: u64,
    end_bytes: u64,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { self::handle(server, "server") }?;
        let id = id_of(connection)?;
        let block = BlockHandle::from_bits(handle);
        Ok(done(server.server.prefer_range(id, block, begin_bytes..end_bytes)))
    })
}

/// Changes the priority of a block, 0 to 255, from now on.
///
/// Returns HAULIER_NOTHING if it is not on its way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_set_block_priority(
    server: *const haulier_server,
    connection: u64,
    handle: u32,
    priority: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { self::handle(server, "server") }?;
        let id = id_of(connection)?;
        let block = BlockHandle::from_bits(handle);
        Ok(done(server.server.set_block_priority(id, block, priority_of(priority)?)))
    })
}

/// Declines the rest of a block that the client announced, and sends it the code, which is the program's own.
///
/// block: from HAULIER_EVENT_BLOCK_ANNOUNCED.
///
/// Returns HAULIER_NOTHING if it was not being received.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_decline_block(
    server: *const haulier_server,
    connection: u64,
    block: u32,
    code: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { self::handle(server, "server") }?;
        let id = id_of(connection)?;
        Ok(done(server.server.decline_block(id, BlockNumber::from_bits(block), code)))
    })
}

/// Says that the program has a block already, for example on its disk: when the client announces it,
/// HAULIER_EVENT_BLOCK_HERE takes the place of HAULIER_EVENT_BLOCK, and its bytes are not sent.
///
/// digest: the BLAKE3 of the block, 32 bytes.
///
/// Returns HAULIER_NOTHING if it is not remembered: at most 64 are, once there is a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_have_block(
    server: *const haulier_server,
    connection: u64,
    digest: *const u8,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { self::handle(server, "server") }?;
        let id = id_of(connection)?;
        // SAFETY: null or 32 bytes, as the caller promises.
        let digest = unsafe { self::handle(digest.cast::<[u8; 32]>(), "digest") }?;
        Ok(done(server.server.have_block(id, *digest)))
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
pub unsafe extern "C" fn haulier_server_have_chunks(
    server: *const haulier_server,
    connection: u64,
    digest: *const u8,
    map: *const u8,
    map_bytes: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { self::handle(server, "server") }?;
        let id = id_of(connection)?;
        // SAFETY: null or 32 bytes, as the caller promises.
        let digest = unsafe { self::handle(digest.cast::<[u8; 32]>(), "digest") }?;
        // SAFETY: `map` has `map_bytes` bytes, as the caller promises.
        let map = unsafe { bytes(map.cast(), map_bytes, "map") }?;
        Ok(done(server.server.have_chunks(id, *digest, map)))
    })
}
