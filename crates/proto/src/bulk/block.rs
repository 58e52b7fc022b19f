//! The chunks of one block that is being sent: which are done, which are open, and which is the next.
//!
//! The invariant: chunks below `first` are done, those from `next` on were never opened, and of those between
//! each is either done or open.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;

use super::chunk::OpenChunk;
use super::classes::ClassKey;
use super::content::Content;
use super::cut::{Cut, chunk_bytes, chunk_count};
use crate::transit::{ChunkAt, Ledger, Symbol};

/// Chunks from the first that is not done to the last that is open, at most [H-4.2f].
pub(crate) const MAX_SPAN: u32 = 1024;

/// A block to send.
#[derive(Debug)]
pub(crate) struct NewBlock {
    /// Its number on the wire, above that of each block before.
    pub(crate) number: u32,
    /// Blocks of a higher one go first.
    pub(crate) priority: u8,
    /// Its share beside others of its priority; 0 for one that goes after those that have none either.
    pub(crate) weight: u16,
    pub(crate) content: Content,
    /// No chunk of it is opened until its program resumes it.
    pub(crate) is_paused: bool,
}

impl NewBlock {
    /// One without priority and weight, whose bytes are all here.
    #[cfg(test)]
    pub(crate) fn of(number: u32, data: impl Into<Bytes>) -> Self {
        let content = Content::held(data.into());
        Self { number, priority: 0, weight: 0, content, is_paused: false }
    }
}

/// A block that is being sent.
#[derive(Debug)]
pub(crate) struct SendBlock {
    block: NewBlock,
    chunks: u32,
    /// The lowest chunk that is not done.
    first: u32,
    /// The lowest chunk that was never opened.
    next: u32,
    /// Chunks from here on must not be opened yet.
    ready: u32,
    /// Those from `first` to `next`; `None` is done.
    slots: VecDeque<Option<Box<OpenChunk>>>,
    open: usize,
    /// What the open chunks hold, in bytes: asked for with each datagram, when 1024 may be open.
    open_bytes: usize,
    /// Chunks that were opened and were not here before: they count against the credit.
    opened: u32,
    /// A bit for each chunk; empty while none is done out of order.
    done: Vec<u64>,
    done_bytes: u64,
}

impl SendBlock {
    pub(super) fn new(block: NewBlock) -> Self {
        Self {
            chunks: chunk_count(block.content.length()).unwrap_or(0),
            block,
            first: 0,
            next: 0,
            ready: 0,
            slots: VecDeque::new(),
            open: 0,
            open_bytes: 0,
            opened: 0,
            done: Vec::new(),
            done_bytes: 0,
        }
    }

    pub(crate) const fn number(&self) -> u32 {
        self.block.number
    }

    /// The blocks that it goes with.
    pub(super) fn class(&self) -> ClassKey {
        let NewBlock { number, priority, weight, .. } = self.block;
        ClassKey { priority, alone: (weight > 0).then_some(number) }
    }

    /// Its share beside others of its priority.
    pub(super) const fn weight(&self) -> u16 {
        self.block.weight
    }

    /// The lowest chunk that is not done; the number of chunks if all are.
    pub(crate) const fn first(&self) -> u32 {
        self.first
    }

    /// The number of chunks.
    pub(crate) const fn chunks(&self) -> u32 {
        self.chunks
    }

    pub(crate) const fn is_done(&self) -> bool {
        self.first >= self.chunks
    }

    /// The number of open chunks.
    pub(super) const fn open_chunks(&self) -> usize {
        self.open
    }

    /// Chunks below this one may be opened: what is needed to verify them was sent.
    pub(super) fn set_ready(&mut self, ready: u32) {
        self.ready = self.ready.max(ready);
    }

    /// The next chunk to open, whether it may be opened yet or not; `None` if all were, or if too many lie
    /// between it and the first that is not done.
    pub(crate) fn next(&self) -> Option<u32> {
        (self.next < self.chunks && self.next - self.first < MAX_SPAN).then_some(self.next)
    }

    /// The next chunk to open if it may be opened.
    pub(super) fn next_ready(&self) -> Option<u32> {
        self.next_here().filter(|&next| next < self.ready)
    }

    /// The next chunk to open if nothing is missing for it but what proves it: its bytes are here, and the
    /// block is not paused.
    pub(super) fn next_here(&self) -> Option<u32> {
        let is_here = |&next: &u32| !self.block.is_paused && self.block.content.has(next);
        self.next().filter(is_here)
    }

    /// Whether there is a next chunk to open, and it waits for this end's program: to provide or to resume
    /// it.
    pub(crate) fn awaits_program(&self) -> bool {
        self.next().is_some() && self.next_here().is_none()
    }

    /// Whether it goes on by itself, now or with credit.
    pub(super) fn has_more(&self) -> bool {
        !self.block.is_paused && self.next().is_some()
    }

    /// Pauses or resumes it.
    pub(super) const fn set_paused(&mut self, is_paused: bool) {
        self.block.is_paused = is_paused;
    }

    /// Changes its priority. Its class is another one then.
    pub(super) const fn set_priority(&mut self, priority: u8) {
        self.block.priority = priority;
    }

    /// Whether its bytes come from a source.
    pub(super) const fn is_from_source(&self) -> bool {
        matches!(self.block.content, Content::Source(_))
    }

    /// Chunks that were asked of its source and are not open: on the way, or here.
    pub(super) fn ahead(&self) -> usize {
        self.block.content.ahead(self.next)
    }

    /// The next chunk to ask of its source, whether there is room for it or not.
    pub(super) fn next_wanted(&self) -> Option<u32> {
        let Content::Source(source) = &self.block.content else { return None };
        if self.block.is_paused {
            return None;
        }
        let end = self.chunks.min(self.first.saturating_add(MAX_SPAN));
        (self.next..end).find(|&index| !self.is_chunk_done(index) && !source.is_known(index))
    }

    /// A chunk is asked of its source.
    pub(super) fn on_wanted(&mut self, index: u32) {
        if let Content::Source(source) = &mut self.block.content {
            source.on_wanted(index);
        }
    }

    /// The source provides a chunk. Returns whether it was asked for. One that the receiver has by now is
    /// not kept.
    pub(super) fn provide(&mut self, index: u32, data: Bytes) -> bool {
        let is_done = self.is_chunk_done(index);
        match &mut self.block.content {
            Content::Source(source) => source.provide(index, (!is_done).then_some(data)),
            Content::Held { .. } => false,
        }
    }

    /// Makes the repair slices of an open chunk from a source, unless they are there for its cut.
    pub(super) fn prepare_repair(&mut self, index: u32) {
        let Some(cut) = self.get(index).map(OpenChunk::cut) else { return };
        if let Content::Source(source) = &mut self.block.content {
            source.prepare_repair(index, cut);
        }
    }

    /// Whether a chunk was opened, or is done.
    pub(crate) const fn is_begun(&self) -> bool {
        self.next > 0
    }

    /// Whether chunks were not opened yet.
    pub(crate) const fn has_unopened(&self) -> bool {
        self.next < self.chunks
    }

    /// Bytes of this chunk.
    pub(super) fn chunk_bytes(&self, index: u32) -> usize {
        chunk_bytes(self.block.content.length(), index).unwrap_or(0)
    }

    /// Opens the next chunk.
    pub(super) fn open(&mut self, cut: Cut, has_repair: bool, next_number: u64) {
        let at = ChunkAt { block: self.block.number, index: self.next };
        let chunk = Box::new(OpenChunk::new(at, cut, has_repair, next_number));
        self.open_bytes += chunk.memory_bytes();
        self.slots.push_back(Some(chunk));
        self.next += 1;
        self.open += 1;
        self.opened += 1;
        self.advance();
    }

    /// Chunks that were opened and were not here before.
    pub(crate) const fn opened(&self) -> u32 {
        self.opened
    }

    /// The receiver had this chunk before. If it was opened, it counts no more; returns whether it was.
    pub(super) fn on_here(&mut self, index: u32) -> bool {
        let was_open = self.get(index).is_some();
        self.opened -= u32::from(was_open);
        was_open
    }

    pub(crate) fn get(&self, index: u32) -> Option<&OpenChunk> {
        self.slots.get(index.checked_sub(self.first)? as usize)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut OpenChunk> {
        self.slots.get_mut(index.checked_sub(self.first)? as usize)?.as_deref_mut()
    }

    /// The slice of this open chunk to retransmit.
    pub(super) fn next_repeated(&mut self, index: u32, ledger: &Ledger) -> Option<Symbol> {
        let chunk = self.get_mut(index)?;
        let before = chunk.memory_bytes();
        let symbol = chunk.next_repeated(ledger);
        self.open_bytes += self.get(index)?.memory_bytes() - before;
        Some(symbol)
    }

    pub(super) fn iter_open(&self) -> impl Iterator<Item = &OpenChunk> {
        self.slots.iter().filter_map(Option::as_deref)
    }

    /// The bytes of this source slice of an open chunk.
    pub(crate) fn source(&self, chunk: &OpenChunk, index: u8) -> Option<&[u8]> {
        self.block.content.chunk(chunk.at.index)?.get(chunk.cut().range(index)?)
    }

    /// The bytes of this repair slice of an open chunk. The first encodes all of them.
    pub(crate) fn repair(&self, chunk: &OpenChunk, index: u8) -> Option<&[u8]> {
        self.block.content.repair(chunk.at.index, chunk.cut(), index)
    }

    /// Whether this chunk is done.
    pub(super) fn is_chunk_done(&self, index: u32) -> bool {
        let word = self.done.get(index as usize / 64).copied().unwrap_or(0);
        index < self.first || word >> (index % 64) & 1 != 0
    }

    /// Whether each of the eight chunks from this one on is done, the lowest bit first.
    pub(crate) fn done_from(&self, index: u32) -> u8 {
        let word = |at: usize| self.done.get(at).copied().unwrap_or_default();
        let (at, bit) = (index as usize / 64, index % 64);
        let high = word(at + 1).checked_shl(64 - bit).unwrap_or_default();
        let [done, ..] = (word(at) >> bit | high).to_le_bytes();
        let below = u8::MAX.checked_shl(self.first.saturating_sub(index)).unwrap_or_default();
        done | !below
    }

    /// The receiver has this chunk. Returns whether that is news.
    pub(super) fn on_done(&mut self, index: u32) -> bool {
        if index >= self.chunks || self.is_chunk_done(index) {
            return false;
        }
        self.done_bytes += self.chunk_bytes(index) as u64;
        self.block.content.on_done(index);
        let slot = index.checked_sub(self.first).and_then(|at| self.slots.get_mut(at as usize));
        if let Some(closed) = slot.and_then(Option::take) {
            self.open -= 1;
            self.open_bytes -= closed.memory_bytes();
        }
        if index == self.first && self.done.is_empty() {
            self.pop_first();
            return true;
        }
        if self.done.is_empty() {
            self.done = alloc::vec![0; (self.chunks as usize).div_ceil(64)];
        }
        if let Some(word) = self.done.get_mut(index as usize / 64) {
            *word |= 1 << (index % 64);
        }
        self.advance();
        true
    }

    fn pop_first(&mut self) {
        self.slots.pop_front();
        self.first += 1;
        self.next = self.next.max(self.first);
    }

    /// Moves over chunks that are done.
    fn advance(&mut self) {
        loop {
            if self.first < self.next && self.is_chunk_done(self.first) {
                self.pop_first();
            } else if self.next().is_some_and(|next| self.is_chunk_done(next)) {
                self.slots.push_back(None);
                self.next += 1;
            } else {
                return;
            }
        }
    }

    /// Bytes that the receiver has: of the chunks that are done, and an estimate for the others.
    pub(crate) fn received_bytes(&self) -> u64 {
        let open: usize = self.iter_open().map(OpenChunk::received_bytes).sum();
        self.done_bytes + open as u64
    }

    /// Memory held besides the bytes of a block that are all here, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.block.content.memory_bytes()
            + self.open_bytes
            + self.slots.capacity() * size_of::<usize>()
            + self.done.capacity() * 8
    }

    pub(super) fn check_invariants(&self) {
        assert!(
            self.first <= self.next
                && self.next <= self.chunks
                && self.next - self.first <= MAX_SPAN
        );
        assert_eq!(self.slots.len(), (self.next - self.first) as usize, "a place for each");
        assert_eq!(self.open, self.iter_open().count(), "open chunks");
        let held: usize = self.iter_open().map(OpenChunk::memory_bytes).sum();
        assert_eq!(self.open_bytes, held, "what they hold");
        for (index, slot) in (self.first..).zip(&self.slots) {
            assert_eq!(slot.is_none(), self.is_chunk_done(index), "chunk {index}");
            assert!(slot.is_none() || self.block.content.has(index), "chunk {index} has no bytes");
        }
        self.block.content.check_invariants();
        self.iter_open().for_each(OpenChunk::check_invariants);
    }
}

#[cfg(test)]
mod tests {
    use super::super::cut::SliceSize;
    use super::*;
    use crate::chunk::MAX_CHUNK_BYTES;

    fn block(chunks: usize) -> SendBlock {
        let data = alloc::vec![7; (chunks - 1) * MAX_CHUNK_BYTES + 100];
        let mut block = SendBlock::new(NewBlock::of(0, data));
        block.set_ready(u32::MAX);
        block
    }

    fn open(block: &mut SendBlock) -> Option<u32> {
        let index = block.next_ready()?;
        let size = SliceSize::SMALLEST_OF_FULL_CHUNK;
        block.open(Cut::new(block.chunk_bytes(index), size)?, true, 0);
        Some(index)
    }

    /// What is here already is never opened, in whatever order it is told.
    #[test]
    fn chunks_that_are_done_are_passed_over() {
        let mut block = block(9);
        assert!(block.on_done(2) && !block.on_done(2) && !block.on_done(9));
        assert_eq!(open(&mut block), Some(0));
        assert!(block.on_done(1));
        block.check_invariants();
        assert_eq!(open(&mut block), Some(3));
        assert_eq!((block.first(), block.open_chunks()), (0, 2));
        assert!(block.on_done(0));
        assert_eq!((block.first(), block.received_bytes()), (3, 3 * 262_144));
        (4..9).for_each(|index| assert!(block.on_done(index)));
        block.check_invariants();
        assert_eq!((open(&mut block), block.is_done()), (None, false));
        assert_eq!(block.done_from(0), 0b1111_0111);
        assert_eq!((block.done_from(2), block.done_from(4)), (0b0111_1101, 0b0001_1111));
        assert!(block.on_done(3) && block.is_done());
        assert_eq!(block.received_bytes(), 8 * 262_144 + 100);
        block.check_invariants();
    }

    #[test]
    fn a_chunk_that_is_not_done_holds_the_window() {
        let mut block = SendBlock { chunks: 5000, ..block(1) };
        while let Some(index) = block.next_ready() {
            let size = SliceSize::SMALLEST_OF_FULL_CHUNK;
            block.open(Cut::new(1, size).unwrap(), true, 0);
            assert!(index == 0 || block.on_done(index));
        }
        block.check_invariants();
        assert_eq!((block.next, block.open_chunks()), (MAX_SPAN, 1));
        assert!(block.on_done(0));
        assert_eq!((block.first, block.next_ready()), (MAX_SPAN, Some(MAX_SPAN)));
    }

    #[test]
    fn a_chunk_is_opened_when_it_can_be_verified() {
        let mut block = SendBlock { ready: 0, ..block(3) };
        assert_eq!((block.next(), block.next_ready()), (Some(0), None));
        block.set_ready(1);
        assert_eq!((open(&mut block), open(&mut block)), (Some(0), None));
    }
}
