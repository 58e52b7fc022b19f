//! From a datagram to a packet of the peer: parsed, reassembled, checked, and marked as received once the
//! application has accepted it.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::outbox::Cost;
use haulier_core::fragment::{FragmentPool, Reassembler};

use crate::ack::{AckBits, PACKET_WINDOW, ReceivedPackets};
use crate::debug_as;
use crate::packet::fragment::FragmentPacket;
use crate::packet::numbered::{NumberedPacket, claims_to_be_fragment};
use crate::packet::{self, ProtocolId};
use crate::{Instant, PacketDropReason, Sequence};

/// The number of accepted packets after which their acks are queued as an ack packet, whatever is sent
/// later: half of what ack bits can acknowledge, so that a loop that handles many datagrams before it sends
/// acknowledges all of them.
const ACK_AFTER_PACKETS: u16 = 16;

/// How long acks wait for a packet of the application to carry them, if this end has sent one recently: a
/// frame at 60 Hz and a little more. It is part of the round trip that the peer measures, so it must be
/// short.
const PIGGYBACK_WAIT: Duration = Duration::from_millis(20);

/// Ack packets that may be queued: those of a whole window of packets.
const MAX_ACK_PACKETS: usize = (PACKET_WINDOW / ACK_AFTER_PACKETS) as usize;

/// The contents of a datagram.
#[derive(Debug)]
pub(super) enum Opened<'a> {
    /// A fragment of a packet that is not complete yet.
    Fragment,
    /// Only acks.
    Acks(AckBits),
    /// A packet that is neither old nor a duplicate.
    Packet { sequence: Sequence, acks: Option<AckBits>, payload: &'a [u8], cost: Cost },
}

/// Accepted packets that are not acknowledged yet, and when acks were last sent.
#[derive(Clone, Copy, Debug, Default)]
struct PendingAcks {
    packets: u16,
    first_at: Option<Instant>,
    /// When acks were last sent, in any packet.
    acked_at: Option<Instant>,
    /// When acks were last sent in an ack packet.
    ack_packet_at: Option<Instant>,
}

/// The receiving half of an endpoint.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) received: ReceivedPackets,
    pub(super) reassembler: Reassembler,
    /// A packet was accepted that is too old for the reassembly window: the window is wrong, not the packet
    /// (STANDARD A-9.3d). It is cleared with the next fragment.
    reassembly_is_off: bool,
    pending: PendingAcks,
    /// Acks that wait for an ack packet of their own, oldest first.
    ack_packets: VecDeque<AckBits>,
    /// Packets are acknowledged until this long after they were received.
    ack_age: Duration,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Incoming {
    /// With the time after which the peer considers a packet lost.
    pub(super) fn new(loss_timeout: Duration) -> Self {
        Self {
            received: ReceivedPackets::new(),
            reassembler: Reassembler::new(),
            reassembly_is_off: false,
            pending: PendingAcks::default(),
            ack_packets: VecDeque::with_capacity(MAX_ACK_PACKETS),
            ack_age: loss_timeout,
            packets: 0,
            bytes: 0,
        }
    }

    pub(super) fn open<'a>(
        &mut self,
        protocol: ProtocolId,
        now: Instant,
        datagram: &'a [u8],
        pool: &'a mut FragmentPool,
    ) -> Result<Opened<'a>, PacketDropReason> {
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
    ) -> Result<Opened<'a>, PacketDropReason> {
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
                Err(PacketDropReason::SequenceMismatch)
            }
            NumberedPacket::Payload { sequence, acks, payload } => {
                Ok(Opened::Packet { sequence, acks, payload, cost })
            }
            NumberedPacket::Ack(_) => Err(PacketDropReason::BadType),
        }
    }

    fn check(&mut self, now: Instant, sequence: Sequence) -> Result<(), PacketDropReason> {
        let lives = self.received.restarts();
        self.received.check(now, sequence)?;
        if self.received.restarts() != lives {
            self.reassembly_is_off = true;
            // They acknowledge packets from before the restart, whose numbers now mean others.
            self.ack_packets.clear();
        }
        Ok(())
    }

    fn on_accepted(&mut self, now: Instant, sequence: Sequence, bytes: usize) {
        self.received.on_accepted(now, sequence, bytes);
        self.reassembly_is_off |= self.reassembler.is_too_old(sequence);
        let pending = &mut self.pending;
        pending.packets += 1;
        pending.first_at = Some(pending.first_at.map_or(now, |first| first.min(now)));
        // A clock that jumped ahead and came back must not delay acks until it is there again.
        pending.acked_at = pending.acked_at.map(|at| at.min(now));
        pending.ack_packet_at = pending.ack_packet_at.map(|at| at.min(now));
        if pending.packets >= ACK_AFTER_PACKETS {
            let acks = self.take_acks(now);
            if self.ack_packets.len() < MAX_ACK_PACKETS {
                self.ack_packets.extend(acks);
            }
        }
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    /// The acks for the header of the packet that is about to be sent. They are then no longer pending.
    pub(super) fn take_acks(&mut self, now: Instant) -> Option<AckBits> {
        self.pending =
            PendingAcks { packets: 0, first_at: None, acked_at: Some(now), ..self.pending };
        self.received.ack_bits_within(now, self.ack_age)
    }

    /// When an ack packet is due, if nothing is sent before: an interval after the last one, and at once for
    /// a packet that arrives alone. An end that has just sent something will probably do so again soon, so
    /// then its acks wait a little.
    pub(super) fn ack_due(&self, interval: Option<Duration>) -> Option<Instant> {
        let interval = interval?;
        if !self.ack_packets.is_empty() {
            return Some(Instant::ZERO);
        }
        let PendingAcks { first_at, acked_at, ack_packet_at, .. } = self.pending;
        let first = first_at?;
        let is_sending = acked_at.is_some_and(|at| first.since(at) < interval);
        let due = if is_sending { first + PIGGYBACK_WAIT } else { first };
        Some(ack_packet_at.map_or(due, |last| due.max(last + interval)))
    }

    /// The acks for the next ack packet, which is due.
    pub(super) fn next_ack_packet(&mut self, now: Instant) -> Option<AckBits> {
        self.pending.ack_packet_at = Some(now);
        self.ack_packets.pop_front().or_else(|| self.take_acks(now))
    }
}

/// A packet of the peer, offered to the application.
///
/// It counts as received, and will be acknowledged, only if it is [`accept`](Self::accept)ed. If it is
/// dropped instead the peer will count it as lost, and another copy of it would be offered again, unless it
/// came in fragments.
#[must_use = "a packet that is not accepted is not acknowledged"]
pub struct Delivery<'a> {
    pub(super) incoming: &'a mut Incoming,
    pub(super) now: Instant,
    pub(super) sequence: Sequence,
    pub(super) payload: &'a [u8],
    pub(super) cost: Cost,
}

debug_as! {
    Delivery['_]: |packet| sequence = packet.sequence, bytes = packet.payload.len()
}

impl<'a> Delivery<'a> {
    /// Its number.
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The payload of the peer's application.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// How often the peer was found to have restarted so far. Its numbers from before a restart mean other
    /// packets.
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
