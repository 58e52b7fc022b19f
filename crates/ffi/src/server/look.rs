//! What can be seen of a server and its connections.

use core::ffi::c_char;
use core::net::SocketAddr;

use haulier::proto::connection::Connection;

use super::{haulier_server, id_of};
use crate::memory::{handle, put, put_sized, put_text};
use crate::result::{border, haulier_result, looked};
use crate::stats::{
    haulier_connection_stats, haulier_progress, haulier_server_counters, haulier_state,
};
use haulier_result::{HAULIER_NOTHING, HAULIER_OK};

/// Returns the state of a connection; HAULIER_STATE_NONE for one that is gone, and for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_state(
    server: *const haulier_server,
    connection: u64,
) -> haulier_state {
    looked(haulier_state::HAULIER_STATE_NONE, || {
        // SAFETY: null or a server, as the caller promises.
        Ok(unsafe { handle(server, "server") }?.server.state(id_of(connection)?).into())
    })
}

/// Writes what the connection counts, and what it has measured of the path. struct_size:
/// sizeof(haulier_connection_stats).
///
/// Returns HAULIER_NOTHING for a connection that is gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_connection_stats(
    server: *const haulier_server,
    connection: u64,
    stats: *mut haulier_connection_stats,
    struct_size: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        let id = id_of(connection)?;
        let Some(seen) = server.server.connection_stats(id) else { return Ok(HAULIER_NOTHING) };
        // SAFETY: null, or `struct_size` bytes can be written there, as the caller promises.
        unsafe { put_sized(stats, struct_size, seen.into()) }
    })
}

/// Writes the progress of the block that is being sent.
///
/// Returns HAULIER_NOTHING if no block is being sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_sending(
    server: *const haulier_server,
    connection: u64,
    progress: *mut haulier_progress,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        let id = id_of(connection)?;
        let Some(seen) = server.server.sending(id) else { return Ok(HAULIER_NOTHING) };
        // SAFETY: null, or a progress can be written there, as the caller promises.
        unsafe { put(progress, seen.into(), "progress") }?;
        Ok(HAULIER_OK)
    })
}

/// Writes the progress of the block that is being received.
///
/// Returns HAULIER_NOTHING if no block is being received.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_receiving(
    server: *const haulier_server,
    connection: u64,
    progress: *mut haulier_progress,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        let id = id_of(connection)?;
        let Some(seen) = server.server.receiving(id) else { return Ok(HAULIER_NOTHING) };
        // SAFETY: null, or a progress can be written there, as the caller promises.
        unsafe { put(progress, seen.into(), "progress") }?;
        Ok(HAULIER_OK)
    })
}

/// Writes the address of a connection's client as text. HAULIER_TEXT_BYTES are always enough.
///
/// Returns HAULIER_NOTHING for a connection that is gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_client_address(
    server: *const haulier_server,
    connection: u64,
    text: *mut c_char,
    text_bytes: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        let address: Option<SocketAddr> =
            server.server.with_connection(id_of(connection)?, Connection::address);
        let Some(address) = address else { return Ok(HAULIER_NOTHING) };
        // SAFETY: null, or `text_bytes` bytes can be written there, as the caller promises.
        unsafe { put_text(text, text_bytes, &address.to_string()) }
    })
}

/// Writes what the server counts, for all its clients together. struct_size: sizeof(haulier_server_counters).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_stats(
    server: *const haulier_server,
    stats: *mut haulier_server_counters,
    struct_size: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        // SAFETY: null, or `struct_size` bytes can be written there, as the caller promises.
        unsafe { put_sized(stats, struct_size, server.server.stats().into()) }
    })
}

/// Writes the connections that there are, those in their handshake too.
///
/// connections: room for capacity numbers; may be null if that is 0. count: where the number of connections
/// goes, which may be more than capacity: then the others were not written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_connections(
    server: *const haulier_server,
    connections: *mut u64,
    capacity: usize,
    count: *mut usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        let all = server.server.connections();
        // SAFETY: null, or a number can be written there, as the caller promises.
        unsafe { put(count, all.len(), "count") }?;
        for (place, id) in all.iter().take(capacity).enumerate() {
            // SAFETY: null, or there is room for capacity numbers, as the caller promises.
            unsafe { put(connections.wrapping_add(place), id.to_bits(), "connections") }?;
        }
        Ok(HAULIER_OK)
    })
}

/// Whether every block and message that was sent to a client is acknowledged. True for null, and for a
/// connection that is gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_all_acked(
    server: *const haulier_server,
    connection: u64,
) -> bool {
    looked(true, || {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        let seen = server.server.with_connection(id_of(connection)?, |it| it.all_acked());
        Ok(seen.unwrap_or(true))
    })
}

/// Writes the address that the server listens at as text, with the port that the system has chosen.
/// HAULIER_TEXT_BYTES are always enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_local_address(
    server: *const haulier_server,
    text: *mut c_char,
    text_bytes: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        // SAFETY: null, or `text_bytes` bytes can be written there, as the caller promises.
        unsafe { put_text(text, text_bytes, &server.server.local_addr().to_string()) }
    })
}
