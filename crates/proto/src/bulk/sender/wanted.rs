//! What the sender wants of the program that has the bytes of a block, and how it goes on when it gets it.
//!
//! The invariant: time in which nothing can be sent before the program acts is no time without progress.

use bytes::Bytes;

use super::Sender;
use crate::Instant;
use crate::transit::ChunkAt;

impl Sender {
    /// The next chunk to ask of a source; it counts as asked for.
    pub(crate) fn want(&mut self) -> Option<ChunkAt> {
        self.chunks.want()
    }

    /// Whether it has to be reported to the program that chunks are wanted.
    pub(crate) fn has_unreported_want(&self) -> bool {
        self.chunks.has_unreported_want()
    }

    /// It is reported that chunks are wanted. The next report follows only after [`want`](Self::want) has
    /// returned `None`.
    pub(crate) const fn on_want_reported(&mut self) {
        self.chunks.is_want_reported = true;
    }

    /// A chunk is provided. Returns whether it was asked for.
    pub(crate) fn provide(&mut self, now: Instant, at: ChunkAt, data: Bytes) -> bool {
        self.after_program(now, |sender| sender.chunks.provide(at, data))
    }

    /// Pauses or resumes a block: what is open of it is sent, and no more is opened.
    pub(crate) fn set_paused(&mut self, now: Instant, number: u32, is_paused: bool) {
        self.after_program(now, |sender| {
            if let Some(block) = sender.chunks.block_mut(number) {
                block.set_paused(is_paused);
            }
        });
    }

    /// Chunks of a block from the first to before the second go before its others.
    pub(crate) fn prefer(&mut self, now: Instant, number: u32, preferred: (u32, u32)) {
        self.after_program(now, |sender| {
            if let Some(block) = sender.chunks.block_mut(number) {
                block.prefer(preferred);
            }
        });
    }

    /// Changes the priority of a block.
    pub(crate) fn set_priority(&mut self, number: u32, priority: u8) {
        self.chunks.set_priority(number, priority);
        self.chunks.rescan_margins();
    }

    /// The program acts. If it was waited for, the pause is over.
    pub(super) fn after_program<R>(&mut self, now: Instant, act: impl FnOnce(&mut Self) -> R) -> R {
        let was_awaited = self.chunks.awaits_program();
        let result = act(self);
        if was_awaited && !self.chunks.awaits_program() {
            self.end_pause(now);
        }
        result
    }
}
