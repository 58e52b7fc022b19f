//! The blocks that are being sent and their open chunks. [`choice`](super::choice) selects the next slice of
//! them, and [`classes`](super::classes) the class that has the next turn.
//!
//! The invariant: the active chunks of a class are those of its open chunks of which the receiver does not
//! have enough slices, in order.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::block::{NewBlock, SendBlock};
use super::chunk::OpenChunk;
use super::classes::{Class, ClassKey, Classes};
use super::credit::Credit;
use super::cut::{Cut, SliceSize};
use crate::Instant;
use crate::transit::{ChunkAt, Datagram, Fate, Symbol};

/// How chunks are opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cutting {
    /// Bytes of the largest slice frame that the path carries.
    pub(super) room: usize,
    /// Slices are as small as they may be, because others wait behind them.
    pub(super) is_fine: bool,
    pub(super) max_slice: SliceSize,
    /// The receiver uses repair slices.
    pub(super) has_repair: bool,
}

impl Cutting {
    pub(super) fn cut(&self, at: ChunkAt, chunk_bytes: usize) -> Option<Cut> {
        let room = if self.is_fine { 0 } else { self.room };
        Cut::for_room(at, chunk_bytes, room, self.max_slice)
    }
}

/// The blocks that are being sent, and their chunks.
#[derive(Debug)]
pub(super) struct Chunks {
    /// In the order of their numbers.
    pub(super) blocks: VecDeque<SendBlock>,
    /// Their bytes.
    total: u64,
    pub(super) classes: Classes,
    pub(super) cutting: Cutting,
    pub(super) credit: Credit,
    /// It was reported to the program that chunks are wanted, and it has not asked for all of them since.
    pub(super) is_want_reported: bool,
}

impl Chunks {
    pub(super) const fn new(cutting: Cutting, credit: Credit) -> Self {
        Self {
            blocks: VecDeque::new(),
            total: 0,
            classes: Classes::new(),
            cutting,
            credit,
            is_want_reported: false,
        }
    }

    /// Adds a block, whose number is above all before.
    pub(super) fn push(&mut self, block: NewBlock) {
        let block = SendBlock::new(block);
        self.total = self.total.saturating_add(block.length());
        self.classes.insert(block.class(), block.weight());
        self.blocks.push_back(block);
    }

    /// Removes a block: it is done or given up.
    pub(super) fn remove(&mut self, number: u32) {
        let Some(place) = self.place(number) else { return };
        let Some(block) = self.blocks.remove(place) else { return };
        self.total = self.total.saturating_sub(block.length());
        let is_last = self.blocks.iter().all(|other| other.class() != block.class());
        if is_last {
            self.classes.remove(block.class());
        } else if let Some(class) = self.class_mut(block.class()) {
            class.forget(number, block.open_chunks(), open_bytes(&block));
        }
    }

    /// The bytes of all blocks that are being sent.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn block(&self, number: u32) -> Option<&SendBlock> {
        self.blocks.get(self.place(number)?)
    }

    pub(super) fn block_mut(&mut self, number: u32) -> Option<&mut SendBlock> {
        let place = self.place(number)?;
        self.blocks.get_mut(place)
    }

    #[inline]
    pub(super) fn get(&self, at: ChunkAt) -> Option<&OpenChunk> {
        self.block(at.block)?.get(at.index)
    }

    pub(super) fn get_mut(&mut self, at: ChunkAt) -> Option<&mut OpenChunk> {
        self.block_mut(at.block)?.get_mut(at.index)
    }

    #[inline]
    pub(super) fn place(&self, number: u32) -> Option<usize> {
        if self.blocks.front()?.number() == number {
            return Some(0);
        }
        self.blocks.binary_search_by_key(&number, SendBlock::number).ok()
    }

    pub(super) fn class_mut(&mut self, key: ClassKey) -> Option<&mut Class> {
        self.classes.get_mut(key)
    }

    /// Whether chunks are open.
    pub(super) fn has_open(&self) -> bool {
        self.classes.iter().any(|class| class.open > 0)
    }

    /// Whether there are chunks to open.
    pub(super) fn has_unopened(&self) -> bool {
        self.blocks.iter().any(SendBlock::has_unopened)
    }

    /// Whether there are chunks to open, but no credit for them.
    pub(super) fn is_held_back(&self) -> bool {
        self.credit.is_used_up() && self.has_unopened()
    }

    /// A slice was sent.
    pub(super) fn on_sent(&mut self, at: ChunkAt, symbol: Symbol) {
        let Some(chunk) = self.get_mut(at) else { return };
        chunk.on_sent(symbol);
        chunk.expect();
    }

    /// The slice of this datagram is no longer in flight.
    pub(super) fn on_landed(&mut self, datagram: &Datagram) {
        let Some((at, symbol)) = datagram.slice else { return };
        let Some(chunk) = self.get_mut(at).filter(|it| it.counts(datagram.number)) else { return };
        chunk.on_landed(symbol);
        chunk.unexpect();
        if datagram.fate != Fate::Acked {
            chunk.on_lost(symbol);
            self.note_lack(at);
        }
    }

    /// Fewer slices of a chunk are expected than before: it may lack some.
    pub(super) fn note_lack(&mut self, at: ChunkAt) {
        if let Some(block) = self.block(at.block)
            && block.get(at.index).is_some_and(|chunk| chunk.is_sent() && chunk.lacks_slices())
            && let Some(class) = self.class_mut(block.class())
        {
            class.add_lacking(at);
        }
    }

    /// The receiver has this slice, which went in datagram `number`. Returns whether that is progress: once
    /// it has enough slices of the chunk, only that it is done is.
    pub(super) fn on_received(&mut self, at: ChunkAt, number: u64, symbol: Symbol) -> bool {
        let Some(chunk) = self.get_mut(at).filter(|chunk| chunk.counts(number)) else {
            return false;
        };
        let had_enough = chunk.has_enough();
        let is_new = chunk.on_received(symbol);
        if !had_enough && chunk.has_enough() {
            self.deactivate(at);
        } else if !is_new {
            // It took the place of another one in flight.
            self.note_lack(at);
        }
        is_new && !had_enough
    }

    /// The receiver has the source slices in `map` of a chunk of which it had acknowledged enough. Returns
    /// whether the chunk is started over.
    pub(super) fn on_lacking(
        &mut self,
        now: Instant,
        at: ChunkAt,
        map: &[u8],
        patience: Duration,
    ) -> bool {
        let restarts = self.get_mut(at).is_some_and(|chunk| chunk.on_lacking(now, map, patience));
        if restarts
            && let Some(key) = self.block(at.block).map(SendBlock::class)
            && let Some(class) = self.class_mut(key)
        {
            class.add(at);
        }
        restarts
    }

    fn deactivate(&mut self, at: ChunkAt) {
        if let Some(key) = self.block(at.block).map(SendBlock::class)
            && let Some(class) = self.class_mut(key)
        {
            class.remove(at);
        }
    }

    /// The receiver has this chunk. Returns whether that is news.
    pub(super) fn on_done(&mut self, at: ChunkAt) -> bool {
        let Some(block) = self.block_mut(at.block) else { return false };
        let (key, open) = (block.class(), block.open_chunks());
        let is_news = block.on_done(at.index);
        let closed = open - block.open_chunks();
        let bytes = block.chunk_bytes(at.index) as u64;
        if let Some(class) = self.class_mut(key).filter(|_| closed > 0) {
            class.open -= closed;
            class.open_bytes -= bytes;
            class.remove(at);
        }
        is_news
    }

    /// The receiver had this chunk before. Returns whether it was opened.
    pub(super) fn on_here(&mut self, at: ChunkAt) -> bool {
        self.block_mut(at.block).is_some_and(|block| block.on_here(at.index))
    }

    /// Cuts the open chunks anew that are cut into slices which the path does not carry any more. Those of
    /// which the receiver has enough are left, unless they are probed.
    pub(super) fn cut_anew(&mut self, next_number: u64) {
        let Self { blocks, classes, cutting, .. } = self;
        for block in blocks.iter_mut() {
            let ats: Vec<_> = classes
                .iter()
                .flat_map(|class| class.active.iter().filter(|at| at.block == block.number()))
                .copied()
                .collect();
            for at in ats {
                let bytes = block.chunk_bytes(at.index);
                let Some(chunk) = block.get_mut(at.index) else { continue };
                cut_smaller(chunk, cutting.cut(at, bytes), next_number);
            }
        }
        self.classes.search_anew();
    }

    /// What was in flight is given up.
    pub(super) fn on_given_up(&mut self) {
        let Self { blocks, classes, .. } = self;
        for at in classes.iter().flat_map(|class| &class.active) {
            if let Ok(place) = blocks.binary_search_by_key(&at.block, SendBlock::number)
                && let Some(chunk) = blocks.get_mut(place).and_then(|it| it.get_mut(at.index))
            {
                chunk.on_given_up();
            }
        }
        self.classes.search_anew();
    }

    /// The estimates have changed: searches for what is short of a margin begin with the first chunk.
    pub(super) fn rescan_margins(&mut self) {
        self.classes.rescan_margins();
    }

    /// Memory held besides the bytes of the blocks, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(SendBlock::memory_bytes).sum();
        blocks + self.blocks.capacity() * size_of::<SendBlock>() + self.classes.memory_bytes()
    }

    pub(super) fn check_invariants(&self) {
        self.blocks.iter().for_each(SendBlock::check_invariants);
        assert_eq!(self.total, self.blocks.iter().map(SendBlock::length).sum::<u64>(), "all bytes");
        let numbers = || self.blocks.iter().map(SendBlock::number);
        assert!(numbers().zip(numbers().skip(1)).all(|(a, b)| a < b), "not in order");
        self.classes.check_invariants();
        for class in self.classes.iter() {
            let mut blocks = self.blocks.iter().filter(|block| block.class() == class.key);
            let open: Vec<_> = blocks.by_ref().flat_map(SendBlock::iter_open).collect();
            assert_eq!(open.len(), class.open, "open chunks");
            let bytes: usize = open.iter().map(|chunk| chunk.cut().chunk_bytes()).sum();
            assert_eq!(bytes as u64, class.open_bytes, "their bytes");
            let active = open.iter().filter(|chunk| !chunk.has_enough()).map(|chunk| chunk.at);
            assert!(active.eq(class.active.iter().copied()), "active chunks");
            let searched = class.active.iter().take(class.searched.unsent);
            let mut searched = searched.filter_map(|at| self.get(*at));
            assert!(searched.all(OpenChunk::is_sent), "an unsent slice is passed over");
            let mut others = class.active.iter().filter(|at| !class.lacking.contains(at));
            let lacks = |at: &ChunkAt| {
                self.get(*at).is_some_and(|chunk| chunk.is_sent() && chunk.lacks_slices())
            };
            assert!(!others.any(lacks), "a chunk that lacks slices is passed over");
        }
        self.credit.check_invariants();
    }
}

/// Bytes of the open chunks of a block.
pub(super) fn open_bytes(block: &SendBlock) -> u64 {
    block.iter_open().map(|chunk| chunk.cut().chunk_bytes() as u64).sum()
}

/// Cuts a chunk anew, if this cut is smaller. Returns whether it is.
pub(super) fn cut_smaller(chunk: &mut OpenChunk, cut: Option<Cut>, next_number: u64) -> bool {
    let smaller = cut.filter(|cut| cut.size() < chunk.cut().size());
    // A chunk of one slice that is no larger than before can stay as it is.
    let smaller = smaller.filter(|cut| cut.size().bytes() < chunk.cut().chunk_bytes());
    smaller.map(|cut| chunk.cut_anew(cut, next_number)).is_some()
}
