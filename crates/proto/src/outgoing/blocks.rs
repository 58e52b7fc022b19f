//! Blocks on their way, from when they are queued until the peer has them: the owner of the parts.
//!
//! The invariants: there is a chunk sender while there are blocks, and it has those that are announced and of
//! which slices are to be sent.

use alloc::collections::VecDeque;
use core::time::Duration;

use haulier_control::Urgency;

use super::announced::{Announced, AnnouncedBlocks};
use super::announcement::Announcement;
use super::block::{Block, BlockProgress, SendOptions};
use super::crawl::Crawl;
use super::feedback::Feedback;
use super::path::BlocksPath;
use super::transfer::Transfer;
use super::waiting::WaitingBlocks;
use crate::Instant;
use crate::block_map::BlockMap;
use crate::bulk::SendBlock;
use crate::time::earliest;

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

/// The sending half.
#[derive(Debug)]
pub(crate) struct OutgoingBlocks {
    pub(super) waiting: WaitingBlocks,
    pub(crate) announced: AnnouncedBlocks,
    pub(crate) transfer: Transfer,
    pub(super) feedback: Feedback,
    crawl: Crawl,
    max_queued: usize,
    pub(super) events: VecDeque<OutgoingEvent>,
}

impl OutgoingBlocks {
    /// Nothing to send to this peer. A slice frame may have `slice_room` bytes.
    pub(crate) const fn new(config: &OutgoingConfig, peer: &PeerLimits, slice_room: usize) -> Self {
        Self {
            waiting: WaitingBlocks::new(),
            announced: AnnouncedBlocks::new(peer.announced_blocks),
            transfer: Transfer::new(config, peer, slice_room),
            feedback: Feedback::new(),
            crawl: Crawl::new(config),
            max_queued: config.max_queued_blocks,
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
        let handle = self.waiting.push(block, options)?;
        self.transfer.begin(now, path, next_number);
        self.poll(now);
        Ok(handle)
    }

    /// Gives a block up. Returns whether it was on its way. If the peer knows of the block, that is reported
    /// to the peer.
    pub(crate) fn cancel(&mut self, now: Instant, handle: u32, code: u32) -> bool {
        let number = self.announced.of_handle(handle).map(|block| block.number);
        let was_here = match number {
            Some(number) => self.give_up(number, code).is_some(),
            None => self.waiting.remove(handle).is_some(),
        };
        if was_here {
            self.poll(now);
        }
        was_here
    }

    /// Gives an announced block up, and tells the peer so.
    pub(super) fn give_up(&mut self, number: u32, code: u32) -> Option<Announced> {
        let opened = self.transfer.block(number).map_or(0, SendBlock::opened);
        self.transfer.remove(number);
        self.announced.cancel(number, code, opened)
    }

    /// Removes what is finished. Call it after input and after a timeout.
    pub(crate) fn poll(&mut self, now: Instant) {
        if self.is_idle() && self.transfer.sender().is_none() && self.crawl.front().is_none() {
            // As at every end that only receives.
            return;
        }
        while let Some((number, handle)) = self.next_done() {
            self.transfer.remove(number);
            self.announced.remove(number);
            self.events.push_back(OutgoingEvent::Sent { handle });
        }
        if self.is_idle() {
            self.transfer.end();
            self.waiting.rest();
            self.announced.rest();
        } else if let Some(urgency) = self.urgency_now()
            && let Some(sender) = self.transfer.sender_mut()
        {
            sender.set_urgency(urgency);
        }
        self.follow_front(now);
    }

    /// The first block of which the peer has all, by number and handle.
    fn next_done(&self) -> Option<(u32, u32)> {
        let done = self.announced.iter().find(|block| self.is_done(block))?;
        Some((done.number, done.handle))
    }

    /// Whether the peer has all of a block. One without chunks to send is done once the peer knows of it.
    fn is_done(&self, block: &Announced) -> bool {
        let is_whole = self.transfer.block(block.number).is_none_or(SendBlock::is_done);
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
        let front = self
            .announced
            .iter()
            .filter(|block| !block.is_here)
            .max_by_key(|block| (block.options.priority, core::cmp::Reverse(block.number)));
        let sent = front.and_then(|block| self.transfer.block(block.number));
        let is_held = self.is_held_back() || sent.is_some_and(SendBlock::awaits_program);
        let is_begun = sent.is_none_or(SendBlock::is_begun);
        let front = front.map(|block| (block.number, block.block.length()));
        self.crawl.follow(now, front, is_begun, is_held);
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

    /// Whether no block is sent. A report to the peer that a block was given up may still be due.
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
        let front = self.crawl.front().and_then(|number| self.announced.get(number));
        let handle = front.map(|block| block.handle);
        self.progress_of(handle.or_else(|| Some(self.waiting.first()?.handle))?)
    }

    /// The map of the block that [`progress`](Self::progress) is of, once it is announced.
    pub(crate) fn map(&self, max_chunks: usize) -> Option<BlockMap> {
        let announced = self.announced.get(self.crawl.front()?)?;
        let sent = self.transfer.block(announced.number)?;
        Some(sent.map(announced.block.tag(), max_chunks))
    }

    /// The progress of this block; `None` if it is finished.
    pub(crate) fn progress_of(&self, handle: u32) -> Option<BlockProgress> {
        let announced = self.announced.of_handle(handle);
        announced.map(|block| self.progress_of_announced(block)).or_else(|| {
            let block = self.waiting.get(handle)?;
            Some(BlockProgress::new(block.tag(), 0, block.length()))
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
        announced.map(|it| it.length - it.done).sum::<u64>() + self.waiting.bytes()
    }

    /// Whether a block makes no progress, or too little: the connection closes with `no progress`.
    pub(crate) fn has_failed(&self, now: Instant) -> bool {
        self.poll_deadline().is_some_and(|at| at <= now)
    }

    /// When [`has_failed`](Self::has_failed) has to be called.
    pub(crate) fn poll_deadline(&self) -> Option<Instant> {
        let failed = self.transfer.has_failed().then_some(Instant::ZERO);
        earliest(failed, self.crawl.deadline())
    }

    /// Memory held besides the blocks, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.transfer.memory_bytes()
            + self.waiting.memory_bytes()
            + self.announced.memory_bytes()
            + self.feedback.memory_bytes()
    }

    /// Panics if its parts contradict each other.
    pub(crate) fn check_invariants(&self) {
        let sender = self.transfer.sender();
        assert_eq!(sender.is_some(), !self.is_idle(), "a sender while there are blocks");
        self.waiting.check_invariants();
        self.announced.check_invariants();
        self.feedback.check_invariants(self.announced.next_number());
        for block in self.announced.iter() {
            let has_none = block.is_here || block.block.length() == 0;
            let sent = self.transfer.block(block.number);
            assert_eq!(sent.is_none(), has_none, "slices of a block that the peer has");
        }
        if let Some(sender) = sender {
            sender.check_invariants();
        }
    }
}
