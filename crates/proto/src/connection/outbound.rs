//! What the application sends: blocks, packets and messages, and which of them goes first.
//!
//! The invariants: all data put into a datagram is noted there as an item, whose fate is reported to the
//! queue that it came from; and data that shares the rate with blocks is sent only when their gate is open.

use bytes::Bytes;

use super::draft::Draft;
use super::event::{Event, SendError};
use super::life::Life;
use super::packets::OutgoingPackets;
use super::path::Path;
use super::recovery::ItemFate;
use crate::channels::{Lane, Lanes, MessageSender, MessageViolation, Order, Source};
use crate::outgoing::{Heard, OutgoingBlocks, Transfer};
use crate::time::earliest;
use crate::transit::Item;
use crate::wire::frames::{ChannelLimitFrame, Frame};
use crate::{Instant, Sequence};

/// The least room for a frame to be begun: that of an announcement, the longest that must fit.
pub(super) const MIN_ROOM: usize = 64;

/// What the application sends.
#[derive(Debug)]
pub(super) struct Outbound {
    blocks: OutgoingBlocks,
    packets: OutgoingPackets,
    messages: MessageSender,
    /// What goes first.
    lanes: Lanes,
}

impl Outbound {
    /// Nothing is to be sent.
    pub(super) fn new(blocks: OutgoingBlocks, messages: MessageSender) -> Self {
        Self { blocks, packets: OutgoingPackets::default(), messages, lanes: Lanes::new() }
    }

    /// Moves a source to another lane.
    pub(super) fn set_lane(&mut self, source: Source, lane: Lane) {
        self.lanes.set(source, lane);
    }

    /// The blocks, which have invariants of their own.
    pub(super) const fn blocks(&self) -> &OutgoingBlocks {
        &self.blocks
    }

    /// The blocks, to be changed.
    pub(super) const fn blocks_mut(&mut self) -> &mut OutgoingBlocks {
        &mut self.blocks
    }

    /// The chunk sender, as long as there are blocks, and its input.
    pub(super) const fn transfer(&self) -> &Transfer {
        &self.blocks.transfer
    }

    /// The chunk sender and its input, to be changed.
    pub(super) const fn transfer_mut(&mut self) -> &mut Transfer {
        &mut self.blocks.transfer
    }

    /// Queues a packet. All that wait have `max_bytes` at most.
    pub(super) fn send_packet(
        &mut self,
        data: Bytes,
        max_bytes: usize,
    ) -> Result<Sequence, SendError> {
        self.packets.send(data, max_bytes)
    }

    /// Queues a message, and returns its number on the channel.
    pub(super) fn send_message(
        &mut self,
        channel: u8,
        order: Order,
        data: Bytes,
    ) -> Result<u64, SendError> {
        Ok(self.messages.send(channel, order, data)?)
    }

    /// The peer has sent the limit of a channel: how many messages and bytes it takes in all.
    pub(super) fn on_limit(&mut self, limit: ChannelLimitFrame) -> Result<(), MessageViolation> {
        self.messages.on_limit(limit)
    }

    /// Whether all blocks and messages sent so far are acknowledged.
    pub(super) fn all_acked(&self) -> bool {
        self.blocks.is_idle() && self.messages.all_acked()
    }

    /// When data may go, of which what does not fit into `room` bytes of frames waits for more.
    pub(super) fn data_at(
        &self,
        path: &Path,
        room: usize,
        may_send_slices: impl FnOnce() -> bool,
    ) -> Option<Instant> {
        let packet = self.packets.next_bytes().filter(|&bytes| bytes <= room);
        let packet = packet.map(|_| Instant::ZERO);
        let slice = self.slice_at(path, room, may_send_slices);
        earliest(packet, earliest(self.message_at(path, room), slice))
    }

    /// When a message may go: within the window and the pace of messages, and if it shares the rate with
    /// blocks, when a slice may go.
    fn message_at(&self, path: &Path, room: usize) -> Option<Instant> {
        if !self.messages.has_due() {
            return None;
        }
        let at = path.message_at()?;
        let gate = self.blocks.transfer.sender().map_or(at, |sender| sender.gate_at().max(at));
        let due = self.messages.due().filter(|&(_, bytes)| bytes <= room);
        due.map(
            |(channel, _)| if self.lanes.is_shared(Source::Channel(channel)) { gate } else { at },
        )
        .min()
    }

    fn slice_at(
        &self,
        path: &Path,
        room: usize,
        may_send_slices: impl FnOnce() -> bool,
    ) -> Option<Instant> {
        let (sender, path) = self.blocks.transfer.asked_on(&path.blocks)?;
        match may_send_slices() {
            true => sender.poll_timeout(path, room),
            false => sender.timeout_at(path),
        }
    }

    /// Whether channels that share the rate with blocks may send now.
    fn is_gate_open(&mut self, now: Instant, path: &mut Path) -> bool {
        let mut due = self.messages.due();
        !due.any(|(channel, _)| self.lanes.is_shared(Source::Channel(channel)))
            || (self.blocks.transfer.sender_on(&mut path.blocks))
                .is_none_or(|(sender, path)| sender.is_gate_open(path, now))
    }

    pub(super) fn put_cancels(&mut self, draft: &mut Draft<'_, '_>) {
        while draft.room() >= MIN_ROOM
            && let Some((block, code, opened)) = self.blocks.announced.poll_cancel()
        {
            draft.push(&Frame::Cancel { block, code, opened });
            draft.add(Item::Cancel(block));
        }
    }

    pub(super) fn put_announcements(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        while draft.room() >= MIN_ROOM
            && let Some(frame) = self.blocks.poll_announcement(now)
        {
            draft.push(&Frame::Block(frame));
            draft.add(Item::Block(frame.number));
        }
    }

    /// The pages of a tree that the next chunk needs, and with them how often acks are wanted.
    pub(super) fn put_pages(&mut self, path: &mut Path, heard: Heard, draft: &mut Draft<'_, '_>) {
        if !draft.may_send_slices() {
            return;
        }
        while let Some((place, frame)) = self.blocks.poll_page(draft.room()) {
            let block = frame.block;
            draft.push(&Frame::Hashes(frame));
            draft.add(Item::Page { block, place });
        }
        let in_flight = u64::from(draft.ledger().in_flight());
        let transfer = &mut self.blocks.transfer;
        if let Some(wanted) = transfer.ack_frequency_due(&mut path.blocks, in_flight, heard)
            && draft.room() >= MIN_ROOM
        {
            let (datagrams, delay) = (wanted.datagrams, wanted.delay());
            draft.push(&Frame::AckFrequency { datagrams, delay });
            self.blocks.transfer.on_ack_frequency_sent(wanted);
            draft.add(Item::AckFrequency);
        }
    }

    /// What the oldest datagram in flight had of messages, so that a probe is more than a question.
    pub(super) fn put_copies(&self, draft: &mut Draft<'_, '_>) {
        let mut n = 0;
        while let Some(item) = draft.ledger().oldest_item(n) {
            n += 1;
            let Item::Part(part) = item else { continue };
            let copied = draft.append(|room, out| self.messages.copy(part, room, out));
            if copied == Some(true) {
                // The whole message: its ack is one of the message.
                draft.add(Item::Copy(part));
            }
        }
    }

    /// The application's data, in the order of its lanes, until the datagram is full. A slice ends it, behind
    /// what `before_slice` puts there.
    pub(super) fn put_data(
        &mut self,
        now: Instant,
        path: &mut Path,
        draft: &mut Draft<'_, '_>,
        mut before_slice: impl FnMut(&mut Draft<'_, '_>),
    ) {
        let room = draft.frame_room();
        // In this order: both or neither are ready when their common gate is closed.
        let is_gate_open = self.is_gate_open(now, path);
        let mut may_send_message = self.message_at(path, room).is_some_and(|at| at <= now);
        let mut may_send = self.is_slice_due(now, path, draft);
        while may_send || !self.packets.is_empty() || may_send_message {
            let packets = self.packets.next_bytes().map(|bytes| (Source::Packets, bytes));
            let due = self.messages.due().filter(|_| may_send_message);
            let channels = due.map(|(channel, bytes)| (Source::Channel(channel), bytes));
            let blocks = may_send.then_some((Source::Blocks, 0));
            let ready = packets.into_iter().chain(channels).chain(blocks);
            let Some(source) = self.lanes.next_if(draft.room(), ready, is_gate_open) else {
                return;
            };
            let before = draft.bytes();
            match source {
                Source::Packets => {
                    let packet = draft.append(|room, out| self.packets.poll(room, out));
                    let Some(sequence) = packet else { return };
                    draft.add(Item::Packet(sequence));
                }
                Source::Channel(channel) => {
                    let part = draft.append(|room, out| self.messages.poll(channel, room, out));
                    let Some(part) = part else { return };
                    draft.add(Item::Part(part));
                    path.on_part_sent(now, part);
                    may_send_message = self.message_at(path, room).is_some_and(|at| at <= now);
                }
                Source::Blocks => {
                    may_send = false;
                    before_slice(draft);
                    self.put_slice(now, path, draft);
                }
            }
            self.lanes.on_sent(source, draft.bytes() - before);
            if draft.written().slice.is_some() {
                return;
            }
        }
    }

    /// Whether a slice is due. After a slice with nothing beside it, whether another follows shows when it is
    /// taken. Beside packets and messages it must be known: a lane with nothing to send gets no turn.
    fn is_slice_due(&mut self, now: Instant, path: &mut Path, draft: &Draft<'_, '_>) -> bool {
        let has_others = !self.packets.is_empty() || self.messages.has_due();
        let (is_alone, room) = (draft.is_next() && !has_others, draft.frame_room());
        draft.may_send_slices()
            && (self.blocks.transfer.sender_on(&mut path.blocks))
                .is_some_and(|(sender, path)| is_alone || sender.is_slice_due(path, now, room))
    }

    fn put_slice(&mut self, now: Instant, path: &mut Path, draft: &mut Draft<'_, '_>) {
        let (path, room) = (&mut path.blocks, (draft.room(), draft.is_next()));
        if let Some((slice, frame)) =
            self.blocks.transfer.poll_slice(path, now, draft.ledger(), room)
        {
            draft.push_slice(slice, &frame);
        }
    }

    /// The fate of an item of a datagram. It may have to be reported to the application.
    pub(super) fn on_item(&mut self, item: Item, fate: ItemFate, life: &mut Life) {
        let is_acked = fate == ItemFate::Acked;
        match item {
            Item::Packet(sequence) if is_acked => life.tell(self.packets.on_acked(sequence)),
            Item::Packet(sequence) => life.tell(self.packets.on_lost(sequence)),
            Item::Part(part) if is_acked => {
                life.tell(self.messages.on_acked(part).map(Event::from));
            }
            Item::Part(part) => self.messages.on_lost(part),
            Item::Copy(part) if is_acked => {
                life.tell(self.messages.on_copy_acked(part).map(Event::from));
            }
            Item::Page { block, place } if !is_acked => self.blocks.on_page_lost(block, place),
            Item::AckFrequency if !is_acked => self.blocks.transfer.on_ack_frequency_lost(),
            Item::Cancel(block) => self.blocks.announced.on_cancel(block, is_acked),
            Item::Block(number) => self.blocks.announced.on_announced(number, is_acked),
            // A copy that is lost is in flight elsewhere, and all else is not sent from here.
            _ => {}
        }
    }

    /// Memory that the peer makes it hold, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.blocks.memory_bytes()
    }

    /// Panics if its parts contradict each other.
    pub(super) fn check_invariants(&self) {
        self.blocks.check_invariants();
        self.messages.check_invariants();
    }
}
