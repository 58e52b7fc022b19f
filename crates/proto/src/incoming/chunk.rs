//! One open chunk: its slices, then the whole chunk until its value is known.
//!
//! The invariant: a chunk leaves here only with the value that its block's tree has for it. Its bytes are
//! hashed once, when it becomes whole; what comes later compares 32 bytes.

use alloc::vec::Vec;

use bytes::Bytes;

use super::assembly::Assembly;
use super::{Fate, Fault, Work};
use crate::block_map::{ChunkMap, SliceState};
use crate::bulk::cut::Cut;
use crate::bulk::repair::repair_count;
use crate::bulk::tree::Value;
use crate::chunk::MAX_SLICES;
use crate::wire::frames::{SliceFrame, SliceKind};

/// Wrong chunks with repair slices after which only source slices are used (H-4.2i).
const MAX_WRONG_REPAIRS: u8 = 2;

enum State {
    Partial(Assembly),
    /// Whole, with its value; it waits for its page.
    Whole {
        cut: Cut,
        bytes: Vec<u8>,
        value: Value,
        has_repairs: bool,
    },
}

/// What has arrived of chunks, and what they hold besides themselves, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) received_bytes: usize,
    pub(super) memory_bytes: usize,
}

impl Held {
    /// One of the chunks that make this sum has changed.
    pub(super) const fn replace(&mut self, before: Self, after: Self) {
        self.received_bytes = self.received_bytes + after.received_bytes - before.received_bytes;
        self.memory_bytes = self.memory_bytes + after.memory_bytes - before.memory_bytes;
    }
}

/// A chunk of which a slice arrived.
pub(super) struct OpenChunk {
    state: State,
    /// How often it was wrong with a repair slice in it.
    wrong: u8,
    /// A slices here frame is scheduled.
    pub(super) is_scheduled: bool,
}

crate::debug_as! { OpenChunk: |chunk| bytes = chunk.received_bytes(), wrong = chunk.wrong }

impl OpenChunk {
    /// One that is put together in `memory`, which is empty.
    pub(super) const fn new(cut: Cut, memory: Vec<u8>) -> Self {
        Self { state: State::Partial(Assembly::within(cut, memory)), wrong: 0, is_scheduled: false }
    }

    /// Takes a slice that agrees with its block's announcement, of a chunk that is cut this way. `hash`
    /// computes the chunk's value.
    pub(super) fn on_slice(
        &mut self,
        cut: Cut,
        slice: &SliceFrame<'_>,
        hash: impl FnOnce(&[u8]) -> Value,
        work: &mut Work,
    ) -> Fate {
        let State::Partial(assembly) = &mut self.state else { return Fate::Dropped };
        if cut.size() < assembly.cut().size() {
            *assembly = Assembly::new(cut);
        } else if cut.size() > assembly.cut().size() {
            return Fate::Dropped;
        }
        let is_new = match slice.kind {
            SliceKind::Repair if self.wrong >= MAX_WRONG_REPAIRS => false,
            SliceKind::Repair => assembly.insert_repair(slice.index, slice.data),
            _ => assembly.insert_source(slice.index, slice.data),
        };
        if !is_new {
            return Fate::Dropped;
        }
        if assembly.is_enough() {
            self.complete(hash, work);
        }
        Fate::New
    }

    /// Enough slices are here.
    fn complete(&mut self, hash: impl FnOnce(&[u8]) -> Value, work: &mut Work) {
        let State::Partial(assembly) = &mut self.state else { return };
        let (cut, has_repairs) = (assembly.cut(), assembly.has_repairs());
        if has_repairs {
            work.decodes += 1;
            work.decoded_bytes += (repair_count(cut) * cut.size().bytes()) as u64;
        }
        match core::mem::replace(assembly, Assembly::new(cut)).finish() {
            Some(bytes) => {
                work.hashed_bytes += bytes.len() as u64;
                let value = hash(&bytes);
                self.state = State::Whole { cut, bytes, value, has_repairs };
            }
            None => self.wrong += 1,
        }
    }

    /// The chunk's value is known: the chunk, if it is whole and right. If it is wrong and a repair slice was
    /// in it, it starts over.
    pub(super) fn verify(&mut self, expected: &Value) -> Result<Option<Bytes>, Fault> {
        let State::Whole { cut, bytes, value, has_repairs } = &mut self.state else {
            return Ok(None);
        };
        if value == expected {
            return Ok(Some(core::mem::take(bytes).into()));
        }
        if !*has_repairs {
            return Err(Fault::Damaged);
        }
        self.wrong += 1;
        self.state = State::Partial(Assembly::new(*cut));
        Ok(None)
    }

    /// Whether it is whole, and waits for its page.
    pub(super) const fn is_whole(&self) -> bool {
        matches!(self.state, State::Whole { .. })
    }

    /// Whether it was started over: its sender has to learn that from slices here frames alone, because
    /// what it sent before was acknowledged.
    pub(super) const fn was_wrong(&self) -> bool {
        self.wrong > 0
    }

    /// Its slices, while it is not whole.
    pub(super) const fn partial(&self) -> Option<&Assembly> {
        match &self.state {
            State::Partial(assembly) => Some(assembly),
            State::Whole { .. } => None,
        }
    }

    /// What is known of each of its slices: one before the last that arrived, and not here, is missing.
    pub(super) fn map(&self, index: u32) -> ChunkMap {
        let assembly = match &self.state {
            State::Partial(assembly) => assembly,
            State::Whole { cut, .. } => {
                let mut map = ChunkMap::new(index, cut.count());
                (0..cut.count()).for_each(|slice| map.mark(slice, SliceState::Arrived));
                return map;
            }
        };
        let mut map = ChunkMap::new(index, assembly.cut().count());
        let sources = assembly.sources();
        let end = (0..MAX_SLICES).rev().find(|&slice| sources.contains(slice));
        for slice in 0..end.map_or(0, |last| last + 1) {
            let is_here = sources.contains(slice);
            map.mark(slice, if is_here { SliceState::Arrived } else { SliceState::Missing });
        }
        map.repairs_arrived = u16::try_from(assembly.repairs().len()).unwrap_or(u16::MAX);
        map
    }

    pub(super) fn held(&self) -> Held {
        Held { received_bytes: self.received_bytes(), memory_bytes: self.memory_bytes() }
    }

    /// Bytes of the chunk that have arrived.
    fn received_bytes(&self) -> usize {
        match &self.state {
            State::Partial(assembly) => assembly.received_bytes(),
            State::Whole { bytes, .. } => bytes.len(),
        }
    }

    /// Memory held, in bytes, besides itself.
    const fn memory_bytes(&self) -> usize {
        match &self.state {
            State::Partial(assembly) => assembly.memory_bytes(),
            State::Whole { bytes, .. } => bytes.capacity(),
        }
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.wrong <= MAX_WRONG_REPAIRS);
        if let Some(assembly) = self.partial() {
            assembly.check_invariants();
            assert!(!assembly.is_enough(), "the chunk is whole");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cut_of, pattern, slice_of};
    use super::*;
    use crate::bulk::repair::encode;

    struct Sender {
        bytes: Vec<u8>,
        cut: Cut,
        repairs: Vec<u8>,
    }

    impl Sender {
        fn new(size: usize) -> Self {
            let (bytes, cut) = (pattern(5000), cut_of(5000, size));
            let repairs = encode(&bytes, cut).iter().map(|byte| byte ^ 1).collect();
            Self { bytes, cut, repairs }
        }

        fn source(&self, chunk: &mut OpenChunk, index: u8, work: &mut Work) -> Fate {
            let fate =
                chunk.on_slice(self.cut, &slice_of(&self.bytes, self.cut, index), value, work);
            chunk.check_invariants();
            fate
        }

        fn forged(&self, chunk: &mut OpenChunk, index: u8, work: &mut Work) -> Fate {
            let size = self.cut.size().bytes();
            let data = &self.repairs[usize::from(index) * size..][..size];
            let slice = slice_of(&self.bytes, self.cut, 0);
            let slice = SliceFrame { kind: SliceKind::Repair, index, data, ..slice };
            chunk.on_slice(self.cut, &slice, value, work)
        }
    }

    fn value(bytes: &[u8]) -> Value {
        *blake3::hash(bytes).as_bytes()
    }

    /// Twice a forged repair slice costs the whole chunk; then none is taken, and it is decoded no more.
    #[test]
    fn a_wrong_chunk_starts_over_and_at_last_from_source_slices_alone() {
        let sender = Sender::new(1024);
        let (mut chunk, mut work) = (OpenChunk::new(sender.cut, Vec::new()), Work::default());
        let right = value(&sender.bytes);
        for turn in 0..3 {
            let is_taken = sender.forged(&mut chunk, 3, &mut work) == Fate::New;
            assert_eq!(is_taken, turn < 2);
            (0..4).for_each(|index| {
                assert_eq!(sender.source(&mut chunk, index, &mut work), Fate::New);
            });
            assert_eq!(chunk.is_whole(), turn < 2);
            assert_eq!(chunk.verify(&right), Ok(None));
        }
        assert_eq!(sender.source(&mut chunk, 4, &mut work), Fate::New);
        assert!(chunk.verify(&right).unwrap().unwrap() == sender.bytes);
        assert_eq!((work.decodes, work.hashed_bytes), (2, 15_000));
    }

    #[test]
    fn a_wrong_chunk_of_source_slices_is_damaged() {
        let sender = Sender::new(1024);
        let mut chunk = OpenChunk::new(sender.cut, Vec::new());
        (0..5).for_each(|index| {
            sender.source(&mut chunk, index, &mut Work::default());
        });
        assert_eq!(chunk.verify(&[0; 32]), Err(Fault::Damaged));
    }

    #[test]
    fn smaller_slices_start_a_chunk_over_and_larger_ones_are_dropped() {
        let (large, small) = (Sender::new(2000), Sender::new(600));
        let (mut chunk, mut work) = (OpenChunk::new(large.cut, Vec::new()), Work::default());
        assert_eq!(large.source(&mut chunk, 1, &mut work), Fate::New);
        assert_eq!(small.source(&mut chunk, 0, &mut work), Fate::New);
        assert_eq!(chunk.received_bytes(), 600);
        assert_eq!(large.source(&mut chunk, 0, &mut work), Fate::Dropped);
        (1..9).for_each(|index| assert_eq!(small.source(&mut chunk, index, &mut work), Fate::New));
        assert!(chunk.is_whole());
        assert_eq!(Sender::new(500).source(&mut chunk, 0, &mut work), Fate::Dropped, "it is whole");
        assert!(chunk.verify(&value(&small.bytes)).unwrap().is_some());
    }
}
