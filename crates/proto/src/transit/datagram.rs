//! The record of a datagram: what has to be known of it once its fate is.
//!
//! The [`Ledger`](super::Ledger) writes fates; all others read them. A record has 40 bytes, and its
//! contents are in the ring of [`Items`](super::items::Items).

use super::items::Span;
use crate::Instant;
use crate::chunk::ChunkId;

/// Bytes of the UDP and IPv4 headers of a datagram.
pub(crate) const UDP_IPV4_BYTES: usize = 28;

/// A slice of a chunk as it is counted: source slices from 0, repair slices from 256.
pub(crate) type Symbol = u16;

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Not known yet.
    InFlight,
    /// It is acknowledged.
    Acked,
    /// It passed the bottleneck and was lost behind it; or nothing is known of a bottleneck.
    Lost,
    /// It found the bottleneck's queue full, if the model is right.
    Dropped,
    /// Nothing was heard for long: it no longer counts as in flight. What was in it is lost when something
    /// sent later arrives, as ever.
    GivenUp,
}

/// Whether what was in a datagram still waits for its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// It asked for no ack, so that nothing in it matters.
    AckOnly,
    Open,
    Settled,
}

/// The record of a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    /// Its packet number.
    pub(crate) number: u64,
    pub(crate) sent_at: Instant,
    /// Bytes in the modelled queue of the bottleneck when it had joined, itself included.
    pub(crate) backlog: f64,
    pub(super) items: Span,
    /// With the headers of UDP and IPv4; 0 for a probe, which no model of the path counts.
    wire_bytes: u16,
    pub(crate) slice: Option<(ChunkId, Symbol)>,
    /// It was sent as ECN-capable.
    pub(crate) is_marked: bool,
    pub(crate) fate: Fate,
    pub(super) contents: Contents,
}

impl Datagram {
    /// The record of one that is sent now.
    pub(super) fn new(now: Instant, outgoing: Outgoing, items: Span) -> Self {
        let Outgoing { number, wire_bytes, is_ack_eliciting, is_marked, slice, backlog } = outgoing;
        Self {
            number,
            sent_at: now,
            backlog,
            items,
            wire_bytes: u16::try_from(wire_bytes).unwrap_or(u16::MAX),
            slice,
            is_marked,
            fate: Fate::InFlight,
            contents: if is_ack_eliciting { Contents::Open } else { Contents::AckOnly },
        }
    }

    /// Its bytes with the headers of UDP and IPv4.
    pub(crate) fn wire_bytes(&self) -> f64 {
        f64::from(self.wire_bytes)
    }

    /// Whether it probes for larger datagrams: its loss says nothing but that it was too large.
    pub(crate) const fn is_probe(&self) -> bool {
        self.wire_bytes == 0
    }

    /// Its bytes without the headers of UDP and IPv4.
    pub(crate) fn payload_bytes(&self) -> usize {
        usize::from(self.wire_bytes).saturating_sub(UDP_IPV4_BYTES)
    }

    pub(crate) const fn is_ack_eliciting(&self) -> bool {
        !matches!(self.contents, Contents::AckOnly)
    }

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.contents, Contents::Open)
    }
}

/// A datagram on its way into the ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub(crate) number: u64,
    /// With the headers of UDP and IPv4.
    pub(crate) wire_bytes: usize,
    pub(crate) is_ack_eliciting: bool,
    pub(crate) is_marked: bool,
    pub(crate) slice: Option<(ChunkId, Symbol)>,
    pub(crate) backlog: f64,
}

impl Outgoing {
    /// A probe for larger datagrams.
    pub(crate) const fn probe(number: u64) -> Self {
        Self {
            number,
            wire_bytes: 0,
            is_ack_eliciting: true,
            is_marked: false,
            slice: None,
            backlog: 0.0,
        }
    }
}
