//! The receiving end of blocks: several at a time, each chunk reconstructed from any of its slices, verified
//! when it is whole, and delivered in any order (STANDARD-1, 4.2).
//!
//! `slots` has the blocks that are announced and not finished; a `block` has its `done_map`, its tree's
//! `pages`, and its open chunks (`chunk`, `assembly`). Slices that come before their announcement wait in
//! `staging`. `credit` says how much the sender may open, as far as it fits the memory; `progress` reports
//! that to the sender; `here` has the chunks that need not be sent; `delivery` has the chunks and blocks that
//! the application has not taken, and `application` its calls; `deadlines` end a connection whose sender is
//! gone or too slow.
//!
//! The invariants: memory is at most the budget and what 64 blocks need to be kept apart; a datagram costs
//! at most one chunk to decode and hash, and only of a block that was announced and admitted; and what is
//! delivered has the announced root.

mod application;
mod assembly;
mod block;
mod chunk;
mod config;
mod credit;
mod deadlines;
mod delivery;
mod done_map;
mod here;
mod pace;
mod pages;
mod progress;
mod reports;
mod slots;
mod spare;
mod staging;
#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of a test, and bytes of a pattern"
)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use bytes::Bytes;

pub(crate) use crate::transit::Control;
pub(crate) use config::IncomingConfig;
pub use delivery::Delivery;
pub(crate) use delivery::IncomingEvent;
pub(crate) use here::Here;
pub(crate) use progress::ProgressDue;
pub(crate) use slots::MAX_BLOCKS;

use crate::Instant;
use crate::bulk::cut::ChunkAt;
use crate::wire::frames::{BlockFrame, HashesFrame, SliceFrame};
use block::{Block, Verified};
use credit::{Credit, Raised};
use deadlines::Patience;
use delivery::{ReadyQueue, part_cost};
use here::Roots;
use progress::Unheard;
use slots::{Slot, Slots, Standing};
use staging::Staging;

/// What a frame did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was new: progress.
    New,
    /// It changed nothing: it came twice, late, or for nothing.
    Dropped,
    /// There is no room for it now: its datagram must not be acknowledged (H-4.2e, H-4.2j).
    NotKept,
}

/// Why the connection has to close. Each is a close code of STANDARD-1, 5.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The peer violated a rule.
    Protocol,
    /// A block makes no progress, or too little.
    NoProgress,
    /// A block is larger than this end accepts.
    TooLarge,
    /// A chunk or a page is not that of the announced block.
    Damaged,
    /// The blocks that were begun together do not fit the memory, and none of them can be finished.
    Resources,
    /// The peer sent more than it had credit for.
    Credit,
}

/// What was computed for the peer, for tests that bound it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Chunks decoded.
    pub(crate) decodes: u64,
    /// Their bytes.
    pub(crate) decoded_bytes: u64,
    /// Bytes hashed: of chunks, and of pages.
    pub(crate) hashed_bytes: u64,
}

/// The receiving end of the blocks of one direction.
#[derive(Debug)]
pub(crate) struct IncomingBlocks {
    config: IncomingConfig,
    slots: Slots,
    staging: Staging,
    credit: Credit,
    unheard: Unheard,
    roots: Roots,
    ready: ReadyQueue,
    /// What verified chunks cost that wait for the rest of their block.
    parts_cost: u64,
    /// Frames that have to arrive, and are due.
    controls: VecDeque<Control>,
    /// Chunks in progress, and when their next slices here frame is due: in this order.
    reports: VecDeque<(Instant, ChunkAt)>,
    patience: Patience,
    work: Work,
}

impl IncomingBlocks {
    pub(crate) fn new(now: Instant, config: IncomingConfig) -> Self {
        let first = config.first_credit();
        Self {
            config,
            slots: Slots::new(),
            staging: Staging::new(),
            credit: Credit::new(first, u64::from(config.max_window).max(first)),
            unheard: Unheard::new(),
            roots: Roots::new(),
            ready: ReadyQueue::new(),
            parts_cost: 0,
            controls: VecDeque::new(),
            reports: VecDeque::new(),
            patience: Patience::new(now, config.idle_timeout),
            work: Work::default(),
        }
    }

    /// The connection measured a round trip: the window grows by it.
    pub(crate) const fn set_rtt(&mut self, rtt: Duration) {
        self.credit.set_rtt(rtt);
    }

    /// Something was heard from the peer, whatever it was.
    pub(crate) fn on_heard(&mut self, now: Instant) {
        self.patience.on_heard(now);
    }

    /// A block was announced.
    pub(crate) fn on_block(&mut self, now: Instant, frame: &BlockFrame) -> Result<(), Fault> {
        if self.config.max_block_bytes == 0 || frame.length > self.config.max_block_bytes {
            return Err(Fault::TooLarge);
        }
        match self.slots.standing(frame.number) {
            Standing::Awaited => self.open(now, frame)?,
            Standing::TooFar => return Err(Fault::Protocol),
            Standing::Finished => {}
            Standing::Announced => {
                let known = self.slots.open(frame.number);
                if known.is_some_and(|known| !known.is(frame)) {
                    return Err(Fault::Protocol);
                }
            }
        }
        self.after(now);
        Ok(())
    }

    fn open(&mut self, now: Instant, frame: &BlockFrame) -> Result<(), Fault> {
        let mut block = Block::new(frame).ok_or(Fault::TooLarge)?;
        self.credit.count(1)?;
        self.credit.release(1);
        let number = frame.number;
        match self.roots.find(&frame.root) {
            Some((root, Here::Whole)) => return self.open_here(frame, root, block.done.count()),
            Some((root, Here::Chunks(map))) if self.config.delivery != Delivery::Blocks => {
                block.set_here(map.clone());
                if block.done.is_full() {
                    self.controls.push_back(Control::RootHere(root));
                    return self.open_here(frame, root, block.done.count());
                }
                self.say_chunks_here(number, &mut block);
            }
            _ => {}
        }
        if self.patience.is_idle(&self.slots) {
            self.patience.on_progress(now);
        }
        if self.config.delivery != Delivery::Blocks {
            // Before its chunks, which are in the same queue.
            let announced = block.announcement(number);
            self.ready.push_event(announced);
        }
        self.slots.set(number, Slot::Open(Box::new(block)))?;
        self.unheard.limit(self.slots.unfinished());
        for staged in self.staging.take_pages(number) {
            self.on_open_page(now, &staged.frame())?;
        }
        for staged in self.staging.take(number) {
            self.on_open_slice(now, &staged.frame())?;
        }
        self.finish_if_full(number);
        Ok(())
    }

    /// The application has all of an announced block.
    fn open_here(&mut self, frame: &BlockFrame, root: u8, chunks: u32) -> Result<(), Fault> {
        let (block, tag) = (frame.number, frame.tag);
        self.slots.set(block, Slot::Here { root, chunks })?;
        self.unheard.limit(self.slots.unfinished());
        self.forget_staged(block);
        self.ready.push_event(IncomingEvent::Here { block, tag });
        if self.roots.is_heard(root) {
            self.finish(block, chunks);
        }
        Ok(())
    }

    /// A slice arrived.
    pub(crate) fn on_slice(&mut self, now: Instant, slice: &SliceFrame<'_>) -> Result<Fate, Fault> {
        if self.config.max_block_bytes == 0 {
            return Ok(Fate::NotKept);
        }
        let number = slice.at.block;
        let fate = match self.slots.standing(number) {
            Standing::Finished => Fate::Dropped,
            Standing::TooFar => Fate::NotKept,
            Standing::Awaited => self.staging.insert(now, slice),
            Standing::Announced => self.on_open_slice(now, slice)?,
        };
        self.finish_if_full(number);
        self.after(now);
        Ok(fate)
    }

    fn on_open_slice(&mut self, now: Instant, slice: &SliceFrame<'_>) -> Result<Fate, Fault> {
        // Of a block that is here or declined, slices are dropped without effect.
        let Some(block) = self.slots.open_mut(slice.at.block) else { return Ok(Fate::Dropped) };
        let (fate, done) = block.on_slice(now, slice, &mut self.credit, &mut self.work)?;
        if fate == Fate::New {
            self.patience.on_progress(now);
            self.schedule_report(now, slice.at);
        }
        if let Some(verified) = done {
            self.accept(slice.at, *verified);
        }
        Ok(fate)
    }

    /// A page of a block's tree arrived.
    pub(crate) fn on_hashes(
        &mut self,
        now: Instant,
        frame: &HashesFrame<'_>,
    ) -> Result<Fate, Fault> {
        let fate = match self.slots.standing(frame.block) {
            Standing::Finished => Fate::Dropped,
            Standing::TooFar => Fate::NotKept,
            _ if self.config.max_block_bytes == 0 => Fate::NotKept,
            Standing::Awaited => self.staging.insert_page(now, frame),
            Standing::Announced => self.on_open_page(now, frame)?,
        };
        self.finish_if_full(frame.block);
        self.after(now);
        Ok(fate)
    }

    fn on_open_page(&mut self, now: Instant, frame: &HashesFrame<'_>) -> Result<Fate, Fault> {
        let Some(block) = self.slots.open_mut(frame.block) else { return Ok(Fate::Dropped) };
        let (fate, settled) = block.on_page(frame, &mut self.work)?;
        for (index, done) in settled {
            let at = ChunkAt { block: frame.block, index };
            match done {
                Some(verified) => self.accept(at, verified),
                None => self.schedule_report(now, at),
            }
        }
        Ok(fate)
    }

    /// Drops what came for a block that will not be received.
    fn forget_staged(&mut self, number: u32) {
        self.staging.take(number);
        self.staging.take_pages(number);
    }

    /// A verified chunk, once: the only way from a block to the application.
    fn accept(&mut self, at: ChunkAt, (data, value): Verified) {
        self.credit.release(1);
        let Some(block) = self.slots.open_mut(at.block) else { return };
        let tag = block.tag;
        if self.config.delivery != Delivery::Blocks {
            block.spare.lend(&data);
        }
        if self.config.delivery == Delivery::Chunks {
            return self.ready.push_event(IncomingEvent::Chunk { at, tag, data, value });
        }
        self.parts_cost += part_cost(&data) as u64;
        block.parts.insert(at.index, (data, value));
        if self.config.delivery == Delivery::InOrder {
            let first = block.done.first();
            while let Some(part) = block.parts.first_entry().filter(|part| *part.key() < first) {
                let (index, (data, value)) = part.remove_entry();
                self.parts_cost -= part_cost(&data) as u64;
                let at = ChunkAt { index, ..at };
                self.ready.push_event(IncomingEvent::Chunk { at, tag, data, value });
            }
        }
    }

    /// If all chunks of a block are done, and its sender knows which were here before, it goes to the
    /// application.
    fn finish_if_full(&mut self, number: u32) {
        let is_finished = |block: &&mut Block| block.done.is_full() && block.unheard_here == 0;
        let Some(block) = self.slots.open_mut(number).filter(is_finished) else { return };
        let (tag, length, chunks) = (block.tag, block.length, block.done.count());
        let parts = core::mem::take(&mut block.parts);
        let parts: Vec<Bytes> = parts.into_values().map(|(part, _)| part).collect();
        self.parts_cost -= parts.iter().map(|part| part_cost(part) as u64).sum::<u64>();
        match self.config.delivery {
            Delivery::Blocks => self.ready.push_block(number, tag, length, parts),
            Delivery::Chunks | Delivery::InOrder => {
                self.ready.push_event(IncomingEvent::Complete { block: number, tag });
            }
        }
        self.finish(number, chunks);
    }

    fn finish(&mut self, number: u32, chunks: u32) {
        self.slots.remove(number);
        self.unheard.on_finished(number, chunks);
    }

    /// The sender gave a block up. `opened` of its chunks count against its credit: those of which no slice
    /// arrived are known from this alone.
    pub(crate) fn on_cancel(
        &mut self,
        now: Instant,
        number: u32,
        code: u32,
        opened: u32,
    ) -> Result<(), Fault> {
        let seen = match self.slots.standing(number) {
            Standing::Finished => return Ok(()),
            Standing::TooFar => return Err(Fault::Protocol),
            Standing::Awaited => {
                // Its announcement counts, and is not awaited any more.
                self.credit.count(1)?;
                self.credit.release(1);
                self.slots.set(number, Slot::Declined { seen: 0, code })?;
                self.unheard.limit(self.slots.unfinished());
                0
            }
            Standing::Announced => self.free(number, Some(code)),
        };
        let unseen = u64::from(opened).checked_sub(seen).ok_or(Fault::Protocol)?;
        self.credit.count(unseen)?;
        self.credit.give_up(unseen);
        self.slots.remove(number);
        self.forget_staged(number);
        self.after(now);
        // No block is left to bring the news: a sender whose credit was used up would wait for ever.
        self.unheard.on_raised(self.credit.get());
        Ok(())
    }

    /// Frees the memory of an announced block, and returns how many of its chunks were seen. With a code an
    /// open block is reported to the application as cancelled.
    fn free(&mut self, number: u32, cancelled: Option<u32>) -> u64 {
        match self.slots.remove(number) {
            Some(Slot::Open(block)) => {
                self.credit.give_up(block.open_chunks());
                let parts = block.parts.values().map(|part| part_cost(&part.0) as u64);
                self.parts_cost -= parts.sum::<u64>();
                if let Some(code) = cancelled {
                    let tag = block.tag;
                    self.ready.push_event(IncomingEvent::Cancelled { block: number, tag, code });
                }
                block.seen()
            }
            Some(Slot::Declined { seen, .. }) => seen,
            Some(Slot::Expected | Slot::Here { .. }) | None => 0,
        }
    }

    /// Chunks that are whole and wait for their page of the tree.
    #[cfg(test)]
    pub(crate) fn waiting_chunks(&self) -> usize {
        self.slots.blocks().map(|(_, block)| block.waiting_chunks()).sum()
    }

    /// Counts what this one did before it was made anew.
    pub(crate) const fn add_work_of(&mut self, before: &Self) {
        self.work.decodes += before.work.decodes;
        self.work.decoded_bytes += before.work.decoded_bytes;
        self.work.hashed_bytes += before.work.hashed_bytes;
    }

    /// The work that was done for the peer so far.
    pub(crate) const fn work(&self) -> Work {
        self.work
    }

    /// After each change: raises the credit as far as there is room, and notes whether time counts: not
    /// while the sender waits for the application, nor while nothing is held of what it sends.
    fn after(&mut self, now: Instant) {
        let used = self.ready.cost() as u64 + self.parts_cost;
        let in_progress = self.credit.in_progress() * self.config.chunk_cost();
        let free = self.config.budget().saturating_sub(used + in_progress);
        if self.credit.raise(now, free / self.config.chunk_cost()) == Raised::FromNothing {
            self.unheard.on_raised(self.credit.get());
        }
        let is_held_back = self.credit.left() == 0 && !self.ready.is_empty();
        // Then it is the sender that waits, for the program that has the bytes: it costs this end nothing.
        let holds_nothing = self.credit.in_progress() == 0 && self.parts_cost == 0;
        if let Some(pause) = self.patience.on_pause(now, is_held_back || holds_nothing) {
            self.slots.blocks_mut().for_each(|(_, block)| block.skip_pause(now, pause));
        }
    }

    /// Memory held, in bytes, besides itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes()
            + usize::try_from(self.parts_cost).unwrap_or(usize::MAX)
            + self.staging.memory_bytes()
            + self.unheard.memory_bytes()
            + self.roots.memory_bytes()
            + self.ready.cost()
            + self.controls.capacity() * size_of::<Control>()
            + self.reports.capacity() * size_of::<(Instant, ChunkAt)>()
    }

    pub(crate) fn check_invariants(&self) {
        self.slots.check_invariants();
        self.staging.check_invariants();
        self.credit.check_invariants();
        self.unheard.check_invariants(self.slots.unfinished());
        self.ready.check_invariants();
        let parts = self.slots.blocks().flat_map(|(_, block)| block.parts.values());
        assert_eq!(self.parts_cost, parts.map(|part| part_cost(&part.0) as u64).sum::<u64>());
        let open = self.slots.blocks().map(|(_, block)| block.open_chunks());
        assert_eq!(self.credit.in_progress(), open.sum::<u64>());
    }
}

/// Bytes that the nodes of a map take, about: each is at least half full, with room for the links.
fn map_bytes<K, V>(map: &BTreeMap<K, V>) -> usize {
    map.len().div_ceil(5) * (11 * size_of::<(K, V)>() + 64)
}
