//! A client: it connects, is polled, and is freed.

pub mod blocks;
pub mod look;
pub mod send;

use core::ffi::c_char;
use core::time::Duration;

use haulier::trace::VantagePoint;
use haulier::{Client, CloseCode, Connect, Credentials};

use crate::block::{free, put_box, put_null};
use crate::event::{check_event, haulier_event, put_event};
use crate::memory::{addresses, all_addresses, bytes, handle, settings, text};
use crate::result::{Failure, border, haulier_result, looked};
use crate::secret::haulier_secret;
use crate::settings::{connection_config, haulier_client_settings, is_inline};
use crate::trace::Traces;
use haulier_result::HAULIER_OK;

/// A client, and its connection to a server. A network thread does the work. Any thread may use it, several
/// at the same time too; each event goes to one of them.
pub struct haulier_client {
    pub(crate) client: Client,
}

/// Starts to connect with the text of a ticket ("haulier1:...") or of a connect token ("haulier-token1:..."),
/// and returns at once: HAULIER_EVENT_CONNECTED or HAULIER_EVENT_CLOSED reports the result.
///
/// ticket: white space around it is ignored. settings: null for the defaults. client: where the new client
/// goes, to be freed with haulier_client_free(); null is written there if the call fails.
///
/// Returns HAULIER_ERROR_CREDENTIALS for a text that is neither, HAULIER_ERROR_USAGE for settings that cannot
/// work, HAULIER_ERROR_UNREACHABLE if no network leads there, HAULIER_ERROR_IO if the system gives no socket.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_connect(
    ticket: *const c_char,
    settings: *const haulier_client_settings,
    client: *mut *mut haulier_client,
) -> haulier_result {
    border(|| {
        // SAFETY: the head of the header says what the caller owes: here a place for a pointer,
        unsafe { put_null(client) };
        // SAFETY: text with a 0,
        let ticket = unsafe { text(ticket, "ticket") }?;
        // SAFETY: settings and all that they point to,
        let connect = unsafe { with_settings(Connect::try_from(ticket)?, settings) }?;
        // SAFETY: and that place.
        unsafe { put_client(connect, client) }
    })
}

/// Starts to connect to an address, without a ticket, and returns as haulier_client_connect() does.
///
/// address: "192.0.2.7:4016", "[2001:db8::7]:4016" or "example.org:4016"; the system resolves a name, which
/// may take seconds, and all its addresses are tried. protocol_id: the program's number, which both ends
/// have. secret: the server's; null for a server that is open, without encryption. identity: the public key
/// that the server must prove to have, 32 bytes, with a secret only; null for none. settings, client: as for
/// haulier_client_connect().
///
/// Returns what haulier_client_connect() does, and HAULIER_ERROR_IO for a name that is not known.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_connect_to(
    address: *const c_char,
    protocol_id: u64,
    secret: *const haulier_secret,
    identity: *const u8,
    settings: *const haulier_client_settings,
    client: *mut *mut haulier_client,
) -> haulier_result {
    border(|| {
        // SAFETY: as in haulier_client_connect, here and below.
        unsafe { put_null(client) };
        // SAFETY: see above.
        let servers = unsafe { addresses(address, "address") }?;
        // SAFETY: null or a secret; null or 32 bytes.
        let (secret, identity) = unsafe { (secret.as_ref(), identity.cast::<[u8; 32]>().as_ref()) };
        let credentials = match (secret, identity) {
            (Some(secret), identity) => {
                Credentials::Secret { secret: secret.to_secret(), identity: identity.copied() }
            }
            (None, None) => Credentials::Open,
            (None, Some(_)) => {
                let what = "an open server proves no identity: give a secret, or no identity";
                return Err(Failure::usage(what));
            }
        };
        let Some(first) = servers.first() else {
            return Err(Failure::usage("`address` has no address"));
        };
        let connect = Connect::new(*first, protocol_id, credentials).with_servers(servers);
        // SAFETY: see above.
        let connect = unsafe { with_settings(connect, settings) }?;
        // SAFETY: see above.
        unsafe { put_client(connect, client) }
    })
}

/// Frees a client. If it is still connected its connection is closed with HAULIER_CLOSE_DONE, and what was
/// not acknowledged may be lost: haulier_client_finish() waits for it. No other thread may use it any more.
/// Its events stay valid. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_free(client: *mut haulier_client) {
    // SAFETY: null, or from this library and not freed before, as the caller promises.
    unsafe { free(client) }
}

/// Takes the next event, without waiting. Call it once a frame, until it returns something else:
///
///     haulier_event event;
///     while (haulier_client_poll(client, &event) == HAULIER_OK) {
///         switch (event.kind) { ... }
///         haulier_event_free(&event);
///     }
///
/// event: what was in it is overwritten, not freed.
///
/// Returns HAULIER_OK with an event, HAULIER_NOTHING if no event is ready, and an error once the network
/// thread has ended and all events are taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_poll(
    client: *const haulier_client,
    event: *mut haulier_event,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { handle(client, "client") }?;
        check_event(event)?;
        let polled = client.client.poll()?;
        // SAFETY: an event can be written there, as the caller promises.
        Ok(unsafe { put_event(event, polled) })
    })
}

/// Takes the next event, and waits for it up to max_ms milliseconds.
///
/// Returns as haulier_client_poll() does; HAULIER_NOTHING also after haulier_client_wake(), and when the
/// client is closed and there are no more events.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_wait(
    client: *const haulier_client,
    max_ms: u32,
    event: *mut haulier_event,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { handle(client, "client") }?;
        check_event(event)?;
        let polled = client.client.wait(Duration::from_millis(max_ms.into()))?;
        // SAFETY: an event can be written there, as the caller promises.
        Ok(unsafe { put_event(event, polled) })
    })
}

/// Ends a haulier_client_wait() without an event: the one under way, or else the next. For other threads of
/// the program, whose results its network loop takes up. It does not wait for the network.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_wake(client: *const haulier_client) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        unsafe { handle(client, "client") }?.client.waker().wake();
        Ok(HAULIER_OK)
    })
}

/// Closes the connection. Nothing is received after that, except HAULIER_EVENT_CLOSED.
///
/// code: HAULIER_CLOSE_DONE, or one of the program's own, from HAULIER_CLOSE_APPLICATION on. reason: up to
/// 255 bytes of text for the server; null for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_close(
    client: *const haulier_client,
    code: u32,
    reason: *const c_char,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { handle(client, "client") }?;
        // SAFETY: null or text with a 0, as the caller promises.
        let reason = if reason.is_null() { "" } else { unsafe { text(reason, "reason") }? };
        client.client.close(CloseCode(code), reason);
        Ok(HAULIER_OK)
    })
}

/// Whether the connection is closed, and the peer was sent the close: there will be no more events. True for
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_is_closed(client: *const haulier_client) -> bool {
    // SAFETY: null or a client, as the caller promises.
    looked(true, || Ok(unsafe { handle(client, "client") }?.client.is_closed()))
}

/// Closes gracefully: waits until all blocks and messages that were sent are acknowledged, closes with
/// HAULIER_CLOSE_DONE, and waits until that is sent, all within max_ms milliseconds. Events in that time are
/// dropped. The client is still to be freed.
///
/// Returns HAULIER_ERROR_TIMEOUT if not all was acknowledged in time; it is closed nevertheless.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_finish(
    client: *const haulier_client,
    max_ms: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let client = unsafe { handle(client, "client") }?.client.clone();
        client.finish(Duration::from_millis(max_ms.into()))?;
        Ok(HAULIER_OK)
    })
}

/// Moves the connection to a new socket, where it goes on: call it when the network has changed, for example
/// from Wi-Fi to mobile. No effect before there is a connection.
///
/// Returns HAULIER_ERROR_IO if the system gives no socket; the old one is kept then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_client_rebind(client: *const haulier_client) -> haulier_result {
    border(|| {
        // SAFETY: null or a client, as the caller promises.
        let rebound = unsafe { handle(client, "client") }?.client.rebind();
        rebound.map_err(|error| Failure::new(haulier_result::HAULIER_ERROR_IO, error))?;
        Ok(HAULIER_OK)
    })
}

/// # Safety
/// What the settings point to is what the header says.
unsafe fn with_settings(
    mut connect: Connect,
    given: *const haulier_client_settings,
) -> Result<Connect, Failure> {
    // SAFETY: the caller's promise, here and below.
    let set = unsafe { settings(given) }?;
    // SAFETY: see above.
    connect.request = unsafe { bytes(set.request, set.request_bytes, "request") }?.to_vec();
    // SAFETY: see above.
    connect.servers.extend(unsafe { all_addresses(set.servers, set.server_count, "servers") }?);
    // SAFETY: see above.
    let traces = unsafe { Traces::open(set.qlog_path, set.key_log_path, VantagePoint::Client) }?;
    // SAFETY: see above.
    connect.connection = traces.settings(unsafe { connection_config(set.connection) }?);
    connect.max_time_in_line = Duration::from_millis(set.max_time_in_line_ms.into());
    let copies = u8::try_from(set.request_copies);
    connect.copies = copies.map_err(|_| Failure::usage("`request_copies` must be 1 to 10"))?;
    if let Some(sink) = traces.qlog {
        connect = connect.with_trace_sink(sink);
    }
    if let Some(sink) = traces.key_log {
        connect = connect.with_trace_sink(sink);
    }
    Ok(if is_inline(set.drive)? { connect.inline() } else { connect })
}

/// # Safety
/// `client` is null, or a pointer can be written there.
unsafe fn put_client(
    connect: Connect,
    client: *mut *mut haulier_client,
) -> Result<haulier_result, Failure> {
    if client.is_null() {
        return Err(Failure::usage("`client` is a null pointer"));
    }
    let made = haulier_client { client: Client::connect(connect)? };
    // SAFETY: the caller's promise.
    unsafe { put_box(client, made, "client") }
}
