//! Time-critical packets: sent once, in fragments above 1024 bytes, reported as acked or lost (STANDARD-1,
//! 4.3).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use bytes::Bytes;

use super::event::{Event, SendError};
use crate::fragment::{FRAGMENT_BYTES, Fragment, FragmentPool, MAX_FRAGMENTED_BYTES, Reassembler};
use crate::transit::{Place, ReplayWindow, SMALLEST};
use crate::wire::frames::{
    FRAGMENT_FRAME_BYTES, Frame, MAX_WHOLE_PACKET_BYTES, PACKET_FRAME_BYTES,
};
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
    /// Unacknowledged fragments of each packet that is neither acked nor lost.
    in_flight: BTreeMap<u16, u16>,
}

impl OutgoingPackets {
    pub(crate) fn send(&mut self, data: Bytes, max_bytes: usize) -> Result<Sequence, SendError> {
        if data.len() > MAX_FRAGMENTED_BYTES {
            return Err(SendError::TooLarge { max: MAX_FRAGMENTED_BYTES as u64 });
        }
        // Sequences wrap; two packets with the same one must not be in flight at the same time.
        let is_full = !self.queue.is_empty() && self.queued_bytes + data.len() > max_bytes;
        if is_full || self.in_flight.contains_key(&self.next.get()) {
            return Err(SendError::QueueFull { setting: "max_queued_packet_bytes" });
        }
        let sequence = self.next;
        self.next = sequence.next();
        let fragments = data.len().div_ceil(FRAGMENT_BYTES).max(1);
        self.in_flight.insert(sequence.get(), u16::try_from(fragments).unwrap_or(u16::MAX));
        self.queued_bytes += data.len();
        self.queue.push_back(Waiting { sequence, data, next_fragment: 0 });
        Ok(sequence)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes of the frame of the next packet or fragment.
    pub(crate) fn next_bytes(&self) -> Option<usize> {
        let waiting = self.queue.front()?;
        if waiting.data.len() <= MAX_WHOLE_PACKET_BYTES {
            return Some(PACKET_FRAME_BYTES + waiting.data.len());
        }
        let sent = waiting.next_fragment * FRAGMENT_BYTES;
        Some(FRAGMENT_FRAME_BYTES + (waiting.data.len() - sent).min(FRAGMENT_BYTES))
    }

    /// Appends the next packet or fragment if it fits into `room`, and returns its sequence.
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

    /// A datagram with this packet or a fragment of it was acknowledged. Returns an event after the last one.
    pub(crate) fn on_acked(&mut self, sequence: Sequence) -> Option<Event> {
        let remaining = self.in_flight.get_mut(&sequence.get())?;
        *remaining -= 1;
        if *remaining > 0 {
            return None;
        }
        self.in_flight.remove(&sequence.get());
        Some(Event::PacketAcked { sequence })
    }

    /// A datagram with this packet or a fragment of it is lost.
    pub(crate) fn on_lost(&mut self, sequence: Sequence) -> Option<Event> {
        self.in_flight.remove(&sequence.get())?;
        // The fragments that were not sent yet are useless now.
        if let Some(at) = self.queue.iter().position(|waiting| waiting.sequence == sequence) {
            self.queued_bytes -= self.queue.remove(at).map_or(0, |waiting| waiting.data.len());
        }
        Some(Event::PacketLost { sequence })
    }
}

/// Which packets were delivered: none is a second time, whatever became of the datagrams that it came in
/// [H-4.3a].
///
/// The 16 bits of a sequence repeat. A sender counts up from datagram to datagram. So a packet in a datagram
/// newer than all before has at least the newest sequence, and a packet in an older datagram at most that.
/// For the newest 8192 packets, in 1 KiB, it is known whether they were delivered: at 60 a second, 2 minutes.
#[derive(Debug)]
struct Delivered {
    /// The newest datagram with a packet, and the sequence of that with all its turns.
    datagram: u64,
    newest: u64,
    window: ReplayWindow<SMALLEST>,
}

impl Delivered {
    const fn new() -> Self {
        Self { datagram: 0, newest: 0, window: ReplayWindow::new() }
    }

    /// Whether this packet, which was complete with this datagram, may be delivered. It then counts as that.
    fn insert(&mut self, datagram: u64, sequence: Sequence) -> bool {
        let turn = |from: u64, to: u64| from.wrapping_sub(to) & u64::from(u16::MAX);
        let at = u64::from(sequence.get());
        let number = if datagram >= self.datagram {
            self.newest.checked_add(turn(at, self.newest))
        } else {
            self.newest.checked_sub(turn(self.newest, at))
        };
        let fresh = number.filter(|&number| self.window.place(number) == Place::Fresh);
        let Some(number) = fresh else { return false };
        self.window.insert(number);
        if datagram >= self.datagram {
            (self.datagram, self.newest) = (datagram, number);
        }
        true
    }
}

/// The receiving half.
#[derive(Debug, Default)]
pub(crate) struct IncomingPackets {
    /// Created by the first fragment: most connections never receive one.
    reassembler: Option<Box<Reassembler>>,
    /// Created by the first packet.
    delivered: Option<Box<Delivered>>,
    waiting: VecDeque<(Sequence, Bytes)>,
    waiting_bytes: usize,
    pub(crate) dropped: u64,
}

impl IncomingPackets {
    pub(crate) fn on_packet(
        &mut self,
        datagram: u64,
        sequence: Sequence,
        data: Bytes,
        pool: &mut FragmentPool,
        max_bytes: usize,
    ) {
        if let Some(reassembler) = &mut self.reassembler {
            reassembler.pass(sequence, pool);
        }
        self.keep(datagram, sequence, data, max_bytes);
    }

    /// Keeps a whole packet for the application, unless it has had it.
    fn keep(&mut self, datagram: u64, sequence: Sequence, data: Bytes, max_bytes: usize) {
        let delivered = self.delivered.get_or_insert_with(|| Box::new(Delivered::new()));
        if !delivered.insert(datagram, sequence) {
            return;
        }
        self.waiting_bytes += data.len();
        self.waiting.push_back((sequence, data));
        // Empty packets cost memory too.
        while self.waiting_bytes + self.waiting.len() * 64 > max_bytes && self.waiting.len() > 1 {
            self.waiting_bytes -= self.waiting.pop_front().map_or(0, |(_, data)| data.len());
            self.dropped += 1;
        }
    }

    pub(crate) fn on_fragment(
        &mut self,
        now: Instant,
        datagram: u64,
        fragment: &Fragment<'_>,
        pool: &mut FragmentPool,
        max_bytes: usize,
    ) -> Result<(), DropReason> {
        let reassembler = self.reassembler.get_or_insert_with(Box::default);
        if let Some(packet) = reassembler.handle_fragment(now, fragment, pool)? {
            let packet = Bytes::copy_from_slice(packet);
            self.keep(datagram, fragment.sequence(), packet, max_bytes);
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

    /// Drops the unread packets.
    pub(crate) fn drop_unread(&mut self) {
        self.waiting = VecDeque::new();
        self.waiting_bytes = 0;
    }

    /// Memory of the unread packets, and of which were delivered, in bytes. Incomplete packets are in the
    /// pool.
    pub(crate) fn memory_bytes(&self) -> usize {
        let delivered = |it: &Delivered| size_of::<Delivered>() + it.window.memory_bytes();
        self.waiting_bytes
            + self.waiting.capacity() * size_of::<(Sequence, Bytes)>()
            + self.delivered.as_deref().map_or(0, delivered)
    }

    pub(crate) fn has_events(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Frees its fragments in the pool.
    pub(crate) fn clear(&mut self, pool: &mut FragmentPool) {
        if let Some(reassembler) = &mut self.reassembler {
            reassembler.clear(pool);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivers(delivered: &mut Delivered, datagram: u64, packet: u64) -> bool {
        let sequence = u16::try_from(packet % (1 << 16)).unwrap();
        delivered.insert(datagram, Sequence::new(sequence))
    }

    /// Whatever the replay window takes: of whole packets and of fragments.
    #[test]
    fn a_copy_is_not_kept() {
        let (mut packets, mut pool) = (IncomingPackets::default(), FragmentPool::default());
        let kept = |packets: &mut IncomingPackets| core::iter::from_fn(|| packets.pop()).count();
        for _ in 0..2 {
            for sequence in 0..8_u16 {
                let (datagram, sequence) = (u64::from(sequence), Sequence::new(sequence));
                if datagram % 2 > 0 {
                    packets.on_packet(datagram, sequence, Bytes::new(), &mut pool, 90_000);
                    continue;
                }
                // The window of fragments is behind, as after a long time without any.
                packets.reassembler = None;
                for index in 0..2 {
                    let fragment = Fragment::new(sequence, index, 2, &[1; FRAGMENT_BYTES]).unwrap();
                    let now = Instant::ZERO;
                    let _refused = packets.on_fragment(now, datagram, &fragment, &mut pool, 90_000);
                }
            }
        }
        assert_eq!(kept(&mut packets), 8);
    }

    /// A copy of a packet is refused in an old datagram and in a new one.
    #[test]
    fn no_packet_is_delivered_twice() {
        let mut delivered = Delivered::new();
        for number in 0..10_000 {
            assert!(delivers(&mut delivered, number + 3, number));
        }
        for number in 0..10_000 {
            assert!(!delivers(&mut delivered, number + 3, number), "{number}");
        }
        assert!(!delivers(&mut delivered, 10_003, 9_999), "the newest again");
    }

    /// Late packets, several in a datagram, turns of the 16 bits, and a silence of nearly a turn.
    #[test]
    fn what_is_new_is_delivered() {
        let mut delivered = Delivered::new();
        for number in 0..200_000_u64 {
            // Every tenth is overtaken by 32 others, and two are in each datagram.
            if number % 10 > 0 {
                assert!(delivers(&mut delivered, number / 2, number), "{number}");
            }
            if let Some(late) = number.checked_sub(32).filter(|late| late % 10 == 0) {
                assert!(delivers(&mut delivered, late / 2, late), "{late}");
            }
        }
        let next = 200_000_u64 + 60_000;
        assert!(delivers(&mut delivered, 101_000, next));
        assert!(delivers(&mut delivered, 100_999, next - 1));
        assert!(!delivers(&mut delivered, 100_999, next - 1));
    }
}
