//! A server: it is bound, polled, and freed. Its connections are numbers.

pub mod blocks;
pub mod look;
pub mod send;

use core::ffi::c_char;
use core::net::SocketAddr;
use core::time::Duration;

use haulier::trace::VantagePoint;
use haulier::{
    CloseCode, ConnectionId, EarlierTokens, Identity, Listen, Server, ServerConfig,
    ServerCredentials, ServerLimits, TokenAudience, TokenKey, UnknownUplink,
};

use crate::block::{free, put_box, put_null};
use crate::event::{check_event, haulier_event, put_server_event};
use crate::memory::{addresses, all_addresses, handle, list, put_text, settings, text};
use crate::result::{Failure, border, haulier_result, looked};
use crate::settings::{connection_config, haulier_server_settings, is_inline, size};
use crate::trace::Traces;
use haulier_result::{HAULIER_ERROR_IO, HAULIER_NOTHING, HAULIER_OK};

/// Enough bytes for each text that the library writes: addresses, tickets, tokens, warnings.
pub const HAULIER_TEXT_BYTES: u32 = 2048;

/// A server and all its clients, at one address. A network thread does the work. Any thread may use it,
/// several at the same time too; each event goes to one of them. A connection is a number: that of the event
/// that brought it. A call with the number of a connection that has ended does nothing, and says so.
pub struct haulier_server {
    pub(crate) server: Server,
}

/// Binds an address, and starts.
///
/// address: "0.0.0.0:4016" or "[::]:4016" for all addresses of the host; with port 0 the system chooses one
/// (haulier_server_local_address()). protocol_id: the program's number, which both ends have. settings: they
/// say whom it lets in. server: where the new server goes, to be freed with haulier_server_free(); null is
/// written there if the call fails.
///
/// Returns HAULIER_ERROR_IO if the address cannot be bound, HAULIER_ERROR_USAGE for settings that cannot
/// work.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_bind(
    address: *const c_char,
    protocol_id: u64,
    settings: *const haulier_server_settings,
    server: *mut *mut haulier_server,
) -> haulier_result {
    border(|| {
        // SAFETY: the head of the header says what the caller owes: here a place for a pointer,
        unsafe { put_null(server) };
        if server.is_null() {
            return Err(Failure::usage("`server` is a null pointer"));
        }
        // SAFETY: text with a 0,
        let address = unsafe { addresses(address, "address") }?;
        // SAFETY: and settings with all that they point to.
        let (set, config) = unsafe { config_of(settings, protocol_id) }?;
        let point = VantagePoint::Server;
        // SAFETY: see above.
        let traces = unsafe { Traces::open(set.qlog_path, set.key_log_path, point) }?;
        let connection = traces.settings(config.connection);
        let config = config.with_connection(connection);
        let bound = Listen::bind(&*address);
        let bound = bound.map_err(|error| {
            let what = format!("cannot listen at {address:?}: {error}");
            Failure::new(HAULIER_ERROR_IO, what)
        })?;
        let mut bound = bound.workers(size(set.workers.into()));
        if let Some(sink) = traces.qlog {
            bound = bound.with_trace_sink(sink);
        }
        if let Some(sink) = traces.key_log {
            bound = bound.with_trace_sink(sink);
        }
        let bound = if is_inline(set.drive)? { bound.inline() } else { bound };
        let made = haulier_server { server: bound.start(config)? };
        // SAFETY: see above.
        unsafe { put_box(server, made, "server") }
    })
}

/// Makes another handle of the server, with the events of only one of its workers (haulier_server_settings,
/// workers): for a program that has a thread for each worker. All other functions work on all connections, as
/// with the first handle. Each event goes to one handle, so a program polls either these or the server
/// itself.
///
/// number: which worker, from 0. worker: where the new one goes, to be freed with haulier_server_free(), in
/// any order with the server; null is written there if the call does not return HAULIER_OK.
///
/// Returns HAULIER_NOTHING if there is no worker with this number: some systems have one, whatever the
/// settings say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_worker(
    server: *const haulier_server,
    number: u32,
    worker: *mut *mut haulier_server,
) -> haulier_result {
    border(|| {
        // SAFETY: a pointer can be written to worker, as the caller promises.
        unsafe { put_null(worker) };
        // SAFETY: null or a server, as the caller promises.
        let all = &unsafe { handle(server, "server") }?.server;
        let Some(one) = all.worker(size(number.into())) else { return Ok(HAULIER_NOTHING) };
        // SAFETY: see above.
        unsafe { put_box(worker, haulier_server { server: one }, "worker") }
    })
}

/// Frees a server. All connections that are left are closed with HAULIER_CLOSE_SHUTTING_DOWN:
/// haulier_server_finish() waits until that is sent. With haulier_server_worker() the server ends when the
/// last handle is freed. No other thread may use it any more. Its events stay valid. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_free(server: *mut haulier_server) {
    // SAFETY: null, or from this library and not freed before, as the caller promises.
    unsafe { free(server) }
}

/// Takes the next event of any client, without waiting. Call it once a frame, until it returns something else
/// than HAULIER_OK. event: what was in it is overwritten, not freed; free each event.
///
/// Returns HAULIER_OK with an event, HAULIER_NOTHING if no event is ready, and an error once the network
/// thread has ended and all events are taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_poll(
    server: *const haulier_server,
    event: *mut haulier_event,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        check_event(event)?;
        let polled = server.server.poll()?;
        // SAFETY: an event can be written there, as the caller promises.
        Ok(unsafe { put_server_event(event, polled) })
    })
}

/// Takes the next event of any client, and waits for it up to max_ms milliseconds.
///
/// Returns as haulier_server_poll() does; HAULIER_NOTHING also after haulier_server_wake(), and when the
/// server is shut down.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_wait(
    server: *const haulier_server,
    max_ms: u32,
    event: *mut haulier_event,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        check_event(event)?;
        let polled = server.server.wait(Duration::from_millis(max_ms.into()))?;
        // SAFETY: an event can be written there, as the caller promises.
        Ok(unsafe { put_server_event(event, polled) })
    })
}

/// Ends a haulier_server_wait() without an event: the one under way, or else the next. For other threads of
/// the program, whose results its network loop takes up. It does not wait for the network.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_wake(server: *const haulier_server) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        unsafe { handle(server, "server") }?.server.waker().wake();
        Ok(HAULIER_OK)
    })
}

/// Writes the text of a ticket to this server: its addresses, and its secret and identity if it has them. It
/// is a secret, unless the server is open.
///
/// addresses: those at which clients reach the server, as text, the likeliest first, up to 8. Null, with a
/// count of 0, is the one that it listens at. text: where the ticket goes, with its 0; HAULIER_TEXT_BYTES are
/// always enough.
///
/// Returns HAULIER_NOTHING if the server accepts only tokens, HAULIER_ERROR_USAGE for an address that clients
/// cannot reach, such as "0.0.0.0:4016".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_ticket(
    server: *const haulier_server,
    addresses: *const *const c_char,
    address_count: usize,
    text: *mut c_char,
    text_bytes: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        // SAFETY: `addresses` has `address_count` texts, as the caller promises.
        let mut reached: Vec<SocketAddr> =
            unsafe { all_addresses(addresses, address_count, "addresses") }?;
        if reached.is_empty() {
            reached.push(server.server.local_addr());
        }
        let Some(ticket) = server.server.ticket(&reached)? else { return Ok(HAULIER_NOTHING) };
        // SAFETY: null, or `text_bytes` bytes can be written there, as the caller promises.
        unsafe { put_text(text, text_bytes, &ticket.to_text()) }
    })
}

/// Closes a connection. To turn a client away, close it at HAULIER_EVENT_CONNECTING: it receives both,
/// the code and the reason.
///
/// code: HAULIER_CLOSE_DONE, HAULIER_CLOSE_NOT_ACCEPTED, or one of the program's own, from
/// HAULIER_CLOSE_APPLICATION on. reason: up to 255 bytes of text for the client; null for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_close(
    server: *const haulier_server,
    connection: u64,
    code: u32,
    reason: *const c_char,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?;
        let id = id_of(connection)?;
        // SAFETY: null or text with a 0, as the caller promises.
        let reason = if reason.is_null() { "" } else { unsafe { text(reason, "reason") }? };
        server.server.close(id, CloseCode(code), reason);
        Ok(HAULIER_OK)
    })
}

/// Starts to shut down: closes all connections with HAULIER_CLOSE_SHUTTING_DOWN, and accepts no more. Poll
/// until haulier_server_is_shut_down(), so that the closes are sent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_shut_down(server: *const haulier_server) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        unsafe { handle(server, "server") }?.server.shut_down();
        Ok(HAULIER_OK)
    })
}

/// Whether it was shut down, and no connection is left. True for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_is_shut_down(server: *const haulier_server) -> bool {
    // SAFETY: null or a server, as the caller promises.
    looked(true, || Ok(unsafe { handle(server, "server") }?.server.is_shut_down()))
}

/// Shuts down, and waits up to max_ms milliseconds until every close is sent. Events in that time are
/// dropped. The server is still to be freed.
///
/// Returns HAULIER_ERROR_TIMEOUT if not every close was sent in time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_server_finish(
    server: *const haulier_server,
    max_ms: u32,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a server, as the caller promises.
        let server = unsafe { handle(server, "server") }?.server.clone();
        server.finish(Duration::from_millis(max_ms.into()))?;
        Ok(HAULIER_OK)
    })
}

/// A connection of C.
pub(crate) fn id_of(connection: u64) -> Result<ConnectionId, Failure> {
    let what = || Failure::usage(format!("{connection} was never a connection"));
    ConnectionId::from_bits(connection).ok_or_else(what)
}

/// The settings of a server in Rust, from those of C.
///
/// # Safety
/// `given` is null, or settings of the size that they say, and all they point to is what the header says.
unsafe fn config_of(
    given: *const haulier_server_settings,
    protocol_id: u64,
) -> Result<(haulier_server_settings, ServerConfig), Failure> {
    // SAFETY: the caller's promise, here and below.
    let set = unsafe { settings(given) }?;
    // SAFETY: see above.
    let config = ServerConfig::new(protocol_id, unsafe { credentials_of(&set) }?);
    // SAFETY: see above.
    let addresses = unsafe { all_addresses(set.addresses, set.address_count, "addresses") }?;
    // SAFETY: see above.
    let connection = unsafe { connection_config(set.connection) }?;
    // SAFETY: null or a block, as the caller promises.
    let first_block = unsafe { set.first_block.as_ref() }.map(|first| first.block.clone());
    let mut limits = ServerLimits::default()
        .with_memory_bytes(size(set.max_memory_bytes))
        .with_line(size(set.max_in_line.into()))
        .with_connections_per_prefix(size(set.max_connections_per_prefix.into()))
        .with_handshakes(size(set.max_handshakes.into()))
        .with_handshakes_per_prefix(size(set.max_handshakes_per_prefix.into()));
    if set.max_connections > 0 {
        limits.connections = size(set.max_connections.into());
    }
    let mut config = config
        .with_addresses(addresses)
        .with_limits(limits)
        .with_max_uplink_bps(set.max_uplink_bps)
        .with_first_block(first_block)
        .with_connection(connection);
    if set.accepts_any_token != 0 {
        config.token_audience = TokenAudience::Any;
    }
    if set.accepts_earlier_tokens != 0 {
        config.earlier_tokens = EarlierTokens::Accepted;
    }
    if set.finds_out_uplink != 0 {
        config.unknown_uplink = UnknownUplink::FoundOut;
    }
    Ok((set, config))
}

/// # Safety
/// As for [`config_of`].
unsafe fn credentials_of(set: &haulier_server_settings) -> Result<ServerCredentials, Failure> {
    let mut credentials = ServerCredentials::default();
    // SAFETY: null or a secret, as the caller promises.
    let secrets =
        unsafe { (set.secret.as_ref(), set.identity.as_ref(), set.reset_secret.as_ref()) };
    credentials.secret = secrets.0.map(|secret| secret.to_secret());
    credentials.identity = secrets.1.map(|secret| Identity::new(secret.to_secret()));
    credentials.reset_secret = secrets.2.map(|secret| secret.to_secret());
    credentials.open = set.is_open != 0;
    // SAFETY: `token_keys` has `token_key_count` keys, as the caller promises.
    for key in unsafe { list(set.token_keys, set.token_key_count, "token_keys") }? {
        credentials = credentials.with_token_key(TokenKey { id: key.id, key: key.key.to_secret() });
    }
    if secrets.0.is_none() && credentials.token_keys.is_empty() && !credentials.open {
        return Err(Failure::usage(
            "the settings let nobody in: set `secret`, `token_keys` or `is_open`",
        ));
    }
    Ok(credentials)
}
