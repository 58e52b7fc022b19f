//! Blocks that wait to be announced.
//!
//! The invariant: those of a higher priority are before all others, and those of one priority are in the
//! order in which they got it.

use alloc::collections::VecDeque;

use super::block::{Block, SendOptions};
use super::blocks::SendBlockError;

/// A block that is not announced yet.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) handle: u32,
    pub(super) block: Block,
    pub(super) options: SendOptions,
}

/// All of them.
#[derive(Debug)]
pub(super) struct WaitingBlocks {
    blocks: VecDeque<Waiting>,
    next_handle: u32,
}

impl WaitingBlocks {
    pub(super) const fn new() -> Self {
        Self { blocks: VecDeque::new(), next_handle: 0 }
    }

    /// A block waits from now on. Returns its handle.
    pub(super) fn push(
        &mut self,
        block: Block,
        options: SendOptions,
    ) -> Result<u32, SendBlockError> {
        let handle = self.next_handle;
        self.next_handle = handle.checked_add(1).ok_or(SendBlockError::NumbersUsedUp)?;
        self.insert(Waiting { handle, block, options });
        Ok(handle)
    }

    fn insert(&mut self, waiting: Waiting) {
        let priority = waiting.options.priority;
        let place = self.blocks.partition_point(|other| other.options.priority >= priority);
        self.blocks.insert(place, waiting);
    }

    /// The one that is announced next.
    pub(super) fn first(&self) -> Option<&Waiting> {
        self.blocks.front()
    }

    /// It is announced.
    pub(super) fn pop_first(&mut self) -> Option<Waiting> {
        self.blocks.pop_front()
    }

    pub(super) fn remove(&mut self, handle: u32) -> Option<Waiting> {
        let place = self.blocks.iter().position(|waiting| waiting.handle == handle)?;
        self.blocks.remove(place)
    }

    pub(super) fn get(&self, handle: u32) -> Option<&Block> {
        self.blocks.iter().find(|it| it.handle == handle).map(|waiting| &waiting.block)
    }

    /// Pauses or resumes a block. Returns whether it is here.
    pub(super) fn set_paused(&mut self, handle: u32, is_paused: bool) -> bool {
        self.options_mut(handle).map(|options| options.is_paused = is_paused).is_some()
    }

    /// Chunks from the first to before the second go first. Returns whether the block is here.
    pub(super) fn prefer(&mut self, handle: u32, preferred: (u32, u32)) -> bool {
        self.options_mut(handle).map(|options| options.preferred = preferred).is_some()
    }

    fn options_mut(&mut self, handle: u32) -> Option<&mut SendOptions> {
        let waiting = self.blocks.iter_mut().find(|waiting| waiting.handle == handle)?;
        Some(&mut waiting.options)
    }

    /// Changes the priority of a block. Returns whether it is here.
    pub(super) fn set_priority(&mut self, handle: u32, priority: u8) -> bool {
        let Some(mut waiting) = self.remove(handle) else { return false };
        waiting.options.priority = priority;
        self.insert(waiting);
        true
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Bytes of all of them.
    pub(super) fn bytes(&self) -> u64 {
        self.blocks.iter().map(|waiting| waiting.block.length()).sum()
    }

    /// None waits: gives the memory back.
    pub(super) fn rest(&mut self) {
        self.blocks = VecDeque::new();
    }

    /// Memory held besides the blocks, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Waiting>()
    }

    pub(super) fn check_invariants(&self) {
        let priorities = self.blocks.iter().map(|waiting| waiting.options.priority);
        assert!(priorities.is_sorted_by(|a, b| a >= b), "not in order");
    }
}
