//! Choice of the next slice.
//!
//! Slices that are known to be missing come first, then the source slices of each chunk in order. While
//! there are chunks to open, a lost source slice is sent again as it is; afterwards a repair slice replaces
//! it, which is of use whatever is missing by then. At the end come repair slices for slices that may still
//! be lost, until enough are expected to arrive, with a margin for the error of that estimate. The sender
//! then stops: whether more is needed shows only after a round trip, and slices sent before that would mostly
//! be waste.
//!
//! Blocks of the same priority are one sequence of chunks, in the order of sending. All that blocks of a
//! higher priority need goes before those of a lower one, the whole margin at the full rate, because what
//! follows is worth less.
//!
//! The invariant: a chunk that may lack slices is noted where that shows ([`Chunks::on_landed`] and others),
//! and between two calls of [`rescan_margins`](Chunks::rescan_margins) chunks only come nearer to having
//! enough. So a search goes on where the last one ended, and many open chunks do not make a choice dearer.

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "numbers of a test")]
mod tests;

use alloc::collections::VecDeque;

use haulier_control::{LossEstimate, Rate, Span};

use super::block::SendBlock;
use super::chunk::OpenChunk;
use super::chunks::{Chunks, cut_smaller};
use super::classes::{Class, ClassKey, Searched};
use super::cut::{Cut, head_bytes};
use super::tuning::choice::{MARGIN, MAX_STAKE, TAIL_MARGIN};
use super::tuning::window::CHUNK;
use crate::chunk::MAX_CHUNK_BYTES;
use crate::transit::{ChunkAt, Ledger, Symbol};

/// The estimates for the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions<'a> {
    pub(super) loss: &'a LossEstimate,
    pub(super) rtt: Span,
    pub(super) rate: Option<Rate>,
    /// Full chunks that may be open, or as many bytes of smaller ones.
    pub(super) window: usize,
}

impl Conditions<'_> {
    const fn window_bytes(&self) -> u64 {
        self.window as u64 * MAX_CHUNK_BYTES as u64
    }

    /// A margin in standard deviations. The larger the relative cost of another round trip, the more it
    /// saves.
    fn margin(&self, (base, by_stake): (f64, f64)) -> f64 {
        let chunk = self.rate.map_or(self.rtt, |rate| CHUNK / rate);
        let stake = (self.rtt / (self.rtt / 2.0 + chunk)).min(MAX_STAKE);
        base + by_stake * stake
    }
}

/// Which chunk the next slice is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Open(ChunkAt),
    /// The next one, which is to be opened.
    Next(ChunkAt),
}

/// Which chunk the next slice is from, and how it may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    from: From,
    /// No slice is missing, and this one is for further losses: it is sent at half the rate.
    pub(super) is_tail: bool,
    /// If a source slice was lost, it is sent again instead of a repair slice.
    is_exact: bool,
}

impl Choice {
    const fn of(from: From) -> Self {
        Self { from, is_tail: false, is_exact: false }
    }

    /// Whether it opens a chunk.
    pub(super) const fn is_opening(self) -> bool {
        matches!(self.from, From::Next(_))
    }
}

/// What a slice is of its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlicePart {
    /// A source slice but the last.
    Source,
    /// The last source slice.
    Last,
    /// A repair slice.
    Repair,
}

/// The slice to send.
#[derive(Debug)]
pub(crate) struct Chosen<'a> {
    pub(crate) at: ChunkAt,
    pub(crate) symbol: Symbol,
    /// How its chunk is cut.
    pub(crate) cut: Cut,
    pub(crate) part: SlicePart,
    /// Its index among the source or the repair slices.
    pub(crate) index: u8,
    pub(crate) data: &'a [u8],
    /// It is a retransmission.
    pub(super) is_repeated: bool,
}

impl Chunks {
    /// What to send next, if anything. With `is_probe` a slice is chosen in any case.
    pub(super) fn choose(&self, is_probe: bool, path: &Conditions<'_>) -> Option<Choice> {
        let probed = if is_probe { self.first_open() } else { None };
        let mut classes = 0..self.classes.len();
        probed.or_else(|| classes.find_map(|place| self.search(place, path).0))
    }

    /// Chooses like [`choose`](Self::choose), and later searches go on where this one ended.
    pub(super) fn choose_and_note(
        &mut self,
        is_probe: bool,
        path: &Conditions<'_>,
    ) -> Option<Choice> {
        let probed = if is_probe { self.first_open() } else { None };
        probed.or_else(|| {
            (0..self.classes.len()).find_map(|place| {
                let (choice, searched) = self.search(place, path);
                if let Some(class) = self.classes.at_mut(place) {
                    class.note(searched);
                }
                choice
            })
        })
    }

    /// The next slice, if it is certain without the estimates: the class whose turn it is lacks nothing, and
    /// the chunk at which its last search ended has source slices that were never sent. That is so for all
    /// source slices of a chunk except the first.
    #[inline]
    pub(super) fn next_of_run(&self) -> Option<Choice> {
        let class = self.classes.at(0).filter(|class| class.lacking.is_empty())?;
        let at = *class.active.get(class.searched.unsent)?;
        self.get(at).filter(|chunk| !chunk.is_sent()).map(|_| Choice::of(From::Open(at)))
    }

    /// The first chunk that is not done.
    fn first_open(&self) -> Option<Choice> {
        let blocks = |class: &Class| {
            let key = class.key;
            self.blocks.iter().filter(move |block| block.class() == key)
        };
        let open = |block: &SendBlock| block.iter_open().next().map(|chunk| chunk.at);
        let at = self.classes.iter().flat_map(blocks).find_map(open)?;
        Some(Choice::of(From::Open(at)))
    }

    /// What to send of the blocks of a class.
    fn search(&self, place: usize, path: &Conditions<'_>) -> (Option<Choice>, Searched) {
        let Some(class) = self.classes.at(place) else { return (None, Searched::default()) };
        let mut searched = class.searched;
        let priority = class.key.priority;
        let is_lowest = self.classes.is_lowest(priority);
        // Chunks that wait for the window, for credit or for their source: the block ends a round trip later
        // anyway, and what is lost meanwhile is known then.
        let has_more = self.has_more(class.key);
        let is_lacking = |chunk: &OpenChunk| chunk.is_sent() && chunk.lacks_slices();
        let choice = self
            .find(&class.lacking, &mut searched.lacking, is_lacking)
            .map(|choice| Choice { is_exact: has_more, ..choice })
            .or_else(|| self.find(&class.active, &mut searched.unsent, |chunk| !chunk.is_sent()))
            .or_else(|| {
                let before = |class: &&Class| class.key.priority >= priority;
                let open: u64 = self.classes.iter().filter(before).map(|it| it.open_bytes).sum();
                self.next_of(class.key).filter(|_| open < path.window_bytes()).map(Choice::of)
            })
            .or_else(|| {
                let sigmas = path.margin(if is_lowest { MARGIN } else { TAIL_MARGIN });
                let losses = if has_more { path.loss.measured() } else { path.loss.losses() };
                self.find(&class.active, &mut searched.short, |chunk| {
                    chunk.is_short(&losses, sigmas)
                })
            })
            .or_else(|| {
                if has_more {
                    return None;
                }
                let (sigmas, losses) = (path.margin(TAIL_MARGIN), path.loss.losses());
                let is_short = |chunk: &OpenChunk| chunk.is_short(&losses, sigmas);
                let choice = self.find(&class.active, &mut searched.short_of_tail, is_short)?;
                Some(Choice { is_tail: true, ..choice })
            });
        (choice, searched)
    }

    /// The first of some chunks with this property.
    fn find(
        &self,
        chunks: &VecDeque<ChunkAt>,
        searched: &mut usize,
        is_it: impl Fn(&OpenChunk) -> bool,
    ) -> Option<Choice> {
        let rest = chunks.range((*searched).min(chunks.len())..);
        let mut block: Option<&SendBlock> = None;
        for at in rest {
            if block.is_none_or(|block| block.number() != at.block) {
                block = self.block(at.block);
            }
            if block.and_then(|block| block.get(at.index)).is_some_and(&is_it) {
                return Some(Choice::of(From::Open(*at)));
            }
            *searched += 1;
        }
        None
    }

    /// The next chunk to open, of the blocks of this class, if it is ready and there is credit for it.
    fn next_of(&self, key: ClassKey) -> Option<From> {
        let (block, at) = self.opening(key)?;
        let may_open = self.credit.may_open(block.open_chunks() > 0);
        (may_open && block.next_ready().is_some()).then_some(From::Next(at))
    }

    /// The next chunk to open, of the blocks of this class. Those that wait for their source, or are paused,
    /// hold no other block up.
    fn opening(&self, key: ClassKey) -> Option<(&SendBlock, ChunkAt)> {
        let mut blocks = self.blocks.iter().filter(|block| block.class() == key);
        blocks.find_map(|block| {
            let at = ChunkAt { block: block.number(), index: block.next_here()? };
            Some((block, at))
        })
    }

    fn has_more(&self, key: ClassKey) -> bool {
        self.blocks.iter().any(|block| block.class() == key && block.has_more())
    }

    /// The chunk that is opened next, as soon as it may be, if pages of the tree that it needs are due. Of
    /// classes that share a priority, the first whose next chunk is not ready yet.
    pub(super) fn next_unready(&self) -> Option<ChunkAt> {
        let mut openings = self.classes.iter().filter_map(|class| {
            let (block, at) = self.opening(class.key)?;
            Some((class.key.priority, at, block.next_ready().is_some()))
        });
        let (priority, first, is_ready) = openings.next()?;
        if !is_ready {
            return Some(first);
        }
        let mut others = openings.take_while(|&(other, ..)| other == priority);
        others.find(|&(_, _, is_ready)| !is_ready).map(|(_, at, _)| at)
    }

    /// Bytes that the frame of the chosen slice has at most.
    #[inline]
    pub(super) fn frame_bytes(&self, choice: Choice) -> usize {
        let (at, cut) = match choice.from {
            From::Open(at) => (at, self.get(at).map(OpenChunk::cut)),
            From::Next(at) => {
                let bytes = self.block(at.block).map_or(0, |block| block.chunk_bytes(at.index));
                (at, self.cutting.cut(at, bytes))
            }
        };
        let slice = cut.map_or(0, |cut| cut.size().bytes().min(cut.chunk_bytes()));
        head_bytes(at, true) + slice
    }

    /// Whether the chosen slice is repair that has to be encoded first: that takes as long as it takes a fast
    /// link to pass some dozen slices.
    pub(super) fn has_to_encode(&self, choice: Choice) -> bool {
        let From::Open(at) = choice.from else { return false };
        let block = self.block(at.block);
        block.and_then(|block| Some((block, block.get(at.index)?))).is_some_and(|(block, chunk)| {
            chunk.is_next_repair(choice.is_exact) && !block.is_encoded(chunk)
        })
    }

    /// Returns the chosen slice, whose frame has at most `frame_bytes` bytes, and counts it as sent.
    /// `next_number` is the number of its datagram.
    pub(super) fn take(
        &mut self,
        (choice, frame_bytes): (Choice, usize),
        ledger: &Ledger,
        next_number: u64,
    ) -> Option<Chosen<'_>> {
        let at = match choice.from {
            From::Open(at) => at,
            From::Next(at) => {
                self.open(at, next_number)?;
                at
            }
        };
        let cutting = self.cutting;
        let place = self.place(at.block)?;
        let block = self.blocks.get_mut(place)?;
        let (key, bytes) = (block.class(), block.chunk_bytes(at.index));
        let chunk = block.get_mut(at.index)?;
        let mut is_active_again = false;
        if chunk.has_enough() {
            // A probe, perhaps of a chunk whose slices the path does not carry any more.
            is_active_again = cut_smaller(chunk, cutting.cut(at, bytes), next_number);
        }
        let lost = if choice.is_exact { chunk.next_lost() } else { None };
        let unsent = if lost.is_none() { chunk.next_unsent() } else { None };
        let has_become_sent = unsent.is_some() && chunk.is_sent();
        let lacks_more = is_active_again || has_become_sent && !chunk.has_enough();
        let symbol = match lost.or(unsent) {
            Some(symbol) => symbol,
            None => block.next_repeated(at.index, ledger)?,
        };
        if lacks_more {
            // It may lack slices by now.
            self.class_mut(key)?.add(at);
        }
        self.classes.on_sent(key, frame_bytes);
        self.chosen(place, at, symbol, unsent.is_none())
    }

    fn open(&mut self, at: ChunkAt, next_number: u64) -> Option<()> {
        let cutting = self.cutting;
        let block = self.block_mut(at.block)?;
        let (key, bytes) = (block.class(), block.chunk_bytes(at.index));
        let cut = cutting.cut(at, bytes)?;
        block.open(at.index, cut, cutting.has_repair, next_number);
        self.credit.on_used();
        let class = self.class_mut(key)?;
        class.open += 1;
        class.open_bytes += bytes as u64;
        class.add(at);
        Some(())
    }

    fn chosen(
        &mut self,
        place: usize,
        at: ChunkAt,
        symbol: Symbol,
        is_repeated: bool,
    ) -> Option<Chosen<'_>> {
        let (index, is_repair) = symbol.index();
        let block = self.blocks.get_mut(place)?;
        if is_repair {
            block.prepare_repair(at.index)?;
        }
        let block = self.blocks.get(place)?;
        let chunk = block.get(at.index)?;
        let cut = chunk.cut();
        let (part, data) = match is_repair {
            true => (SlicePart::Repair, block.repair(chunk, index)?),
            false if cut.is_last(index) => (SlicePart::Last, block.source(chunk, index)?),
            false => (SlicePart::Source, block.source(chunk, index)?),
        };
        Some(Chosen { at, symbol, cut, part, index, data, is_repeated })
    }
}
