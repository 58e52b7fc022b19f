//! From a datagram to a packet of the peer: parsed, put together, checked, and marked as received once the
//! application has accepted it.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::outbox::Cost;
use haulier_core::fragment::{FragmentPool, Reassembler};

use crate::ack::{AckBits, PACKET_WINDOW, ReceivedPackets};
use crate::packet::fragment::FragmentPacket;
use crate::packet::numbered::{NumberedPacket, claims_to_be_fragment};
use crate::packet::{self, ProtocolId};
use crate::{Instant, PacketDropReason, Sequence};

/// Packets accepted after which their acks are put aside as an ack packet, whatever is sent later: half of
/// what the ack bits reach, so that a loop which takes in many before it sends leaves none unsaid.
const ACK_AFTER_PACKETS: u16 = 16;

/// How long an end that speaks is waited for, whose next packet would carry the acks: a frame at 60 Hz and a
/// bit. It is part of the round trip that the peer measures, so it must be short.
const SPEAKER_WAIT: Duration = Duration::from_millis(20);

/// Ack packets that may wait: those of a whole window of packets.
const MAX_ACK_PACKETS: usize = (PACKET_WINDOW / ACK_AFTER_PACKETS) as usize;

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

/// Packets accepted that the peer was not told of yet.
#[derive(Clone, Copy, Debug, Default)]
struct Unsaid {
    packets: u16,
    first_at: Option<Instant>,
    /// When it was last told anything.
    said_at: Option<Instant>,
    /// When it was last told something in an ack packet.
    ack_packet_at: Option<Instant>,
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
    /// Acks that wait for an ack packet of their own, oldest first.
    ack_packets: VecDeque<AckBits>,
    /// How long after it was received a packet is acknowledged.
    ack_age: Duration,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Incoming {
    /// With the time after which the peer calls a packet lost.
    pub(super) fn new(loss_timeout: Duration) -> Self {
        Self {
            received: ReceivedPackets::new(),
            reassembler: Reassembler::new(),
            reassembly_is_off: false,
            unsaid: Unsaid::default(),
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
            // They are of packets of the former life, whose numbers now mean others.
            self.ack_packets.clear();
        }
        Ok(())
    }

    fn on_accepted(&mut self, now: Instant, sequence: Sequence, bytes: usize) {
        self.received.on_accepted(now, sequence, bytes);
        self.reassembly_is_off |= self.reassembler.is_too_old(sequence);
        let unsaid = &mut self.unsaid;
        unsaid.packets += 1;
        unsaid.first_at = Some(unsaid.first_at.map_or(now, |first| first.min(now)));
        // A clock that jumped ahead and came back must not hold acks up until it is there again.
        unsaid.said_at = unsaid.said_at.map(|said| said.min(now));
        unsaid.ack_packet_at = unsaid.ack_packet_at.map(|said| said.min(now));
        if unsaid.packets >= ACK_AFTER_PACKETS {
            let acks = self.say(now);
            if self.ack_packets.len() < MAX_ACK_PACKETS {
                self.ack_packets.extend(acks);
            }
        }
        self.packets += 1;
        self.bytes += bytes as u64;
    }

    /// What goes into the header of the packet that is about to be sent. The peer then knows.
    pub(super) fn say(&mut self, now: Instant) -> Option<AckBits> {
        self.unsaid = Unsaid { packets: 0, first_at: None, said_at: Some(now), ..self.unsaid };
        self.received.ack_bits_within(now, self.ack_age)
    }

    /// When an ack packet is due, if nothing is sent before: an interval after the last one, and at once for
    /// a packet that comes alone. An end that has just spoken will soon again, and is waited for a little.
    pub(super) fn ack_due(&self, interval: Option<Duration>) -> Option<Instant> {
        let interval = interval?;
        if !self.ack_packets.is_empty() {
            return Some(Instant::ZERO);
        }
        let Unsaid { first_at, said_at, ack_packet_at, .. } = self.unsaid;
        let first = first_at?;
        let is_speaking = said_at.is_some_and(|said| first.since(said) < interval);
        let due = if is_speaking { first + SPEAKER_WAIT } else { first };
        Some(ack_packet_at.map_or(due, |last| due.max(last + interval)))
    }

    /// What the next ack packet says, which is due.
    pub(super) fn next_ack_packet(&mut self, now: Instant) -> Option<AckBits> {
        self.unsaid.ack_packet_at = Some(now);
        self.ack_packets.pop_front().or_else(|| self.say(now))
    }
}

/// A packet of the peer, offered to the application.
///
/// It counts as received, and will be acknowledged, only if it is [`accept`](Self::accept)ed. Dropped
/// instead it was never here: the peer will count it as lost, and another copy of it would be offered
/// again, unless it came in fragments.
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
