//! Time-critical packets: sent once, in fragments above 1024 bytes, reported as acked or lost (STANDARD-1,
//! 4.3).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use bytes::Bytes;

use super::event::{Event, SendError};
use crate::fragment::{FRAGMENT_BYTES, Fragment, FragmentPool, MAX_FRAGMENTED_BYTES, Reassembler};
use crate::wire::Frame;
use crate::wire::frame::{FRAGMENT_FRAME_BYTES, MAX_WHOLE_PACKET_BYTES, PACKET_FRAME_BYTES};
use crate::{DropReason, Instant, Sequence};

#[derive(Debug)]
struct Waiting {
    sequence: Sequence,
    data: Bytes,
    next_fragment: usize,
}

/// The sending half.
#[derive(Debug, Default)]
pub(crate) struct OutgoingPackets {
    queue: VecDeque<Waiting>,
    queued_bytes: usize,
    next: Sequence,
    /// Pieces of each packet whose fate is open.
    open: BTreeMap<u16, u16>,
}

impl OutgoingPackets {
    pub(crate) fn send(&mut self, data: Bytes, most_bytes: usize) -> Result<Sequence, SendError> {
        if data.len() > MAX_FRAGMENTED_BYTES {
            return Err(SendError::TooLarge { max: MAX_FRAGMENTED_BYTES as u64 });
        }
        // The numbers turn; no two packets of one number may be open at a time.
        let is_full = !self.queue.is_empty() && self.queued_bytes + data.len() > most_bytes;
        if is_full || self.open.contains_key(&self.next.get()) {
            return Err(SendError::QueueFull { setting: "queued_packet_bytes" });
        }
        let sequence = self.next;
        self.next = sequence.next();
        let pieces = data.len().div_ceil(FRAGMENT_BYTES).max(1);
        self.open.insert(sequence.get(), u16::try_from(pieces).unwrap_or(u16::MAX));
        self.queued_bytes += data.len();
        self.queue.push_back(Waiting { sequence, data, next_fragment: 0 });
        Ok(sequence)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Appends the next piece if `room` holds it, and returns its packet's number.
    pub(crate) fn poll(&mut self, room: usize, out: &mut Vec<u8>) -> Option<Sequence> {
        let waiting = self.queue.front_mut()?;
        let sequence = waiting.sequence;
        if waiting.data.len() <= MAX_WHOLE_PACKET_BYTES {
            if PACKET_FRAME_BYTES + waiting.data.len() > room {
                return None;
            }
            Frame::Packet { sequence, data: &waiting.data }.write(out);
        } else {
            let index = waiting.next_fragment;
            let count = waiting.data.len().div_ceil(FRAGMENT_BYTES);
            let end = waiting.data.len().min((index + 1) * FRAGMENT_BYTES);
            let data = waiting.data.get(index * FRAGMENT_BYTES..end)?;
            if FRAGMENT_FRAME_BYTES + data.len() > room {
                return None;
            }
            Frame::Fragment(Fragment::new(sequence, index, count, data).ok()?).write(out);
            waiting.next_fragment += 1;
            if waiting.next_fragment < count {
                return Some(sequence);
            }
        }
        self.queued_bytes -= waiting.data.len();
        self.queue.pop_front();
        if self.queue.is_empty() && self.queue.capacity() > 64 {
            self.queue = VecDeque::new();
        }
        Some(sequence)
    }

    /// A datagram with a piece of this packet was acknowledged. Returns what there is to tell.
    pub(crate) fn on_acked(&mut self, sequence: Sequence) -> Option<Event> {
        let left = self.open.get_mut(&sequence.get())?;
        *left -= 1;
        if *left > 0 {
            return None;
        }
        self.open.remove(&sequence.get());
        Some(Event::PacketAcked { sequence })
    }

    /// A datagram with a piece of this packet is lost.
    pub(crate) fn on_lost(&mut self, sequence: Sequence) -> Option<Event> {
        self.open.remove(&sequence.get())?;
        // Pieces that are not sent yet are of no use any more.
        if let Some(at) = self.queue.iter().position(|waiting| waiting.sequence == sequence) {
            self.queued_bytes -= self.queue.remove(at).map_or(0, |waiting| waiting.data.len());
        }
        Some(Event::PacketLost { sequence })
    }
}

/// The receiving half.
#[derive(Debug, Default)]
pub(crate) struct IncomingPackets {
    /// Made by the first fragment: most connections never see one.
    reassembler: Option<Box<Reassembler>>,
    waiting: VecDeque<(Sequence, Bytes)>,
    waiting_bytes: usize,
    pub(crate) dropped: u64,
}

impl IncomingPackets {
    pub(crate) fn on_packet(
        &mut self,
        sequence: Sequence,
        data: Bytes,
        pool: &mut FragmentPool,
        most_bytes: usize,
    ) {
        if let Some(reassembler) = &mut self.reassembler {
            reassembler.pass(sequence, pool);
        }
        self.keep(sequence, data, most_bytes);
    }

    fn keep(&mut self, sequence: Sequence, data: Bytes, most_bytes: usize) {
        self.waiting_bytes += data.len();
        self.waiting.push_back((sequence, data));
        // Empty ones cost a place too.
        while self.waiting_bytes + self.waiting.len() * 64 > most_bytes && self.waiting.len() > 1 {
            self.waiting_bytes -= self.waiting.pop_front().map_or(0, |(_, data)| data.len());
            self.dropped += 1;
        }
    }

    pub(crate) fn on_fragment(
        &mut self,
        now: Instant,
        fragment: &Fragment<'_>,
        pool: &mut FragmentPool,
        most_bytes: usize,
    ) -> Result<(), DropReason> {
        let reassembler = self.reassembler.get_or_insert_with(Box::default);
        if let Some(packet) = reassembler.handle_fragment(now, fragment, pool)? {
            let packet = Bytes::copy_from_slice(packet);
            self.keep(fragment.sequence(), packet, most_bytes);
        }
        Ok(())
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        let (sequence, data) = self.waiting.pop_front()?;
        self.waiting_bytes -= data.len();
        if self.waiting.is_empty() && self.waiting.capacity() > 64 {
            self.waiting = VecDeque::new();
        }
        Some(Event::Packet { sequence, data })
    }

    /// Drops what waits.
    pub(crate) fn let_go(&mut self) {
        self.waiting = VecDeque::new();
        self.waiting_bytes = 0;
    }

    /// Memory held by what waits, in bytes. Half-received packets are the pool's.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.waiting_bytes + self.waiting.capacity() * size_of::<(Sequence, Bytes)>()
    }

    pub(crate) fn has_events(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(crate) fn clear(&mut self, pool: &mut FragmentPool) {
        if let Some(reassembler) = &mut self.reassembler {
            reassembler.clear(pool);
        }
    }
}
