//! Choice of the next slice.
//!
//! First repair slices for those known to be missing, then the source slices of each chunk in order. At the
//! end come repair slices for those that may still be lost, until enough slices are expected to arrive, with
//! a margin for the error of that estimate. The sender then stops: whether more is needed shows only after a
//! round trip, and slices sent before that would mostly be waste.
//!
//! Blocks of the same priority are one sequence of chunks, in the order of sending. All that blocks of a
//! higher priority need goes before those of a lower one, the whole margin at the full rate, because what
//! follows is worth less.
//!
//! The invariant: between two calls of [`rescan`](Chunks::rescan) chunks only come nearer to having enough.
//! So a search goes on where the last one ended, and many open chunks do not make a choice dearer.

use super::block::SendBlock;
use super::chunk::OpenChunk;
use super::chunks::{Chunks, Class, Searched, cut_smaller};
use super::cut::{Cut, head_bytes};
use super::loss::LossEstimate;
use super::tuning::choice::{MARGIN, MAX_STAKE, TAIL_MARGIN};
use super::tuning::model::CHUNK;
use super::units::{Rate, Span};
use crate::transit::{ChunkAt, Ledger, Symbol};

/// The estimates for the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path<'a> {
    pub(super) loss: &'a LossEstimate,
    pub(super) rtt: Span,
    pub(super) rate: Option<Rate>,
    /// Chunks that may be open.
    pub(super) window: usize,
}

impl Path<'_> {
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
}

impl Choice {
    const fn of(from: From) -> Self {
        Self { from, is_tail: false }
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
    pub(super) fn choose(&self, is_probe: bool, path: &Path<'_>) -> Option<Choice> {
        let probed = if is_probe { self.first_open() } else { None };
        let mut classes = 0..self.classes.len();
        probed.or_else(|| classes.find_map(|place| self.search(place, path).0))
    }

    /// The same, and later searches go on where this one ended.
    pub(super) fn choose_and_note(&mut self, is_probe: bool, path: &Path<'_>) -> Option<Choice> {
        let probed = if is_probe { self.first_open() } else { None };
        probed.or_else(|| {
            (0..self.classes.len()).find_map(|place| {
                let (choice, searched) = self.search(place, path);
                if let Some(class) = self.classes.get_mut(place) {
                    class.searched = searched;
                }
                choice
            })
        })
    }

    /// The first chunk that is not done.
    fn first_open(&self) -> Option<Choice> {
        let blocks = |class: &Class| {
            let priority = class.priority;
            self.blocks.iter().filter(move |block| block.priority() == priority)
        };
        let open = |block: &SendBlock| block.iter_open().next().map(|chunk| chunk.at);
        let at = self.classes.iter().flat_map(blocks).find_map(open)?;
        Some(Choice::of(From::Open(at)))
    }

    /// What to send of the blocks of a class.
    fn search(&self, place: usize, path: &Path<'_>) -> (Option<Choice>, Searched) {
        let Some(class) = self.classes.get(place) else { return (None, Searched::default()) };
        let mut searched = class.searched;
        let is_lowest = place + 1 == self.classes.len();
        let choice = self
            .find(class, &mut searched.lacking, |chunk| chunk.is_sent() && chunk.lacks_slices())
            .or_else(|| self.find(class, &mut searched.unsent, |chunk| !chunk.is_sent()))
            .or_else(|| {
                let open: usize = self.classes.iter().take(place + 1).map(|class| class.open).sum();
                self.next_of(class.priority).filter(|_| open < path.window).map(Choice::of)
            })
            .or_else(|| {
                let sigmas = path.margin(if is_lowest { MARGIN } else { TAIL_MARGIN });
                let losses = path.loss.losses();
                self.find(class, &mut searched.short, |chunk| chunk.is_short(&losses, sigmas))
            })
            .or_else(|| {
                let (sigmas, losses) = (path.margin(TAIL_MARGIN), path.loss.losses());
                let is_short = |chunk: &OpenChunk| chunk.is_short(&losses, sigmas);
                let choice = self.find(class, &mut searched.short_of_tail, is_short)?;
                Some(Choice { is_tail: true, ..choice })
            });
        (choice, searched)
    }

    /// The first active chunk of a class with this property.
    fn find(
        &self,
        class: &Class,
        searched: &mut usize,
        is_it: impl Fn(&OpenChunk) -> bool,
    ) -> Option<Choice> {
        let rest = class.active.range((*searched).min(class.active.len())..);
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

    /// The next chunk to open, of the blocks of this priority, if it is ready and there is credit for it.
    fn next_of(&self, priority: u8) -> Option<From> {
        let (block, at) = self.opening(priority)?;
        let may_open = self.credit.may_open(block.open_chunks() > 0);
        (may_open && block.next_ready().is_some()).then_some(From::Next(at))
    }

    /// The next chunk to open, of the blocks of this priority.
    fn opening(&self, priority: u8) -> Option<(&SendBlock, ChunkAt)> {
        let mut blocks = self.blocks.iter().filter(|block| block.priority() == priority);
        blocks.find_map(|block| {
            let at = ChunkAt { block: block.number(), index: block.next()? };
            Some((block, at))
        })
    }

    /// The chunk that is opened next, as soon as it may be: the pages of the tree that it needs are due.
    pub(super) fn next_opening(&self) -> Option<ChunkAt> {
        self.classes.iter().find_map(|class| self.opening(class.priority)).map(|(_, at)| at)
    }

    /// Bytes that the frame of the chosen slice has at most.
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

    /// Returns the chosen slice, and counts it as sent. `next_number` is that of its datagram.
    pub(super) fn take(
        &mut self,
        choice: Choice,
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
        let (priority, bytes) = (block.priority(), block.chunk_bytes(at.index));
        let chunk = block.get_mut(at.index)?;
        let mut is_active_again = false;
        if chunk.has_enough() {
            // A probe, perhaps of a chunk whose slices the path does not carry any more.
            is_active_again = cut_smaller(chunk, cutting.cut(at, bytes), next_number);
        }
        let unsent = chunk.next_unsent();
        let has_become_sent = unsent.is_some() && chunk.is_sent();
        let lacks_more = is_active_again || has_become_sent && !chunk.has_enough();
        let symbol = match unsent {
            Some(symbol) => symbol,
            None => block.next_repeated(at.index, ledger)?,
        };
        if lacks_more {
            // It may lack slices by now.
            self.class_mut(priority)?.add(at);
        }
        self.chosen(place, at, symbol, unsent.is_none(), ledger)
    }

    fn open(&mut self, at: ChunkAt, next_number: u64) -> Option<()> {
        let cutting = self.cutting;
        let block = self.block_mut(at.block)?;
        let priority = block.priority();
        let cut = cutting.cut(at, block.chunk_bytes(at.index))?;
        block.open(cut, cutting.has_repair, next_number);
        self.credit.on_used();
        let class = self.class_mut(priority)?;
        class.open += 1;
        class.add(at);
        Some(())
    }

    fn chosen(
        &mut self,
        place: usize,
        at: ChunkAt,
        mut symbol: Symbol,
        mut is_repeated: bool,
        ledger: &Ledger,
    ) -> Option<Chosen<'_>> {
        let (index, is_repair) = symbol.index();
        let block = self.blocks.get_mut(place)?;
        if is_repair && block.repair(block.get(at.index)?, index).is_none() {
            // They were made for too many other sizes: the sources have to do.
            block.get_mut(at.index)?.end_repair();
            (symbol, is_repeated) = (block.next_repeated(at.index, ledger)?, true);
        }
        let (index, is_repair) = symbol.index();
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

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "numbers of a test")]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::bulk::block::NewBlock;
    use crate::bulk::chunks::Cutting;
    use crate::bulk::credit::Credit;
    use crate::bulk::cut::SliceSize;
    use crate::bulk::repair::BlockRepair;

    const SIZE: SliceSize = SliceSize::SMALLEST_OF_FULL_CHUNK;

    fn empty() -> Chunks {
        let cutting = Cutting { room: 0, max_slice: SIZE, has_repair: true };
        Chunks::new(cutting, Credit::new(u64::MAX))
    }

    /// Adds a block whose chunks have so many slices; all but the last have 256.
    fn push(chunks: &mut Chunks, number: u32, priority: u8, slices: usize) {
        let data: bytes::Bytes = alloc::vec![7; slices * 1024].into();
        let repair = BlockRepair::of_block(data.len());
        chunks.push(NewBlock { number, priority, data, repair });
        chunks.block_mut(number).unwrap().set_ready(u32::MAX);
    }

    fn block(slices: usize) -> Chunks {
        let mut chunks = empty();
        push(&mut chunks, 0, 0, slices);
        chunks
    }

    fn loss(percent: u32) -> LossEstimate {
        let mut loss = LossEstimate::new();
        (0..1_000).for_each(|n| loss.on_packet(n % 100 < percent));
        loss
    }

    fn path(loss: &LossEstimate) -> Path<'_> {
        Path { loss, rtt: Span::from_millis(50), rate: Some(Rate::from_kbps(10_000)), window: 16 }
    }

    /// The next slice, as (block, chunk, symbol, tail). It counts as in flight.
    fn next(chunks: &mut Chunks, loss: &LossEstimate) -> Option<(u32, u32, usize, bool)> {
        let choice = chunks.choose(false, &path(loss));
        assert_eq!(choice, chunks.choose_and_note(false, &path(loss)));
        let choice = choice?;
        let Chosen { at, symbol, data, .. } = chunks.take(choice, &Ledger::new(), 0).unwrap();
        assert_eq!(data.len(), 1024);
        chunks.get_mut(at).unwrap().expect(loss.share());
        // A search from the beginning finds the same.
        let noted = chunks.choose(false, &path(loss));
        let places: Vec<_> = chunks.classes.iter().map(|class| class.searched).collect();
        chunks.rescan();
        assert_eq!(noted, chunks.choose(false, &path(loss)));
        for (class, searched) in chunks.classes.iter_mut().zip(places) {
            class.searched = searched;
        }
        chunks.check_invariants();
        Some((at.block, at.index, symbol.get(), choice.is_tail))
    }

    fn all(chunks: &mut Chunks, loss: &LossEstimate) -> Vec<(u32, u32, usize, bool)> {
        core::iter::from_fn(|| next(chunks, loss)).collect()
    }

    #[test]
    fn source_slices_are_sent_in_order() {
        let chosen = all(&mut block(259), &loss(0));
        let sources = (0..256).map(|n| (0, 0, n, false));
        assert!(chosen.into_iter().eq(sources.chain((0..3).map(|n| (0, 1, n, false)))));
    }

    #[test]
    fn repair_covers_expected_losses_and_a_margin() {
        let chosen = all(&mut block(256), &loss(10));
        let repairs = chosen.iter().filter(|(_, _, symbol, _)| *symbol >= 256).count();
        let tails = chosen.iter().filter(|(.., is_tail)| *is_tail).count();
        // 10 % is 29, because repair slices are lost too.
        assert!((35..75).contains(&repairs) && (1..repairs).contains(&tails), "{repairs} {tails}");
    }

    #[test]
    fn repair_of_missing_slices_comes_before_unsent_slices() {
        let (mut chunks, loss) = (block(300), loss(0));
        for _ in 0..260 {
            next(&mut chunks, &loss).unwrap();
        }
        // Nothing of the first chunk is expected to arrive.
        chunks.get_mut(ChunkAt { block: 0, index: 0 }).unwrap().clear_expected();
        chunks.rescan();
        assert_eq!(next(&mut chunks, &loss), Some((0, 0, 256, false)));
    }

    #[test]
    fn open_chunks_are_limited_by_the_window_and_the_credit() {
        let loss = loss(0);
        let opened = |chunks: &mut Chunks| all(chunks, &loss).last().unwrap().1 + 1;
        assert_eq!(opened(&mut block(20 * 256)), 16);
        let mut chunks = block(20 * 256);
        chunks.credit = Credit::new(9);
        assert_eq!(opened(&mut chunks), 7, "two are left for a block that is more urgent");
        assert!(!chunks.is_held_back());
        push(&mut chunks, 1, 9, 2 * 256);
        assert_eq!(all(&mut chunks, &loss).len(), 256);
        assert!(chunks.credit.left() == 1 && !chunks.is_held_back());
        assert!(chunks.credit.raise(10) && next(&mut chunks, &loss).is_none());
    }

    #[test]
    fn a_probe_is_sent_even_if_enough_is_in_flight() {
        let (mut chunks, loss) = (block(2), loss(0));
        all(&mut chunks, &loss);
        let path = path(&loss);
        assert_eq!(chunks.choose(false, &path), None);
        assert!(chunks.choose(true, &path).is_some());
        let at = ChunkAt { block: 0, index: 0 };
        (0..2).for_each(|n| assert!(chunks.on_received(at, 0, Symbol::source(n))));
        assert!(
            chunks.choose(true, &path).is_some(),
            "the receiver has enough, but did not say so"
        );
        assert!(chunks.on_done(at) && chunks.choose(true, &path).is_none());
    }

    /// In the middle of a chunk. The margin against losses comes before anything less urgent.
    #[test]
    fn a_block_of_higher_priority_goes_first_with_its_margin() {
        let (mut chunks, loss) = (block(600), loss(10));
        let first: Vec<_> = (0..10).map_while(|_| next(&mut chunks, &loss)).collect();
        assert!(first.iter().all(|(block, ..)| *block == 0));
        push(&mut chunks, 1, 1, 20);
        push(&mut chunks, 2, 0, 20);
        let chosen = all(&mut chunks, &loss);
        let urgent = chosen.iter().take_while(|(block, ..)| *block == 1).count();
        let alone = all(
            &mut {
                let mut alone = empty();
                push(&mut alone, 1, 1, 20);
                alone
            },
            &loss,
        );
        assert_eq!(urgent, alone.len(), "as many as alone, and none at half the rate");
        assert!(chosen[..urgent].iter().all(|(.., is_tail)| !is_tail));
        let rest: Vec<_> = chosen[urgent..].iter().filter(|chosen| chosen.2 < 256).collect();
        assert!(rest.is_sorted() && rest[0].0 == 0, "equal ones in the order of sending");
        assert!(chosen[urgent..].iter().all(|(block, ..)| *block != 1));
    }

    /// A window full of chunks of less urgent blocks does not hold a more urgent one.
    #[test]
    fn the_window_is_counted_from_the_most_urgent_on() {
        let (mut chunks, loss) = (block(20 * 256), loss(0));
        all(&mut chunks, &loss);
        assert_eq!(chunks.block(0).unwrap().open_chunks(), 16);
        push(&mut chunks, 1, 0, 1);
        assert_eq!(next(&mut chunks, &loss), None);
        push(&mut chunks, 2, 1, 1);
        assert_eq!(next(&mut chunks, &loss), Some((2, 0, 0, false)));
    }

    /// A chunk that is lost again and again does not hold the other block.
    #[test]
    fn a_chunk_that_is_not_done_does_not_hold_another_block() {
        let (mut chunks, loss) = (block(1), loss(0));
        all(&mut chunks, &loss);
        push(&mut chunks, 1, 0, 14 * 256);
        assert_eq!(all(&mut chunks, &loss).len(), 14 * 256);
        (0..14).for_each(|index| assert!(chunks.on_done(ChunkAt { block: 1, index })));
        assert!(chunks.block(1).unwrap().is_done() && !chunks.block(0).unwrap().is_done());
        chunks.remove(1);
        chunks.check_invariants();
        assert!(chunks.has_open() && !chunks.is_empty());
        chunks.remove(0);
        assert!(!chunks.has_open() && chunks.is_empty() && chunks.classes.is_empty());
    }

    /// What was sent in larger slices does not count, and is not sent.
    #[test]
    fn open_chunks_are_cut_anew_when_the_path_shrinks() {
        let mut chunks = empty();
        chunks.cutting =
            Cutting { room: 1443, max_slice: SliceSize::new(65_472).unwrap(), has_repair: true };
        push(&mut chunks, 0, 0, 300);
        let loss = loss(0);
        let take = |chunks: &mut Chunks, number| {
            let choice = chunks.choose_and_note(false, &path(&loss)).unwrap();
            assert!(chunks.frame_bytes(choice) <= chunks.cutting.room);
            let Chosen { at, symbol, data, part, .. } =
                chunks.take(choice, &Ledger::new(), number).unwrap();
            (at, symbol, data.len(), part)
        };
        let (at, symbol, bytes, _) = take(&mut chunks, 0);
        assert_eq!((at.index, symbol.get(), bytes), (0, 0, 1434));
        assert_eq!(take(&mut chunks, 1).1.get(), 1);
        chunks.cutting.room = 1171;
        chunks.cut_anew(2);
        assert!(!chunks.on_received(at, 1, Symbol::source(1)), "of the old cut");
        assert_eq!(take(&mut chunks, 2).2, 1162);
        assert!(chunks.on_received(at, 2, Symbol::source(0)));
        chunks.cutting.room = 1443;
        chunks.cut_anew(3);
        assert_eq!(take(&mut chunks, 3).2, 1162, "never larger again");
        chunks.check_invariants();
    }
}
