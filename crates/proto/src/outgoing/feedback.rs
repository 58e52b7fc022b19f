//! The peer's reports about blocks: their progress, blocks that it has already, and blocks that it declines.
//!
//! The peer cannot take a report back. A frame that names what was never announced, or that contradicts an
//! earlier one, ends the connection with `protocol` [H-4.2g].

use alloc::collections::VecDeque;

use super::announced::Announced;
use super::blocks::{OutgoingBlocks, OutgoingEvent};
use super::path::BlocksPath;
use crate::Instant;
use crate::bulk::Sender;
use crate::bulk::tree::Value;
use crate::transit::ChunkAt;
use crate::wire::frames::{ChunksHereFrame, ProgressEntry, ProgressFrame, SlicesHereFrame};

/// Roots that are remembered [H-4.2k].
const MAX_ROOTS: usize = 64;

/// The longest lateness that is believed: a program that reads once in a second.
const MAX_LATENESS_MS: u16 = 1_000;

/// The peer contradicts itself, or names what there is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;

/// What the peer has said of all blocks.
#[derive(Debug)]
pub(super) struct Feedback {
    /// The number of the datagram with the newest progress frame, and the floor in it.
    newest: Option<u64>,
    floor: u32,
    /// Roots of blocks that the peer has, the newest last.
    roots: VecDeque<Value>,
}

impl Feedback {
    pub(super) const fn new() -> Self {
        Self { newest: None, floor: 0, roots: VecDeque::new() }
    }

    /// A progress frame arrived in this datagram. Returns whether it is newer than all before.
    fn is_news(&mut self, number: u64) -> bool {
        let before = self.newest;
        self.newest = before.max(Some(number));
        self.newest > before
    }

    /// All blocks below the floor are finished. Those below `next` were announced.
    fn on_floor(&mut self, floor: u32, next: u32) -> Result<(), Contradiction> {
        if floor < self.floor || floor > next {
            return Err(Contradiction);
        }
        self.floor = floor;
        Ok(())
    }

    /// The peer has the block with this root, whether it is sent now, later or never.
    fn on_root(&mut self, root: Value) {
        if self.has_root(&root) {
            return;
        }
        if self.roots.len() >= MAX_ROOTS {
            self.roots.pop_front();
        }
        self.roots.push_back(root);
    }

    /// Whether it has said that it has this block.
    pub(super) fn has_root(&self, root: &Value) -> bool {
        self.roots.contains(root)
    }

    /// Memory held, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.roots.capacity() * size_of::<Value>()
    }

    pub(super) fn check_invariants(&self, next: u32) {
        assert!(self.floor <= next && self.roots.len() <= MAX_ROOTS);
    }
}

impl OutgoingBlocks {
    /// A progress frame arrived in datagram `number`. An older one than the newest is ignored.
    pub(crate) fn on_progress(
        &mut self,
        now: Instant,
        number: u64,
        frame: &ProgressFrame<'_>,
    ) -> Result<(), Contradiction> {
        if !self.feedback.is_news(number) {
            return Ok(());
        }
        if frame.credit < self.transfer.credit().given() {
            return Err(Contradiction);
        }
        self.feedback.on_floor(frame.floor, self.announced.next_number())?;
        self.transfer.on_credit(now, frame.credit);
        let lateness_ms = u16::try_from(frame.lateness_ms).unwrap_or(u16::MAX);
        self.transfer.set_lateness_ms(lateness_ms.min(MAX_LATENESS_MS));
        self.announced.on_floor(frame.floor);
        frame.entries().try_for_each(|entry| self.on_entry(now, &entry))?;
        self.poll(now);
        Ok(())
    }

    fn on_entry(&mut self, now: Instant, entry: &ProgressEntry<'_>) -> Result<(), Contradiction> {
        if entry.block >= self.announced.next_number() {
            return Err(Contradiction);
        }
        let Some(block) = self.announced.get_mut(entry.block) else { return Ok(()) };
        let chunks = block.chunks();
        if entry.first > chunks || entry.first < block.first {
            return Err(Contradiction);
        }
        let before = core::mem::replace(&mut block.first, entry.first);
        block.is_finished |= entry.first == chunks;
        if block.is_finished {
            return Ok(());
        }
        if let Some(sender) = self.transfer.sender_mut() {
            let done = before..entry.first;
            done.for_each(|index| sender.on_done(now, ChunkAt { block: entry.block, index }));
        }
        let first = entry.first.saturating_add(1);
        self.on_map(now, entry.block, (first, chunks), entry.map, Sender::on_done)
    }

    /// The chunks with a bit in `map`, which begins with chunk `first` of a block of `chunks`, are done. Each
    /// frame repeats what those before it said, so only what is news is passed on.
    fn on_map(
        &mut self,
        now: Instant,
        block: u32,
        (first, chunks): (u32, u32),
        map: &[u8],
        pass: fn(&mut Sender, Instant, ChunkAt),
    ) -> Result<(), Contradiction> {
        let starts = (0_u32..).step_by(8).map(|at| first.saturating_add(at));
        let bytes = starts.zip(map.iter().copied()).filter(|&(_, byte)| byte != 0);
        let Some((from, byte)) = bytes.clone().last() else { return Ok(()) };
        if from.saturating_add(byte.ilog2()) >= chunks {
            return Err(Contradiction);
        }
        let Some(sender) = self.transfer.sender_mut() else { return Ok(()) };
        sender.on_told(now);
        for (from, byte) in bytes {
            let Some(known) = sender.block(block).map(|block| block.done_from(from)) else { break };
            let news = byte & !known;
            for bit in (0..8).filter(|bit| news >> bit & 1 != 0) {
                pass(sender, now, ChunkAt { block, index: from.saturating_add(bit) });
            }
        }
        Ok(())
    }

    /// The peer repeated which slices of a chunk it has.
    pub(crate) fn on_slices_here(
        &mut self,
        path: &mut BlocksPath,
        now: Instant,
        frame: &SlicesHereFrame<'_>,
    ) -> Result<(), Contradiction> {
        self.check(frame.at.block, Some(frame.at.index))?;
        if let Some((sender, path)) = self.transfer.sender_on(path) {
            sender.on_slices_here(path, now, frame.at, frame.size, frame.map);
        }
        Ok(())
    }

    /// The peer has chunks of a block already.
    pub(crate) fn on_chunks_here(
        &mut self,
        now: Instant,
        frame: &ChunksHereFrame<'_>,
    ) -> Result<(), Contradiction> {
        self.check(frame.block, None)?;
        let Some(block) = self.announced.get(frame.block) else { return Ok(()) };
        let chunks = block.chunks();
        self.on_map(now, frame.block, (frame.first, chunks), frame.map, Sender::on_here)?;
        self.poll(now);
        Ok(())
    }

    /// Checks that a block was announced, and has this chunk if it is not finished.
    fn check(&self, number: u32, chunk: Option<u32>) -> Result<(), Contradiction> {
        let chunks = self.announced.get(number).map_or(u32::MAX, Announced::chunks);
        let is_known =
            number < self.announced.next_number() && chunk.is_none_or(|chunk| chunk < chunks);
        if is_known { Ok(()) } else { Err(Contradiction) }
    }

    /// The peer has the block with this root, whether it is sent now, later or never.
    pub(crate) fn on_root_here(&mut self, now: Instant, root: Value) {
        self.feedback.on_root(root);
        for block in self.announced.iter_mut().filter(|block| *block.block.digest() == root) {
            block.is_here = true;
            self.transfer.remove(block.number);
        }
        self.poll(now);
    }

    /// The peer does not want a block.
    pub(crate) fn on_decline(
        &mut self,
        now: Instant,
        number: u32,
        code: u32,
    ) -> Result<(), Contradiction> {
        self.check(number, None)?;
        if let Some(Announced { handle, .. }) = self.give_up(number, code) {
            self.events.push_back(OutgoingEvent::Declined { handle, code });
        }
        self.poll(now);
        Ok(())
    }
}
