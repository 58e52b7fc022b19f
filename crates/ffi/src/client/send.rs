//! What a client sends beside blocks: packets and messages; and their priorities.

use core::ffi::c_void;

use bytes::Bytes;
use haulier::{Lane, Order, Source};

use super::haulier_client;
use crate::memory::{bytes, handle, put_if_wanted};
use crate::result::{Failure, border, haulier_result};
use crate::settings::urgency;
use haulier_result::HAULIER_OK;

/// The order of a message on its channel.
#[repr(i32)]
#[derive(Clone, Copy)]
pub enum haulier_order {
    /// After all ordered messages that were sent before it on its channel.
    HAULIER_ORDERED = 0,
    /// As soon as it has arrived.
    HAULIER_UNORDERED = 1,
}

/// What a lane is set for.
#[repr(i32)]
#[derive(Clone, Copy)]
pub enum haulier_source {
    /// Packets. By default of priority 192.
    HAULIER_SOURCE_PACKETS = 0,
    /// The messages of a channel. By default of priority 128.
    HAULIER_SOURCE_CHANNEL = 1,
    /// Blocks. By default of priority 64.
    HAULIER_SOURCE_BLOCKS = 2,
}

/// Sends a packet of up to 256 KiB, once: it is in time or lost. HAULIER_EVENT_PACKET_ACKED or
/// HAULIER_EVENT_PACKET_LOST says which.
///
/// data: copied; may be null if data_bytes is 0. number: where its number goes, for those events; may be
/// null.
///
/// Returns HAULIER_ERROR_NOT_OPEN before HAULIER_EVENT_CONNECTED and after the end, HAULIER_ERROR_FULL,
/// HAULIER_ERROR_USAGE if it is too large.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_send_packet(
    client: *const haulier_client,
    data: *const c_void,
    data_bytes: usize,
    number: *mut u64,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { handle(client, "client") }?;
        // SAFETY: `data` has `data_bytes` bytes, as the caller promises.
        let data = Bytes::copy_from_slice(unsafe { bytes(data, data_bytes, "data") }?);
        let sequence = client.client.send_packet(data)?;
        // SAFETY: null, or a number can be written there, as the caller promises.
        unsafe { put_if_wanted(number, sequence.get().into()) };
        Ok(HAULIER_OK)
    })
}

/// Sends a message of up to 64 KiB on channel 0: it arrives, once, in order.
///
/// data: copied; may be null if data_bytes is 0.
///
/// Returns HAULIER_ERROR_NOT_OPEN before HAULIER_EVENT_CONNECTED and after the end, HAULIER_ERROR_FULL,
/// HAULIER_ERROR_USAGE if it is too large.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_send_message(
    client: *const haulier_client,
    data: *const c_void,
    data_bytes: usize,
) -> haulier_result {
    // SAFETY: what is asked of this function's caller is asked of that one's.
    unsafe { haulier_client_send_message_on(client, 0, 0, data, data_bytes, core::ptr::null_mut()) }
}

/// Sends a message of up to 64 KiB on a channel: it arrives, once. A message that is missing on one channel
/// delays no other channel.
///
/// channel: 0 to 255, and less than the server's max_channels. order: a haulier_order. data: copied; may be
/// null if data_bytes is 0. number: where its number on the channel goes, for HAULIER_EVENT_MESSAGE_ACKED;
/// may be null.
///
/// Returns as haulier_client_send_message() does; HAULIER_ERROR_USAGE also for a channel that the server does
/// not accept.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_send_message_on(
    client: *const haulier_client,
    channel: u32,
    order: u32,
    data: *const c_void,
    data_bytes: usize,
    number: *mut u64,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { handle(client, "client") }?;
        let (channel, order) = (channel_of(channel)?, order_of(order)?);
        // SAFETY: `data` has `data_bytes` bytes, as the caller promises.
        let data = Bytes::copy_from_slice(unsafe { bytes(data, data_bytes, "data") }?);
        let sent = client.client.send_message_on(channel, order, data)?;
        // SAFETY: null, or a number can be written there, as the caller promises.
        unsafe { put_if_wanted(number, sent) };
        Ok(HAULIER_OK)
    })
}

/// Sets the priority and the weight of a source of this client's data. Of the sources that have data to send,
/// the one with the highest priority goes first; within a priority each has its weight's share of the bytes.
/// No effect before HAULIER_EVENT_CONNECTED.
///
/// source: a haulier_source. channel: which channel, with HAULIER_SOURCE_CHANNEL. priority: 0 to 255.
/// weight: 1 to 65535.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_set_lane(
    client: *const haulier_client,
    source: u32,
    channel: u32,
    priority: u32,
    weight: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { handle(client, "client") }?;
        client.client.set_lane(source_of(source, channel)?, lane_of(priority, weight)?);
        Ok(HAULIER_OK)
    })
}

/// Limits the rate of the blocks that this client sends, in bit/s; less than 4000 counts as 4000.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_set_max_rate_bps(
    client: *const haulier_client,
    max_rate_bps: u64,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        unsafe { handle(client, "client") }?.client.set_max_rate_bps(max_rate_bps);
        Ok(HAULIER_OK)
    })
}

/// Changes how much of the link this client's blocks may take, at once. urgency: a haulier_urgency.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_set_urgency(
    client: *const haulier_client,
    urgency: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        unsafe { handle(client, "client") }?.client.set_urgency(self::urgency(urgency)?);
        Ok(HAULIER_OK)
    })
}

/// A channel of C.
#[inline]
pub(crate) fn channel_of(number: u32) -> Result<u8, Failure> {
    u8::try_from(number)
        .map_err(|_| Failure::usage(format!("{number} is no channel: 0 to 255 are")))
}

/// A `haulier_order` of C.
#[inline]
pub(crate) fn order_of(number: u32) -> Result<Order, Failure> {
    match number {
        0 => Ok(Order::Ordered),
        1 => Ok(Order::Unordered),
        other => Err(Failure::usage(format!("{other} is no haulier_order"))),
    }
}

/// A `haulier_source` of C.
pub(crate) fn source_of(number: u32, channel: u32) -> Result<Source, Failure> {
    match number {
        0 => Ok(Source::Packets),
        1 => Ok(Source::Channel(channel_of(channel)?)),
        2 => Ok(Source::Blocks),
        other => Err(Failure::usage(format!("{other} is no haulier_source"))),
    }
}

/// A lane of C.
pub(crate) fn lane_of(priority: u32, weight: u32) -> Result<Lane, Failure> {
    let priority = u8::try_from(priority)
        .map_err(|_| Failure::usage(format!("{priority} is no priority: 0 to 255 are")))?;
    let weight = u16::try_from(weight)
        .map_err(|_| Failure::usage(format!("{weight} is no weight: 1 to 65535 are")))?;
    Ok(Lane::new(priority, weight)?)
}
