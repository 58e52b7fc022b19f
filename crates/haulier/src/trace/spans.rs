//! Traces as spans and events of the crate `tracing`, for programs that log with it.
//!
//! A span for each connection, and in it events: at `INFO` what a log of a server has (connected, blocks,
//! closed and why), at `DEBUG` the path (measures, losses, drops, keys), at `TRACE` each datagram. All are of
//! the target `haulier`. A client or server that starts while a subscriber wants some of it does this by
//! itself; what no subscriber wants is not written down in the first place.

use std::collections::HashMap;

use haulier_proto::connection::ConnectionState;
use haulier_proto::connection::trace::{
    DatagramKind, TraceDatagram, TraceEvent, TraceLevel, Traced,
};
use haulier_proto::server::ConnectionId;
use tracing::{Level, Span, debug, enabled, info, info_span, trace};

use super::TraceSink;

/// A sink that makes spans and events of `tracing`, of the target `haulier`.
///
/// [`Client`](crate::Client) and [`Server`](crate::Server) have one of their own while the feature `tracing`
/// is on and a subscriber wants it. It is here for transports of one's own.
#[derive(Debug, Default)]
pub struct Spans {
    /// Of the connections that have not ended.
    spans: HashMap<Option<ConnectionId>, Span>,
}

impl Spans {
    /// One without connections.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How much of a trace the subscriber of this thread, or of the program, wants now: the level for
    /// [`ConnectionConfig::trace`](crate::ConnectionConfig::trace).
    #[must_use]
    pub fn wanted() -> TraceLevel {
        if enabled!(target: "haulier", Level::TRACE) {
            TraceLevel::Datagrams
        } else if enabled!(target: "haulier", Level::DEBUG) {
            TraceLevel::Path
        } else if enabled!(target: "haulier", Level::INFO) {
            TraceLevel::Life
        } else {
            TraceLevel::Off
        }
    }

    fn span_of(&mut self, of: Option<ConnectionId>, event: &TraceEvent) -> Span {
        if let TraceEvent::Started { peer, .. } = event {
            let span = match of {
                Some(id) => info_span!(target: "haulier", "connection", %id, %peer),
                None => info_span!(target: "haulier", "connection", %peer),
            };
            self.spans.insert(of, span);
        }
        // What comes after the end is few: drops.
        let span = match event {
            TraceEvent::StateChanged(ConnectionState::Closed) => self.spans.remove(&of),
            _ => self.spans.get(&of).cloned(),
        };
        span.unwrap_or_else(Span::none)
    }
}

impl TraceSink for Spans {
    fn write(&mut self, of: Option<ConnectionId>, traced: &Traced) {
        let span = self.span_of(of, &traced.event);
        if traced.missing > 0 {
            debug!(target: "haulier", parent: &span, count = traced.missing, "events are missing");
        }
        span.in_scope(|| write(&traced.event));
    }
}

fn write(event: &TraceEvent) {
    match event {
        TraceEvent::StateChanged(ConnectionState::Connected) => {
            info!(target: "haulier", "connected");
        }
        TraceEvent::StateChanged(state) => debug!(target: "haulier", ?state, "state"),
        TraceEvent::Closed(reason) => info!(target: "haulier", %reason, "closed"),
        TraceEvent::BlockAnnounced { is_here, tag, length, .. } => {
            let what = if *is_here { "block begun" } else { "block announced" };
            info!(target: "haulier", tag, bytes = length, "{what}");
        }
        TraceEvent::BlockSent { .. } => info!(target: "haulier", "block sent"),
        TraceEvent::BlockReceived { tag } => info!(target: "haulier", tag, "block received"),
        TraceEvent::AddressChanged(peer) => info!(target: "haulier", %peer, "address changed"),
        TraceEvent::Started { .. } => debug!(target: "haulier", "started"),
        TraceEvent::Agreed { suite, .. } => debug!(target: "haulier", ?suite, "agreed"),
        TraceEvent::KeyUpdated { is_here, updates } => {
            debug!(target: "haulier", is_here, updates, "key updated");
        }
        TraceEvent::DatagramSizeChanged(bytes) => {
            debug!(target: "haulier", bytes, "largest datagram");
        }
        TraceEvent::DatagramDropped { reason, bytes } => {
            debug!(target: "haulier", reason = reason.name(), bytes, "dropped");
        }
        TraceEvent::DatagramLost { number, why } => {
            debug!(target: "haulier", number, ?why, "lost");
        }
        TraceEvent::Measured(it) => debug!(
            target: "haulier",
            rtt = ?it.smoothed_rtt,
            min_rtt = ?it.min_rtt,
            bandwidth_bps = it.bandwidth_bps,
            pacing_rate_bps = it.pacing_rate_bps,
            bytes_in_flight = it.bytes_in_flight,
            "path"
        ),
        TraceEvent::DatagramSent(it) => datagram("sent", it),
        TraceEvent::DatagramReceived(it) => datagram("received", it),
        TraceEvent::DatagramAcked { number } => trace!(target: "haulier", number, "acked"),
        // A secret is for a key log alone.
        _ => {}
    }
}

fn datagram(what: &str, it: &TraceDatagram) {
    let kind = match it.kind {
        DatagramKind::Request => "request",
        DatagramKind::Response => "response",
        _ => "data",
    };
    let (number, bytes) = (it.number, it.bytes);
    trace!(target: "haulier", kind, number, bytes, frames = ?it.frames, "{what}");
}
