//! The record of a datagram: what has to be known of it once its fate is known.
//!
//! The [`Ledger`](super::Ledger) writes fates; all others read them. A record has 56 bytes, 8 of them since
//! chunks are named by block and index, and its contents are in the ring of
//! [`Items`](super::items::Items).

use core::num::NonZeroU16;

use haulier_control::PathId;

use super::items::Span;
use crate::Instant;

/// Bytes of the UDP and IPv4 headers of a datagram.
pub(crate) const UDP_IPV4_BYTES: usize = 28;

/// A chunk of a block of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkAt {
    /// The number of the block.
    pub block: u32,
    /// The chunk's index in the block, from 0.
    pub index: u32,
}

/// A slice of a chunk as it is counted: source slices from 0, repair slices from 256. Stored with one more,
/// so that the absence of a slice needs no space in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Symbol(NonZeroU16);

impl Symbol {
    /// The number of the first repair slice.
    const FIRST_REPAIR: u16 = 256;

    pub(crate) const fn source(index: u8) -> Self {
        Self(NonZeroU16::MIN.saturating_add(index as u16))
    }

    pub(crate) const fn repair(index: u8) -> Self {
        Self(NonZeroU16::MIN.saturating_add(Self::FIRST_REPAIR + index as u16))
    }

    /// Its number.
    pub(crate) const fn get(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Its index among the source or the repair slices, and whether it is a repair slice.
    pub(crate) const fn index(self) -> (u8, bool) {
        let [index, is_repair] = (self.0.get() - 1).to_le_bytes();
        (index, is_repair > 0)
    }
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Not known yet.
    InFlight,
    /// It is acknowledged.
    Acked,
    /// Others that were sent later have arrived.
    Lost,
    /// Nothing was received for long: it no longer counts as in flight. Its contents count as lost when a
    /// datagram that was sent later arrives, as always.
    GivenUp,
}

/// Why the contents of a datagram count as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossReason {
    /// Three datagrams that were sent later have arrived, or more.
    Overtaken,
    /// One that was sent later has arrived, and 9/8 of a round trip have passed.
    TimedOut,
    /// There was no room left to remember it.
    NoRoom,
}

/// Whether the contents of a datagram still wait for their fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// It asked for no ack, so that nothing in it matters.
    AckOnly,
    Open,
    /// It does, and the clock went back since it was sent: its ack shows no round trip.
    Untimed,
    Settled,
}

/// The record of a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    /// Its packet number.
    pub(crate) number: u64,
    pub(crate) path: PathId,
    pub(crate) sent_at: Instant,
    pub(super) items: Span,
    /// With the headers of UDP and IPv4; 0 for a probe, which no model of the path counts.
    wire_bytes: u16,
    pub(crate) slice: Option<(ChunkAt, Symbol)>,
    /// It was sent as ECN-capable.
    pub(crate) is_marked: bool,
    pub(crate) fate: Fate,
    pub(super) contents: Contents,
    /// If it is acknowledged: at least this number of datagrams are, this one and those after it.
    pub(super) acked_run: u32,
}

impl Datagram {
    /// The record of one that is sent now.
    pub(super) fn new(now: Instant, path: PathId, outgoing: Outgoing, items: Span) -> Self {
        let Outgoing { number, wire_bytes, is_ack_eliciting, is_marked, slice } = outgoing;
        Self {
            number,
            path,
            sent_at: now,
            items,
            wire_bytes: u16::try_from(wire_bytes).unwrap_or(u16::MAX),
            slice,
            is_marked,
            fate: Fate::InFlight,
            contents: if is_ack_eliciting { Contents::Open } else { Contents::AckOnly },
            acked_run: 1,
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
        matches!(self.contents, Contents::Open | Contents::Untimed)
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
    pub(crate) slice: Option<(ChunkAt, Symbol)>,
}

impl Outgoing {
    /// A full datagram without a slice, that asks for an ack.
    #[cfg(test)]
    pub(crate) fn without_slice(number: u64) -> Self {
        Self { number, wire_bytes: 1228, is_ack_eliciting: true, is_marked: false, slice: None }
    }

    /// A probe for larger datagrams.
    pub(crate) const fn probe(number: u64) -> Self {
        Self { number, wire_bytes: 0, is_ack_eliciting: true, is_marked: false, slice: None }
    }
}
