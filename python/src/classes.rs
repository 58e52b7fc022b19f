//! The classes written in Python, and how they are made.

use std::fmt::Display;
use std::time::Duration;

use haulier::{
    BlockProgress, CloseCode, CloseReason, ConnectionStats, Event, ServerEvent, TokenClaims,
};
use haulier_files::Progress;
use haulier_files::session::InboxEvent;
use pyo3::call::PyCallArgs;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::bytes::to_python;
use crate::credentials::texts;
use crate::names::{BlockHandle, BlockNumber, ConnectionId};

macro_rules! imported {
    ($($(#[$doc:meta])* $name:ident = $module:literal, $attribute:literal;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
            static IT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            IT.import(py, $module, $attribute)
        }
    )*};
}

/// Fields by name, for classes with many of them.
macro_rules! fields {
    ($py:expr, $of:expr; $($same:ident)*; $($name:literal = $value:expr,)*) => {{
        let fields = pyo3::types::PyDict::new($py);
        $(fields.set_item(stringify!($same), $of.$same)?;)*
        $(fields.set_item($name, $value)?;)*
        fields
    }};
}
pub(crate) use fields;

imported! {
    /// Makes an error of a kind.
    error = "haulier.errors", "_of_kind";
    /// A coroutine for an operation.
    run = "haulier._aio", "run";
    /// Runs an operation for `async for`, which ends at None.
    run_next = "haulier._aio", "run_next";
    events = "haulier.events", "Event";
    server_events = "haulier.events", "ServerEvent";
    inbox_events = "haulier.events", "Received";
    token_claims = "haulier.types", "TokenClaims";
    connection_stats = "haulier.types", "ConnectionStats";
    server_stats = "haulier.types", "ServerStats";
    block_progress = "haulier.types", "BlockProgress";
    wire_bytes = "haulier.types", "WireBytes";
    attempt = "haulier.types", "Attempt";
    files_progress = "haulier.types", "Progress";
    soak_report = "haulier.types", "SoakReport";
    soak_failure = "haulier.types", "SoakFailure";
}

/// The code, its name and the peer's words of an end.
pub(crate) fn parts_of(reason: &CloseReason) -> (Option<u32>, Option<&'static str>, &str) {
    match reason {
        CloseReason::Here(code) => (Some(code.0), code.name(), ""),
        CloseReason::There { code, reason } => (Some(code.0), code.name(), reason),
        CloseReason::Refused(code) => (None, Some(code.name()), ""),
        _ => (None, None, ""),
    }
}

/// An `Event.Closed` of a client.
pub(crate) fn closed(py: Python<'_>, reason: &CloseReason) -> PyResult<Py<PyAny>> {
    closed_as(py, reason, left(reason).to_string())
}

fn closed_as(py: Python<'_>, reason: &CloseReason, text: String) -> PyResult<Py<PyAny>> {
    let (code, name, words) = parts_of(reason);
    make(py, "Closed", (reason.kind().name(), code, name, words, text))
}

/// The text about an end for a player. A player that leaves by choice reads no code.
fn left(reason: &CloseReason) -> &dyn Display {
    match reason {
        CloseReason::Here(CloseCode::DONE) => &"you have left",
        _ => reason,
    }
}

fn make<'py>(py: Python<'py>, name: &str, fields: impl PyCallArgs<'py>) -> PyResult<Py<PyAny>> {
    Ok(events(py)?.getattr(name)?.call1(fields)?.unbind())
}

fn seconds(duration: Option<Duration>) -> Option<f64> {
    duration.map(|it| it.as_secs_f64())
}

/// An event of a connection.
pub(crate) fn event(py: Python<'_>, event: Event) -> PyResult<Py<PyAny>> {
    match event {
        Event::Connected => make(py, "Connected", ()),
        Event::Queued { place, estimate } => make(py, "Queued", (place, seconds(estimate))),
        Event::BlockProgress { tag, received, length, rate_bps, estimate } => {
            make(py, "BlockProgress", (tag, received, length, rate_bps, seconds(estimate)))
        }
        Event::BlockAnnounced { block, tag, length, digest } => {
            let digest = to_python(py, &digest)?;
            make(py, "BlockAnnounced", (BlockNumber(block), tag, length, digest))
        }
        Event::BlockCancelled { block, tag, code } => {
            make(py, "BlockCancelled", (BlockNumber(block), tag, code))
        }
        Event::BlockHere { tag } => make(py, "BlockHere", (tag,)),
        Event::BlockDeclined { handle, code } => {
            make(py, "BlockDeclined", (BlockHandle(handle), code))
        }
        Event::Block { tag, data } => make(py, "Block", (tag, to_python(py, &data)?)),
        Event::Chunk { block, tag, offset, data, .. } => {
            make(py, "Chunk", (BlockNumber(block), tag, offset, to_python(py, &data)?))
        }
        Event::BlockComplete { block, tag } => make(py, "BlockComplete", (BlockNumber(block), tag)),
        Event::BlockSent { handle } => make(py, "BlockSent", (BlockHandle(handle),)),
        Event::Packet { sequence, data } => {
            make(py, "Packet", (sequence.get(), to_python(py, &data)?))
        }
        Event::PacketAcked { sequence } => make(py, "PacketAcked", (sequence.get(),)),
        Event::PacketLost { sequence } => make(py, "PacketLost", (sequence.get(),)),
        Event::Message { channel, data } => make(py, "Message", (channel, to_python(py, &data)?)),
        Event::MessageAcked { channel, number } => make(py, "MessageAcked", (channel, number)),
        Event::MessageWritable { channel } => make(py, "MessageWritable", (channel,)),
        Event::AddressChanged => make(py, "AddressChanged", ()),
        Event::Closed(reason) => closed(py, &reason),
        // An event of a source, which Python does not have, or one that is newer than this code.
        other => make(py, "Other", (format!("{other:?}"),)),
    }
}

/// An event of a server: of one of its connections, or a request.
pub(crate) fn server_event(py: Python<'_>, server: ServerEvent) -> PyResult<Py<PyAny>> {
    match server {
        ServerEvent::Connecting { request, token } => {
            let token = token.map(|claims| claims_of(py, &claims)).transpose()?;
            let class = server_events(py)?.getattr("Connecting")?;
            Ok(class.call1((to_python(py, &request)?, token))?.unbind())
        }
        // When the server has closed a connection, the text is not "you have left".
        ServerEvent::Connection(Event::Closed(reason)) => {
            closed_as(py, &reason, reason.to_string())
        }
        ServerEvent::Connection(it) => event(py, it),
        other => make(py, "Other", (format!("{other:?}"),)),
    }
}

/// The progress of a transfer of files.
pub(crate) fn files_progress_of(py: Python<'_>, progress: &Progress) -> PyResult<Py<PyAny>> {
    let fields = fields! { py, progress;
        files_done files wanted_bytes verified_bytes wire_bytes resumed_bytes copied_bytes packed_bytes
        saved_bytes here_bytes bytes_per_second;
        "remaining_s" = progress.remaining.map(|it| it.as_secs_f64()),
    };
    Ok(files_progress(py)?.call((), Some(&fields))?.unbind())
}

/// What became of a file that was sent to an inbox.
pub(crate) fn received(py: Python<'_>, event: InboxEvent) -> PyResult<Py<PyAny>> {
    let class = |name| inbox_events(py)?.getattr(name);
    let made = match event {
        InboxEvent::Stored { client, name, path, bytes, root, was_here } => {
            let root = to_python(py, &root)?;
            class("File")?.call1((ConnectionId(client), name, path, bytes, root, was_here))?
        }
        InboxEvent::Failed { client, name, fault } => {
            class("Failed")?.call1((ConnectionId(client), name, fault.to_string()))?
        }
        InboxEvent::Done { client, failed, progress } => {
            let progress = files_progress_of(py, &progress)?;
            class("Done")?.call1((ConnectionId(client), failed, progress))?
        }
        other => class("Other")?.call1((format!("{other:?}"),))?,
    };
    Ok(made.unbind())
}

fn claims_of(py: Python<'_>, claims: &TokenClaims) -> PyResult<Py<PyAny>> {
    let fields = (
        claims.issued_unix,
        claims.expiry_unix,
        texts(claims.servers.addresses()),
        u64::from_le_bytes(claims.client_id),
        claims.client_address.map(|address| address.to_string()),
        claims.min_rate.map(haulier::TokenRate::bps),
        claims.max_rate.map(haulier::TokenRate::bps),
        to_python(py, &claims.user_data)?,
    );
    Ok(token_claims(py)?.call1(fields)?.unbind())
}

/// The progress of a block that is sent or received.
pub(crate) fn progress(py: Python<'_>, it: Option<BlockProgress>) -> PyResult<Option<Py<PyAny>>> {
    let Some(it) = it else { return Ok(None) };
    Ok(Some(block_progress(py)?.call1((it.tag, it.done, it.length))?.unbind()))
}

/// The counters of a connection.
pub(crate) fn stats(py: Python<'_>, it: Option<ConnectionStats>) -> PyResult<Option<Py<PyAny>>> {
    let Some(it) = it else { return Ok(None) };
    let fields = fields! { py, it;
        datagrams_sent bytes_sent datagrams_received bytes_received ack_bytes_sent datagrams_refused
        datagrams_lost slices_sent repair_slices_sent slices_resent packets_dropped datagrams_marked
        congestion_marks black_holes key_updates bandwidth_bps loss max_datagram_bytes
        datagrams_in_flight;
        "rtt_s" = seconds(it.rtt),
        "min_rtt_s" = seconds(it.min_rtt),
        "rtt_variation_s" = seconds(it.rtt_variation),
        "suite" = it.suite.map(|suite| format!("{suite:?}")),
    };
    Ok(Some(connection_stats(py)?.call((), Some(&fields))?.unbind()))
}
