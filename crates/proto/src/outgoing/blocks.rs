//! Blocks on their way: those that wait, those that are announced, and those that were given up and of which
//! the peer does not know it yet.
//!
//! The invariants: announced blocks are numbered in the order of their announcement, without a gap; the chunk
//! sender has those of them of which slices are to be sent; and no more are announced, or given up and not
//! known to be, than a peer accepts.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::time::Duration;

use super::ack_frequency::{AckFrequency, Wanted};
use super::announcement::Announcement;
use super::block::{Block, BlockProgress, SendOptions, max_block_time};
use super::pages::Pages;
use crate::Instant;
use crate::bulk::cut::SliceSize;
use crate::bulk::tree::Value;
use crate::bulk::{
    Chosen, Credit, Known, NewBlock, RequestTrain, SendBlock, Sender, SenderConfig, SenderStats,
    SlicePart,
};
use crate::time::earliest;
use crate::transit::{ChunkAt, Ledger, Symbol};
use crate::urgency::Urgency;
use crate::wire::frames::{BlockFrame, HashesFrame, SliceFrame, SliceKind};

/// Blocks that may be announced and not finished [H-4.2a].
const MAX_ANNOUNCED: usize = 32;

/// Of those, how many a block leaves to others that are more urgent.
const RESERVED_ANNOUNCEMENTS: usize = 8;

/// Blocks announced before their first chunk can be opened: so the next one follows without a pause, and the
/// peer can say that it has it.
const MAX_AHEAD: usize = 8;

/// Credit below which none are announced ahead.
const CREDIT_FOR_AHEAD: u64 = 16;

/// Chunks that may be open at most [H-4.2f].
const MAX_OPEN: usize = 1024;

/// The largest slices of this wire.
const MAX_SLICE: SliceSize = match SliceSize::new(65_472) {
    Some(size) => size,
    None => SliceSize::SMALLEST_OF_FULL_CHUNK,
};

/// What the application has set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingConfig {
    pub(crate) urgency: Urgency,
    pub(crate) max_rate_bps: u64,
    pub(crate) min_rate_bps: u64,
    pub(crate) no_progress_timeout: Duration,
    pub(crate) min_block_rate_bps: u64,
    pub(crate) max_queued_blocks: usize,
}

/// What the peer's hello or welcome says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerLimits {
    /// Parameter 6.
    pub(crate) credit: u64,
    /// Parameter 7, in bytes; 0 is unknown.
    pub(crate) receive_buffer: u64,
    /// Bit 0 of parameter 10.
    pub(crate) has_repair: bool,
}

/// Why a block cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendBlockError {
    QueueFull,
    NumbersUsedUp,
}

/// What became of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutgoingEvent {
    /// The peer has it.
    Sent { handle: u32 },
    /// The peer does not want it.
    Declined { handle: u32, code: u64 },
}

/// A block that is not announced yet.
#[derive(Debug)]
struct Waiting {
    handle: u32,
    block: Block,
    options: SendOptions,
}

/// A block that is announced and not finished.
#[derive(Debug)]
pub(super) struct Announced {
    pub(super) handle: u32,
    pub(super) number: u32,
    pub(super) block: Block,
    pub(super) options: SendOptions,
    pub(super) announcement: Announcement,
    pub(super) pages: Pages,
    /// The peer has all of it: by its root, or by its own word.
    pub(super) is_here: bool,
    /// The peer has said that it is finished.
    pub(super) is_finished: bool,
    /// The lowest chunk that is not done by the newest progress frame.
    pub(super) first: u32,
}

/// A block that was given up after it was announced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cancelled {
    pub(super) number: u32,
    code: u64,
    is_due: bool,
}

/// The block whose time is limited: the first of the highest priority.
#[derive(Clone, Copy, Debug)]
struct Front {
    number: u32,
    /// Since when, without the time for which there was no credit.
    since: Instant,
    length: u64,
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct OutgoingBlocks {
    config: OutgoingConfig,
    peer: PeerLimits,
    /// Exists while there are blocks, so that an idle connection is small.
    pub(super) sender: Option<Box<Sender>>,
    /// The credit while there is no sender.
    pub(super) credit: Credit,
    slice_room: usize,
    known: Known,
    /// The spacing of the copies of the request.
    requests: RequestTrain,
    max_rate_bps: u64,
    /// The maximum that the client's token sets.
    rate_cap_bps: u64,
    rtt: Option<Duration>,
    waiting: VecDeque<Waiting>,
    /// In the order of their numbers.
    pub(super) announced: VecDeque<Announced>,
    pub(super) cancelled: VecDeque<Cancelled>,
    next_handle: u32,
    pub(super) next_number: u32,
    /// Roots of blocks that the peer has, the newest last.
    pub(super) roots: VecDeque<Value>,
    /// The number of the datagram with the newest progress frame, and the floor in it.
    pub(super) progressed: Option<u64>,
    pub(super) floor: u32,
    ack_frequency: AckFrequency,
    front: Option<Front>,
    /// Since when there is no credit for what is to be sent.
    held_since: Option<Instant>,
    pub(super) events: VecDeque<OutgoingEvent>,
    /// The counters of earlier senders.
    past: SenderStats,
    has_failed: bool,
}

impl OutgoingBlocks {
    /// Nothing to send to this peer. A slice frame may have `slice_room` bytes.
    pub(crate) const fn new(config: OutgoingConfig, peer: PeerLimits, slice_room: usize) -> Self {
        Self {
            max_rate_bps: config.max_rate_bps,
            config,
            credit: Credit::new(peer.credit),
            peer,
            sender: None,
            slice_room,
            known: Known::NOTHING,
            requests: RequestTrain::new(),
            rate_cap_bps: u64::MAX,
            rtt: None,
            waiting: VecDeque::new(),
            announced: VecDeque::new(),
            cancelled: VecDeque::new(),
            next_handle: 0,
            next_number: 0,
            roots: VecDeque::new(),
            progressed: None,
            floor: 0,
            ack_frequency: AckFrequency::new(),
            front: None,
            held_since: None,
            events: VecDeque::new(),
            past: SenderStats { slices: 0, repairs: 0, resent: 0 },
            has_failed: false,
        }
    }

    /// Queues a block, and returns its handle. `next_number` is that of the next datagram.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        block: Block,
        options: SendOptions,
        next_number: u64,
    ) -> Result<u32, SendBlockError> {
        if self.waiting.len() + self.announced.len() >= self.config.max_queued_blocks {
            return Err(SendBlockError::QueueFull);
        }
        if self.sender.is_none() {
            self.sender = Some(self.new_sender(now, next_number));
        }
        let handle = self.next_handle;
        self.next_handle = handle.checked_add(1).ok_or(SendBlockError::NumbersUsedUp)?;
        let place =
            self.waiting.partition_point(|other| other.options.priority >= options.priority);
        self.waiting.insert(place, Waiting { handle, block, options });
        self.poll(now);
        Ok(handle)
    }

    fn new_sender(&self, now: Instant, first_number: u64) -> Box<Sender> {
        let config = SenderConfig {
            urgency: self.config.urgency,
            max_rate_bps: self.max_rate_bps,
            min_rate_bps: self.config.min_rate_bps,
            give_up_after: self.config.no_progress_timeout,
            first_number,
            slice_room: self.slice_room,
            max_slice: MAX_SLICE,
            max_open: MAX_OPEN,
            has_repair: self.peer.has_repair,
            credit: self.credit,
        };
        let mut sender = Sender::new(now, config, self.known.discounted(now));
        if let Some(rtt) = self.rtt {
            sender.set_rtt(rtt);
        }
        if let Some(rate) = self.requests.rate() {
            sender.set_hint(rate);
        }
        Box::new(sender)
    }

    /// Gives a block up. Returns whether it was on its way; if the peer knows of it, it is told.
    pub(crate) fn cancel(&mut self, now: Instant, handle: u32, code: u64) -> bool {
        if let Some(place) = self.waiting.iter().position(|waiting| waiting.handle == handle) {
            self.waiting.remove(place);
            self.poll(now);
            return true;
        }
        let Some(place) = self.announced.iter().position(|block| block.handle == handle) else {
            return false;
        };
        let Some(number) = self.forget(place).map(|block| block.number) else { return false };
        self.cancelled.push_back(Cancelled { number, code, is_due: true });
        self.poll(now);
        true
    }

    /// Removes an announced block.
    pub(super) fn forget(&mut self, place: usize) -> Option<Announced> {
        let block = self.announced.remove(place)?;
        if let Some(sender) = &mut self.sender {
            sender.remove(block.number);
        }
        Some(block)
    }

    pub(super) fn place(&self, number: u32) -> Option<usize> {
        self.announced.binary_search_by_key(&number, |block| block.number).ok()
    }

    /// Removes what is finished. Call it after input and after a timeout.
    pub(crate) fn poll(&mut self, now: Instant) {
        let mut place = 0;
        while let Some(block) = self.announced.get(place) {
            if !self.is_done(block) {
                place += 1;
                continue;
            }
            if let Some(Announced { handle, .. }) = self.forget(place) {
                self.events.push_back(OutgoingEvent::Sent { handle });
            }
        }
        self.has_failed |= self.sender.as_ref().is_some_and(|sender| sender.has_failed());
        if self.is_idle() {
            self.end_sender();
        } else if let Some(urgency) = self.urgency_now()
            && let Some(sender) = &mut self.sender
        {
            sender.set_urgency(urgency);
        }
        self.follow_front(now);
    }

    fn end_sender(&mut self) {
        (self.past, self.known) = (self.stats(), self.known());
        self.credit = self.sender.take().map_or(self.credit, |sender| sender.credit());
        (self.waiting, self.announced) = (VecDeque::new(), VecDeque::new());
    }

    /// Whether the peer has all of a block. One without chunks to send is done once the peer knows of it.
    fn is_done(&self, block: &Announced) -> bool {
        let sent = self.sender.as_ref().and_then(|sender| sender.block(block.number));
        let is_whole = sent.is_none_or(SendBlock::is_done);
        let is_known = block.is_here || block.block.len() == 0;
        block.is_finished || is_whole && (!is_known || block.announcement == Announcement::Acked)
    }

    /// The most urgent of what is being sent.
    fn urgency_now(&self) -> Option<Urgency> {
        let of = |block: &Announced| block.options.urgency.unwrap_or(self.config.urgency);
        let mut urgencies = self.announced.iter().filter(|block| !block.is_here).map(of);
        let first = urgencies.next()?;
        let is_load =
            first == Urgency::LoadScreen || urgencies.any(|other| other == Urgency::LoadScreen);
        Some(if is_load { Urgency::LoadScreen } else { first })
    }

    /// Follows which block's time is limited, and stops it while there is no credit.
    fn follow_front(&mut self, now: Instant) {
        let is_held = self.is_held_back();
        let front = self
            .announced
            .iter()
            .filter(|block| !block.is_here)
            .max_by_key(|block| (block.options.priority, core::cmp::Reverse(block.number)));
        let number = front.map(|block| block.number);
        let is_begun = number
            .and_then(|number| self.sender.as_ref()?.block(number))
            .is_none_or(SendBlock::is_begun);
        if self.front.map(|front| front.number) != number || !is_begun {
            self.front = front.map(|block| Front {
                number: block.number,
                since: now,
                length: block.block.len(),
            });
            self.held_since = None;
        }
        match (self.held_since, is_held) {
            (None, true) => self.held_since = Some(now),
            (Some(since), false) => {
                self.held_since = None;
                if let Some(front) = &mut self.front {
                    front.since = front.since + now.since(since);
                }
            }
            _ => {}
        }
    }

    /// Whether there is something to send, but no credit for it.
    fn is_held_back(&self) -> bool {
        self.sender.as_ref().is_some_and(|sender| {
            sender.is_held_back() || sender.credit().is_used_up() && !self.waiting.is_empty()
        })
    }

    /// The block that is announced next, if it may be.
    fn next_announcement(&self) -> Option<&Waiting> {
        let (sender, waiting) = (self.sender.as_ref()?, self.waiting.front()?);
        let priority = waiting.options.priority;
        let is_most_urgent = self.announced.iter().all(|block| block.options.priority < priority);
        let reserved = if is_most_urgent { 0 } else { RESERVED_ANNOUNCEMENTS };
        if self.announced.len() + self.cancelled.len() + reserved >= MAX_ANNOUNCED {
            return None;
        }
        let is_before = |block: &&Announced| {
            let sent = sender.block(block.number);
            block.options.priority >= priority && sent.is_some_and(SendBlock::has_unopened)
        };
        let ahead = self.announced.iter().filter(is_before).count();
        let left = sender.credit().left();
        let may = match ahead {
            0 => left > 0,
            _ => ahead <= MAX_AHEAD && left >= CREDIT_FOR_AHEAD,
        };
        Some(waiting).filter(|_| may)
    }

    /// The next announcement that is due.
    pub(crate) fn poll_announcement(&mut self, now: Instant) -> Option<BlockFrame> {
        let slices = self.stats().slices;
        let due = |block: &Announced| block.announcement.is_due(slices);
        let place = match self.announced.iter().position(due) {
            Some(place) => place,
            None => self.announce(now)?,
        };
        let Announced { number, block, announcement, .. } = self.announced.get_mut(place)?;
        announcement.on_sent(slices);
        let (tag, length, root) = (block.tag(), block.len(), *block.digest());
        Some(BlockFrame { number: *number, tag, length, root })
    }

    /// Begins the next block. Returns its place.
    fn announce(&mut self, now: Instant) -> Option<usize> {
        self.next_announcement()?;
        let Waiting { handle, block, options } = self.waiting.pop_front()?;
        let number = self.next_number;
        // There are no more handles than numbers.
        self.next_number = number.saturating_add(1);
        let is_here = self.roots.contains(block.digest());
        let sender = self.sender.as_mut()?;
        sender.on_announced();
        let mut pages = Pages::new(0);
        if block.len() > 0 && !is_here {
            let (data, repair) = (block.data().clone(), block.repair().clone());
            sender.push(now, NewBlock { number, priority: options.priority, data, repair });
            let chunks = sender.block(number).map_or(0, SendBlock::chunks);
            // A single chunk is verified by the root.
            sender.set_ready(number, u32::from(chunks == 1));
            pages = Pages::new(chunks);
        }
        self.announced.push_back(Announced {
            handle,
            number,
            block,
            options,
            announcement: Announcement::Due,
            pages,
            is_here,
            is_finished: false,
            first: 0,
        });
        self.poll(now);
        self.place(number)
    }

    /// Whether an announcement is a reason to send a datagram.
    pub(crate) fn has_announcement(&self) -> bool {
        let is_due = |block: &Announced| block.announcement == Announcement::Due;
        self.announced.iter().any(is_due) || self.next_announcement().is_some()
    }

    /// An announcement was acknowledged, or is lost.
    pub(crate) fn on_announced(&mut self, number: u32, is_acked: bool) {
        if let Some(block) = self.place(number).and_then(|place| self.announced.get_mut(place)) {
            block.announcement.on_fate(is_acked);
        }
    }

    /// The next page that is due, as block and place: one that was lost, or that the next chunk needs.
    fn next_page(&self) -> Option<(usize, u32)> {
        let lost = |(place, block): (usize, &Announced)| Some((place, block.pages.lost()?));
        self.announced.iter().enumerate().find_map(lost).or_else(|| {
            let at = self.sender.as_ref()?.next_opening()?;
            let place = self.place(at.block)?;
            let block = self.announced.get(place)?;
            Some((place, block.pages.missing(block.block.tree(), at.index)?))
        })
    }

    /// The next page of a tree that is due, if its frame fits in `room` bytes, and its place for its item.
    /// Slices come after it.
    pub(crate) fn poll_page(&mut self, room: usize) -> Option<(u32, HashesFrame<'_>)> {
        let (block_place, page) = self.next_page()?;
        let block = self.announced.get_mut(block_place)?;
        let (level, first) = block.pages.page(page);
        let fits = |block: &Announced| {
            let values = block.block.tree().page(level, first);
            HashesFrame { block: block.number, level, first, values }.encoded_len() <= room
        };
        if !fits(block) {
            return None;
        }
        block.pages.on_sent(page);
        let number = block.number;
        if let Some(sender) = &mut self.sender
            && let Some(next) = sender.next_opening().filter(|at| at.block == number)
            && block.pages.missing(block.block.tree(), next.index).is_none()
        {
            sender.set_ready(number, Pages::end_of_page(next.index));
        }
        let values = self.announced.get(block_place)?.block.tree().page(level, first);
        Some((page, HashesFrame { block: number, level, first, values }))
    }

    /// Whether a page is a reason to send a datagram.
    pub(crate) fn has_page(&self) -> bool {
        self.next_page().is_some()
    }

    /// A page was lost.
    pub(crate) fn on_page_lost(&mut self, number: u32, page: u32) {
        let sent = self.sender.as_ref().and_then(|sender| sender.block(number));
        let Some(first) = sent.filter(|block| !block.is_done()).map(SendBlock::first) else {
            return;
        };
        if let Some(block) = self.place(number).and_then(|place| self.announced.get_mut(place)) {
            block.pages.on_lost(page, first);
        }
    }

    /// The next cancel frame that is due: block and code.
    pub(crate) fn poll_cancel(&mut self) -> Option<(u32, u64)> {
        let cancelled = self.cancelled.iter_mut().find(|cancelled| cancelled.is_due)?;
        cancelled.is_due = false;
        Some((cancelled.number, cancelled.code))
    }

    pub(crate) fn has_cancel(&self) -> bool {
        self.cancelled.iter().any(|cancelled| cancelled.is_due)
    }

    /// A cancel frame was acknowledged, or is lost.
    pub(crate) fn on_cancel(&mut self, number: u32, is_acked: bool) {
        self.cancelled.retain(|cancelled| cancelled.number != number || !is_acked);
        let lost = self.cancelled.iter_mut().find(|cancelled| cancelled.number == number);
        if let Some(cancelled) = lost {
            cancelled.is_due = true;
        }
    }

    /// How often acks are wanted, if the peer has to be told. `in_flight` are datagrams.
    pub(crate) fn ack_frequency_due(&self, in_flight: u64) -> Option<Wanted> {
        self.sender.as_ref()?;
        self.ack_frequency.due(in_flight, self.rtt)
    }

    pub(crate) const fn on_ack_frequency_sent(&mut self, wanted: Wanted) {
        self.ack_frequency.on_sent(wanted);
    }

    pub(crate) const fn on_ack_frequency_lost(&mut self) {
        self.ack_frequency.on_lost();
    }

    /// The slice to send now, if its frame fits in `room` bytes, and what the ledger has to know of it.
    pub(crate) fn poll_slice(
        &mut self,
        now: Instant,
        ledger: &Ledger,
        room: usize,
    ) -> Option<((ChunkAt, Symbol), SliceFrame<'_>)> {
        let chosen = self.sender.as_mut()?.poll_slice(now, ledger, room)?;
        let Chosen { at, symbol, cut, part, index, data, .. } = chosen;
        let kind = match part {
            SlicePart::Source => SliceKind::Source,
            SlicePart::Last => SliceKind::Last(cut.size()),
            SlicePart::Repair => SliceKind::Repair,
        };
        Some(((at, symbol), SliceFrame { at, kind, index, data }))
    }

    /// The next event.
    pub(crate) fn poll_event(&mut self) -> Option<OutgoingEvent> {
        let event = self.events.pop_front();
        if self.events.is_empty() && self.events.capacity() > 0 {
            self.events = VecDeque::new();
        }
        event
    }

    /// Whether nothing is sent. The peer may have to be told still that a block was given up.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.announced.is_empty()
    }

    /// The chunk sender, while there are blocks.
    pub(crate) fn sender(&self) -> Option<&Sender> {
        self.sender.as_deref()
    }

    /// The same, to be changed.
    pub(crate) fn sender_mut(&mut self) -> Option<&mut Sender> {
        self.sender.as_deref_mut()
    }

    /// Bytes that a slice frame may have: what the path carries less the header of a datagram and its tag, at
    /// least 1036. Open chunks keep their cut.
    pub(crate) fn set_slice_room(&mut self, room: usize) {
        self.slice_room = room;
        if let Some(sender) = &mut self.sender {
            sender.set_slice_room(room);
        }
    }

    /// The path no longer carries what it did, and [`set_slice_room`](Self::set_slice_room) has said what it
    /// does: open chunks are cut anew. So too when the path has changed.
    pub(crate) fn on_black_hole(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.on_black_hole();
        }
    }

    /// The peer's program reads so late.
    pub(super) fn set_lateness(&mut self, lateness: Duration) {
        if let Some(sender) = &mut self.sender {
            sender.set_reader(lateness, self.peer.receive_buffer);
        }
    }

    /// A copy of the request arrived; `bytes` includes UDP and IP headers.
    pub(crate) fn on_request(&mut self, now: Instant, bytes: usize) {
        self.requests.on_copy(now, bytes);
        if let (Some(rate), Some(sender)) = (self.requests.rate(), &mut self.sender) {
            sender.set_hint(rate);
        }
    }

    /// What was measured of the path, for the client's next visit.
    pub(crate) fn known(&self) -> Known {
        self.sender.as_ref().map_or(self.known, |sender| sender.known())
    }

    /// Starts from what an earlier connection measured of the path.
    pub(crate) const fn set_known(&mut self, known: Known) {
        self.known = known;
    }

    /// The client's address has changed: what was measured does not apply to its new path.
    pub(crate) fn forget_path(&mut self) {
        (self.known, self.requests) = (Known::NOTHING, RequestTrain::new());
        if let Some(sender) = &mut self.sender {
            sender.forget_path();
        }
    }

    pub(crate) fn set_max_rate_bps(&mut self, rate_bps: u64) {
        self.max_rate_bps = rate_bps.min(self.rate_cap_bps);
        if let Some(sender) = &mut self.sender {
            sender.set_max_rate_bps(self.max_rate_bps);
        }
    }

    /// Limits this and every later maximum rate.
    pub(crate) fn cap_rate_bps(&mut self, rate_cap_bps: u64) {
        self.rate_cap_bps = rate_cap_bps;
        self.set_max_rate_bps(self.max_rate_bps);
    }

    /// How much of the link blocks may take that are sent without an urgency of their own.
    pub(crate) fn set_urgency(&mut self, now: Instant, urgency: Urgency) {
        self.config.urgency = urgency;
        self.poll(now);
    }

    /// The connection measured a round trip; `rtt` is the smoothed value.
    pub(crate) fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(rtt);
        if let Some(sender) = &mut self.sender {
            sender.set_rtt(rtt);
        }
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

    /// The progress of the first block of the highest priority.
    pub(crate) fn progress(&self) -> Option<BlockProgress> {
        let announced = self.front.and_then(|front| self.announced.get(self.place(front.number)?));
        announced.map(|block| self.progress_of_announced(block)).or_else(|| {
            let block = &self.waiting.front()?.block;
            Some(BlockProgress::new(block.tag(), 0, block.len()))
        })
    }

    /// The progress of this block; `None` if it is finished.
    pub(crate) fn progress_of(&self, handle: u32) -> Option<BlockProgress> {
        let announced = self.announced.iter().find(|block| block.handle == handle);
        announced.map(|block| self.progress_of_announced(block)).or_else(|| {
            let waiting = self.waiting.iter().find(|waiting| waiting.handle == handle)?;
            Some(BlockProgress::new(waiting.block.tag(), 0, waiting.block.len()))
        })
    }

    fn progress_of_announced(&self, announced: &Announced) -> BlockProgress {
        let length = announced.block.len();
        let sent = self.sender.as_ref().and_then(|sender| sender.block(announced.number));
        let done = sent.map_or(length, SendBlock::received_bytes).min(length);
        BlockProgress::new(announced.block.tag(), done, length)
    }

    /// Whether a block makes no progress, or too little: the connection closes with `no progress`.
    pub(crate) fn has_failed(&self, now: Instant) -> bool {
        self.has_failed || self.crawl_deadline().is_some_and(|at| at <= now)
    }

    fn crawl_deadline(&self) -> Option<Instant> {
        let front = self.front.filter(|_| self.held_since.is_none())?;
        let rate = Some(self.config.min_block_rate_bps).filter(|&rate| rate > 0)?;
        Some(front.since + max_block_time(front.length, rate))
    }

    /// When [`has_failed`](Self::has_failed) has to be called.
    pub(crate) fn poll_deadline(&self) -> Option<Instant> {
        let failed = self.has_failed.then_some(Instant::ZERO);
        earliest(failed, self.crawl_deadline())
    }

    /// Memory held besides the blocks, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let pages: usize = self.announced.iter().map(|block| block.pages.memory_bytes()).sum();
        self.sender.as_ref().map_or(0, |sender| sender.memory_bytes())
            + pages
            + self.waiting.capacity() * size_of::<Waiting>()
            + self.announced.capacity() * size_of::<Announced>()
            + self.cancelled.capacity() * size_of::<Cancelled>()
            + self.roots.capacity() * size_of::<Value>()
    }

    /// Panics if its parts contradict each other.
    pub(crate) fn check_invariants(&self) {
        assert_eq!(self.sender.is_some(), !self.is_idle(), "a sender while there are blocks");
        assert!(self.announced.len() + self.cancelled.len() <= MAX_ANNOUNCED, "too many announced");
        let numbers = || self.announced.iter().map(|block| block.number);
        assert!(numbers().zip(numbers().skip(1)).all(|(a, b)| a < b), "not in order");
        assert!(numbers().all(|number| number < self.next_number), "not announced yet");
        let priorities = || self.waiting.iter().map(|waiting| waiting.options.priority);
        assert!(priorities().zip(priorities().skip(1)).all(|(a, b)| a >= b), "not in order");
        for block in &self.announced {
            block.pages.check_invariants();
            let sent = self.sender.as_ref().and_then(|sender| sender.block(block.number));
            let has_none = block.is_here || block.block.len() == 0;
            assert_eq!(sent.is_none(), has_none, "slices of a block that the peer has");
        }
        if let Some(sender) = &self.sender {
            sender.check_invariants();
        }
    }
}
