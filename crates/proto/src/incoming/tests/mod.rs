//! The receiving end as a whole, against the rules of section 4.2.

mod held_back;
mod hostile;
mod memory;
mod random;
mod reports;
mod rules;

use alloc::vec::Vec;
use core::time::Duration;

use super::*;
use core::cell::OnceCell;

use crate::bulk::cut::{ChunkAt, Cut, SliceSize, chunk_bytes};
use crate::bulk::repair::Encoded;
use crate::bulk::tree::Tree;
use crate::wire::frames::{
    BlockFrame, ChunksHereFrame, Frame, HashesFrame, ProgressFrame, SliceFrame, SliceKind,
};

pub(super) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

pub(super) fn cut_of(bytes: usize, size: usize) -> Cut {
    Cut::new(bytes, SliceSize::new(size).unwrap()).unwrap()
}

/// A source slice of chunk 0 of block 0.
pub(super) fn slice_of(chunk: &[u8], cut: Cut, index: u8) -> SliceFrame<'_> {
    let kind = if cut.is_last(index) { SliceKind::Last(cut.size()) } else { SliceKind::Source };
    let data = &chunk[cut.range(index).unwrap()];
    SliceFrame { at: ChunkAt { block: 0, index: 0 }, kind, index, data }
}

const CHUNK: usize = crate::chunk::MAX_CHUNK_BYTES;

const NOW: Instant = Instant::from_millis(100);

fn config() -> IncomingConfig {
    IncomingConfig {
        max_block_bytes: 8 << 20,
        max_unread_bytes: 8 << 20,
        initial_credit: 32,
        max_window: 1024,
        no_progress_timeout: Duration::from_secs(15),
        // These peers say nothing but what a test is about: silence counts.
        idle_timeout: Duration::ZERO,
        min_block_rate_bps: 16_000,
        delivery: Delivery::Blocks,
    }
}

fn receiver() -> IncomingBlocks {
    IncomingBlocks::new(NOW, config())
}

/// A block as its sender has it.
struct Sent {
    number: u32,
    bytes: Vec<u8>,
    tree: Tree,
    /// Of each chunk, in the sizes that a test asks for.
    repair: Vec<[OnceCell<Encoded>; 6]>,
}

impl Sent {
    fn new(number: u32, bytes: usize) -> Self {
        let mut bytes = pattern(bytes);
        bytes.iter_mut().take(1).for_each(|first| *first = number as u8);
        let tree = Tree::of(&bytes);
        let repair = (0..bytes.len().div_ceil(CHUNK)).map(|_| Default::default()).collect();
        Self { number, bytes, tree, repair }
    }

    fn frame(&self) -> BlockFrame {
        let length = self.bytes.len() as u64;
        BlockFrame { number: self.number, tag: 7, length, root: *self.tree.root() }
    }

    fn chunks(&self) -> u32 {
        self.bytes.len().div_ceil(CHUNK) as u32
    }

    fn chunk(&self, index: u32) -> &[u8] {
        &self.bytes[index as usize * CHUNK..]
            [..chunk_bytes(self.bytes.len() as u64, index).unwrap()]
    }

    fn cut(&self, index: u32, size: usize) -> Cut {
        cut_of(self.chunk(index).len(), size)
    }

    fn source(&self, index: u32, size: usize, slice: usize) -> SliceFrame<'_> {
        let at = ChunkAt { block: self.number, index };
        SliceFrame { at, ..slice_of(self.chunk(index), self.cut(index, size), slice as u8) }
    }

    fn repair(&self, index: u32, size: usize, slice: usize) -> SliceFrame<'_> {
        let (chunk, cut) = (self.chunk(index), self.cut(index, size));
        let sizes = self.repair[index as usize].iter();
        let mut sizes = sizes.map(|encoded| encoded.get_or_init(|| Encoded::of(chunk, cut)));
        let data = sizes.find_map(|encoded| encoded.slice(cut, slice as u8)).unwrap();
        let at = ChunkAt { block: self.number, index };
        SliceFrame { at, kind: SliceKind::Repair, index: slice as u8, data }
    }

    fn page(&self, level: u8, first: u32) -> HashesFrame<'_> {
        HashesFrame { block: self.number, level, first, values: self.tree.page(level, first) }
    }

    fn announce(&self, to: &mut IncomingBlocks) {
        to.on_block(NOW, &self.frame()).unwrap();
        let pages = (0..self.chunks()).flat_map(|index| self.tree.pages_of(index));
        for (level, first) in pages.collect::<Vec<_>>() {
            to.on_hashes(NOW, &self.page(level, first)).unwrap();
        }
    }

    /// All source slices of a chunk.
    fn send_chunk(&self, to: &mut IncomingBlocks, index: u32, size: usize) {
        for slice in 0..self.cut(index, size).count() {
            assert_eq!(to.on_slice(NOW, &self.source(index, size, slice)), Ok(Fate::New));
            to.check_invariants();
        }
    }

    fn send(&self, to: &mut IncomingBlocks) {
        self.announce(to);
        (0..self.chunks()).for_each(|index| self.send_chunk(to, index, 1434));
    }

    fn is_in(&self, event: Option<IncomingEvent>) -> bool {
        matches!(event, Some(IncomingEvent::Block { block, data, .. })
            if block == self.number && data == self.bytes)
    }
}

/// The next block that the application gets, past other events.
fn next_block(from: &mut IncomingBlocks) -> Option<IncomingEvent> {
    let mut events = core::iter::from_fn(|| from.poll_event(NOW));
    events.find(|event| matches!(event, IncomingEvent::Block { .. }))
}

/// The entry of a block: its number, the first chunk that is not done, and the map.
type Entry = (u32, u32, Vec<u8>);

/// The contents of a progress frame: credit, floor, and each block.
type Said = (u64, u32, Vec<Entry>);

/// The progress frame that is due.
fn said(by: &IncomingBlocks) -> Said {
    let mut entries = Vec::new();
    let frame: ProgressFrame<'_> = by.progress_frame(Duration::ZERO, 1000, &mut entries).unwrap();
    let entries = frame.entries().map(|entry| (entry.block, entry.first, entry.map.to_vec()));
    (frame.credit, frame.floor, entries.collect())
}
