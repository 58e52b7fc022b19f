//! What goes into a datagram, and when: the parts of one, in the order of [H-4.3].
//!
//! Control frames first; then what the receiver of blocks says; then the application's data, in the order of
//! its lanes: packets, messages, slices. A slice goes to the end of its datagram, so an ack that is due comes
//! before it; one that is not due rides along where there is room. Of each [`Part`] this file says side by
//! side when it has something to send by itself ([`due_at`](Connection::due_at)) and what it puts into a
//! datagram ([`put`](Connection::put)): a connection wakes up for exactly what it will then send. A new frame
//! appears in `Part`, in [`ORDER`] and in these two. Path challenges, probes of the path's size and the close
//! have datagrams of their own (`path`, `transmit`, `closing`).

use alloc::boxed::Box;

use super::Connection;
use super::blocks::BlocksIn;
use super::draft::Draft;
use super::message_pace::KnownPath;
use crate::Instant;
use crate::bulk::Sender;
use crate::channels::Source;
use crate::incoming::ProgressDue;
use crate::outgoing::Heard;
use crate::time::earliest;
use crate::transit::Item;
use crate::wire::frames::Frame;
use crate::wire::{Grease, MAX_DATAGRAM_BYTES};

/// The least room for a datagram to be begun: that of an announcement, the longest frame that must fit.
const MIN_ROOM: usize = 64;

/// The least room in which what a receiver of blocks has to make known is begun: the longest is a map of 512
/// bytes with its head.
const MIN_CONTROL_ROOM: usize = 540;

/// The least room for a slice of a full chunk with its frame: 1024 bytes and 12.
const MIN_SLICE_ROOM: usize = 1036;

/// About one datagram in so many has a frame without meaning (H-1.3).
const GREASE_INTERVAL: u64 = 1000;

/// A part of a datagram.
#[derive(Clone, Copy)]
enum Part {
    PathResponse,
    ResetToken,
    ChannelLimits,
    Controls,
    Cancels,
    Announcements,
    Pages,
    Ping,
    Progress,
    SlicesHere,
    Data,
    Ack,
    Grease,
}

/// In this order.
const ORDER: [Part; 13] = [
    Part::PathResponse,
    Part::ResetToken,
    Part::ChannelLimits,
    Part::Controls,
    Part::Cancels,
    Part::Announcements,
    Part::Pages,
    Part::Ping,
    Part::Progress,
    Part::SlicesHere,
    Part::Data,
    Part::Ack,
    Part::Grease,
];

impl Connection {
    /// When there is something to send, as far as the amplification limit allows.
    pub(super) fn transmit_at(&self) -> Option<Instant> {
        if self.frame_room() < MIN_ROOM {
            return None;
        }
        let due = ORDER.into_iter().filter_map(|part| self.due_at(part)).min();
        let due = earliest(due, self.mtu_probe_at());
        earliest(due, self.sent.poll_timeout(&self.path.timing))
    }

    /// Puts the frames that are due into a datagram.
    pub(super) fn compose(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        match draft.is_next {
            true => self.put_next(now, draft),
            false => ORDER.into_iter().for_each(|part| self.put(part, now, draft)),
        }
    }

    /// What a datagram may have that follows one with a slice alone, in the same call: all else was asked
    /// there, and nothing came in since. What rides along with others does so here, too.
    fn put_next(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        self.put_announcements(now, draft);
        self.put_pages(draft);
        self.put_slices_here(now, draft);
        self.put_data(now, draft);
        if draft.slice.is_none() {
            // Both leave its end to a slice.
            self.put_ack(now, draft);
            self.put_grease(draft);
        }
    }

    /// When this part is a reason to send a datagram.
    fn due_at(&self, part: Part) -> Option<Instant> {
        let now_if = |is_pending: bool| is_pending.then_some(Instant::ZERO);
        match part {
            Part::PathResponse => now_if(self.path_response.is_some()),
            Part::ResetToken => now_if(self.reset_token_due),
            Part::ChannelLimits => {
                now_if(self.messages_in.as_ref().is_some_and(|it| it.has_limit_due()))
            }
            Part::Controls => {
                let is_due = self.blocks_in.as_ref().is_some_and(|it| it.blocks.has_control());
                now_if(is_due && self.frame_room() >= MIN_CONTROL_ROOM)
            }
            Part::Cancels => now_if(self.blocks_out.has_cancel()),
            Part::Announcements => now_if(self.blocks_out.has_announcement()),
            Part::Pages => now_if(self.blocks_out.has_page() && self.may_send_slices()),
            Part::Ping => now_if(self.ping_due),
            Part::Progress => now_if(self.is_progress_due()),
            Part::SlicesHere if self.received.may_ack_alone() => self.slices_here_at(),
            Part::SlicesHere | Part::Grease => None,
            Part::Data => {
                let packet = now_if(self.packets_out.next_bytes().is_some_and(|it| self.fits(it)));
                earliest(packet, earliest(self.message_at(), self.slice_at()))
            }
            Part::Ack => self.received.ack_due(),
        }
    }

    /// What does not fit into the rest of the amplification limit waits for more of it.
    fn fits(&self, bytes: usize) -> bool {
        bytes <= self.frame_room()
    }

    /// When a message may go: within the window and the pace of messages, and if it shares the rate with
    /// blocks, when a slice may go.
    fn message_at(&self) -> Option<Instant> {
        if !self.messages_out.has_due() {
            return None;
        }
        let at = match &self.path.messages {
            Some(pace) => pace.opens_at(self.known_path_of_messages())?,
            None => Instant::ZERO,
        };
        let gate = self.blocks_out.sender().map_or(at, |sender| sender.gate_at().max(at));
        let due = self.messages_out.due().filter(|&(_, bytes)| self.fits(bytes));
        due.map(
            |(channel, _)| if self.lanes.is_shared(Source::Channel(channel)) { gate } else { at },
        )
        .min()
    }

    /// Whether channels that share the rate with blocks may send now.
    fn is_gate_open(&mut self, now: Instant) -> bool {
        let mut due = self.messages_out.due();
        !due.any(|(channel, _)| self.lanes.is_shared(Source::Channel(channel)))
            || (self.blocks_out.sender_on(&mut self.path.blocks))
                .is_none_or(|(sender, path)| sender.is_gate_open(path, now))
    }

    fn known_path_of_messages(&self) -> KnownPath {
        let rtt = self.path.timing.rtt().smoothed_rtt();
        KnownPath { rtt, rate_bps: self.path.blocks.proven_rate_bps() }
    }

    fn slice_at(&self) -> Option<Instant> {
        let (sender, path) = self.blocks_out.asked_on(&self.path.blocks)?;
        match self.may_send_slices() {
            true => sender.poll_timeout(path, self.frame_room()),
            false => sender.timeout_at(path),
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
            Part::ChannelLimits => self.put_channel_limits(draft),
            Part::Controls => self.put_controls(draft),
            Part::Cancels => self.put_cancels(draft),
            Part::Announcements => self.put_announcements(now, draft),
            Part::Pages => self.put_pages(draft),
            Part::Ping => {
                if core::mem::take(&mut self.ping_due) {
                    draft.push(&Frame::Ping);
                }
                if core::mem::take(&mut self.probe_due) {
                    self.put_copies(draft);
                }
            }
            Part::Progress if self.is_progress_due() => self.put_progress(draft),
            Part::Progress => {}
            Part::SlicesHere => self.put_slices_here(now, draft),
            Part::Data => self.put_data(now, draft),
            Part::Ack => self.put_ack(now, draft),
            Part::Grease => self.put_grease(draft),
        }
    }

    fn put_reset_token(&mut self, draft: &mut Draft<'_, '_>) {
        if let Some(token) = self.reset_token.as_ref().filter(|_| self.reset_token_due) {
            draft.push(&Frame::ResetToken(***token));
            self.sent.add(Item::ResetToken);
            self.reset_token_due = false;
        }
    }

    fn put_channel_limits(&mut self, draft: &mut Draft<'_, '_>) {
        let Some(messages_in) = &mut self.messages_in else { return };
        while let Some(limit) = messages_in.poll_limit(draft.room(), draft.out.vec()) {
            self.sent.add(Item::ChannelLimit(limit));
            draft.on_data();
        }
    }

    /// What a receiver of blocks has to make known.
    fn put_controls(&mut self, draft: &mut Draft<'_, '_>) {
        let Some(BlocksIn { blocks, .. }) = self.blocks_in.as_deref_mut() else { return };
        while draft.room() >= MIN_CONTROL_ROOM
            && let Some(control) = blocks.poll_control()
        {
            if let Some(frame) = blocks.control_frame(control) {
                draft.push(&frame);
                self.sent.add(Item::Control(control));
            }
            if matches!(control, crate::transit::Control::ChunksHere { .. }) {
                return;
            }
        }
    }

    fn put_cancels(&mut self, draft: &mut Draft<'_, '_>) {
        while draft.room() >= MIN_ROOM
            && let Some((block, code, opened)) = self.blocks_out.poll_cancel()
        {
            draft.push(&Frame::Cancel { block, code, opened });
            self.sent.add(Item::Cancel(block));
        }
    }

    fn put_announcements(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        while draft.room() >= MIN_ROOM
            && let Some(frame) = self.blocks_out.poll_announcement(now)
        {
            draft.push(&Frame::Block(frame));
            self.sent.add(Item::Block(frame.number));
        }
    }

    /// The pages of a tree that the next chunk needs, and with them how often acks are wanted.
    fn put_pages(&mut self, draft: &mut Draft<'_, '_>) {
        if !draft.may_send_slices {
            return;
        }
        while let Some((place, frame)) = self.blocks_out.poll_page(draft.room()) {
            let block = frame.block;
            draft.push(&Frame::Hashes(frame));
            self.sent.add(Item::Page { block, place });
        }
        let in_flight = u64::from(self.sent.in_flight());
        let next = self.received.largest().map_or(0, |largest| largest + 1);
        let heard = Heard { next, received: self.received.received() };
        if let Some(wanted) = self.blocks_out.ack_frequency_due(&self.path.blocks, in_flight, heard)
            && draft.room() >= MIN_ROOM
        {
            let (datagrams, delay) = (wanted.datagrams, wanted.delay());
            draft.push(&Frame::AckFrequency { datagrams, delay });
            self.blocks_out.on_ack_frequency_sent(wanted);
            self.sent.add(Item::AckFrequency);
        }
    }

    /// What the oldest datagram in flight had of messages, so that a probe is more than a question.
    fn put_copies(&mut self, draft: &mut Draft<'_, '_>) {
        let mut n = 0;
        while let Some(item) = self.sent.oldest_item(n) {
            n += 1;
            let Item::Part(part) = item else { continue };
            let (room, out) = (draft.room(), draft.out.vec());
            if let Some(is_whole) = self.messages_out.copy(part, room, out) {
                draft.on_data();
                if is_whole {
                    self.sent.add(Item::Copy(part));
                }
            }
        }
    }

    /// Whether a progress frame is a reason to send: within the bound of what a peer is answered with.
    fn is_progress_due(&self) -> bool {
        match self.progress_due() {
            ProgressDue::No | ProgressDue::WithAck => false,
            // Beyond that bound with a ping, one at a time: the sender of a small block would wait for its
            // probe timeout, and take the slice for lost.
            ProgressDue::Now => self.received.may_ack_alone() || self.sent.in_flight() == 0,
            ProgressDue::MustArrive => true,
        }
    }

    /// The whole state of the receiver of blocks. One that must arrive, or may not go alone, asks for an ack.
    fn put_progress(&mut self, draft: &mut Draft<'_, '_>) {
        let due = self.progress_due();
        if due == ProgressDue::No || draft.has_progress {
            return;
        }
        // A ping has to fit behind it.
        let room = draft.room().saturating_sub(1);
        let lateness = self.reading.lateness();
        let Some(BlocksIn { blocks, entries, .. }) = self.blocks_in.as_deref_mut() else { return };
        let Some(frame) = blocks.progress_frame(lateness, room, entries) else { return };
        draft.push(&Frame::Progress(frame));
        self.counters.steps += frame.entry_bytes() as u64;
        draft.has_progress = true;
        let may_not_go_alone = due == ProgressDue::Now && !self.received.may_ack_alone();
        if (due == ProgressDue::MustArrive || may_not_go_alone) && !draft.is_ack_eliciting {
            draft.is_asking = may_not_go_alone;
            Frame::Ping.write(draft.out.vec());
            draft.is_ack_eliciting = true;
        }
        // Of a datagram that is not acknowledged, the ledger drops the items.
        let mark = blocks.on_progress_sent();
        self.sent.add(Item::Progress(mark));
    }

    /// When slices here frames are a reason to send. They repeat what acks say: where those are thinned they
    /// wait for one.
    fn slices_here_at(&self) -> Option<Instant> {
        let at = self.blocks_in.as_ref()?.blocks.slices_here_at()?;
        Some(at + self.received.thinned_by())
    }

    fn put_slices_here(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        let is_now = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let may_go_alone = self.received.may_ack_alone()
            && (is_now(self.slices_here_at()) || is_now(self.received.ack_due()));
        if draft.room() < MIN_ROOM || !(draft.has_content || may_go_alone) {
            return;
        }
        let blocks_in = self.blocks_in.as_mut();
        if let Some(here) = blocks_in.and_then(|it| it.blocks.poll_slices_here(now)) {
            draft.push(&Frame::SlicesHere(here.frame()));
        }
    }

    /// The application's data, in the order of its lanes, until the datagram is full. A slice ends it.
    fn put_data(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        // In this order: both or neither are ready when their common gate is closed.
        let is_gate_open = self.is_gate_open(now);
        let mut may_send_message = self.message_at().is_some_and(|at| at <= now);
        let room = self.frame_room();
        // Behind a slice that had nothing beside it, whether there is another shows when it is taken. Beside
        // others it has to be known: the lanes give no turn to who has nothing to send.
        let has_others = !self.packets_out.is_empty() || self.messages_out.has_due();
        let is_alone = draft.is_next && !has_others;
        let mut may_send = draft.may_send_slices
            && (self.blocks_out.sender_on(&mut self.path.blocks))
                .is_some_and(|(sender, path)| is_alone || sender.is_slice_due(path, now, room));
        while may_send || !self.packets_out.is_empty() || may_send_message {
            let packets = self.packets_out.next_bytes().map(|bytes| (Source::Packets, bytes));
            let due = self.messages_out.due().filter(|_| may_send_message);
            let channels = due.map(|(channel, bytes)| (Source::Channel(channel), bytes));
            let blocks = may_send.then_some((Source::Blocks, 0));
            let ready = packets.into_iter().chain(channels).chain(blocks);
            let Some(source) = self.lanes.next_if(draft.room(), ready, is_gate_open) else {
                return;
            };
            let before = draft.bytes();
            match source {
                Source::Packets => {
                    let Some(sequence) = self.packets_out.poll(draft.room(), draft.out.vec())
                    else {
                        return;
                    };
                    self.sent.add(Item::Packet(sequence));
                    draft.on_data();
                }
                Source::Channel(channel) => {
                    let room = draft.room();
                    let Some(part) = self.messages_out.poll(channel, room, draft.out.vec()) else {
                        return;
                    };
                    self.sent.add(Item::Part(part));
                    draft.on_data();
                    let path = self.known_path_of_messages();
                    let pace = self.path.messages.get_or_insert_with(Box::default);
                    pace.on_sent(now, part, path);
                    may_send_message = self.message_at().is_some_and(|at| at <= now);
                }
                Source::Blocks => {
                    may_send = false;
                    self.put_slice(now, draft);
                }
            }
            self.lanes.on_sent(source, draft.bytes() - before);
            if draft.slice.is_some() {
                return;
            }
        }
    }

    /// A slice, behind the ack that is due.
    fn put_slice(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        if self.is_ack_due(now) {
            self.put_ack(now, draft);
        }
        let room = draft.room();
        let path = &mut self.path.blocks;
        if let Some((slice, frame)) = self.blocks_out.poll_slice(path, now, &self.sent, room) {
            draft.push_slice(slice, &frame);
        }
    }

    /// An ack rides along with anything that goes; alone it waits until it is due. With it go the arrivals
    /// and the state of a receiver of blocks.
    fn put_ack(&mut self, now: Instant, draft: &mut Draft<'_, '_>) {
        let is_wanted = self.is_ack_due(now) || draft.has_frames();
        if !is_wanted || draft.has_ack || draft.slice.is_some() {
            return;
        }
        let ack = self.received.ack_frame(now).filter(|ack| ack.encoded_len() <= draft.room());
        let Some(ack) = ack else {
            // What the peer may not have heard goes with anything that is acknowledged, too.
            if draft.is_ack_eliciting {
                self.put_progress(draft);
            }
            return;
        };
        let is_alone = !draft.has_frames();
        draft.push(&Frame::Ack(ack));
        self.put_arrivals(draft);
        self.put_progress(draft);
        if is_alone && self.is_sample_due(now) && draft.room() > 0 && !draft.is_ack_eliciting {
            Frame::Ping.write(draft.out.vec());
            draft.is_ack_eliciting = true;
        }
    }

    /// While a block is received, its sender measures the link by the arrival times of its datagrams.
    fn put_arrivals(&mut self, draft: &mut Draft<'_, '_>) {
        let Some(it) = &mut self.blocks_in else { return };
        if let Some(arrivals) = it.arrivals.frame()
            && arrivals.encoded_len() < draft.room()
        {
            draft.push(&Frame::Arrivals(arrivals));
        }
        if !it.blocks.is_receiving() {
            it.arrivals.clear();
        }
    }

    /// A frame without meaning now and then, so that peers go on ignoring what they do not know (H-1.3).
    fn put_grease(&mut self, draft: &mut Draft<'_, '_>) {
        let number = self.sent.next_number();
        let is_due = self.config.grease && number >= self.next_grease;
        if is_due && draft.has_content && draft.slice.is_none() && draft.room() >= MIN_ROOM {
            self.next_grease = number + 1 + self.entropy.next_u64() % (2 * GREASE_INTERVAL);
            let grease = Grease(self.entropy.bytes());
            draft.push(&grease.frame());
        }
    }

    fn is_ack_due(&self, now: Instant) -> bool {
        self.received.ack_due().is_some_and(|due| due <= now)
    }

    /// Whether an ack should be ack-eliciting itself. An end that only receives would otherwise never measure
    /// the round trip.
    fn is_sample_due(&self, now: Instant) -> bool {
        let is_unmeasured = self.path.timing.rtt().latest_rtt().is_none();
        self.sent.in_flight() == 0 && (is_unmeasured || self.liveness.is_sample_due(now))
    }

    /// Whether slices may be sent: there is room for one within the amplification limit, and the peer is
    /// not silent (H-4.5b). Otherwise an attacker who joins with somebody else's address, or a client
    /// that is gone, would receive the full rate until the block fails. Pings continue, and so do a few
    /// slices after each probe timeout; slices resume with the first answer. And a slice waits while the
    /// ledger has no room for it: one more record, and the oldest datagram would count as lost.
    pub(super) fn may_send_slices(&self) -> bool {
        // Larger slices wait while only small datagrams go: pings find out whether the path still takes
        // them.
        let fit =
            self.path.max_datagram_bytes() as usize <= MAX_DATAGRAM_BYTES || !self.is_ack_overdue();
        fit && self.may_send_more_slices()
    }

    /// The same, where a slice has just been sent that was as large: no ack has become overdue since.
    pub(super) fn may_send_more_slices(&self) -> bool {
        let is_heard = || !self.liveness.is_peer_silent(self.now, self.path.timing.probe_timeout());
        self.frame_room() >= MIN_SLICE_ROOM
            && (self.blocks_out.sender().is_some_and(Sender::is_probing)
                || self.sent.in_flight() == 0
                || self.sent.has_slice_room() && is_heard())
    }
}
