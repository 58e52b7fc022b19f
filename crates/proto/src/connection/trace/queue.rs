//! Events of a trace until they are taken.
//!
//! The invariant: they take no more than [`MAX_BYTES`] and [`RESERVED_BYTES`], whatever the peer sends and
//! however seldom they are taken. Events that find no room are counted.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::frame::TraceFrame;
use super::{TraceEvent, TraceLevel, TraceMeasures, TraceSecret, Traced};
use crate::Instant;
use crate::connection::ConnectionConfig;
use crate::crypto::{MessageKey, SplitSecrets, Suite};
use crate::wire::WireId;

/// What the events of datagrams and of the path may take: a round trip of some thousand datagrams.
const MAX_BYTES: usize = 1 << 20;

/// Additional bytes for secrets and the life of the connection: its end must not be among the missing events.
const RESERVED_BYTES: usize = 64 << 10;

/// What a connection has written down, and what it needs to write down changes only.
#[derive(Debug)]
pub(crate) struct Trace {
    level: TraceLevel,
    has_secrets: bool,
    events: VecDeque<Traced>,
    bytes: usize,
    missing: u64,
    /// Datagrams of the handshake so far, sent or received.
    pub(super) requests: u64,
    pub(super) bytes_in_flight: u64,
    /// Of the last [`TraceEvent::Measured`].
    pub(super) measures: TraceMeasures,
    pub(super) max_datagram_bytes: u16,
    /// Updates of this end's key and of the peer's.
    pub(super) key_updates: (u64, u64),
    /// Blocks below this number were announced, by this end and by the peer.
    pub(super) announced: (u32, u32),
    /// Slices sent again.
    pub(super) resent: u64,
    /// When a datagram was sent since the measures were compared.
    pub(super) sent_at: Option<Instant>,
}

impl Trace {
    /// One for a connection of these settings; `None` if nothing is to be written down.
    pub(crate) fn new(config: &ConnectionConfig) -> Option<Box<Self>> {
        let (level, has_secrets) = (config.trace, config.trace_secrets);
        let is_on = level > TraceLevel::Off || has_secrets;
        is_on.then(|| {
            Box::new(Self {
                level,
                has_secrets,
                events: VecDeque::new(),
                bytes: 0,
                missing: 0,
                requests: 0,
                bytes_in_flight: 0,
                measures: TraceMeasures::default(),
                max_datagram_bytes: 0,
                key_updates: (0, 0),
                announced: (0, 0),
                resent: 0,
                sent_at: None,
            })
        })
    }

    /// Whether events of this level are written down.
    pub(super) fn has(&self, level: TraceLevel) -> bool {
        self.level >= level
    }

    /// Writes an event down, if its level is, and there is room.
    pub(crate) fn push(&mut self, at: Instant, event: TraceEvent) {
        let is_wanted = match &event {
            TraceEvent::Secret(_) => self.has_secrets,
            event => self.has(event.level()),
        };
        if !is_wanted {
            return;
        }
        let max = match event.level() {
            TraceLevel::Path | TraceLevel::Datagrams => MAX_BYTES,
            TraceLevel::Off | TraceLevel::Life => MAX_BYTES + RESERVED_BYTES,
        };
        let bytes = bytes_of(&event);
        if self.bytes + bytes > max {
            self.missing += 1;
            return;
        }
        self.bytes += bytes;
        self.events.push_back(Traced { at, missing: core::mem::take(&mut self.missing), event });
    }

    /// The oldest event.
    pub(crate) fn pop(&mut self) -> Option<Traced> {
        let traced = self.events.pop_front()?;
        self.bytes -= bytes_of(&traced.event);
        Some(traced)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The key of the hello or the welcome of a handshake.
    pub(crate) fn message_key(
        &mut self,
        at: Instant,
        client_id: WireId,
        is_hello: bool,
        message: &MessageKey<'_>,
    ) {
        if !self.has_secrets {
            return;
        }
        let (client_id, key) = (client_id.0, message.key.clone());
        let associated_data = *message.associated_data;
        let secret = match is_hello {
            true => TraceSecret::Hello { client_id, key, associated_data },
            false => TraceSecret::Welcome { client_id, key, associated_data },
        };
        self.push(at, TraceEvent::Secret(secret));
    }

    /// The first secrets of both directions.
    pub(crate) fn traffic_secrets(
        &mut self,
        at: Instant,
        (client_id, server_id): (WireId, WireId),
        suite: Suite,
        secrets: &SplitSecrets,
    ) {
        if !self.has_secrets {
            return;
        }
        for is_clients in [true, false] {
            let of = if is_clients { &secrets.client_to_server } else { &secrets.server_to_client };
            let secret = TraceSecret::Traffic {
                is_clients,
                client_id: client_id.0,
                server_id: server_id.0,
                suite,
                secret: of.secret().clone(),
            };
            self.push(at, TraceEvent::Secret(secret));
        }
    }
}

/// What an event takes in the queue, the room that its ring doubles included.
fn bytes_of(event: &TraceEvent) -> usize {
    let beside = match event {
        TraceEvent::DatagramSent(datagram) | TraceEvent::DatagramReceived(datagram) => {
            let ranges = datagram.frames.iter().map(|frame| match frame {
                TraceFrame::Ack { ranges, .. } => ranges.capacity() * size_of::<(u64, u64)>(),
                _ => 0,
            });
            datagram.frames.capacity() * size_of::<TraceFrame>() + ranges.sum::<usize>()
        }
        TraceEvent::Closed(crate::connection::CloseReason::There { reason, .. }) => {
            reason.capacity()
        }
        _ => 0,
    };
    2 * size_of::<Traced>() + beside
}
