//! Blocks that are announced and not finished, and blocks that were given up while the peer does not know it
//! yet.
//!
//! The invariants: they are numbered in the order of their announcement, without a gap; and both together are
//! no more than the peer accepts.

use alloc::collections::VecDeque;

use super::announcement::Announcement;
use super::block::{Block, SendOptions};
use super::pages::Pages;
use crate::bulk::cut::chunk_count;

/// Blocks that are announced and not finished at most, whatever the peer accepts [H-4.2a]: that many small
/// ones arrive in a round trip.
const MAX_ANNOUNCED: u8 = 64;

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

impl Announced {
    pub(super) fn chunks(&self) -> u32 {
        chunk_count(self.block.length()).unwrap_or(0)
    }
}

/// A block that was given up after it was announced.
#[derive(Clone, Copy, Debug)]
struct Cancelled {
    number: u32,
    code: u32,
    /// Chunks of it that count against the credit.
    opened: u32,
    is_due: bool,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct AnnouncedBlocks {
    /// In the order of their numbers.
    blocks: VecDeque<Announced>,
    cancelled: VecDeque<Cancelled>,
    next_number: u32,
    max: u8,
}

impl AnnouncedBlocks {
    /// No blocks, for a peer that accepts this number of them.
    pub(super) const fn new(accepted: u8) -> Self {
        let max = if accepted < MAX_ANNOUNCED { accepted } else { MAX_ANNOUNCED };
        Self { blocks: VecDeque::new(), cancelled: VecDeque::new(), next_number: 0, max }
    }

    /// Whether one more may be announced, with room for this number left to others.
    pub(super) fn has_room(&self, reserved: usize) -> bool {
        self.blocks.len() + self.cancelled.len() + reserved < usize::from(self.max)
    }

    /// The number of the block that is announced next. Only those below it were.
    pub(super) const fn next_number(&self) -> u32 {
        self.next_number
    }

    /// A block is announced, with the [next number](Self::next_number).
    pub(super) fn push(&mut self, block: Announced) {
        // There are no more handles than numbers.
        self.next_number = block.number.saturating_add(1);
        self.blocks.push_back(block);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Announced> {
        self.blocks.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Announced> {
        self.blocks.iter_mut()
    }

    fn place(&self, number: u32) -> Option<usize> {
        self.blocks.binary_search_by_key(&number, |block| block.number).ok()
    }

    pub(super) fn get(&self, number: u32) -> Option<&Announced> {
        self.blocks.get(self.place(number)?)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Announced> {
        let place = self.place(number)?;
        self.blocks.get_mut(place)
    }

    pub(super) fn of_handle(&self, handle: u32) -> Option<&Announced> {
        self.blocks.iter().find(|block| block.handle == handle)
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Announced> {
        self.blocks.remove(self.place(number)?)
    }

    /// Gives a block up, of which this number of chunks was opened. A frame says so to the peer.
    pub(super) fn cancel(&mut self, number: u32, code: u32, opened: u32) -> Option<Announced> {
        let block = self.remove(number)?;
        self.cancelled.push_back(Cancelled { number, code, opened, is_due: true });
        Some(block)
    }

    /// The peer knows of all below this number what became of them.
    pub(super) fn on_floor(&mut self, floor: u32) {
        let below = self.blocks.iter_mut().take_while(|block| block.number < floor);
        below.for_each(|block| block.is_finished = true);
        self.cancelled.retain(|cancelled| cancelled.number >= floor);
    }

    /// An announcement was acknowledged, or is lost.
    pub(crate) fn on_announced(&mut self, number: u32, is_acked: bool) {
        if let Some(block) = self.get_mut(number) {
            block.announcement.on_fate(is_acked);
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

    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// None is announced: gives the memory back.
    pub(super) fn rest(&mut self) {
        self.blocks = VecDeque::new();
    }

    /// Memory held besides the blocks, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let pages: usize = self.blocks.iter().map(|block| block.pages.memory_bytes()).sum();
        pages
            + self.blocks.capacity() * size_of::<Announced>()
            + self.cancelled.capacity() * size_of::<Cancelled>()
    }

    pub(super) fn check_invariants(&self) {
        let announced = self.blocks.len() + self.cancelled.len();
        assert!(announced <= usize::from(self.max), "too many announced");
        let numbers = || self.blocks.iter().map(|block| block.number);
        assert!(numbers().is_sorted_by(|a, b| a < b), "not in order");
        assert!(numbers().all(|number| number < self.next_number), "not announced yet");
        self.blocks.iter().for_each(|block| block.pages.check_invariants());
    }
}
