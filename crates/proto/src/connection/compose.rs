//! What goes into a datagram, and when: the parts of one, in the order of [H-4.3].
//!
//! Control frames first, then the game's packets, then messages, then slices; an ack comes last, in the
//! remaining space. Of each [`Part`] this file says side by side when it has something to send by itself
//! ([`due_at`](Connection::due_at)) and what it puts into a datagram ([`put`](Connection::put)): a
//! connection wakes up for exactly what it will then send. A new frame appears in `Part`, in [`ORDER`]
//! and in these two. Path challenges and the close have datagrams of their own (`path`, `closing`).

use super::Connection;
use crate::bulk::Sender;
use crate::chunk::SLICE_BYTES;
use crate::time::earliest;
use crate::transit::{ChunkAt, Item, Symbol};
use crate::wire::Frame;
use crate::wire::frame::{BLOCK_FRAME_BYTES, SLICE_FRAME_BYTES};
use crate::{DatagramBuffer, Instant};

/// A slice frame of full size.
const FULL_SLICE_FRAME_BYTES: usize = SLICE_FRAME_BYTES + SLICE_BYTES;

/// The longest chunk ack.
const CHUNK_ACK_FRAME_BYTES: usize = 4 + 32;

/// A part of a datagram.
#[derive(Clone, Copy)]
enum Part {
    PathResponse,
    ResetToken,
    MessageLimit,
    Announcements,
    Ping,
    Packets,
    Messages,
    ChunkAcks,
    Slice,
    Ack,
}

/// In this order.
const ORDER: [Part; 10] = [
    Part::PathResponse,
    Part::ResetToken,
    Part::MessageLimit,
    Part::Announcements,
    Part::Ping,
    Part::Packets,
    Part::Messages,
    Part::ChunkAcks,
    Part::Slice,
    Part::Ack,
];

/// A datagram that is being composed.
pub(super) struct Draft<'a, 'b> {
    out: &'a mut DatagramBuffer<'b>,
    /// Where its frames have to end.
    end: usize,
    pub(super) is_ack_eliciting: bool,
    /// It has a frame that is not an ack.
    pub(super) has_content: bool,
    pub(super) slice: Option<(ChunkAt, Symbol)>,
    pub(super) has_chunk_ack: bool,
    pub(super) has_ack: bool,
}

impl<'a, 'b> Draft<'a, 'b> {
    /// One whose frames come after what is in `out`, and end at `end`.
    pub(super) const fn new(out: &'a mut DatagramBuffer<'b>, end: usize) -> Self {
        Self {
            out,
            end,
            is_ack_eliciting: false,
            has_content: false,
            slice: None,
            has_chunk_ack: false,
            has_ack: false,
        }
    }

    const fn has_frames(&self) -> bool {
        self.has_content || self.has_chunk_ack
    }

    fn room(&self) -> usize {
        self.end.saturating_sub(self.out.len())
    }

    fn push(&mut self, frame: &Frame<'_>) {
        frame.write(self.out.vec());
        self.is_ack_eliciting |= frame.is_ack_eliciting();
        match frame {
            Frame::Ack(_) => self.has_ack = true,
            Frame::ChunkAck(_) => self.has_chunk_ack = true,
            // Always beside an ack.
            Frame::Arrivals(_) => {}
            _ => self.has_content = true,
        }
    }
}

impl Connection {
    /// When there is something to send, as far as the amplification limit allows.
    pub(super) fn transmit_at(&self) -> Option<Instant> {
        if self.frame_room() < BLOCK_FRAME_BYTES {
            return None;
        }
        let due = ORDER.into_iter().filter_map(|part| self.due_at(part)).min();
        let due = earliest(due, self.mtu_probe_at());
        earliest(due, self.sent.poll_timeout())
    }

    /// Puts the frames that are due into a datagram.
    pub(super) fn compose(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        ORDER.into_iter().for_each(|part| self.put(part, now, draft));
    }

    /// When this part is a reason to send a datagram.
    fn due_at(&self, part: Part) -> Option<Instant> {
        let now_if = |is_pending: bool| is_pending.then_some(Instant::ZERO);
        match part {
            Part::PathResponse => now_if(self.path_response.is_some()),
            Part::ResetToken => now_if(self.reset_token_due),
            Part::MessageLimit => now_if(self.messages_in.limit_due().is_some()),
            Part::Announcements => now_if(self.blocks_out.has_announcement()),
            Part::Ping => now_if(self.ping_due),
            Part::Packets => now_if(!self.packets_out.is_empty()),
            Part::Messages => now_if(self.messages_out.has_due()),
            Part::ChunkAcks if self.received.may_ack_alone() => self.blocks_in.poll_timeout(),
            Part::ChunkAcks => None,
            Part::Slice if self.may_send_slices() => {
                self.blocks_out.sender().and_then(Sender::poll_timeout)
            }
            Part::Slice => self.blocks_out.sender().and_then(Sender::timeout_at),
            Part::Ack => self.received.ack_due(),
        }
    }

    /// Puts what this part has now into a datagram.
    fn put(&mut self, part: Part, now: Instant, draft: &mut Draft<'_, '_>) {
        match part {
            Part::PathResponse => {
                if let Some(bytes) = self.path_response.take() {
                    draft.push(&Frame::PathResponse(bytes));
                }
            }
            Part::ResetToken => self.put_reset_token(draft),
            Part::MessageLimit => self.put_message_limit(draft),
            Part::Announcements => self.put_announcements(draft),
            Part::Ping => {
                if core::mem::take(&mut self.ping_due) {
                    draft.push(&Frame::Ping);
                }
            }
            Part::Packets => self.put_packets(draft),
            Part::Messages => self.put_messages(draft),
            Part::ChunkAcks => self.put_chunk_acks(now, draft),
            Part::Slice => self.put_slice(now, draft),
            Part::Ack => self.put_ack(now, draft),
        }
    }

    fn put_reset_token(&mut self, draft: &mut Draft<'_, '_>) {
        if let Some(token) = self.reset_token.as_ref().filter(|_| self.reset_token_due) {
            draft.push(&Frame::ResetToken(***token));
            self.sent.add(Item::ResetToken);
            self.reset_token_due = false;
        }
    }

    fn put_message_limit(&mut self, draft: &mut Draft<'_, '_>) {
        if let Some(limit) = self.messages_in.limit_due() {
            draft.push(&Frame::MessageLimit(limit));
            self.sent.add(Item::MessageLimit(limit));
            self.messages_in.on_limit_sent(limit);
        }
    }

    fn put_announcements(&mut self, draft: &mut Draft<'_, '_>) {
        while draft.room() >= BLOCK_FRAME_BYTES
            && let Some(frame) = self.blocks_out.poll_announcement()
        {
            draft.push(&Frame::Block(frame));
            self.sent.add(Item::Block(frame.number));
        }
    }

    fn put_packets(&mut self, draft: &mut Draft<'_, '_>) {
        while let Some(sequence) = self.packets_out.poll(draft.room(), draft.out.vec()) {
            self.sent.add(Item::Packet(sequence));
            (draft.is_ack_eliciting, draft.has_content) = (true, true);
        }
    }

    fn put_messages(&mut self, draft: &mut Draft<'_, '_>) {
        while let Some((number, data)) = self.messages_out.poll(draft.room()) {
            draft.push(&Frame::Message { number, data: &data });
            self.sent.add(Item::Message(number));
        }
    }

    /// What the peer must know of its chunks. That one is done is repeated along with what goes in any case;
    /// if that asks for an ack, the ack says whether it was heard.
    fn put_chunk_acks(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
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

    fn put_slice(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        let may_send = self.may_send_slices();
        if !may_send || draft.room() < FULL_SLICE_FRAME_BYTES {
            return;
        }
        let Some((slice, frame)) = self.blocks_out.poll_slice(now, &self.sent) else { return };
        draft.push(&frame);
        draft.slice = Some(slice);
    }

    /// An ack rides along with anything that goes; alone it waits until it is due.
    fn put_ack(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        if !self.is_ack_due(now) && !draft.has_frames() {
            return;
        }
        if let Some(ack) = self.received.ack_frame(now)
            && ack.encoded_len() < draft.room()
        {
            draft.push(&Frame::Ack(ack));
            self.put_arrivals(draft);
            if !draft.has_frames() && self.is_sample_due(now) && draft.room() > 0 {
                Frame::Ping.write(draft.out.vec());
                draft.is_ack_eliciting = true;
            }
        }
    }

    /// While a block is received, its sender measures the link by the arrival times of its datagrams.
    fn put_arrivals(&mut self, draft: &mut Draft<'_, '_>) {
        if let Some(arrivals) = self.arrivals.frame()
            && arrivals.encoded_len() < draft.room()
        {
            draft.push(&Frame::Arrivals(arrivals));
        }
        if !self.blocks_in.is_receiving() {
            self.arrivals.clear();
        }
    }

    fn is_ack_due(&self, now: Instant) -> bool {
        self.received.ack_due().is_some_and(|due| due <= now)
    }

    /// Whether an ack should be ack-eliciting itself. An end that only receives would otherwise never measure
    /// the round trip.
    fn is_sample_due(&self, now: Instant) -> bool {
        let is_unmeasured = self.sent.rtt().latest_rtt().is_none();
        self.sent.in_flight() == 0 && (is_unmeasured || self.liveness.is_sample_due(now))
    }

    /// Whether slices may be sent: there is room for one within the amplification limit, and the peer is
    /// not silent (H-4.2c). Otherwise an attacker who joins with somebody else's address, or a client
    /// that is gone, would receive the full rate until the block fails. Pings continue, and so do a few
    /// slices after each probe timeout; slices resume with the first answer.
    pub(super) fn may_send_slices(&self) -> bool {
        self.frame_room() >= FULL_SLICE_FRAME_BYTES
            && (self.blocks_out.sender().is_some_and(Sender::is_probing)
                || self.sent.in_flight() == 0
                || !self.liveness.is_peer_silent(self.now, self.sent.probe_timeout()))
    }
}
