//! The receiving end as a whole, against the rules of section 4.2.

use alloc::vec::Vec;

use crate::bulk::cut::{ChunkAt, Cut, SliceSize};
use crate::wire::frames::{SliceFrame, SliceKind};

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
