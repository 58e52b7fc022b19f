//! Blocks from sources, and what a program changes of blocks while they are sent.
//!
//! The invariant: a chunk of another length than it has, or that was not asked for, changes nothing.

use bytes::Bytes;

use super::announced::Announced;
use super::blocks::OutgoingBlocks;
use crate::Instant;
use crate::bulk::Sender;
use crate::transit::ChunkAt;

/// Why a chunk is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProvideError {
    /// The block is not being sent, or not any more: it was given up, or the receiver has it.
    #[error("no such block is being sent")]
    UnknownBlock,
    /// The chunk was not asked for, or was provided before.
    #[error("chunk {index} was not asked for, or was provided before")]
    NotWanted {
        /// The chunk.
        index: u32,
    },
    /// The chunk has another length.
    #[error("the chunk has {expected} bytes, and {given} were provided")]
    WrongLength {
        /// Bytes that the chunk has.
        expected: usize,
        /// Bytes that were provided.
        given: usize,
    },
}

/// A chunk that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) handle: u32,
    pub(crate) tag: u64,
    pub(crate) index: u32,
    pub(crate) bytes: usize,
}

impl OutgoingBlocks {
    /// The next chunk to ask of a source; it counts as asked for.
    pub(crate) fn want(&mut self) -> Option<Wanted> {
        let ChunkAt { block, index } = self.transfer.sender_mut()?.want()?;
        let Announced { handle, block, .. } = self.announced.get(block)?;
        let bytes = block.tree().chunk_bytes(index)?;
        Some(Wanted { handle: *handle, tag: block.tag(), index, bytes })
    }

    /// The program provides a chunk.
    pub(crate) fn provide(
        &mut self,
        now: Instant,
        handle: u32,
        index: u32,
        data: Bytes,
    ) -> Result<(), ProvideError> {
        let Some(Announced { number, block, .. }) = self.announced.of_handle(handle) else {
            return Err(match self.waiting.get(handle) {
                Some(_) => ProvideError::NotWanted { index },
                None => ProvideError::UnknownBlock,
            });
        };
        let expected = block.tree().chunk_bytes(index).ok_or(ProvideError::NotWanted { index })?;
        if data.len() != expected {
            return Err(ProvideError::WrongLength { expected, given: data.len() });
        }
        let at = ChunkAt { block: *number, index };
        let sender = self.transfer.sender_mut().filter(|sender| sender.block(at.block).is_some());
        // The peer has said that it has all of it, and the program does not know it yet.
        let Some(sender) = sender else { return Err(ProvideError::UnknownBlock) };
        if !sender.provide(now, at, data) {
            return Err(ProvideError::NotWanted { index });
        }
        self.poll(now);
        Ok(())
    }

    /// Pauses or resumes a block. Returns whether it is on its way.
    pub(crate) fn set_paused(&mut self, now: Instant, handle: u32, is_paused: bool) -> bool {
        self.waiting.set_paused(handle, is_paused)
            || self.change(now, handle, |sender, block| {
                sender.set_paused(now, block.number, is_paused);
            })
    }

    /// Chunks from the first to before the second go before the others of a block. Returns whether it is on
    /// its way.
    pub(crate) fn prefer(&mut self, now: Instant, handle: u32, preferred: (u32, u32)) -> bool {
        self.waiting.prefer(handle, preferred)
            || self.change(now, handle, |sender, block| {
                sender.prefer(now, block.number, preferred);
            })
    }

    /// Changes the priority of a block. Returns whether it is on its way.
    pub(crate) fn set_priority(&mut self, now: Instant, handle: u32, priority: u8) -> bool {
        self.waiting.set_priority(handle, priority)
            || self.change(now, handle, |sender, block| {
                block.options.priority = priority;
                sender.set_priority(block.number, priority);
            })
    }

    /// Changes how a block is sent that is announced. Returns whether this one is.
    fn change(
        &mut self,
        now: Instant,
        handle: u32,
        change: impl FnOnce(&mut Sender, &mut Announced),
    ) -> bool {
        let Some(block) = self.announced.iter_mut().find(|block| block.handle == handle) else {
            return false;
        };
        if let Some(sender) = self.transfer.sender_mut() {
            change(sender, block);
        }
        self.poll(now);
        true
    }
}
