//! The frames of blocks that go into datagrams before slices: for each kind whether it is a reason to send a
//! datagram, the next frame that is due, and its fate.
//!
//! The order is: announcements; then the pages of the tree that the next chunk needs. Cancels go before them;
//! [`announced`](super::announced) has these. Slices go after them; [`transfer`](super::transfer) has these.

use super::announced::Announced;
use super::announcement::Announcement;
use super::block::SendOptions;
use super::blocks::OutgoingBlocks;
use super::pages::Pages;
use super::waiting::Waiting;
use crate::Instant;
use crate::bulk::{NewBlock, SendBlock};
use crate::wire::frames::{BlockFrame, HashesFrame};

/// The number of places for announced blocks that a block leaves free for more urgent blocks.
const RESERVED_ANNOUNCEMENTS: usize = 4;

/// Blocks announced before their first chunk can be opened: so the next one follows without a pause, and the
/// peer can say that it has it.
const MAX_AHEAD: usize = 8;

/// Credit below which no blocks are announced ahead.
const CREDIT_FOR_AHEAD: u64 = 16;

impl OutgoingBlocks {
    /// The block that is announced next, if it may be.
    fn next_announcement(&self) -> Option<&Waiting> {
        let (sender, waiting) = (self.transfer.sender()?, self.waiting.first()?);
        let priority = waiting.options.priority;
        let is_most_urgent = self.announced.iter().all(|block| block.options.priority < priority);
        let reserved = if is_most_urgent { 0 } else { RESERVED_ANNOUNCEMENTS };
        if !self.announced.has_room(reserved) {
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
        let due = self.announced.iter().find(|block| block.announcement.is_due(slices));
        let number = match due {
            Some(block) => block.number,
            None => self.announce(now)?,
        };
        let Announced { block, announcement, .. } = self.announced.get_mut(number)?;
        announcement.on_sent(slices);
        let (tag, length, root) = (block.tag(), block.length(), *block.digest());
        Some(BlockFrame { number, tag, length, root })
    }

    /// Begins the next block. Returns its number.
    fn announce(&mut self, now: Instant) -> Option<u32> {
        self.next_announcement()?;
        let Waiting { handle, block, options } = self.waiting.pop_first()?;
        let number = self.announced.next_number();
        let is_here = self.feedback.has_root(block.digest());
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
        self.announced.push(Announced {
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
        Some(number)
    }

    /// Whether an announcement is a reason to send a datagram.
    pub(crate) fn has_announcement(&self) -> bool {
        let is_due = |block: &Announced| block.announcement == Announcement::Due;
        self.announced.iter().any(is_due) || self.next_announcement().is_some()
    }

    /// The next page that is due, as block and place: one that was lost, or that the next chunk needs.
    fn next_page(&self) -> Option<(u32, u32)> {
        let lost = |block: &Announced| Some((block.number, block.pages.lost()?));
        self.announced.iter().find_map(lost).or_else(|| {
            let at = self.transfer.sender()?.next_unready()?;
            let block = self.announced.get(at.block)?;
            Some((at.block, block.pages.missing(block.block.pages(), at.index)?))
        })
    }

    /// The next page of a tree that is due, if its frame fits in `room` bytes, and its place for its item.
    /// Slices come after it.
    pub(crate) fn poll_page(&mut self, room: usize) -> Option<(u32, HashesFrame<'_>)> {
        let (number, page) = self.next_page()?;
        let block = self.announced.get_mut(number)?;
        let (level, first) = block.pages.page(page);
        let values = block.block.pages().page(level, first);
        let frame = HashesFrame { block: number, level, first, values };
        if frame.encoded_len() > room {
            return None;
        }
        block.pages.on_sent(page);
        if let Some(sender) = self.transfer.sender_mut()
            && let Some(next) = sender.next_unready().filter(|at| at.block == number)
            && block.pages.missing(block.block.pages(), next.index).is_none()
        {
            sender.set_page_ready(next);
        }
        Some((page, frame))
    }

    /// Whether a page is a reason to send a datagram.
    pub(crate) fn has_page(&self) -> bool {
        self.next_page().is_some()
    }

    /// A page was lost.
    pub(crate) fn on_page_lost(&mut self, number: u32, page: u32) {
        let sent = self.transfer.block(number).filter(|block| !block.is_done());
        if let (Some(sent), Some(block)) = (sent, self.announced.get_mut(number)) {
            block.pages.on_lost(page, sent.first());
        }
    }
}
