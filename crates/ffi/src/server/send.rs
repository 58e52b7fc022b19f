//! What a server sends to a client beside blocks: packets and messages; and their priorities.

use core::ffi::c_void;

use bytes::Bytes;

use super::{haulier_server, id_of};
use crate::client::send::{channel_of, lane_of, order_of, source_of};
use crate::memory::{bytes, handle, put_if_wanted};
use crate::result::{border, haulier_result};
use crate::settings::urgency;
use haulier_result::HAULIER_OK;

/// Sends a packet of up to 256 KiB, once: it is in time or lost. HAULIER_EVENT_PACKET_ACKED or
/// HAULIER_EVENT_PACKET_LOST says which.
///
/// data: copied; may be null if data_bytes is 0. number: where its number goes, for those events; may be
/// null.
///
/// Returns HAULIER_ERROR_NOT_OPEN for a connection that is gone, HAULIER_ERROR_FULL,
/// HAULIER_ERROR_USAGE if it is too large.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_send_packet(
    server: *const haulier_server,
    connection: u64,
    data: *const c_void,
    data_bytes: usize,
    number: *mut u64,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        let id = id_of(connection)?;
        // SAFETY: `data` has `data_bytes` bytes, as the caller promises.
        let data = Bytes::copy_from_slice(unsafe { bytes(data, data_bytes, "data") }?);
        let sequence = server.server.send_packet(id, data)?;
        // SAFETY: null, or a number can be written there, as the caller promises.
        unsafe { put_if_wanted(number, sequence.get().into()) };
        Ok(HAULIER_OK)
    })
}

/// Sends a message of up to 64 KiB on channel 0: it arrives, once, in order.
///
/// data: copied; may be null if data_bytes is 0.
///
/// Returns HAULIER_ERROR_NOT_OPEN for a connection that is gone, HAULIER_ERROR_FULL,
/// HAULIER_ERROR_USAGE if it is too large.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_send_message(
    server: *const haulier_server,
    connection: u64,
    data: *const c_void,
    data_bytes: usize,
) -> haulier_result {
    // SAFETY: what is asked of this function's caller is asked of that one's.
    unsafe {
        haulier_server_send_message_on(
            server,
            connection,
            0,
            0,
            data,
            data_bytes,
            core::ptr::null_mut(),
        )
    }
}

/// Sends a message of up to 64 KiB on a channel: it arrives, once. A message that is missing on one channel
/// delays no other channel.
///
/// channel: 0 to 255, and less than the client's max_channels. order: a haulier_order. data: copied; may be
/// null if data_bytes is 0. number: where its number on the channel goes, for HAULIER_EVENT_MESSAGE_ACKED;
/// may be null.
///
/// Returns as haulier_server_send_message() does; HAULIER_ERROR_USAGE also for a channel that the client does
/// not accept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_send_message_on(
    server: *const haulier_server,
    connection: u64,
    channel: u32,
    order: u32,
    data: *const c_void,
    data_bytes: usize,
    number: *mut u64,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        let id = id_of(connection)?;
        let (channel, order) = (channel_of(channel)?, order_of(order)?);
        // SAFETY: `data` has `data_bytes` bytes, as the caller promises.
        let data = Bytes::copy_from_slice(unsafe { bytes(data, data_bytes, "data") }?);
        let sent = server.server.send_message_on(id, channel, order, data)?;
        // SAFETY: null, or a number can be written there, as the caller promises.
        unsafe { put_if_wanted(number, sent) };
        Ok(HAULIER_OK)
    })
}

/// Sets the priority and the weight of a source of data to a client. Of the sources that have data to send,
/// the one with the highest priority goes first; within a priority each has its weight's share of the bytes.
///
/// source: a haulier_source. channel: which channel, with HAULIER_SOURCE_CHANNEL. priority: 0 to 255.
/// weight: 1 to 65535.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_set_lane(
    server: *const haulier_server,
    connection: u64,
    source: u32,
    channel: u32,
    priority: u32,
    weight: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        let id = id_of(connection)?;
        server.server.set_lane(id, source_of(source, channel)?, lane_of(priority, weight)?);
        Ok(HAULIER_OK)
    })
}

/// Limits the rate of the blocks that are sent to a client, in bit/s; less than 4000 counts as 4000.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_set_max_rate_bps(
    server: *const haulier_server,
    connection: u64,
    max_rate_bps: u64,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        unsafe { handle(server, "server") }?
            .server
            .set_max_rate_bps(id_of(connection)?, max_rate_bps);
        Ok(HAULIER_OK)
    })
}

/// Changes how much of the link a client's blocks may take, at once. urgency: a haulier_urgency.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_set_urgency(
    server: *const haulier_server,
    connection: u64,
    urgency: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        unsafe { handle(server, "server") }?
            .server
            .set_urgency(id_of(connection)?, self::urgency(urgency)?);
        Ok(HAULIER_OK)
    })
}
