//! Blocks with the highest cost for their bytes: whole after two slices, and a decoding.
//!
//! The invariant: they are valid, so that nothing closes the connection that they come over.

use haulier_proto::connection::Block;
use haulier_proto::internals::frames::{
    BlockFrame, ChunkAt, Cut, SliceFrame, SliceKind, SliceSize,
};
use haulier_proto::internals::{Frame, encode_repair};

use crate::Rng;

/// A block that is whole after two slices and a decoding.
pub(super) struct Bomb {
    length: u64,
    size: SliceSize,
    last: Vec<u8>,
    repair: Vec<u8>,
    root: [u8; 32],
}

impl Bomb {
    /// With slices of this many bytes, of which the last has one.
    pub(super) fn new(rng: &mut Rng, size: usize) -> Self {
        let bytes = rng.bytes(size + 1);
        let size = SliceSize::new(size).expect("an even size");
        let cut = Cut::new(bytes.len(), size).expect("two slices");
        let repair = encode_repair(&bytes, cut)[..size.bytes()].to_vec();
        let root = *Block::new(0, bytes.clone()).digest();
        let last = bytes[size.bytes()..].to_vec();
        Self { length: bytes.len() as u64, size, last, repair, root }
    }

    /// Its announcement.
    pub(super) fn block(&self, number: u32) -> Frame<'_> {
        let (length, root) = (self.length, self.root);
        Frame::Block(BlockFrame { number, tag: 0, length, root })
    }

    /// Its two slices.
    pub(super) fn slices(&self, block: u32) -> [Frame<'_>; 2] {
        let (at, kind) = (ChunkAt { block, index: 0 }, SliceKind::Last(self.size));
        let last = SliceFrame { at, kind, index: 1, data: &self.last };
        let repair = SliceFrame { at, kind: SliceKind::Repair, index: 0, data: &self.repair };
        [Frame::Slice(last), Frame::Slice(repair)]
    }
}
