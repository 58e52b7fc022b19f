//! What the peer says of blocks: how far they are, what it has already, and what it does not want.
//!
//! What it says once it cannot take back. A frame that names what was never announced, or that contradicts
//! an earlier one, ends the connection with `protocol` [H-4.2g].

use super::blocks::{OutgoingBlocks, OutgoingEvent};
use super::path::BlocksPath;
use crate::Instant;
use crate::bulk::Sender;
use crate::bulk::cut::chunk_count;
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

impl OutgoingBlocks {
    /// A progress frame arrived in datagram `number`. An older one than the newest is ignored.
    pub(crate) fn on_progress(
        &mut self,
        now: Instant,
        number: u64,
        frame: &ProgressFrame<'_>,
    ) -> Result<(), Contradiction> {
        if self.progressed.is_some_and(|newest| number <= newest) {
            return Ok(());
        }
        self.progressed = Some(number);
        let given = self.transfer.credit().given();
        let is_lower = frame.credit < given || frame.floor < self.floor;
        if is_lower || frame.floor > self.next_number {
            return Err(Contradiction);
        }
        self.transfer.on_credit(now, frame.credit);
        let lateness_ms = u16::try_from(frame.lateness_ms).unwrap_or(u16::MAX);
        self.transfer.set_lateness_ms(lateness_ms.min(MAX_LATENESS_MS));
        self.floor = frame.floor;
        let below = self.announced.iter_mut().take_while(|block| block.number < frame.floor);
        below.for_each(|block| block.is_finished = true);
        self.cancelled.retain(|cancelled| cancelled.number >= frame.floor);
        frame.entries().try_for_each(|entry| self.on_entry(now, &entry))?;
        self.poll(now);
        Ok(())
    }

    fn on_entry(&mut self, now: Instant, entry: &ProgressEntry<'_>) -> Result<(), Contradiction> {
        if entry.block >= self.next_number {
            return Err(Contradiction);
        }
        let Some(block) = self.place(entry.block).and_then(|place| self.announced.get_mut(place))
        else {
            return Ok(());
        };
        let chunks = chunk_count(block.block.length()).unwrap_or(0);
        if entry.first > chunks || entry.first < block.first {
            return Err(Contradiction);
        }
        let before = core::mem::replace(&mut block.first, entry.first);
        block.is_finished |= entry.first == chunks;
        if block.is_finished {
            return Ok(());
        }
        (before..entry.first).for_each(|index| self.on_done(now, entry.block, index));
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

    fn on_done(&mut self, now: Instant, block: u32, index: u32) {
        if let Some(sender) = self.transfer.sender_mut() {
            sender.on_done(now, ChunkAt { block, index });
        }
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
        let Some(block) = self.place(frame.block).and_then(|place| self.announced.get(place))
        else {
            return Ok(());
        };
        let chunks = chunk_count(block.block.length()).unwrap_or(0);
        self.on_map(now, frame.block, (frame.first, chunks), frame.map, Sender::on_here)?;
        self.poll(now);
        Ok(())
    }

    /// Checks that a block was announced, and has this chunk if it is not finished.
    fn check(&self, number: u32, chunk: Option<u32>) -> Result<(), Contradiction> {
        let block = self.place(number).and_then(|place| self.announced.get(place));
        let chunks = block.map_or(u32::MAX, |block| chunk_count(block.block.length()).unwrap_or(0));
        let is_known = number < self.next_number && chunk.is_none_or(|chunk| chunk < chunks);
        if is_known { Ok(()) } else { Err(Contradiction) }
    }

    /// The peer has the block with this root, whether it is sent now, later or never.
    pub(crate) fn on_root_here(&mut self, now: Instant, root: Value) {
        if !self.roots.contains(&root) {
            if self.roots.len() >= MAX_ROOTS {
                self.roots.pop_front();
            }
            self.roots.push_back(root);
        }
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
        if let Some(place) = self.place(number)
            && let Some(handle) = self.announced.get(place).map(|block| block.handle)
        {
            self.give_up(place, code);
            self.events.push_back(OutgoingEvent::Declined { handle, code });
        }
        self.poll(now);
        Ok(())
    }
}
