//! Packets on their way out: framed once, and cut into fragments when the datagrams are composed.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use haulier_core::fragment::{Fragment, split};
use haulier_core::{DatagramBuffer, PACKET_WINDOW};

use crate::debug_as;
use crate::packet::fragment::{FRAGMENT_HEADER_BYTES, FragmentPacket};
use crate::packet::numbered::{NUMBERED_HEADER_BYTES, NumberedPacket};
use crate::packet::{self, ProtocolId};
use crate::{PacketDropReason, Sequence};

/// Bytes of the UDP and IPv4 headers of a datagram.
pub(super) const UDP_IPV4_BYTES: usize = 28;

/// Packets that may wait: a window of them. With more, some would count as lost before they were sent.
const MAX_WAITING: usize = PACKET_WINDOW as usize;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    sequence: Sequence,
    start: usize,
    length: usize,
    /// The number of fragments, if it is too large for one datagram, and the next one.
    fragments: Option<(usize, usize)>,
}

/// The packets that wait to be sent, one after the other in one buffer that is reused.
#[derive(Clone, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    waiting: VecDeque<Waiting>,
}

debug_as! { Outbox: |outbox| waiting = outbox.waiting.len(), bytes = outbox.bytes.len() }

/// What a packet costs on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) datagrams: usize,
    /// With all headers, UDP and IPv4 included.
    pub(super) bytes: usize,
}

impl Cost {
    /// The cost of a packet of `length` bytes in this many fragments.
    pub(super) const fn of(length: usize, fragments: Option<usize>) -> Self {
        let (datagrams, header) = match fragments {
            Some(fragments) => (fragments, FRAGMENT_HEADER_BYTES),
            None => (1, 0),
        };
        Self { datagrams, bytes: length + datagrams * (header + UDP_IPV4_BYTES) }
    }
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a payload of this length may be queued, with up to `limit` bytes in the queue.
    pub(super) fn has_room(&mut self, payload_bytes: usize, limit: usize) -> bool {
        let needed = payload_bytes + NUMBERED_HEADER_BYTES;
        let sent = self.waiting.front().map_or(self.bytes.len(), |front| front.start);
        if self.waiting.len() >= MAX_WAITING || self.bytes.len() - sent + needed > limit {
            return false;
        }
        // The buffer is compacted when at least half of it was sent. If that were done sooner each packet
        // would move all that wait.
        if self.bytes.len() + needed > 2 * limit {
            self.bytes.drain(..sent);
            self.waiting.iter_mut().for_each(|packet| packet.start -= sent);
        }
        true
    }

    /// Frames a packet and queues it. One above `max_datagram` bytes will be sent in fragments.
    pub(super) fn push(
        &mut self,
        packet: NumberedPacket<'_>,
        protocol: ProtocolId,
        max_datagram: usize,
    ) -> Result<Cost, PacketDropReason> {
        let NumberedPacket::Payload { sequence, payload, .. } = packet else {
            return Err(PacketDropReason::BadType);
        };
        let start = self.bytes.len();
        self.bytes.resize(start + payload.len() + NUMBERED_HEADER_BYTES, 0);
        let place = self.bytes.get_mut(start..).unwrap_or_default();
        let length = match packet::write(packet, protocol, place) {
            Ok(length) => length,
            Err(reason) => {
                self.bytes.truncate(start);
                return Err(reason);
            }
        };
        self.bytes.truncate(start + length);
        let packet = self.bytes.get(start..).unwrap_or_default();
        let fragments = match length > max_datagram {
            true => Some(split(sequence, packet)?.len()),
            false => None,
        };
        let progress = fragments.map(|count| (count, 0));
        self.waiting.push_back(Waiting { sequence, start, length, fragments: progress });
        Ok(Cost::of(length, fragments))
    }

    /// Composes the next datagram, if there is one.
    pub(super) fn compose(
        &mut self,
        protocol: ProtocolId,
        datagram: &mut DatagramBuffer<'_>,
    ) -> bool {
        let Some(front) = self.waiting.front_mut() else { return false };
        let packet = self.bytes.get(front.start..front.start + front.length).unwrap_or_default();
        let is_last = match &mut front.fragments {
            None => {
                datagram.vec().extend_from_slice(packet);
                true
            }
            Some((count, next)) => {
                let fragment = Fragment::of_packet(front.sequence, *next, packet);
                packet::compose(FragmentPacket(fragment), protocol, datagram);
                *next += 1;
                *next == *count
            }
        };
        if is_last {
            self.waiting.pop_front();
        }
        if self.waiting.is_empty() {
            self.bytes.clear();
        }
        true
    }
}
