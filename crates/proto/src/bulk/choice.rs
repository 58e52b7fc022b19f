//! Choice of the next slice.
//!
//! First repair slices for those known to be missing, then the source slices of each chunk in order. At the
//! end come repair slices for those that may still be lost, until enough slices are expected to arrive, with
//! a margin for the error of that estimate. The sender then stops: whether more is needed shows only after a
//! round trip, and slices sent before that would mostly be waste.

use alloc::collections::VecDeque;

use super::SEND_WINDOW;
use super::chunk::{Chunk, OpenChunk, WireSlice};
use super::loss::LossEstimate;
use super::tuning::choice::{MARGIN, MAX_STAKE, TAIL_MARGIN};
use super::tuning::model::CHUNK;
use super::units::{Rate, Span};
use crate::chunk::ChunkId;
use crate::transit::{Ledger, Symbol};

/// The estimates for the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path<'a> {
    pub(super) loss: &'a LossEstimate,
    pub(super) rtt: Span,
    pub(super) rate: Option<Rate>,
}

/// Which chunk the next slice is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The position of the open chunk; one beyond the last opens the next chunk.
    open: usize,
    /// No slice is missing, and this one is for further losses: it is sent at half the rate.
    pub(super) is_tail: bool,
}

/// The slice to send.
#[derive(Debug)]
pub(crate) struct Chosen<'a> {
    pub(crate) chunk_id: ChunkId,
    pub(crate) symbol: Symbol,
    pub(crate) slice: WireSlice<'a>,
    /// It is a retransmission.
    pub(super) is_repeated: bool,
}

/// The chunks to send: those begun, and those waiting.
#[derive(Debug)]
pub(super) struct Chunks {
    open: VecDeque<OpenChunk>,
    waiting: VecDeque<Chunk>,
    next_id: ChunkId,
}

impl Chunks {
    /// No chunks yet; the first will have this id.
    pub(super) const fn new(first_id: ChunkId) -> Self {
        Self { open: VecDeque::new(), waiting: VecDeque::new(), next_id: first_id }
    }

    pub(super) const fn next_id(&self) -> ChunkId {
        self.next_id
    }

    /// Adds the next chunk.
    pub(super) fn push(&mut self, chunk: Chunk) {
        self.waiting.push_back(chunk);
    }

    /// The number of chunks of which no slice was sent.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.waiting.is_empty()
    }

    /// The chunks begun and not done, oldest first.
    pub(super) const fn open(&self) -> &VecDeque<OpenChunk> {
        &self.open
    }

    pub(super) fn open_mut(&mut self) -> impl Iterator<Item = &mut OpenChunk> {
        self.open.iter_mut()
    }

    pub(super) fn get_mut(&mut self, id: ChunkId) -> Option<&mut OpenChunk> {
        self.open.iter_mut().find(|chunk| chunk.id == id)
    }

    /// Removes the oldest chunk if the receiver reported that it is complete.
    pub(super) fn pop_done(&mut self) -> Option<ChunkId> {
        self.open.front().filter(|chunk| chunk.is_done)?;
        self.open.pop_front().map(|chunk| chunk.id)
    }

    /// What to send next, if anything. With `is_probe` a slice is chosen in any case.
    pub(super) fn choose(&self, is_probe: bool, path: &Path<'_>) -> Option<Choice> {
        let at = |open| Some(Choice { open, is_tail: false });
        let find = |test: &dyn Fn(&OpenChunk) -> bool| self.open.iter().position(test);
        let probed = if is_probe { find(&|chunk| !chunk.is_done) } else { None };
        if let Some(open) = probed
            .or_else(|| find(&|chunk| chunk.is_sent() && chunk.lacks_slices()))
            .or_else(|| find(&|chunk| !chunk.is_sent()))
        {
            return at(open);
        }
        if !self.waiting.is_empty() && self.open.len() < SEND_WINDOW {
            return at(self.open.len());
        }
        // The relative cost of another round trip: the larger it is, the more a margin saves.
        let chunk = path.rate.map_or(path.rtt, |rate| CHUNK / rate);
        let stake = (path.rtt / (path.rtt / 2.0 + chunk)).min(MAX_STAKE);
        let margin = |(base, by_stake): (f64, f64)| base + by_stake * stake;
        let short = |sigmas| find(&|chunk| chunk.is_short(path.loss, sigmas));
        if let Some(open) = short(margin(MARGIN)) {
            return at(open);
        }
        short(margin(TAIL_MARGIN)).map(|open| Choice { open, is_tail: true })
    }

    /// Returns the chosen slice, and counts it as sent.
    pub(super) fn take(&mut self, choice: Choice, ledger: &Ledger) -> Option<Chosen<'_>> {
        if choice.open >= self.open.len() {
            let chunk = self.waiting.pop_front()?;
            let id = self.next_id;
            self.next_id = id.next();
            self.open.push_back(OpenChunk::new(id, chunk)?);
        }
        let chunk = self.open.get_mut(choice.open)?;
        let unsent = chunk.next_unsent();
        let symbol = unsent.unwrap_or_else(|| chunk.next_repeated(ledger));
        let slice = chunk.slice(symbol)?;
        Some(Chosen { chunk_id: chunk.id, symbol, slice, is_repeated: unsent.is_none() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::repair::BlockRepair;
    use super::*;

    fn chunks(count: usize, slices: usize) -> Chunks {
        let mut chunks = Chunks::new(ChunkId::new(0));
        let repair = BlockRepair::of_block(count * 262_144);
        for place in 0..count {
            let bytes = alloc::vec![7; slices * 1024].into();
            chunks.push(Chunk { bytes, repair: repair.clone(), place });
        }
        chunks
    }

    fn loss(percent: u32) -> LossEstimate {
        let mut loss = LossEstimate::new();
        (0..1_000).for_each(|n| loss.on_packet(n % 100 < percent));
        loss
    }

    /// The symbols chosen until there are no more, and how many of them are tail. All count as in flight.
    fn run(chunks: &mut Chunks, loss: &LossEstimate) -> (alloc::vec::Vec<(u16, Symbol)>, usize) {
        let path = Path { loss, rtt: Span::from_millis(50), rate: Some(Rate::from_kbps(10_000)) };
        let (mut chosen, mut tails) = (alloc::vec::Vec::new(), 0);
        while let Some(choice) = chunks.choose(false, &path) {
            let Chosen { chunk_id, symbol, .. } = chunks.take(choice, &Ledger::new()).unwrap();
            chunks.get_mut(chunk_id).unwrap().expect(loss.share());
            chosen.push((chunk_id.get(), symbol));
            tails += usize::from(choice.is_tail);
        }
        (chosen, tails)
    }

    #[test]
    fn source_slices_are_sent_in_order() {
        let (chosen, tails) = run(&mut chunks(2, 3), &loss(0));
        assert_eq!(chosen, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        assert_eq!(tails, 0);
    }

    #[test]
    fn repair_covers_expected_losses_and_a_margin() {
        let (chosen, tails) = run(&mut chunks(1, 256), &loss(10));
        let repairs = chosen.iter().filter(|(_, symbol)| *symbol >= 256).count();
        // 10 % is 29, because repair slices are lost too.
        assert!((35..75).contains(&repairs) && (1..repairs).contains(&tails), "{repairs} {tails}");
    }

    #[test]
    fn repair_of_missing_slices_comes_before_unsent_slices() {
        let mut chunks = chunks(2, 4);
        let path = Path { loss: &loss(0), rtt: Span::from_millis(50), rate: None };
        for _ in 0..4 {
            let choice = chunks.choose(false, &path).unwrap();
            chunks.take(choice, &Ledger::new()).unwrap();
        }
        // Nothing of the first chunk is expected to arrive.
        let choice = chunks.choose(false, &path).unwrap();
        let next = chunks.take(choice, &Ledger::new()).unwrap();
        assert_eq!((next.chunk_id.get(), next.symbol), (0, 256));
    }

    #[test]
    fn open_chunks_are_limited_by_the_window() {
        let mut chunks = chunks(20, 1);
        let (chosen, _) = run(&mut chunks, &loss(0));
        assert_eq!((chosen.len(), chunks.waiting()), (SEND_WINDOW, 20 - SEND_WINDOW));
    }

    #[test]
    fn a_probe_is_sent_even_if_enough_is_in_flight() {
        let (mut chunks, loss) = (chunks(1, 2), loss(0));
        run(&mut chunks, &loss);
        let path = Path { loss: &loss, rtt: Span::from_millis(50), rate: None };
        assert_eq!(chunks.choose(false, &path), None);
        assert!(chunks.choose(true, &path).is_some());
    }
}
