//! The way out: what goes into the next datagram, in the order of its urgency.
//!
//! Control first, then the game's packets, then messages, then slices within the budget: the order of
//! [H-4.3]. An ack comes last, into what room is left. A datagram is composed behind its header, sealed in
//! place, and remembered by what must be known if it is lost.

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use super::{Connection, ConnectionNews, ConnectionState, Item, UDP_IPV4_BYTES};
use crate::Instant;
use crate::bulk::{Sender, Symbol};
use crate::chunk::{ChunkId, SLICE_BYTES};
use crate::time::earliest;
use crate::wire::frame::{BLOCK_FRAME_BYTES, SLICE_FRAME_BYTES};
use crate::wire::header::DATA_HEADER_BYTES;
use crate::wire::{DataHeader, Frame, MAX_DATAGRAM_BYTES, ResponseHeader, TAG_BYTES};

/// A slice frame of full size.
const FULL_SLICE_FRAME_BYTES: usize = SLICE_FRAME_BYTES + SLICE_BYTES;

/// The longest chunk ack.
const CHUNK_ACK_FRAME_BYTES: usize = 4 + 32;

/// How often an end that only receives measures the round trip: often enough for its time-outs.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// Silence of the peer after which no more slices go out, unless the round trip is longer than that.
const SILENCE: Duration = Duration::from_secs(1);

/// The frames of a datagram in the making.
struct Draft<'a> {
    out: &'a mut Vec<u8>,
    /// Where the tag must begin at the latest.
    end: usize,
    items: Vec<Item>,
    /// Something in it asks for an ack.
    asks: bool,
    /// Something in it is no ack.
    speaks: bool,
    slice: Option<(ChunkId, Symbol)>,
    has_chunk_ack: bool,
    has_ack: bool,
}

impl Draft<'_> {
    const fn has_frames(&self) -> bool {
        self.speaks || self.has_chunk_ack
    }

    fn room(&self) -> usize {
        self.end.saturating_sub(self.out.len())
    }

    fn push(&mut self, frame: &Frame<'_>, item: Option<Item>) {
        frame.write(self.out);
        self.asks |= frame.asks_for_ack();
        self.speaks |= !matches!(frame, Frame::Ack(_) | Frame::ChunkAck(_) | Frame::Arrivals(_));
        self.has_chunk_ack |= matches!(frame, Frame::ChunkAck(_));
        self.has_ack |= matches!(frame, Frame::Ack(_));
        self.items.extend(item);
    }
}

impl Connection {
    /// Fills `out` with the next datagram and says where it goes; `None` when there is none now.
    pub(crate) fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<SocketAddr> {
        self.now = now;
        if self.state == ConnectionState::Closing {
            return self.transmit_close(now, out);
        }
        if !self.state.is_open() {
            return None;
        }
        if let Some(to) = self.transmit_challenge(now, out) {
            return Some(to);
        }
        if !self.has_room_for_slices()
            && let Some(sender) = self.blocks_out.sender_mut()
        {
            sender.on_blocked();
        }
        let number = self.begin(now, out, self.path.room())?;
        let header_bytes = out.len();
        let end = self.path.room() - TAG_BYTES;
        let mut draft = Draft {
            out,
            end,
            items: Vec::new(),
            asks: false,
            speaks: false,
            slice: None,
            has_chunk_ack: false,
            has_ack: false,
        };
        self.compose(now, &mut draft);
        let Draft { items, asks, speaks, slice, has_ack, has_chunk_ack, .. } = draft;
        if out.len() == header_bytes {
            return None;
        }
        self.finish(now, number, header_bytes, out)?;
        self.path.on_sent(out.len());
        self.remember(now, number, out.len(), asks.then_some(items));
        if has_ack {
            self.received.set_block(self.blocks_in.is_receiving());
            self.received.on_ack_sent(now, !speaks);
        } else if has_chunk_ack && !speaks {
            // It is paid for by what came as well [H-4.1c]. An ack that found no room beside one stays due.
            self.received.on_other_ack_alone();
        }
        if asks {
            self.asked = now;
            // With nothing else in flight there is nothing else to be answered.
            let is_first = self.unanswered.is_none() || self.sent.in_flight() <= 1;
            self.unanswered = if is_first { Some(now) } else { self.unanswered };
        }
        if !speaks {
            self.stats.ack_bytes_sent += out.len() as u64;
        }
        if let Some(sender) = self.blocks_out.sender_mut() {
            // The game's own packets use the same link, without waiting for it.
            sender.on_sent(now, number, out.len() + UDP_IPV4_BYTES, slice);
        }
        Some(self.path.address())
    }

    /// Puts the frames that are due into a datagram.
    fn compose(&mut self, now: Instant, draft: &mut Draft<'_>) {
        self.compose_control(draft);
        while let Some(sequence) = self.packets_out.poll(draft.room(), draft.out) {
            draft.items.push(Item::Packet(sequence));
            (draft.asks, draft.speaks) = (true, true);
        }
        while let Some((number, data)) = self.messages_out.poll(draft.room()) {
            draft.push(&Frame::Message { number, data: &data }, Some(Item::Message(number)));
        }
        self.compose_chunk_acks(now, draft);
        if draft.room() >= FULL_SLICE_FRAME_BYTES && self.may_send_slices() {
            self.compose_slice(now, draft);
        }
        self.compose_ack(now, draft);
    }

    /// What the peer must know of its chunks. That one is done is repeated along with what goes in any case;
    /// if that asks for an ack, the ack says whether it was heard.
    fn compose_chunk_acks(&mut self, now: Instant, draft: &mut Draft<'_>) {
        let is_ack_due = self.is_ack_due(now);
        while draft.room() >= CHUNK_ACK_FRAME_BYTES
            && (draft.speaks || self.received.may_ack_alone())
        {
            let receiver = &mut self.blocks_in.receiver;
            let ack = match receiver.poll_ack(now) {
                None if draft.has_frames() || is_ack_due => {
                    receiver.poll_ack_along(now, draft.asks)
                }
                ack => ack,
            };
            let Some(ack) = ack else { return };
            let item = ack.received.is_full().then_some(Item::ChunkDone(ack.chunk_id));
            draft.push(&Frame::ChunkAck(ack), item);
        }
    }

    fn is_ack_due(&self, now: Instant) -> bool {
        self.received.ack_due().is_some_and(|due| due <= now)
    }

    fn compose_slice(&mut self, now: Instant, draft: &mut Draft<'_>) {
        let Some(sender) = self.blocks_out.sender_mut() else { return };
        let Some((chunk_id, symbol)) = sender.poll_slice(now) else { return };
        let Some(chunk) = sender.chunk(chunk_id) else { return };
        if let Some(slice) = chunk.source(symbol) {
            draft.push(&Frame::Slice(slice), Some(Item::Slice));
        } else if let Some(data) = chunk.repair(symbol)
            && let Some(slice) = chunk.repair_slice(symbol, &data)
        {
            draft.push(&Frame::Repair(slice), Some(Item::Slice));
        }
        draft.slice = Some((chunk_id, symbol));
    }

    fn compose_control(&mut self, draft: &mut Draft<'_>) {
        if let Some(bytes) = self.path_response.take() {
            draft.push(&Frame::PathResponse(bytes), None);
        }
        if let Some(limit) = self.messages_in.limit_due() {
            draft.push(&Frame::MessageLimit(limit), Some(Item::MessageLimit(limit)));
            self.messages_in.on_limit_sent(limit);
        }
        while draft.room() >= BLOCK_FRAME_BYTES
            && let Some(frame) = self.blocks_out.poll_announcement()
        {
            draft.push(&Frame::Block(frame), Some(Item::Block(frame.number)));
        }
        if core::mem::take(&mut self.ping_due) {
            draft.push(&Frame::Ping, Some(Item::Ping));
        }
    }

    /// An ack rides along with anything that goes; alone it waits until it is due.
    fn compose_ack(&mut self, now: Instant, draft: &mut Draft<'_>) {
        if !self.is_ack_due(now) && !draft.has_frames() {
            return;
        }
        if let Some(ack) = self.received.ack_frame(now)
            && ack.encoded_len() < draft.room()
        {
            draft.push(&Frame::Ack(ack), None);
            self.compose_arrivals(draft);
            if !draft.has_frames() && self.wants_sample(now) && draft.room() > 0 {
                Frame::Ping.write(draft.out);
                draft.items.push(Item::Ping);
                draft.asks = true;
            }
        }
    }

    /// While a block comes, its sender measures the link by when its datagrams arrived.
    fn compose_arrivals(&mut self, draft: &mut Draft<'_>) {
        if let Some(arrivals) = self.arrivals.frame()
            && arrivals.encoded_len() < draft.room()
        {
            draft.push(&Frame::Arrivals(arrivals), None);
        }
        if !self.blocks_in.is_receiving() {
            self.arrivals.clear();
        }
    }

    /// Who only receives sends nothing that is acked, and so measures nothing: now and then one of its acks
    /// asks for one.
    fn wants_sample(&self, now: Instant) -> bool {
        let is_old = now.since(self.asked) >= SAMPLE_INTERVAL;
        self.sent.in_flight() == 0 && (is_old || self.sent.rtt().latest_rtt().is_none())
    }

    /// Begins a datagram with its header. Returns its packet number.
    fn begin(&mut self, now: Instant, out: &mut Vec<u8>, room: usize) -> Option<u64> {
        if room <= self.header_bytes() + TAG_BYTES {
            return None;
        }
        out.clear();
        let number = self.next_number();
        let limits = self.key_limits();
        let low = low_bits(number);
        if self.welcome_message.is_empty() {
            let phase = self.protection.send_phase(now, number, limits);
            DataHeader { from: self.role, phase, to: self.remote, number: low }.write(out);
        } else {
            let welcome_message = &self.welcome_message;
            ResponseHeader { to: self.remote, welcome_message, number: low }.write(out);
        }
        Some(number)
    }

    /// Seals what was begun.
    fn finish(
        &mut self,
        _now: Instant,
        number: u64,
        header_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        if !self.protection.seal(number, header_bytes, out) {
            // The key is worn out and the peer never confirmed it: nothing may be sent any more.
            let reason = super::CloseReason::TimedOut;
            self.end(ConnectionNews::Silence, reason);
            return None;
        }
        debug_assert!(out.len() <= MAX_DATAGRAM_BYTES);
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += out.len() as u64;
        Some(())
    }

    /// The next packet number; now and then one is passed over, for who acknowledges it (H-2.2c).
    fn next_number(&mut self) -> u64 {
        if self.sent.next_number() == self.next_skip {
            self.sent.skip(1);
            self.next_skip = (self.next_skip / 256 + 1) * 256 + self.entropy.next_u64() % 256;
        }
        self.sent.next_number()
    }

    /// A datagram went out; `items` are what must be known of it if it asks for an ack.
    fn remember(&mut self, now: Instant, number: u64, bytes: usize, items: Option<Vec<Item>>) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if let Some(lost) = self.sent.on_sent(now, number, bytes, items) {
            self.on_lost(lost);
        }
    }

    fn transmit_challenge(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<SocketAddr> {
        let (to, bytes, room) = self.path.poll_challenge(now)?;
        let interval = self.repeat_interval();
        let Some(number) = self.begin(now, out, room) else {
            self.path.on_challenge(now, None, interval);
            return None;
        };
        let header_bytes = out.len();
        Frame::PathChallenge(bytes).write(out);
        if out.len() + TAG_BYTES > room {
            self.path.on_challenge(now, None, interval);
            return None;
        }
        self.finish(now, number, header_bytes, out)?;
        self.path.on_challenge(now, Some(out.len()), interval);
        self.remember(now, number, out.len(), None);
        Some(to)
    }

    fn transmit_close(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<SocketAddr> {
        let interval = self.repeat_interval();
        let closing = self.closing.as_mut().filter(|closing| closing.next_at <= now)?;
        closing.left -= 1;
        closing.next_at = now + interval;
        let (code, reason, left) = (closing.code.0, closing.reason.clone(), closing.left);
        if left == 0 {
            self.on(ConnectionNews::CloseSent);
        }
        let number = self.begin(now, out, self.path.room())?;
        let header_bytes = out.len();
        Frame::Close { code, reason: &reason }.write(out);
        if out.len() + TAG_BYTES > self.path.room() {
            return None;
        }
        self.finish(now, number, header_bytes, out)?;
        self.path.on_sent(out.len());
        self.remember(now, number, out.len(), None);
        Some(self.path.address())
    }

    /// Whether the peer answers. Nobody is sent a block into silence: who joins in somebody's name, or goes
    /// away, would else get all of the rate until the block is given up. Pings go on, and a few slices after
    /// each time-out; the first answer lets all flow again.
    fn may_send_slices(&self) -> bool {
        if self.blocks_out.sender().is_some_and(Sender::is_probing) {
            return true;
        }
        let lately = self.sent.probe_timeout().saturating_mul(3).max(SILENCE);
        let unanswered = self.unanswered.filter(|_| self.sent.in_flight() > 0);
        unanswered.is_none_or(|asked| self.now.since(asked) <= lately)
    }

    /// Whether slices may go as far as the credit and the peer's silence are concerned.
    fn has_room_for_slices(&self) -> bool {
        self.frame_room() >= FULL_SLICE_FRAME_BYTES && self.may_send_slices()
    }

    /// Bytes that a datagram has for frames.
    fn frame_room(&self) -> usize {
        self.path.room().saturating_sub(self.header_bytes() + TAG_BYTES)
    }

    fn header_bytes(&self) -> usize {
        match self.welcome_message.len() {
            0 => DATA_HEADER_BYTES,
            welcome_bytes => ResponseHeader::bytes(welcome_bytes),
        }
    }

    /// When there is something to send, as far as the credit allows.
    pub(super) fn transmit_at(&self) -> Option<Instant> {
        if self.frame_room() < BLOCK_FRAME_BYTES {
            return None;
        }
        let is_pending = self.ping_due
            || self.path_response.is_some()
            || self.messages_in.limit_due().is_some()
            || self.blocks_out.has_announcement()
            || !self.packets_out.is_empty()
            || self.messages_out.wants_to_send();
        let now = is_pending.then_some(Instant::ZERO);
        let slices = match self.has_room_for_slices() {
            true => self.blocks_out.sender().and_then(Sender::poll_timeout),
            false => self.blocks_out.sender().and_then(Sender::timeout_at),
        };
        let chunk_acks = match self.received.may_ack_alone() {
            true => self.blocks_in.poll_timeout(),
            false => None,
        };
        let acks = earliest(self.received.ack_due(), chunk_acks);
        earliest(earliest(now, slices), earliest(acks, self.sent.poll_timeout()))
    }
}

fn low_bits(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}
