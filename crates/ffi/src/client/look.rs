//! What can be seen of a client.

use core::ffi::c_char;

use super::haulier_client;
use crate::memory::{handle, put, put_sized, put_text};
use crate::result::{border, haulier_result, looked};
use crate::stats::{haulier_connection_stats, haulier_progress, haulier_state};
use haulier_result::{HAULIER_NOTHING, HAULIER_OK};

/// Returns the state of the connection; HAULIER_STATE_NONE before there is one, and for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_state(client: *const haulier_client) -> haulier_state {
    looked(haulier_state::HAULIER_STATE_NONE, || {
        // SAFETY: null or a client, as the caller promises.
        Ok(unsafe { handle(client, "client") }?.client.state().into())
    })
}

/// Whether every block and message that was sent is acknowledged. True for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_all_acked(client: *const haulier_client) -> bool {
    // SAFETY: null or a client, as the caller promises.
    looked(true, || Ok(unsafe { handle(client, "client") }?.client.all_acked()))
}

/// Writes what the connection counts, and what it has measured of the path. struct_size:
/// sizeof(haulier_connection_stats).
///
/// Returns HAULIER_NOTHING before there is a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_stats(
    client: *const haulier_client,
    stats: *mut haulier_connection_stats,
    struct_size: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { handle(client, "client") }?;
        let Some(seen) = client.client.stats() else { return Ok(HAULIER_NOTHING) };
        // SAFETY: null, or `struct_size` bytes can be written there, as the caller promises.
        unsafe { put_sized(stats, struct_size, seen.into()) }
    })
}

/// Writes the progress of the block that is being sent.
///
/// Returns HAULIER_NOTHING if no block is being sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_sending(
    client: *const haulier_client,
    progress: *mut haulier_progress,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { handle(client, "client") }?;
        let Some(seen) = client.client.sending() else { return Ok(HAULIER_NOTHING) };
        // SAFETY: null, or a progress can be written there, as the caller promises.
        unsafe { put(progress, seen.into(), "progress") }?;
        Ok(HAULIER_OK)
    })
}

/// Writes the progress of the block that is being received.
///
/// Returns HAULIER_NOTHING if no block is being received.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_receiving(
    client: *const haulier_client,
    progress: *mut haulier_progress,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { handle(client, "client") }?;
        let Some(seen) = client.client.receiving() else { return Ok(HAULIER_NOTHING) };
        // SAFETY: null, or a progress can be written there, as the caller promises.
        unsafe { put(progress, seen.into(), "progress") }?;
        Ok(HAULIER_OK)
    })
}

/// Writes the address of the server as text; one of several while it connects. HAULIER_TEXT_BYTES are always
/// enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_server_address(
    client: *const haulier_client,
    text: *mut c_char,
    text_bytes: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { handle(client, "client") }?;
        // SAFETY: null, or `text_bytes` bytes can be written there, as the caller promises.
        unsafe { put_text(text, text_bytes, &client.client.server().to_string()) }
    })
}

/// Writes the local address of its socket as text. HAULIER_TEXT_BYTES are always enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_local_address(
    client: *const haulier_client,
    text: *mut c_char,
    text_bytes: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { handle(client, "client") }?;
        // SAFETY: null, or `text_bytes` bytes can be written there, as the caller promises.
        unsafe { put_text(text, text_bytes, &client.client.local_addr().to_string()) }
    })
}

/// Writes a warning for the user if the system gives the socket too little buffer memory, with what to do.
/// HAULIER_TEXT_BYTES are always enough.
///
/// Returns HAULIER_NOTHING if there is no warning.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_buffer_warning(
    client: *const haulier_client,
    text: *mut c_char,
    text_bytes: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { handle(client, "client") }?;
        let Some(warning) = client.client.buffer_warning() else { return Ok(HAULIER_NOTHING) };
        // SAFETY: null, or `text_bytes` bytes can be written there, as the caller promises.
        unsafe { put_text(text, text_bytes, &warning) }
    })
}
