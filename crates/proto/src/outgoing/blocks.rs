//! Blocks on their way: those that wait, those that are announced, and those that were given up and of which
//! the peer does not know it yet.
//!
//! The invariants: announced blocks are numbered in the order of their announcement, without a gap; the
//! chunk sender has those of them of which slices are to be sent; and no more are announced, or given up and
//! not known to be, than a peer accepts.

use alloc::collections::VecDeque;
use core::time::Duration;

use haulier_control::Urgency;

use super::announcement::Announcement;
use super::block::{Block, BlockProgress, SendOptions};
use super::pages::Pages;
use super::path::BlocksPath;
use super::transfer::Transfer;
use crate::Instant;
use crate::block_map::BlockMap;
use crate::bulk::SendBlock;
use crate::bulk::tree::Value;
use crate::stall::max_block_time;
use crate::time::earliest;

/// Blocks that are announced and not finished at most, whatever the peer accepts [H-4.2a]: so many small ones
/// arrive in a round trip.
const MAX_ANNOUNCED: u8 = 64;

/// What the application has set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingConfig {
    pub(crate) urgency: Urgency,
    pub(crate) max_rate_bps: u64,
    pub(crate) min_rate_bps: u64,
    pub(crate) no_progress_timeout: Duration,
    pub(crate) idle_timeout_ms: u32,
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
    /// Parameter 15.
    pub(crate) announced_blocks: u8,
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
    Declined { handle: u32, code: u32 },
}

/// A block that is not announced yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) handle: u32,
    pub(super) block: Block,
    pub(super) options: SendOptions,
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
    pub(super) code: u32,
    /// Chunks of it that count against the credit.
    pub(super) opened: u32,
    pub(super) is_due: bool,
}

/// The block whose time is limited: the first of the highest priority.
#[derive(Clone, Copy, Debug)]
pub(super) struct Front {
    number: u32,
    /// Since when, without the time for which it was held back.
    since: Instant,
    length: u64,
}

/// The sending half.
#[derive(Debug)]
pub(crate) struct OutgoingBlocks {
    max_queued: usize,
    min_block_rate_bps: u64,
    idle_timeout_ms: u32,
    max_announced: u8,
    pub(crate) transfer: Transfer,
    pub(super) waiting: VecDeque<Waiting>,
    /// In the order of their numbers.
    pub(super) announced: VecDeque<Announced>,
    pub(super) cancelled: VecDeque<Cancelled>,
    pub(super) next_handle: u32,
    pub(super) next_number: u32,
    /// Roots of blocks that the peer has, the newest last.
    pub(super) roots: VecDeque<Value>,
    /// The number of the datagram with the newest progress frame, and the floor in it.
    pub(super) progressed: Option<u64>,
    pub(super) floor: u32,
    pub(super) front: Option<Front>,
    /// Since when there is no credit for what is to be sent, or it waits for this end's program.
    pub(super) held_since: Option<Instant>,
    pub(super) events: VecDeque<OutgoingEvent>,
}

impl OutgoingBlocks {
    /// Nothing to send to this peer. A slice frame may have `slice_room` bytes.
    pub(crate) const fn new(config: &OutgoingConfig, peer: &PeerLimits, slice_room: usize) -> Self {
        Self {
            max_queued: config.max_queued_blocks,
            min_block_rate_bps: config.min_block_rate_bps,
            idle_timeout_ms: config.idle_timeout_ms,
            max_announced: peer.announced_blocks,
            transfer: Transfer::new(config, peer, slice_room),
            waiting: VecDeque::new(),
            announced: VecDeque::new(),
            cancelled: VecDeque::new(),
            next_handle: 0,
            next_number: 0,
            roots: VecDeque::new(),
            progressed: None,
            floor: 0,
            front: None,
            held_since: None,
            events: VecDeque::new(),
        }
    }

    /// Queues a block to be sent on this path, and returns its handle. `next_number` is that of the next
    /// datagram.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        path: &mut BlocksPath,
        block: Block,
        options: SendOptions,
        next_number: u64,
    ) -> Result<u32, SendBlockError> {
        if self.waiting.len() + self.announced.len() >= self.max_queued {
            return Err(SendBlockError::QueueFull);
        }
        self.transfer.begin(now, path, next_number);
        let handle = self.next_handle;
        self.next_handle = handle.checked_add(1).ok_or(SendBlockError::NumbersUsedUp)?;
        let place =
            self.waiting.partition_point(|other| other.options.priority >= options.priority);
        self.waiting.insert(place, Waiting { handle, block, options });
        self.poll(now);
        Ok(handle)
    }

    fn idle_timeout(&self) -> Duration {
        Duration::from_millis(self.idle_timeout_ms.into())
    }

    /// Gives a block up. Returns whether it was on its way; if the peer knows of it, it is told.
    pub(crate) fn cancel(&mut self, now: Instant, handle: u32, code: u32) -> bool {
        if let Some(place) = self.waiting.iter().position(|waiting| waiting.handle == handle) {
            self.waiting.remove(place);
            self.poll(now);
            return true;
        }
        let Some(place) = self.announced.iter().position(|block| block.handle == handle) else {
            return false;
        };
        self.give_up(place, code);
        self.poll(now);
        true
    }

    /// Gives an announced block up, and tells the peer so.
    pub(super) fn give_up(&mut self, place: usize, code: u32) {
        let Some(number) = self.announced.get(place).map(|block| block.number) else { return };
        let opened = self.transfer.block(number).map_or(0, SendBlock::opened);
        self.forget(place);
        self.cancelled.push_back(Cancelled { number, code, opened, is_due: true });
    }

    /// Removes an announced block.
    pub(super) fn forget(&mut self, place: usize) -> Option<Announced> {
        let block = self.announced.remove(place)?;
        self.transfer.remove(block.number);
        Some(block)
    }

    pub(super) fn place(&self, number: u32) -> Option<usize> {
        self.announced.binary_search_by_key(&number, |block| block.number).ok()
    }

    /// Removes what is finished. Call it after input and after a timeout.
    pub(crate) fn poll(&mut self, now: Instant) {
        if self.transfer.sender().is_none() && self.front.is_none() && self.is_idle() {
            // As at every end that only receives.
            return;
        }
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
        if self.is_idle() {
            self.transfer.end();
            (self.waiting, self.announced) = (VecDeque::new(), VecDeque::new());
        } else if let Some(urgency) = self.urgency_now()
            && let Some(sender) = self.transfer.sender_mut()
        {
            sender.set_urgency(urgency);
        }
        self.follow_front(now);
    }

    /// Whether the peer has all of a block. One without chunks to send is done once the peer knows of it.
    fn is_done(&self, block: &Announced) -> bool {
        let sent = self.transfer.block(block.number);
        let is_whole = sent.is_none_or(SendBlock::is_done);
        let is_known = block.is_here || block.block.length() == 0;
        block.is_finished || is_whole && (!is_known || block.announcement == Announcement::Acked)
    }

    /// How much of the link blocks may take that are sent without an urgency of their own.
    pub(crate) fn set_urgency(&mut self, now: Instant, urgency: Urgency) {
        self.transfer.set_urgency(urgency);
        self.poll(now);
    }

    /// The most urgent of what is being sent.
    fn urgency_now(&self) -> Option<Urgency> {
        let of = |block: &Announced| block.options.urgency.unwrap_or(self.transfer.urgency());
        let mut urgencies = self.announced.iter().filter(|block| !block.is_here).map(of);
        let first = urgencies.next()?;
        let is_load =
            first == Urgency::LoadScreen || urgencies.any(|other| other == Urgency::LoadScreen);
        Some(if is_load { Urgency::LoadScreen } else { first })
    }

    /// Follows which block's time is limited, and stops it while there is no credit, and while the block
    /// waits for this end's program.
    fn follow_front(&mut self, now: Instant) {
        let is_held = self.is_held_back();
        let front = self
            .announced
            .iter()
            .filter(|block| !block.is_here)
            .max_by_key(|block| (block.options.priority, core::cmp::Reverse(block.number)));
        let number = front.map(|block| block.number);
        let sent = number.and_then(|number| self.transfer.block(number));
        let is_held = is_held || sent.is_some_and(SendBlock::awaits_program);
        let is_begun = sent.is_none_or(SendBlock::is_begun);
        if self.front.map(|front| front.number) != number || !is_begun {
            self.front = front.map(|block| Front {
                number: block.number,
                since: now,
                length: block.block.length(),
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
        self.transfer.sender().is_some_and(|sender| {
            sender.is_held_back() || sender.credit().is_used_up() && !self.waiting.is_empty()
        })
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

    /// Whether all that is left of its blocks is open.
    pub(crate) fn is_at_end(&self) -> bool {
        let has_more = self.transfer.sender().is_some_and(|sender| sender.has_unopened());
        !self.is_idle() && self.waiting.is_empty() && !has_more
    }

    /// The progress of the first block of the highest priority.
    pub(crate) fn progress(&self) -> Option<BlockProgress> {
        let announced = self.front.and_then(|front| self.announced.get(self.place(front.number)?));
        announced.map(|block| self.progress_of_announced(block)).or_else(|| {
            let block = &self.waiting.front()?.block;
            Some(BlockProgress::new(block.tag(), 0, block.length()))
        })
    }

    /// The map of the block that [`progress`](Self::progress) is of, once it is announced.
    pub(crate) fn map(&self, max_chunks: usize) -> Option<BlockMap> {
        let announced = self.announced.get(self.place(self.front?.number)?)?;
        let sent = self.transfer.block(announced.number)?;
        Some(sent.map(announced.block.tag(), max_chunks))
    }

    /// The progress of this block; `None` if it is finished.
    pub(crate) fn progress_of(&self, handle: u32) -> Option<BlockProgress> {
        let announced = self.announced.iter().find(|block| block.handle == handle);
        announced.map(|block| self.progress_of_announced(block)).or_else(|| {
            let waiting = self.waiting.iter().find(|waiting| waiting.handle == handle)?;
            Some(BlockProgress::new(waiting.block.tag(), 0, waiting.block.length()))
        })
    }

    fn progress_of_announced(&self, announced: &Announced) -> BlockProgress {
        let length = announced.block.length();
        let sent = self.transfer.block(announced.number);
        let done = sent.map_or(length, SendBlock::received_bytes).min(length);
        BlockProgress::new(announced.block.tag(), done, length)
    }

    /// Bytes of all blocks that the peer does not have.
    pub(crate) fn bytes_left(&self) -> u64 {
        let announced = self.announced.iter().map(|block| self.progress_of_announced(block));
        let left: u64 = announced.map(|it| it.length - it.done).sum();
        left + self.waiting.iter().map(|waiting| waiting.block.length()).sum::<u64>()
    }

    /// Whether a block makes no progress, or too little: the connection closes with `no progress`.
    pub(crate) fn has_failed(&self, now: Instant) -> bool {
        self.transfer.has_failed() || self.crawl_deadline().is_some_and(|at| at <= now)
    }

    fn crawl_deadline(&self) -> Option<Instant> {
        let front = self.front.filter(|_| self.held_since.is_none())?;
        let rate = Some(self.min_block_rate_bps).filter(|&rate| rate > 0)?;
        Some(front.since + max_block_time(front.length, rate, self.idle_timeout()))
    }

    /// When [`has_failed`](Self::has_failed) has to be called.
    pub(crate) fn poll_deadline(&self) -> Option<Instant> {
        let failed = self.transfer.has_failed().then_some(Instant::ZERO);
        earliest(failed, self.crawl_deadline())
    }

    /// Memory held besides the blocks, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let pages: usize = self.announced.iter().map(|block| block.pages.memory_bytes()).sum();
        self.transfer.memory_bytes()
            + pages
            + self.waiting.capacity() * size_of::<Waiting>()
            + self.announced.capacity() * size_of::<Announced>()
            + self.cancelled.capacity() * size_of::<Cancelled>()
            + self.roots.capacity() * size_of::<Value>()
    }

    /// Blocks that may be announced and not finished.
    pub(super) fn max_announced(&self) -> usize {
        self.max_announced.min(MAX_ANNOUNCED).into()
    }

    /// Panics if its parts contradict each other.
    pub(crate) fn check_invariants(&self) {
        assert_eq!(
            self.transfer.sender().is_some(),
            !self.is_idle(),
            "a sender while there are blocks"
        );
        let announced = self.announced.len() + self.cancelled.len();
        assert!(announced <= self.max_announced(), "too many announced");
        let numbers = || self.announced.iter().map(|block| block.number);
        assert!(numbers().zip(numbers().skip(1)).all(|(a, b)| a < b), "not in order");
        assert!(numbers().all(|number| number < self.next_number), "not announced yet");
        let priorities = || self.waiting.iter().map(|waiting| waiting.options.priority);
        assert!(priorities().zip(priorities().skip(1)).all(|(a, b)| a >= b), "not in order");
        for block in &self.announced {
            block.pages.check_invariants();
            let sent = self.transfer.block(block.number);
            let has_none = block.is_here || block.block.length() == 0;
            assert_eq!(sent.is_none(), has_none, "slices of a block that the peer has");
        }
        if let Some(sender) = self.transfer.sender() {
            sender.check_invariants();
        }
    }
}
