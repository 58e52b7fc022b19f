//! What the application asks of incoming blocks, and says about them: events, progress, what it has, and what
//! it does not want.
//!
//! The invariant: nothing that the peer sends is judged here.

use super::block::Block;
use super::delivery::IncomingEvent;
use super::here::Here;
use super::slots::Slot;
use super::{Control, IncomingBlocks};
use crate::Instant;
use crate::block_map::BlockMap;

impl IncomingBlocks {
    /// The application has this block, or chunks of it. `is_heard` if the hello says so; otherwise a root
    /// here frame will. Returns whether it is new and there is room.
    pub(crate) fn have(&mut self, root: [u8; 32], here: Here, is_heard: bool) -> bool {
        let is_whole = here == Here::Whole;
        let place = self.roots.add(root, here, is_heard && is_whole);
        if let Some(place) = place.filter(|_| is_whole && !is_heard) {
            self.controls.push_back(Control::RootHere(place));
        }
        place.is_some()
    }

    /// The application does not want a block. Returns whether it is one that is announced and not finished.
    /// Its sender answers with a cancel.
    pub(crate) fn decline(&mut self, now: Instant, number: u32, code: u32) -> bool {
        if self.slots.open(number).is_none() {
            return false;
        }
        let seen = self.free(number, None);
        // The number has a slot already, so this cannot be refused.
        let is_set = self.slots.set(number, Slot::Declined { seen, code }).is_ok();
        self.controls.push_back(Control::Decline(number));
        self.after(now);
        is_set
    }

    /// The next event for the application.
    pub(crate) fn poll_event(&mut self, now: Instant) -> Option<IncomingEvent> {
        if let Some(event) = self.ready.pop() {
            self.after(now);
            return Some(event);
        }
        for (number, block) in self.slots.blocks_mut() {
            if block.is_announcement_unread {
                return Some(block.announcement(number));
            }
            if core::mem::take(&mut block.is_progress_unread) {
                return Some(block.progress(now, number));
            }
        }
        None
    }

    /// Whether there is an event to poll.
    pub(crate) fn has_events(&self) -> bool {
        let is_unread = |block: &Block| block.is_announcement_unread || block.is_progress_unread;
        !self.ready.is_empty() || self.slots.blocks().any(|(_, block)| is_unread(block))
    }

    /// The tag of each block in progress, its bytes received in whole slices, and its length.
    pub(crate) fn progress(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.slots.blocks().map(|(_, it)| (it.tag, it.received_bytes(), it.length))
    }

    /// Bytes of chunks that are not done, of all these blocks.
    pub(crate) fn unfinished_bytes(&self) -> u64 {
        self.slots.blocks().map(|(_, block)| block.unfinished_bytes()).sum()
    }

    /// The map of the first of these.
    pub(crate) fn map(&self, max_chunks: usize) -> Option<BlockMap> {
        self.slots.blocks().next().map(|(_, block)| block.map(max_chunks))
    }

    /// Whether a block is in progress.
    pub(crate) fn has_open(&self) -> bool {
        self.slots.blocks().next().is_some()
    }

    /// Whether slices are expected: acks are sent sooner then, and arrival times recorded.
    pub(crate) fn is_receiving(&self) -> bool {
        self.has_open() || !self.staging.is_empty()
    }
}
