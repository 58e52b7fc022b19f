//! One announced block: which chunks are done, the open ones, and its tree.
//!
//! The invariant: a chunk is done only when it was whole and has the value that the tree, and so the root,
//! has for it; and it leaves here once.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use bytes::Bytes;

use super::chunk::{Held, OpenChunk};
use super::credit::Credit;
use super::done_map::DoneMap;
use super::pace::Pace;
use super::pages::Pages;
use super::spare::Spare;
use super::{Fate, Fault, IncomingEvent, Work};
use crate::Instant;
use crate::block_map::{BlockMap, MAX_AHEAD};
use crate::bulk::cut::{Cut, chunk_bytes, chunk_count};
use crate::bulk::repair::repair_count;
use crate::bulk::tree::{PAGE_VALUES, Value, chunk_value};
use crate::chunk::MAX_CHUNK_BYTES;
use crate::wire::frames::{BlockFrame, HashesFrame, SliceFrame, SliceKind};

/// A chunk that waited for its page: its index, and its bytes; none if it was wrong and is started over.
pub(super) type Settled = (u32, Option<Verified>);

/// A chunk, and the value of which it was compared with that of its block's tree.
pub(super) type Verified = (Bytes, Value);

/// A block that was announced and is not finished.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) tag: u64,
    pub(super) length: u64,
    pub(super) root: Value,
    pub(super) done: DoneMap,
    /// Only for a block of two chunks or more.
    pages: Option<Pages>,
    open: BTreeMap<u32, Box<OpenChunk>>,
    /// Verified chunks that wait for the rest of the block, or for those before them.
    pub(super) parts: BTreeMap<u32, Verified>,
    /// Where the next chunks are put together.
    pub(super) spare: Spare,
    /// Bytes of chunks that are done.
    done_bytes: u64,
    /// What the open chunks have and hold together: asked for with each datagram, when 1024 may be open.
    held: Held,
    /// Chunks that were opened, as far as they were seen.
    seen: u64,
    /// Chunks here frames that its sender is not known to have.
    pub(super) unheard_here: u32,
    /// When its first slice arrived.
    started: Option<Instant>,
    /// How fast it comes; from its first slice on.
    pace: Option<Pace>,
    /// Events that the application has not read.
    pub(super) is_announcement_unread: bool,
    pub(super) is_progress_unread: bool,
}

impl Block {
    /// `None` if it has more chunks than can be counted.
    pub(super) fn new(frame: &BlockFrame) -> Option<Self> {
        let count = chunk_count(frame.length)?;
        Some(Self {
            tag: frame.tag,
            length: frame.length,
            root: frame.root,
            done: DoneMap::new(count),
            pages: (count > 1).then(|| Pages::new(frame.root, count)),
            open: BTreeMap::new(),
            parts: BTreeMap::new(),
            spare: Spare::default(),
            done_bytes: 0,
            held: Held::default(),
            seen: 0,
            unheard_here: 0,
            started: None,
            pace: None,
            is_announcement_unread: true,
            is_progress_unread: false,
        })
    }

    /// Whether this is what was announced.
    pub(super) fn is(&self, frame: &BlockFrame) -> bool {
        (self.tag, self.length, self.root) == (frame.tag, frame.length, frame.root)
    }

    /// The event that more of it is here.
    pub(super) fn progress(&mut self, now: Instant, block: u32) -> IncomingEvent {
        let (received, length) = (self.received_bytes(), self.length);
        let pace = self.pace.as_mut().map(|pace| pace.measure(now, received, length));
        let (rate_bps, estimate) = pace.unwrap_or_default();
        IncomingEvent::Progress { block, tag: self.tag, received, length, rate_bps, estimate }
    }

    /// The event that it was announced, once.
    pub(super) fn announcement(&mut self, block: u32) -> IncomingEvent {
        self.is_announcement_unread = false;
        IncomingEvent::Announced { block, tag: self.tag, length: self.length, root: self.root }
    }

    /// The application has these chunks.
    pub(super) fn set_here(&mut self, map: Vec<u8>) {
        self.done.set_here(map);
        let here = (0..self.done.count()).filter(|&index| self.done.was_here(index));
        let bytes = here.filter_map(|index| chunk_bytes(self.length, index));
        self.done_bytes = bytes.map(|bytes| bytes as u64).sum();
    }

    /// Takes a slice, and returns the chunk that it completed. The chunk is in a box, since a slice rarely
    /// completes one, and the place for it would be copied with each slice.
    pub(super) fn on_slice(
        &mut self,
        now: Instant,
        slice: &SliceFrame<'_>,
        credit: &mut Credit,
        work: &mut Work,
    ) -> Result<(Fate, Option<Box<Verified>>), Fault> {
        let (index, count) = (slice.at.index, self.done.count());
        let cut = self.cut_of(slice).ok_or(Fault::Protocol)?;
        if self.done.is_done(index) {
            return Ok((Fate::Dropped, None));
        }
        if self.done.is_beyond_window(index) {
            return Err(Fault::Credit);
        }
        let is_opened = !self.open.contains_key(&index);
        if is_opened {
            credit.count(1)?;
            self.seen += 1;
            self.started.get_or_insert(now);
            self.pace.get_or_insert(Pace::new(now, self.done_bytes));
        }
        let hash = |bytes: &[u8]| match count {
            1 => *blake3::hash(bytes).as_bytes(),
            _ => chunk_value(index, bytes),
        };
        let spare = &mut self.spare;
        let new = || Box::new(OpenChunk::new(cut, spare.take(cut.chunk_bytes())));
        let chunk = self.open.entry(index).or_insert_with(new);
        let before = if is_opened { Held::default() } else { chunk.held() };
        let fate = chunk.on_slice(cut, slice, hash, work);
        self.held.replace(before, chunk.held());
        let is_whole = chunk.is_whole();
        self.is_progress_unread |= fate == Fate::New;
        let done = if is_whole && fate == Fate::New { self.settle(index)? } else { None };
        Ok((fate, done.map(Box::new)))
    }

    /// Takes a page, and returns what became of the whole chunks that waited for it.
    pub(super) fn on_page(
        &mut self,
        frame: &HashesFrame<'_>,
        work: &mut Work,
    ) -> Result<(Fate, Vec<Settled>), Fault> {
        let pages = self.pages.as_mut().ok_or(Fault::Protocol)?;
        let fate = pages.insert(frame, self.done.first(), work)?;
        let mut settled = Vec::new();
        if fate == Fate::New {
            let whole = self.open.iter().filter(|(_, chunk)| chunk.is_whole());
            let whole: Vec<u32> = whole.map(|(&index, _)| index).collect();
            for index in whole {
                let done = self.settle(index)?;
                if done.is_some() || self.open.get(&index).is_some_and(|chunk| !chunk.is_whole()) {
                    settled.push((index, done));
                }
            }
        }
        Ok((fate, settled))
    }

    /// Compares a whole chunk with its value, if that is known.
    fn settle(&mut self, index: u32) -> Result<Option<Verified>, Fault> {
        let value = match &self.pages {
            Some(pages) => pages.value(index),
            None => Some(&self.root),
        };
        let (Some(&value), Some(chunk)) = (value, self.open.get_mut(&index)) else {
            return Ok(None);
        };
        let before = chunk.held();
        let verified = chunk.verify(&value)?;
        self.held.replace(before, chunk.held());
        let Some(bytes) = verified else { return Ok(None) };
        self.open.remove(&index);
        let before = self.done.first() as usize / PAGE_VALUES;
        self.done.insert(index);
        self.done_bytes += bytes.len() as u64;
        if let Some(pages) = &mut self.pages
            && self.done.first() as usize / PAGE_VALUES > before
        {
            pages.forget_below(self.done.first());
        }
        Ok(Some((bytes, value)))
    }

    /// How the chunk of a slice is cut, if the slice agrees with the announcement (H-4.2c).
    fn cut_of(&self, slice: &SliceFrame<'_>) -> Option<Cut> {
        let cut = Cut::new(chunk_bytes(self.length, slice.at.index)?, slice.size()?)?;
        let bytes = cut.range(slice.index).map(|range| range.len());
        let agrees = match slice.kind {
            SliceKind::Source => !cut.is_last(slice.index) && bytes == Some(slice.data.len()),
            SliceKind::Last(_) => cut.is_last(slice.index) && bytes == Some(slice.data.len()),
            SliceKind::Repair => usize::from(slice.index) < repair_count(cut),
        };
        agrees.then_some(cut)
    }

    /// The open chunk with this index.
    pub(super) fn open_mut(&mut self, index: u32) -> Option<&mut OpenChunk> {
        self.open.get_mut(&index).map(|chunk| &mut **chunk)
    }

    /// Chunks that were opened, as far as they were seen.
    pub(super) const fn seen(&self) -> u64 {
        self.seen
    }

    /// Chunks that are open.
    pub(super) fn open_chunks(&self) -> u64 {
        self.open.len() as u64
    }

    /// What is known of its chunks, and of the slices of the first `max_chunks` that are open.
    pub(super) fn map(&self, max_chunks: usize) -> BlockMap {
        let (count, first) = (self.done.count(), self.done.first());
        let ahead = first.saturating_add(1)..count.min(first.saturating_add(MAX_AHEAD));
        BlockMap {
            tag: self.tag,
            chunks: count,
            first,
            done_ahead: ahead.filter(|&index| self.done.is_done(index)).collect(),
            open: self.open.iter().take(max_chunks).map(|(&at, chunk)| chunk.map(at)).collect(),
            open_chunks: self.open.len(),
        }
    }

    /// Chunks that are whole and wait for their page.
    #[cfg(test)]
    pub(super) fn waiting_chunks(&self) -> usize {
        self.open.values().filter(|chunk| chunk.is_whole()).count()
    }

    /// Bytes that have arrived, in whole slices.
    pub(super) const fn received_bytes(&self) -> u64 {
        self.done_bytes + self.held.received_bytes as u64
    }

    /// Bytes that have arrived of chunks that are not done, in whole slices.
    pub(super) const fn unfinished_bytes(&self) -> u64 {
        self.held.received_bytes as u64
    }

    /// When its first slice arrived, moved by pauses.
    pub(super) const fn started(&self) -> Option<Instant> {
        self.started
    }

    /// A pause that ends now does not count.
    pub(super) fn skip_pause(&mut self, now: Instant, pause: core::time::Duration) {
        self.started = self.started.map(|started| now.min(started + pause));
    }

    /// Memory held, in bytes, besides itself and the bytes of its parts.
    pub(super) fn memory_bytes(&self) -> usize {
        self.done.memory_bytes()
            + self.pages.as_ref().map_or(0, Pages::memory_bytes)
            + self.open.len() * size_of::<OpenChunk>()
            + self.held.memory_bytes
            + self.spare.memory_bytes()
            + super::map_bytes(&self.open)
            + super::map_bytes(&self.parts)
    }

    pub(super) fn check_invariants(&self) {
        self.done.check_invariants();
        self.pages.iter().for_each(Pages::check_invariants);
        for (&index, chunk) in &self.open {
            chunk.check_invariants();
            assert!(!self.done.is_done(index) && !self.done.is_beyond_window(index));
        }
        let mut held = Held::default();
        self.open.values().for_each(|chunk| held.replace(Held::default(), chunk.held()));
        assert_eq!(held, self.held, "what the open chunks hold");
        assert!(self.open.len() as u64 <= self.seen);
        let rest = self.length - self.done_bytes;
        assert!(rest.div_ceil(MAX_CHUNK_BYTES as u64) <= u64::from(self.done.count()));
        assert_eq!(rest == 0, self.done.is_full());
    }
}
