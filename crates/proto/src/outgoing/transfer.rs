//! The chunk sender of the present transfer, and what lasts from one transfer to the next.
//!
//! The invariant: what is set, given or counted holds for the sender that there is, and for each after it.

use alloc::boxed::Box;
use core::time::Duration;

use haulier_control::{Controller, Urgency};

use super::ack_frequency::{AckFrequency, Heard, Wanted};
use super::blocks::{OutgoingConfig, PeerLimits};
use super::path::BlocksPath;
use crate::Instant;
use crate::bulk::cut::SliceSize;
use crate::bulk::{Chosen, Credit, SendBlock, Sender, SenderConfig, SenderStats, SlicePart};
use crate::transit::{ChunkAt, Ledger, Symbol};
use crate::wire::frames::{SliceFrame, SliceKind};

/// Chunks that may be open at most [H-4.2f].
const MAX_OPEN: usize = 1024;

/// The largest slices of this wire.
const MAX_SLICE: SliceSize = match SliceSize::new(65_472) {
    Some(size) => size,
    None => SliceSize::SMALLEST_OF_FULL_CHUNK,
};

/// The chunk sender while there are blocks, and with what the next one begins.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// Exists while there are blocks, so that an idle connection is small.
    sender: Option<Box<Sender>>,
    /// The settings of the next sender. Its credit is the connection's while no sender exists.
    next: SenderConfig,
    /// The maximum that the client's token sets.
    rate_cap_bps: u64,
    /// By how much the peer's program reads late.
    lateness_ms: u16,
    ack_frequency: AckFrequency,
    /// The counters of earlier senders, and whether one of them has failed.
    past: SenderStats,
    has_failed: bool,
}

impl Transfer {
    /// None has begun. A slice frame may have `slice_room` bytes.
    pub(super) const fn new(config: &OutgoingConfig, peer: &PeerLimits, slice_room: usize) -> Self {
        let next = SenderConfig {
            urgency: config.urgency,
            max_rate_bps: config.max_rate_bps,
            min_rate_bps: config.min_rate_bps,
            give_up_after: config.no_progress_timeout,
            idle_timeout_ms: config.idle_timeout_ms,
            first_number: 0,
            slice_room,
            max_slice: MAX_SLICE,
            max_open: MAX_OPEN,
            has_repair: peer.has_repair,
            receive_buffer: peer.receive_buffer,
            credit: Credit::new(peer.credit),
        };
        Self {
            sender: None,
            next,
            rate_cap_bps: u64::MAX,
            lateness_ms: 0,
            ack_frequency: AckFrequency::new(),
            past: SenderStats { slices: 0, repairs: 0, resent: 0 },
            has_failed: false,
        }
    }

    /// Blocks are sent on this path, from datagram `first_number` on, unless they are already.
    pub(super) fn begin(&mut self, now: Instant, path: &mut BlocksPath, first_number: u64) {
        if self.sender.is_some() {
            return;
        }
        self.next.first_number = first_number;
        let rtt = path.rtt();
        let state = path.begin(now, first_number, self.next.min_rate_bps);
        let mut sender = Sender::new(now, self.next, state);
        rtt.into_iter().for_each(|rtt| sender.set_rtt(state, rtt));
        sender.set_lateness(self.lateness());
        sender.set_ack_delay(self.ack_frequency.later());
        self.sender = Some(Box::new(sender));
    }

    /// Nothing is sent any more.
    pub(super) fn end(&mut self) {
        (self.past, self.has_failed) = (self.stats(), self.has_failed());
        self.next.credit = self.credit();
        self.sender = None;
    }

    /// The chunk sender, while there are blocks.
    pub(crate) fn sender(&self) -> Option<&Sender> {
        self.sender.as_deref()
    }

    /// The chunk sender, to be changed, while there are blocks.
    pub(crate) fn sender_mut(&mut self) -> Option<&mut Sender> {
        self.sender.as_deref_mut()
    }

    /// The chunk sender and the state of the path that it sends on, while there are blocks.
    #[inline]
    pub(crate) fn sender_on<'a>(
        &'a mut self,
        path: &'a mut BlocksPath,
    ) -> Option<(&'a mut Sender, &'a mut Controller)> {
        Some((self.sender.as_deref_mut()?, path.state_mut()?))
    }

    /// The chunk sender and the state of the path that it sends on, to be read, while there are blocks.
    #[inline]
    pub(crate) fn asked_on<'a>(
        &'a self,
        path: &'a BlocksPath,
    ) -> Option<(&'a Sender, &'a Controller)> {
        Some((self.sender.as_deref()?, path.state()?))
    }

    /// What the chunk sender has of a block.
    pub(super) fn block(&self, number: u32) -> Option<&SendBlock> {
        self.sender.as_ref()?.block(number)
    }

    /// Nothing more is sent of a block.
    pub(super) fn remove(&mut self, number: u32) {
        self.sender_mut().into_iter().for_each(|sender| sender.remove(number));
    }

    /// The slice to send now, if its frame fits in `room` bytes, and what the ledger has to know of it. If
    /// another one waits to be sent (`is_next`), none that has to be encoded.
    pub(crate) fn poll_slice<'a>(
        &'a mut self,
        path: &'a mut BlocksPath,
        now: Instant,
        ledger: &Ledger,
        (room, is_next): (usize, bool),
    ) -> Option<((ChunkAt, Symbol), SliceFrame<'a>)> {
        let (sender, path) = self.sender_on(path)?;
        let chosen = sender.poll_slice(path, now, ledger, (room, is_next))?;
        let Chosen { at, symbol, cut, part, index, data, .. } = chosen;
        let kind = match part {
            SlicePart::Source => SliceKind::Source,
            SlicePart::Last => SliceKind::Last(cut.size()),
            SlicePart::Repair => SliceKind::Repair,
        };
        Some(((at, symbol), SliceFrame { at, kind, index, data }))
    }

    /// The bytes of a source slice of a chunk that is being sent.
    pub(crate) fn source_slice(&self, at: ChunkAt, symbol: Symbol) -> Option<&[u8]> {
        let block = self.block(at.block)?;
        let (index, is_repair) = symbol.index();
        block.source(block.get(at.index)?, index).filter(|_| !is_repair)
    }

    /// Whether chunks are wanted of which the program has not heard.
    pub(crate) fn has_unreported_want(&self) -> bool {
        self.sender.as_ref().is_some_and(|sender| sender.has_unreported_want())
    }

    /// Reports them to the program. Returns whether there were any.
    pub(crate) fn report_want(&mut self) -> bool {
        let sender = self.sender_mut().filter(|sender| sender.has_unreported_want());
        sender.map(Sender::on_want_reported).is_some()
    }

    /// Datagrams from `from` on go this way, or are the first by which it is measured.
    pub(crate) fn measure_anew(&mut self, now: Instant, path: &mut BlocksPath, from: u64) {
        let Some(sender) = &mut self.sender else { return };
        let rtt = path.rtt();
        let state = path.begin_anew(now, from, self.next.min_rate_bps);
        rtt.into_iter().for_each(|rtt| sender.set_rtt(state, rtt));
        sender.begin_path(state);
    }

    /// The connection measured a round trip on this path; `rtt` is the smoothed value.
    pub(crate) fn set_rtt(&mut self, path: &mut BlocksPath, rtt: Duration) {
        path.set_rtt(rtt);
        if let Some((sender, path)) = self.sender_on(path) {
            sender.set_rtt(path, rtt);
        }
    }

    /// Bytes that a slice frame may have: what the path carries less the header of a datagram and its tag, at
    /// least 1036. Open chunks keep their cut.
    pub(crate) fn set_slice_room(&mut self, path: &mut BlocksPath, room: usize) {
        self.next.slice_room = room;
        if let Some((sender, path)) = self.sender_on(path) {
            sender.set_slice_room(path, room);
        }
    }

    /// The path no longer carries what it did, and [`set_slice_room`](Self::set_slice_room) has said what it
    /// does: open chunks are cut anew. So too when the path has changed.
    pub(crate) fn on_black_hole(&mut self) {
        self.sender_mut().into_iter().for_each(Sender::on_black_hole);
    }

    pub(crate) fn set_max_rate_bps(&mut self, rate_bps: u64) {
        self.next.max_rate_bps = rate_bps.min(self.rate_cap_bps);
        let rate_bps = self.next.max_rate_bps;
        self.sender_mut().into_iter().for_each(|sender| sender.set_max_rate_bps(rate_bps));
    }

    /// Limits this and every later maximum rate.
    pub(crate) fn cap_rate_bps(&mut self, rate_cap_bps: u64) {
        self.rate_cap_bps = rate_cap_bps;
        self.set_max_rate_bps(self.next.max_rate_bps);
    }

    /// How urgent blocks are that are sent without an urgency of their own.
    pub(super) const fn urgency(&self) -> Urgency {
        self.next.urgency
    }

    pub(super) const fn set_urgency(&mut self, urgency: Urgency) {
        self.next.urgency = urgency;
    }

    /// The peer's program reads so late.
    pub(super) fn set_lateness_ms(&mut self, lateness_ms: u16) {
        self.lateness_ms = lateness_ms;
        let lateness = self.lateness();
        self.sender_mut().into_iter().for_each(|sender| sender.set_lateness(lateness));
    }

    /// By how much the peer's program reads late, as far as it is believed.
    pub(crate) const fn lateness(&self) -> Duration {
        Duration::from_millis(self.lateness_ms as u64)
    }

    /// The peer can take this number of chunks and announcements in all.
    pub(super) fn on_credit(&mut self, now: Instant, given: u64) {
        match &mut self.sender {
            Some(sender) => sender.on_credit(now, given),
            None => _ = self.next.credit.raise(given),
        }
    }

    /// The credit, given and used.
    pub(super) fn credit(&self) -> Credit {
        self.sender.as_ref().map_or(self.next.credit, |sender| sender.credit())
    }

    /// How often acks are wanted, if a frame has to say so. `in_flight` are datagrams, and `heard` those of
    /// the peer.
    pub(crate) fn ack_frequency_due(
        &mut self,
        path: &mut BlocksPath,
        in_flight: u64,
        heard: Heard,
    ) -> Option<Wanted> {
        self.sender.as_ref()?;
        let is_queued = || path.state_mut().is_some_and(Controller::poll_queued_back);
        self.ack_frequency.judge(heard, is_queued);
        self.ack_frequency.due(in_flight, path.rtt())
    }

    pub(crate) fn on_ack_frequency_sent(&mut self, wanted: Wanted) {
        self.ack_frequency.on_sent(wanted);
        let later = self.ack_frequency.later();
        self.sender_mut().into_iter().for_each(|sender| sender.set_ack_delay(later));
    }

    pub(crate) const fn on_ack_frequency_lost(&mut self) {
        self.ack_frequency.on_lost();
    }

    /// The counters of all its senders.
    pub(crate) fn stats(&self) -> SenderStats {
        let now = self.sender.as_ref().map(|sender| sender.stats()).unwrap_or_default();
        SenderStats {
            slices: self.past.slices + now.slices,
            repairs: self.past.repairs + now.repairs,
            resent: self.past.resent + now.resent,
        }
    }

    /// Whether one of its senders has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.has_failed || self.sender.as_ref().is_some_and(|sender| sender.has_failed())
    }

    /// Memory held besides the blocks, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.sender.as_ref().map_or(0, |sender| sender.memory_bytes())
    }
}
