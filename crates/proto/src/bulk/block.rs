//! The chunks of one block that is being sent: which are done, which are open, and which is the next.
//!
//! Chunks go in order, unless the program prefers some. The invariant: chunks below `first` are done, and
//! those below `unopened` are done or open. While no chunk is open, `first` goes before those preferred, so
//! that a receiver that hands chunks out in order is not filled with others for good.

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;

use super::chunk::OpenChunk;
use super::classes::ClassKey;
use super::content::Content;
use super::cut::{Cut, chunk_bytes, chunk_count};
use crate::block_map::{BlockMap, MAX_AHEAD};
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
    /// Chunks that go before the others: the first, and the one after the last.
    pub(crate) preferred: (u32, u32),
}

impl NewBlock {
    /// One without priority and weight, whose bytes are all here.
    #[cfg(test)]
    pub(crate) fn of(number: u32, data: impl Into<Bytes>) -> Self {
        let content = Content::held(data.into());
        let preferred = (0, 0);
        Self { number, priority: 0, weight: 0, content, is_paused: false, preferred }
    }
}

/// A block that is being sent.
#[derive(Debug)]
pub(crate) struct SendBlock {
    block: NewBlock,
    chunks: u32,
    /// The lowest chunk that is not done.
    first: u32,
    /// The lowest chunk that was never opened, and is not done.
    unopened: u32,
    /// The lowest one of those preferred that was never opened, and the end of them.
    preferred: (u32, u32),
    /// The program has preferred some: chunks that it provided for another order are sent too.
    was_reordered: bool,
    ready: Ready,
    /// Those from `first` to the last that is open; `None` is done, or never opened.
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

/// Chunks that may be opened: what is needed to verify them was sent.
#[derive(Debug, Default)]
struct Ready {
    /// All below this one.
    below: u32,
    /// Those of these pages of the tree.
    pages: BTreeSet<u32>,
}

impl Ready {
    fn has(&self, index: u32) -> bool {
        index < self.below || self.pages.contains(&(index / PAGE))
    }
}

/// Chunks whose values are in one page.
const PAGE: u32 = 32;

impl SendBlock {
    pub(super) fn new(block: NewBlock) -> Self {
        Self {
            chunks: chunk_count(block.content.length()).unwrap_or(0),
            first: 0,
            unopened: 0,
            preferred: block.preferred,
            was_reordered: block.preferred != (0, 0),
            ready: Ready::default(),
            slots: VecDeque::new(),
            open: 0,
            open_bytes: 0,
            opened: 0,
            done: Vec::new(),
            done_bytes: 0,
            block,
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
        self.ready.below = self.ready.below.max(ready);
    }

    /// Chunks whose values are in the page of this chunk may be opened.
    pub(super) fn set_page_ready(&mut self, index: u32) {
        self.ready.pages.insert(index / PAGE);
    }

    /// No chunk from here on may be opened: too many lie between it and the first that is not done.
    fn end(&self) -> u32 {
        self.chunks.min(self.first.saturating_add(MAX_SPAN))
    }

    /// The next chunk to open, whether it may be opened yet or not; `None` if all were, or if too many lie
    /// between it and the first that is not done.
    pub(crate) fn next(&self) -> Option<u32> {
        let (preferred, last) = self.preferred;
        let lowest = Some(self.unopened).filter(|&lowest| lowest < self.end());
        let preferred = Some(preferred).filter(|&index| index < last.min(self.end()));
        preferred.filter(|_| lowest != Some(self.first) || self.open > 0).or(lowest)
    }

    /// Chunks from the first to before the second go before the others, as far as they may be open.
    pub(super) fn prefer(&mut self, preferred: (u32, u32)) {
        (self.preferred, self.was_reordered) = (preferred, true);
        self.advance();
    }

    /// The next chunk to open if it may be opened.
    pub(super) fn next_ready(&self) -> Option<u32> {
        self.next_here().filter(|&next| self.ready.has(next))
    }

    /// The next chunk to open if nothing is missing for it but what proves it: its bytes are here, and the
    /// block is not paused.
    pub(super) fn next_here(&self) -> Option<u32> {
        let next = self.next().filter(|_| !self.block.is_paused)?;
        let is_unopened = |index: &u32| *index < self.end() && self.get(*index).is_none();
        match self.block.content.has(next) {
            true => Some(next),
            // What a receiver may need to take any others is waited for.
            false if self.was_reordered && next != self.first => {
                self.block.content.given().find(is_unopened)
            }
            false => None,
        }
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
        self.block.content.ahead(self.open)
    }

    /// The next chunk to ask of its source, whether there is room for it or not.
    pub(super) fn next_wanted(&self) -> Option<u32> {
        let Content::Source(source) = &self.block.content else { return None };
        if self.block.is_paused {
            return None;
        }
        let (preferred, last) = self.preferred;
        let first = self.first..self.end().min(self.first + 1);
        let all = first.chain(preferred..last.min(self.end())).chain(self.unopened..self.end());
        let is_open = |index| self.get(index).is_some();
        all.into_iter()
            .find(|&index| !self.is_chunk_done(index) && !is_open(index) && !source.is_known(index))
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
            Content::Held(_) => false,
        }
    }

    /// Has the repair slices of an open chunk at hand.
    pub(super) fn prepare_repair(&mut self, index: u32) -> Option<()> {
        let cut = self.get(index)?.cut();
        self.block.content.prepare_repair(index, cut)
    }

    /// Whether a chunk was opened, or is done.
    pub(crate) const fn is_begun(&self) -> bool {
        self.opened > 0 || self.done_bytes > 0
    }

    /// Whether chunks were not opened yet.
    pub(crate) const fn has_unopened(&self) -> bool {
        self.unopened < self.chunks
    }

    /// Bytes of the block.
    pub(super) const fn length(&self) -> u64 {
        self.block.content.length()
    }

    /// Bytes of this chunk.
    pub(super) fn chunk_bytes(&self, index: u32) -> usize {
        chunk_bytes(self.block.content.length(), index).unwrap_or(0)
    }

    /// Opens a chunk that was not opened, and is not done.
    pub(super) fn open(&mut self, index: u32, cut: Cut, has_repair: bool, next_number: u64) {
        let Some(place) = index.checked_sub(self.first).filter(|_| index < self.end()) else {
            return;
        };
        while self.slots.len() <= place as usize {
            self.slots.push_back(None);
        }
        let Some(slot) = self.slots.get_mut(place as usize).filter(|slot| slot.is_none()) else {
            return;
        };
        let at = ChunkAt { block: self.block.number, index };
        let chunk = Box::new(OpenChunk::new(at, cut, has_repair, next_number));
        self.open_bytes += chunk.memory_bytes();
        *slot = Some(chunk);
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

    /// Whether the repair slices of an open chunk are made.
    pub(super) fn is_encoded(&self, chunk: &OpenChunk) -> bool {
        self.block.content.is_encoded(chunk.at.index, chunk.cut())
    }

    /// The bytes of this repair slice of an open chunk, after they were [prepared](Self::prepare_repair).
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
            self.advance();
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
        self.unopened = self.unopened.max(self.first);
        if self.first.is_multiple_of(PAGE) {
            self.ready.pages.remove(&(self.first / PAGE - 1));
        }
    }

    /// Moves over chunks that are done, and over those that are open.
    fn advance(&mut self) {
        while self.first < self.chunks && self.is_chunk_done(self.first) {
            self.pop_first();
        }
        let is_begun =
            |block: &Self, index| block.is_chunk_done(index) || block.get(index).is_some();
        while self.unopened < self.end() && is_begun(self, self.unopened) {
            self.unopened += 1;
        }
        let last = self.preferred.1.min(self.end());
        self.preferred.0 = self.preferred.0.max(self.first);
        while self.preferred.0 < last && is_begun(self, self.preferred.0) {
            self.preferred.0 += 1;
        }
    }

    /// Bytes that the receiver has: of the chunks that are done, and an estimate for the others.
    pub(crate) fn received_bytes(&self) -> u64 {
        let open: usize = self.iter_open().map(OpenChunk::received_bytes).sum();
        self.done_bytes + open as u64
    }

    /// What is known of its chunks, and of the slices of the first `max_chunks` that are open.
    pub(crate) fn map(&self, tag: u64, max_chunks: usize) -> BlockMap {
        let ahead =
            self.first.saturating_add(1)..self.chunks.min(self.first.saturating_add(MAX_AHEAD));
        BlockMap {
            tag,
            chunks: self.chunks,
            first: self.first,
            done_ahead: ahead.filter(|&index| self.is_chunk_done(index)).collect(),
            open: self.iter_open().take(max_chunks).map(OpenChunk::map).collect(),
            open_chunks: self.open,
        }
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
            self.first <= self.unopened
                && self.unopened <= self.chunks
                && self.slots.len() <= MAX_SPAN as usize
        );
        assert_eq!(self.open, self.iter_open().count(), "open chunks");
        let held: usize = self.iter_open().map(OpenChunk::memory_bytes).sum();
        assert_eq!(self.open_bytes, held, "what they hold");
        for (index, slot) in (self.first..).zip(&self.slots) {
            let is_begun = slot.is_some() || self.is_chunk_done(index);
            assert!(is_begun || index >= self.unopened, "chunk {index} is passed over");
            assert!(slot.is_none() || !self.is_chunk_done(index), "chunk {index}");
            assert!(slot.is_none() || self.block.content.has(index), "chunk {index} has no bytes");
        }
        self.block.content.check_invariants();
        self.iter_open().for_each(OpenChunk::check_invariants);
    }
}
