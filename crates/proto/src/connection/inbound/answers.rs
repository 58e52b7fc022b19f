//! The answers to datagrams of the peer: acks, and the reports of the receivers of blocks and messages.
//!
//! The invariants: an ack comes before a slice, or rides along where there is room; and a peer is not
//! answered with more datagrams than [H-4.1c] allows.

use alloc::vec::Vec;

use super::{BlocksIn, Inbound};
use crate::Instant;
use crate::connection::draft::{Draft, Written};
use crate::connection::outbound::MIN_ROOM;
use crate::connection::recovery::ItemFate;
use crate::incoming::{IncomingBlocks, ProgressDue};
use crate::transit::{Control, Item};
use crate::wire::frames::Frame;

/// The least room in which what a receiver of blocks has to make known is begun: the longest is a map of 512
/// bytes with its head.
const MIN_CONTROL_ROOM: usize = 540;

impl Inbound {
    /// Whether a limit of a channel is due.
    pub(in crate::connection) fn is_limit_due(&self) -> bool {
        self.messages.as_ref().is_some_and(|it| it.has_limit_due())
    }

    /// Whether a receiver of blocks has something to make known, for which there is room.
    pub(in crate::connection) fn is_control_due(&self, room: usize) -> bool {
        room >= MIN_CONTROL_ROOM && self.blocks().is_some_and(IncomingBlocks::has_control)
    }

    /// Whether a progress frame belongs in the next datagram.
    fn progress(&self) -> ProgressDue {
        self.blocks().map_or(ProgressDue::No, IncomingBlocks::progress_due)
    }

    /// Whether a progress frame is a reason to send: within the bound of what a peer is answered with.
    pub(in crate::connection) fn is_progress_due(&self, in_flight: u32) -> bool {
        match self.progress() {
            ProgressDue::No | ProgressDue::WithAck => false,
            // Beyond that bound with a ping, one at a time: the sender of a small block would wait for its
            // probe timeout, and take the slice for lost.
            ProgressDue::Now => self.received.may_ack_alone() || in_flight == 0,
            ProgressDue::MustArrive => true,
        }
    }

    /// When slices here frames are a reason to send.
    pub(in crate::connection) fn report_at(&self) -> Option<Instant> {
        if self.received.may_ack_alone() { self.slices_here_at() } else { None }
    }

    /// When they are due. They repeat what acks say: where those are thinned they wait for one.
    fn slices_here_at(&self) -> Option<Instant> {
        Some(self.blocks()?.slices_here_at()? + self.received.thinned_by())
    }

    /// When an ack is a reason to send.
    pub(in crate::connection) const fn ack_at(&self) -> Option<Instant> {
        self.received.ack_due()
    }

    fn is_ack_due(&self, now: Instant) -> bool {
        self.received.ack_due().is_some_and(|due| due <= now)
    }

    pub(in crate::connection) fn put_limits(&mut self, draft: &mut Draft<'_, '_>) {
        let Some(messages) = &mut self.messages else { return };
        while let Some(limit) = draft.append(|room, out| messages.poll_limit(room, out)) {
            draft.add(Item::ChannelLimit(limit));
        }
    }

    /// What a receiver of blocks has to make known.
    pub(in crate::connection) fn put_controls(&mut self, draft: &mut Draft<'_, '_>) {
        let Some(BlocksIn { blocks, .. }) = self.blocks.as_deref_mut() else { return };
        while draft.room() >= MIN_CONTROL_ROOM
            && let Some(control) = blocks.poll_control()
        {
            if let Some(frame) = blocks.control_frame(control) {
                draft.push(&frame);
                draft.add(Item::Control(control));
            }
            if matches!(control, Control::ChunksHere { .. }) {
                return;
            }
        }
    }

    /// The whole state of the receiver of blocks. One that must arrive, or may not go alone, asks for an ack.
    pub(in crate::connection) fn put_progress(&mut self, draft: &mut Draft<'_, '_>) {
        let due = self.progress();
        if due == ProgressDue::No || draft.written().has_progress {
            return;
        }
        // A ping has to fit behind it.
        let room = draft.room().saturating_sub(1);
        let lateness = self.reading.lateness();
        let Some(BlocksIn { blocks, entries, .. }) = self.blocks.as_deref_mut() else { return };
        let Some(frame) = blocks.progress_frame(lateness, room, entries) else { return };
        draft.push(&Frame::Progress(frame));
        let may_not_go_alone = due == ProgressDue::Now && !self.received.may_ack_alone();
        let must_ask = due == ProgressDue::MustArrive || may_not_go_alone;
        if must_ask && !draft.written().is_ack_eliciting {
            draft.ask(may_not_go_alone);
        }
        // The ledger drops the items of a datagram that is not acknowledged.
        draft.add(Item::Progress(blocks.on_progress_sent()));
    }

    pub(in crate::connection) fn put_slices_here(
        &mut self,
        now: Instant,
        draft: &mut Draft<'_, '_>,
    ) {
        let is_now = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        let may_go_alone = self.received.may_ack_alone()
            && (is_now(self.slices_here_at()) || self.is_ack_due(now));
        if draft.room() < MIN_ROOM || !(draft.written().has_content || may_go_alone) {
            return;
        }
        if let Some(here) = self.blocks_mut().and_then(|blocks| blocks.poll_slices_here(now)) {
            draft.push(&Frame::SlicesHere(here.frame()));
        }
    }

    /// An ack rides along with anything that goes; alone it waits until it is due. With it go the arrivals
    /// and the state of a receiver of blocks. Alone it asks for an ack itself if a sample of the round trip
    /// is due.
    pub(in crate::connection) fn put_ack(
        &mut self,
        now: Instant,
        is_sample_due: bool,
        draft: &mut Draft<'_, '_>,
    ) {
        let is_wanted = self.is_ack_due(now) || draft.has_frames();
        if !is_wanted || draft.written().has_ack || draft.written().slice.is_some() {
            return;
        }
        let ack = self.received.ack_frame(now).filter(|ack| ack.encoded_len() <= draft.room());
        let Some(ack) = ack else {
            // News that the peer may not have received is sent with any ack-eliciting datagram, too.
            if draft.written().is_ack_eliciting {
                self.put_progress(draft);
            }
            return;
        };
        let is_alone = !draft.has_frames();
        draft.push(&Frame::Ack(ack));
        self.put_arrivals(draft);
        self.put_progress(draft);
        if is_alone && is_sample_due && draft.room() > 0 && !draft.written().is_ack_eliciting {
            draft.ask(false);
        }
    }

    /// The ack that is due, before a slice fills the datagram.
    pub(in crate::connection) fn put_due_ack(
        &mut self,
        now: Instant,
        is_sample_due: bool,
        draft: &mut Draft<'_, '_>,
    ) {
        if self.is_ack_due(now) {
            self.put_ack(now, is_sample_due, draft);
        }
    }

    /// While a block is received, its sender measures the link by the arrival times of its datagrams.
    fn put_arrivals(&mut self, draft: &mut Draft<'_, '_>) {
        let Some(it) = &mut self.blocks else { return };
        if let Some(arrivals) = it.arrivals.frame()
            && arrivals.encoded_len() < draft.room()
        {
            draft.push(&Frame::Arrivals(arrivals));
        }
        if !it.blocks.is_receiving() {
            it.arrivals.clear();
        }
    }

    /// A datagram was sent with this in it.
    pub(in crate::connection) fn on_sent(&mut self, now: Instant, written: &Written) {
        let is_alone = written.is_ack_alone();
        if written.has_ack {
            // An ack that says that a block is finished is repeated as well.
            let is_unheard = self.progress() > ProgressDue::No;
            self.received.set_block(is_unheard && !written.is_asking);
            self.received.on_ack_sent(now, is_alone);
            if let Some(it) = self.blocks.as_mut().filter(|_| !is_unheard) {
                it.entries = Vec::new();
            }
        } else if written.has_report && is_alone {
            // It counts against [H-4.1c] too. An ack that did not fit beside it stays due.
            self.received.on_other_ack_alone();
        }
    }

    /// The fate of an item of a datagram.
    pub(in crate::connection) fn on_item(&mut self, now: Instant, item: Item, fate: ItemFate) {
        let is_acked = fate == ItemFate::Acked;
        if let Item::ChannelLimit(limit) = item
            && let Some(messages) = self.messages.as_mut().filter(|_| !is_acked)
        {
            messages.on_limit_lost(limit);
        }
        let Some(blocks) = self.blocks_mut() else { return };
        match item {
            Item::Progress(mark) if is_acked => blocks.on_progress_heard(mark),
            Item::Progress(mark) => blocks.on_progress_lost(mark),
            Item::Control(control) if is_acked => blocks.on_control_acked(now, control),
            Item::Control(control) => blocks.on_control_lost(control),
            _ => {}
        }
    }
}
