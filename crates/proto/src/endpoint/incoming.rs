//! From a datagram to a packet of the peer: parsed, put together, checked, and marked as received once the
//! application has accepted it.

use core::time::Duration;

use super::outbox::Cost;
use crate::ack::{AckBits, ReceivedPackets};
use crate::fragment::{FragmentPool, Reassembler};
use crate::packet::fragment::FragmentPacket;
use crate::packet::numbered::{NumberedPacket, claims_to_be_fragment};
use crate::packet::{self, ProtocolId};
use crate::{DropReason, Instant, Sequence};

/// Packets received after which an ack packet is sent, if nothing else was: half of what the ack bits
/// reach, so that one lost ack packet loses no ack.
const ACK_AFTER_PACKETS: u16 = 16;

/// What a datagram turned out to be.
#[derive(Debug)]
pub(super) enum Opened<'a> {
    /// A fragment of a packet that is not whole yet.
    Fragment,
    /// Only acks.
    Acks(AckBits),
    /// A packet that is neither old nor a duplicate.
    Packet { sequence: Sequence, acks: Option<AckBits>, payload: &'a [u8], cost: Cost },
}

/// Packets accepted since the peer was last told what has arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Unsaid {
    packets: u16,
    since: Option<Instant>,
}

/// The receiving half of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) received: ReceivedPackets,
    pub(super) reassembler: Reassembler,
    /// A packet was accepted that the reassembly window calls too old: the window is wrong, not the packet
    /// (STANDARD A-9.3d). It starts over with the next fragment.
    reassembly_is_off: bool,
    unsaid: Unsaid,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) last_at: Option<Instant>,
}

impl Incoming {
    pub(super) fn new() -> Self {
        Self {
            received: ReceivedPackets::new(),
            reassembler: Reassembler::new(),
            reassembly_is_off: false,
            unsaid: Unsaid::default(),
            packets: 0,
            bytes: 0,
            last_at: None,
        }
    }

    pub(super) fn open<'a>(
        &mut self,
        protocol: ProtocolId,
        now: Instant,
        datagram: &'a [u8],
        pool: &'a mut FragmentPool,
    ) -> Result<Opened<'a>, DropReason> {
        if claims_to_be_fragment(datagram) {
            return self.open_fragment(protocol, now, datagram, pool);
        }
        match packet::read(protocol, datagram)? {
            NumberedPacket::Ack(acks) => Ok(Opened::Acks(acks)),
            NumberedPacket::Payload { sequence, acks, payload } => {
                self.check(now, sequence)?;
                let cost = Cost::of(datagram.len(), None);
                Ok(Opened::Packet { sequence, acks, payload, cost })
            }
        }
    }

    fn open_fragment<'a>(
        &mut self,
        protocol: ProtocolId,
        now: Instant,
        datagram: &'a [u8],
        pool: &'a mut FragmentPool,
    ) -> Result<Opened<'a>, DropReason> {
        let FragmentPacket(fragment) = packet::read(protocol, datagram)?;
        self.check(now, fragment.sequence())?;
        if core::mem::take(&mut self.reassembly_is_off) {
            self.reassembler.clear(pool);
        }
        let Some(whole) = self.reassembler.handle_fragment(now, &fragment, pool)? else {
            return Ok(Opened::Fragment);
        };
        let cost = Cost::of(whole.len(), Some(fragment.count()));
        match packet::read_reassembled(protocol, whole)? {
            NumberedPacket::Payload { sequence, .. } if sequence != fragment.sequence() => {
                Err(DropReason::SequenceMismatch)
            }
            NumberedPacket::Payload { sequence, acks, payload } => {
                Ok(Opened::Packet { sequence, acks, payload, cost })
            }
            NumberedPacket::Ack(_) => Err(DropReason::BadType),
        }
    }

    fn check(&mut self, now: Instant, sequence: Sequence) -> Result<(), DropReason> {
        let lives = self.received.restarts();
        self.received.check(now, sequence)?;
        self.reassembly_is_off |= self.received.restarts() != lives;
        Ok(())
    }

    fn on_accepted(&mut self, now: Instant, sequence: Sequence, bytes: usize) {
        self.received.on_accepted(now, sequence, bytes);
        self.reassembly_is_off |= self.reassembler.is_too_old(sequence);
        self.unsaid.packets = self.unsaid.packets.saturating_add(1);
        self.unsaid.since.get_or_insert(now);
        self.packets += 1;
        self.bytes += bytes as u64;
        self.last_at = Some(now);
    }

    /// What goes into the header of the packet that is about to be sent. The peer then knows.
    pub(super) fn say(&mut self) -> Option<AckBits> {
        self.unsaid = Unsaid::default();
        self.received.ack_bits()
    }

    /// When an ack packet is due, if nothing is sent before.
    pub(super) fn ack_due(&self, delay: Option<Duration>) -> Option<Instant> {
        let (delay, since) = (delay?, self.unsaid.since?);
        Some(if self.unsaid.packets >= ACK_AFTER_PACKETS { since } else { since + delay })
    }
}

/// A packet of the peer, offered to the application.
///
/// It counts as received, and will be acknowledged, only if it is [`accept`](Self::accept)ed. Dropped
/// instead it was never here: the peer will count it as lost.
#[derive(Debug)]
#[must_use = "a packet that is not accepted is not acknowledged"]
pub struct Delivery<'a> {
    pub(super) incoming: &'a mut Incoming,
    pub(super) now: Instant,
    pub(super) sequence: Sequence,
    pub(super) payload: &'a [u8],
    pub(super) cost: Cost,
}

impl<'a> Delivery<'a> {
    /// Its number.
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// What the peer's application sent.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// How often the peer was found to have started over by now. Its numbers of an earlier life say
    /// nothing of this one.
    #[must_use]
    pub const fn restarts(&self) -> u64 {
        self.incoming.received.restarts()
    }

    /// Marks it as received, and returns the payload.
    pub fn accept(self) -> &'a [u8] {
        self.incoming.on_accepted(self.now, self.sequence, self.cost.bytes);
        self.payload
    }
}
