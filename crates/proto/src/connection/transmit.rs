//! Sending: what goes into the next datagram, in order of priority.
//!
//! Control frames first, then the game's packets, then messages, then slices within the send budget: the
//! order of [H-4.3]. An ack comes last, in the remaining space. A datagram is composed after its header,
//! encrypted in place, and recorded with what has to be known if it is lost.

use super::{CloseReason, Connection, ConnectionState, ConnectionTrigger, UDP_IPV4_BYTES};
use crate::bulk::{Sender, WireSlice};
use crate::chunk::{ChunkId, SLICE_BYTES};
use crate::crypto::TAG_BYTES;
use crate::time::earliest;
use crate::transit::{Item, Outgoing, Symbol};
use crate::wire::frame::{BLOCK_FRAME_BYTES, SLICE_FRAME_BYTES};
use crate::wire::header::DATA_HEADER_BYTES;
use crate::wire::{DataHeader, Frame, MAX_DATAGRAM_BYTES, ResponseHeader};
use crate::{DatagramBuffer, FourTuple, Instant};

/// A slice frame of full size.
const FULL_SLICE_FRAME_BYTES: usize = SLICE_FRAME_BYTES + SLICE_BYTES;

/// The longest chunk ack.
const CHUNK_ACK_FRAME_BYTES: usize = 4 + 32;

/// A datagram that is being composed.
struct Draft<'a, 'b> {
    out: &'a mut DatagramBuffer<'b>,
    /// Where its frames have to end.
    end: usize,
    is_ack_eliciting: bool,
    /// It has a frame that is not an ack.
    has_content: bool,
    slice: Option<(ChunkId, Symbol)>,
    has_chunk_ack: bool,
    has_ack: bool,
}

impl Draft<'_, '_> {
    const fn has_frames(&self) -> bool {
        self.has_content || self.has_chunk_ack
    }

    fn room(&self) -> usize {
        self.end.saturating_sub(self.out.len())
    }

    fn push(&mut self, frame: &Frame<'_>) {
        frame.write(self.out.vec());
        self.is_ack_eliciting |= frame.is_ack_eliciting();
        self.has_content |=
            !matches!(frame, Frame::Ack(_) | Frame::ChunkAck(_) | Frame::Arrivals(_));
        self.has_chunk_ack |= matches!(frame, Frame::ChunkAck(_));
        self.has_ack |= matches!(frame, Frame::Ack(_));
    }
}

impl Connection {
    /// Composes the next datagram in `out` and returns its destination. `None` if there is none now; the
    /// content of `out` is then meaningless.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        out: &mut DatagramBuffer<'_>,
    ) -> Option<FourTuple> {
        self.now = now;
        if self.state == ConnectionState::Closing {
            return self.transmit_close(now, out);
        }
        if !self.state.is_open() {
            return None;
        }
        self.settle_fates();
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
            is_ack_eliciting: false,
            has_content: false,
            slice: None,
            has_chunk_ack: false,
            has_ack: false,
        };
        self.compose(now, &mut draft);
        let Draft { is_ack_eliciting, has_content, slice, has_ack, has_chunk_ack, .. } = draft;
        if out.len() == header_bytes {
            return None;
        }
        self.finish(number, header_bytes, out)?;
        self.path.on_sent(out.len());
        let wire_bytes = out.len() + UDP_IPV4_BYTES;
        // Packets and messages use the link too, although they do not wait for the send budget.
        let sender = self.blocks_out.sender_mut();
        let backlog = sender.map_or(0.0, |sender| sender.on_sent(now, number, wire_bytes, slice));
        self.record(now, Outgoing { number, wire_bytes, is_ack_eliciting, slice, backlog });
        if has_ack {
            self.received.set_block(self.blocks_in.is_receiving());
            self.received.on_ack_sent(now, !has_content);
        } else if has_chunk_ack && !has_content {
            // It counts against [H-4.1c] too. An ack that did not fit beside it stays due.
            self.received.on_other_ack_alone();
        }
        if is_ack_eliciting {
            self.liveness.on_ack_eliciting_sent(now, self.sent.in_flight());
        }
        if !has_content {
            self.stats.ack_bytes_sent += out.len() as u64;
        }
        Some(self.path.address())
    }

    /// Puts the frames that are due into a datagram.
    fn compose(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        self.compose_control(draft);
        while let Some(sequence) = self.packets_out.poll(draft.room(), draft.out.vec()) {
            self.sent.add(Item::Packet(sequence));
            (draft.is_ack_eliciting, draft.has_content) = (true, true);
        }
        while let Some((number, data)) = self.messages_out.poll(draft.room()) {
            draft.push(&Frame::Message { number, data: &data });
            self.sent.add(Item::Message(number));
        }
        self.compose_chunk_acks(now, draft);
        if draft.room() >= FULL_SLICE_FRAME_BYTES && self.may_send_slices() {
            self.compose_slice(now, draft);
        }
        self.compose_ack(now, draft);
    }

    /// What the peer must know of its chunks. That one is done is repeated along with what goes in any case;
    /// if that asks for an ack, the ack says whether it was heard.
    fn compose_chunk_acks(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        let is_ack_due = self.is_ack_due(now);
        while draft.room() >= CHUNK_ACK_FRAME_BYTES
            && (draft.has_content || self.received.may_ack_alone())
        {
            let receiver = &mut self.blocks_in.receiver;
            let ack = match receiver.poll_ack(now) {
                None if draft.has_frames() || is_ack_due => {
                    receiver.poll_ack_along(now, draft.is_ack_eliciting)
                }
                ack => ack,
            };
            let Some(ack) = ack else { return };
            draft.push(&Frame::ChunkAck(ack));
            if ack.received.is_full() {
                self.sent.add(Item::ChunkDone(ack.chunk_id));
            }
        }
    }

    fn is_ack_due(&self, now: Instant) -> bool {
        self.received.ack_due().is_some_and(|due| due <= now)
    }

    fn compose_slice(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        let Some(sender) = self.blocks_out.sender_mut() else { return };
        let Some(chosen) = sender.poll_slice(now, &self.sent) else { return };
        match chosen.slice {
            WireSlice::Source(slice) => draft.push(&Frame::Slice(slice)),
            WireSlice::Repair(slice) => draft.push(&Frame::Repair(slice)),
        }
        draft.slice = Some((chosen.chunk_id, chosen.symbol));
    }

    fn compose_control(&mut self, draft: &mut Draft<'_, '_>) {
        if let Some(bytes) = self.path_response.take() {
            draft.push(&Frame::PathResponse(bytes));
        }
        if let Some(limit) = self.messages_in.limit_due() {
            draft.push(&Frame::MessageLimit(limit));
            self.sent.add(Item::MessageLimit(limit));
            self.messages_in.on_limit_sent(limit);
        }
        while draft.room() >= BLOCK_FRAME_BYTES
            && let Some(frame) = self.blocks_out.poll_announcement()
        {
            draft.push(&Frame::Block(frame));
            self.sent.add(Item::Block(frame.number));
        }
        if core::mem::take(&mut self.ping_due) {
            draft.push(&Frame::Ping);
        }
    }

    /// An ack rides along with anything that goes; alone it waits until it is due.
    fn compose_ack(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        if !self.is_ack_due(now) && !draft.has_frames() {
            return;
        }
        if let Some(ack) = self.received.ack_frame(now)
            && ack.encoded_len() < draft.room()
        {
            draft.push(&Frame::Ack(ack));
            self.compose_arrivals(draft);
            if !draft.has_frames() && self.is_sample_due(now) && draft.room() > 0 {
                Frame::Ping.write(draft.out.vec());
                draft.is_ack_eliciting = true;
            }
        }
    }

    /// While a block is received, its sender measures the link by the arrival times of its datagrams.
    fn compose_arrivals(&mut self, draft: &mut Draft<'_, '_>) {
        if let Some(arrivals) = self.arrivals.frame()
            && arrivals.encoded_len() < draft.room()
        {
            draft.push(&Frame::Arrivals(arrivals));
        }
        if !self.blocks_in.is_receiving() {
            self.arrivals.clear();
        }
    }

    /// Whether an ack should be ack-eliciting itself. An end that only receives would otherwise never measure
    /// the round trip.
    fn is_sample_due(&self, now: Instant) -> bool {
        let is_unmeasured = self.sent.rtt().latest_rtt().is_none();
        self.sent.in_flight() == 0 && (is_unmeasured || self.liveness.is_sample_due(now))
    }

    /// Starts a datagram with its header. Returns its packet number.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        out: &mut DatagramBuffer<'_>,
        room: usize,
    ) -> Option<u64> {
        if room <= self.header_bytes() + TAG_BYTES {
            return None;
        }
        out.truncate(0);
        self.sent.begin();
        let number = self.next_number();
        let limits = self.key_limits();
        let low = low_bits(number);
        if self.welcome_message.is_empty() {
            let phase = self.protection.send_phase(now, number, limits);
            DataHeader { from: self.role, phase, to: self.remote, number: low }.write(out.vec());
        } else {
            let welcome_message = &self.welcome_message;
            ResponseHeader { to: self.remote, welcome_message, number: low }.write(out.vec());
        }
        Some(number)
    }

    /// Encrypts a datagram after its last frame. `None` ends the connection: no key is left.
    pub(super) fn finish(
        &mut self,
        number: u64,
        header_bytes: usize,
        out: &mut DatagramBuffer<'_>,
    ) -> Option<()> {
        if !self.protection.seal(number, header_bytes, out) {
            // The key has reached its limit and the peer never confirmed it: nothing may be sent any more.
            self.end(ConnectionTrigger::Silence, CloseReason::KeyUsedUp);
            return None;
        }
        debug_assert!(out.len() <= MAX_DATAGRAM_BYTES);
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += out.len() as u64;
        Some(())
    }

    /// The next packet number. One in 256 is skipped, so that a peer that acknowledges it is exposed
    /// (H-2.2c).
    fn next_number(&mut self) -> u64 {
        if self.sent.next_number() == self.next_skip {
            self.sent.skip();
            self.next_skip = (self.next_skip / 256 + 1) * 256 + self.entropy.next_u64() % 256;
        }
        self.sent.next_number()
    }

    fn transmit_challenge(
        &mut self,
        now: Instant,
        out: &mut DatagramBuffer<'_>,
    ) -> Option<FourTuple> {
        let (to, bytes, room) = self.path.poll_challenge(now)?;
        let interval = self.repeat_interval();
        let Some(number) = self.begin(now, out, room) else {
            self.path.on_challenge(now, None, interval);
            return None;
        };
        let header_bytes = out.len();
        Frame::PathChallenge(bytes).write(out.vec());
        if out.len() + TAG_BYTES > room {
            self.path.on_challenge(now, None, interval);
            return None;
        }
        self.finish(number, header_bytes, out)?;
        self.path.on_challenge(now, Some(out.len()), interval);
        self.sent.on_unrecorded(number);
        Some(to)
    }

    /// Whether slices may be sent: they stop while the peer is silent (H-4.2c). Otherwise an attacker who
    /// joins with somebody else's address, or a client that is gone, would receive the full rate until the
    /// block fails. Pings continue, and so do a few slices after each probe timeout; slices resume with the
    /// first answer.
    fn may_send_slices(&self) -> bool {
        self.blocks_out.sender().is_some_and(Sender::is_probing)
            || self.sent.in_flight() == 0
            || !self.liveness.is_peer_silent(self.now, self.sent.probe_timeout())
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
            || self.messages_out.has_due();
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
