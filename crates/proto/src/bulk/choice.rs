//! Which slice goes next.
//!
//! The source slices of each chunk in order; repair for what is known to be missing; and at the end of
//! all, repair for what may yet get lost, until enough is expected to arrive with a margin for how wrong
//! that may be. Never more: what is enough cannot be known before a round trip, and what is sent
//! meanwhile would be waste.

use alloc::collections::VecDeque;

use super::SEND_WINDOW;
use super::chunk::{Chunk, OpenChunk, WireSlice};
use super::loss::LossEstimate;
use super::tuning::choice::{MARGIN, MAX_STAKE, TAIL_MARGIN};
use super::tuning::model::CHUNK;
use super::units::{Rate, Span};
use crate::chunk::ChunkId;
use crate::transit::{Ledger, Symbol};

/// What is known of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path<'a> {
    pub(super) loss: &'a LossEstimate,
    pub(super) rtt: Span,
    pub(super) rate: Option<Rate>,
}

/// Where the next slice is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Which open chunk; one beyond the last opens the next.
    open: usize,
    /// Nothing is missing, and this is for what may yet get lost: it goes at half the rate.
    pub(super) is_tail: bool,
}

/// A slice as it goes on the wire.
#[derive(Debug)]
pub(crate) struct Chosen<'a> {
    pub(crate) chunk_id: ChunkId,
    pub(crate) symbol: Symbol,
    pub(crate) slice: WireSlice<'a>,
    /// It was sent before.
    pub(super) is_repeated: bool,
}

/// The chunks to send: those with slices on the way, and those that wait.
#[derive(Debug)]
pub(super) struct Chunks {
    open: VecDeque<OpenChunk>,
    waiting: VecDeque<Chunk>,
    next_id: ChunkId,
}

impl Chunks {
    /// None; the first will have this number.
    pub(super) const fn new(first_id: ChunkId) -> Self {
        Self { open: VecDeque::new(), waiting: VecDeque::new(), next_id: first_id }
    }

    pub(super) const fn next_id(&self) -> ChunkId {
        self.next_id
    }

    /// Hands in the next one.
    pub(super) fn push(&mut self, chunk: Chunk) {
        self.waiting.push_back(chunk);
    }

    /// Those handed in whose first slice was not sent.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.waiting.is_empty()
    }

    /// Those with slices on the way.
    pub(super) const fn open(&self) -> &VecDeque<OpenChunk> {
        &self.open
    }

    pub(super) fn open_mut(&mut self) -> impl Iterator<Item = &mut OpenChunk> {
        self.open.iter_mut()
    }

    pub(super) fn get_mut(&mut self, id: ChunkId) -> Option<&mut OpenChunk> {
        self.open.iter_mut().find(|chunk| chunk.id == id)
    }

    /// The oldest one, if the receiver says that it has all of it.
    pub(super) fn pop_done(&mut self) -> Option<ChunkId> {
        self.open.front().filter(|chunk| chunk.is_done)?;
        self.open.pop_front().map(|chunk| chunk.id)
    }

    /// What should go next, if anything. `is_probe`: a slice has to go, whichever.
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
        // What a round trip more would cost, as a part of all: there is the more to be won by a margin.
        let chunk = path.rate.map_or(path.rtt, |rate| CHUNK / rate);
        let stake = (path.rtt / (path.rtt / 2.0 + chunk)).min(MAX_STAKE);
        let margin = |(least, more): (f64, f64)| least + more * stake;
        let short = |sigmas| find(&|chunk| chunk.is_short(path.loss, sigmas));
        if let Some(open) = short(margin(MARGIN)) {
            return at(open);
        }
        short(margin(TAIL_MARGIN)).map(|open| Choice { open, is_tail: true })
    }

    /// Takes the slice that was chosen.
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

    /// The symbols of what is chosen until nothing is, and how many of them at the end are tail; all of it is
    /// expected to arrive but for the losses.
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
    fn sources_go_in_order_chunk_after_chunk() {
        let (chosen, tails) = run(&mut chunks(2, 3), &loss(0));
        assert_eq!(chosen, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        assert_eq!(tails, 0);
    }

    #[test]
    fn repair_covers_what_may_get_lost_and_a_margin_and_no_more() {
        let (chosen, tails) = run(&mut chunks(1, 256), &loss(10));
        let repairs = chosen.iter().filter(|(_, symbol)| *symbol >= 256).count();
        // A tenth is 29, for repair slices get lost too.
        assert!((35..75).contains(&repairs) && (1..repairs).contains(&tails), "{repairs} {tails}");
    }

    #[test]
    fn what_is_known_to_be_missing_comes_before_what_was_not_sent() {
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
    fn no_more_chunks_are_open_than_the_window_has() {
        let mut chunks = chunks(20, 1);
        let (chosen, _) = run(&mut chunks, &loss(0));
        assert_eq!((chosen.len(), chunks.waiting()), (SEND_WINDOW, 20 - SEND_WINDOW));
    }

    #[test]
    fn a_probe_goes_though_enough_is_on_the_way() {
        let (mut chunks, loss) = (chunks(1, 2), loss(0));
        run(&mut chunks, &loss);
        let path = Path { loss: &loss, rtt: Span::from_millis(50), rate: None };
        assert_eq!(chunks.choose(false, &path), None);
        assert!(chunks.choose(true, &path).is_some());
    }
}
