//! What of blocks goes into datagrams before slices: of each frame whether it is a reason to send one, the
//! next that is due, and what becomes of it.
//!
//! In this order: a cancel; announcements; the pages of the tree that the next chunk needs. Slices go behind
//! them, which [`transfer`](super::transfer) has.

use super::announcement::Announcement;
use super::block::SendOptions;
use super::blocks::{Announced, OutgoingBlocks, Waiting};
use super::pages::Pages;
use crate::Instant;
use crate::bulk::{NewBlock, SendBlock};
use crate::wire::frames::{BlockFrame, HashesFrame};

/// Of those, how many a block leaves to others that are more urgent.
const RESERVED_ANNOUNCEMENTS: usize = 4;

/// Blocks announced before their first chunk can be opened: so the next one follows without a pause, and the
/// peer can say that it has it.
const MAX_AHEAD: usize = 8;

/// Credit below which none are announced ahead.
const CREDIT_FOR_AHEAD: u64 = 16;

impl OutgoingBlocks {
    /// The block that is announced next, if it may be.
    fn next_announcement(&self) -> Option<&Waiting> {
        let (sender, waiting) = (self.transfer.sender()?, self.waiting.front()?);
        let priority = waiting.options.priority;
        let is_most_urgent = self.announced.iter().all(|block| block.options.priority < priority);
        let reserved = if is_most_urgent { 0 } else { RESERVED_ANNOUNCEMENTS };
        if self.announced.len() + self.cancelled.len() + reserved >= self.max_announced() {
            return None;
        }
        let is_before = |block: &&Announced| {
            let sent = sender.block(block.number);
            let goes_on = |sent: &SendBlock| sent.has_unopened() && !sent.awaits_program();
            block.options.priority >= priority && sent.is_some_and(goes_on)
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
        let slices = self.transfer.stats().slices;
        let due = |block: &Announced| block.announcement.is_due(slices);
        let place = match self.announced.iter().position(due) {
            Some(place) => place,
            None => self.announce(now)?,
        };
        let Announced { number, block, announcement, .. } = self.announced.get_mut(place)?;
        announcement.on_sent(slices);
        let (tag, length, root) = (block.tag(), block.length(), *block.digest());
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
        let sender = self.transfer.sender_mut()?;
        sender.on_announced();
        let mut pages = Pages::new(0);
        if block.length() > 0 && !is_here {
            let SendOptions { priority, weight, is_paused, preferred, .. } = options;
            let content = block.content();
            let new = NewBlock { number, priority, weight, content, is_paused, preferred };
            sender.push(now, new);
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
            let at = self.transfer.sender()?.next_unready()?;
            let place = self.place(at.block)?;
            let block = self.announced.get(place)?;
            Some((place, block.pages.missing(block.block.pages(), at.index)?))
        })
    }

    /// The next page of a tree that is due, if its frame fits in `room` bytes, and its place for its item.
    /// Slices come after it.
    pub(crate) fn poll_page(&mut self, room: usize) -> Option<(u32, HashesFrame<'_>)> {
        let (block_place, page) = self.next_page()?;
        let block = self.announced.get_mut(block_place)?;
        let (level, first) = block.pages.page(page);
        let fits = |block: &Announced| {
            let values = block.block.pages().page(level, first);
            HashesFrame { block: block.number, level, first, values }.encoded_len() <= room
        };
        if !fits(block) {
            return None;
        }
        block.pages.on_sent(page);
        let number = block.number;
        if let Some(sender) = self.transfer.sender_mut()
            && let Some(next) = sender.next_unready().filter(|at| at.block == number)
            && block.pages.missing(block.block.pages(), next.index).is_none()
        {
            sender.set_page_ready(next);
        }
        let values = self.announced.get(block_place)?.block.pages().page(level, first);
        Some((page, HashesFrame { block: number, level, first, values }))
    }

    /// Whether a page is a reason to send a datagram.
    pub(crate) fn has_page(&self) -> bool {
        self.next_page().is_some()
    }

    /// A page was lost.
    pub(crate) fn on_page_lost(&mut self, number: u32, page: u32) {
        let sent = self.transfer.block(number);
        let Some(first) = sent.filter(|block| !block.is_done()).map(SendBlock::first) else {
            return;
        };
        if let Some(block) = self.place(number).and_then(|place| self.announced.get_mut(place)) {
            block.pages.on_lost(page, first);
        }
    }

    /// The next cancel frame that is due: block, code, and how many of its chunks were opened.
    pub(crate) fn poll_cancel(&mut self) -> Option<(u32, u32, u32)> {
        let cancelled = self.cancelled.iter_mut().find(|cancelled| cancelled.is_due)?;
        cancelled.is_due = false;
        Some((cancelled.number, cancelled.code, cancelled.opened))
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
}
