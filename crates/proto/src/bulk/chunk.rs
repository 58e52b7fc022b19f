//! One chunk of the sender: how it is cut, which of its slices were sent, which the receiver has, and how
//! many more are expected to arrive. The ledger has those in flight.
//!
//! The invariant: what is counted is of the present cut. A datagram that was sent before
//! [`cut_anew`](OpenChunk::cut_anew) changes nothing.

use alloc::boxed::Box;
use core::time::Duration;

use haulier_control::Losses;
use libm::sqrt;

use super::cut::Cut;
use super::repair::{MAX_REPAIR_SLICES, repair_count};

use super::tuning::choice::NO_LOSS;
use crate::block_map::{ChunkMap, SliceState};
use crate::chunk::MAX_SLICES;
use crate::transit::{ChunkAt, Fate, Ledger, Symbol};
use crate::{BitSet, Instant};

/// Symbols of a chunk: sources from 0, repair slices from 256.
const SYMBOLS: usize = MAX_SLICES + MAX_REPAIR_SLICES;

/// How often a chunk is started over at most: as often as a receiver does it (H-4.2i).
const MAX_RESTARTS: u8 = 2;

/// What is larger by this factor is larger, however both were rounded.
const ROUNDING: f64 = 1.000_001;

/// A chunk of which slices were sent.
#[derive(Clone, Debug)]
pub(crate) struct OpenChunk {
    pub(crate) at: ChunkAt,
    cut: Cut,
    /// Repair slices that it may be sent with.
    repairs: usize,
    /// The number of the first datagram that can have a slice of this cut.
    first_number: u64,
    /// Symbols that the receiver has.
    received: BitSet<{ SYMBOLS / 32 }>,
    /// A bit for each source slice that was lost, and not sent again since.
    lost: [u32; MAX_SLICES / 32],
    next_source: usize,
    next_repair: usize,
    /// Slices in flight.
    in_flight: u32,
    /// How often each symbol is in flight; counted once slices are repeated. It stays as long as the chunk,
    /// so that what chunks hold can be summed up as they change.
    copies: Option<Box<[u8; SYMBOLS]>>,
    /// What is in `copies` is up to date.
    is_counted: bool,
    /// Since when the receiver says that it lacks slices that it had acknowledged.
    lacking_since: Option<Instant>,
    restarts: u8,
}

impl OpenChunk {
    /// A chunk that is opened. `next_number` is that of the next datagram.
    pub(crate) fn new(at: ChunkAt, cut: Cut, has_repair: bool, next_number: u64) -> Self {
        Self {
            at,
            cut,
            repairs: if has_repair { repair_count(cut) } else { 0 },
            first_number: next_number,
            received: BitSet::EMPTY,
            lost: [0; MAX_SLICES / 32],
            next_source: 0,
            next_repair: 0,
            in_flight: 0,
            copies: None,
            is_counted: false,
            lacking_since: None,
            restarts: 0,
        }
    }

    /// Starts over with other slices: what was sent of the chunk does not count any more.
    pub(crate) fn cut_anew(&mut self, cut: Cut, next_number: u64) {
        let anew = Self::new(self.at, cut, self.repairs > 0, next_number);
        *self = Self { copies: self.copies.take(), ..anew };
    }

    pub(crate) const fn cut(&self) -> Cut {
        self.cut
    }

    /// Whether a datagram of this number can have a slice of the present cut.
    pub(crate) const fn counts(&self, number: u64) -> bool {
        number >= self.first_number
    }

    /// The receiver has this symbol. Returns whether that is new.
    pub(crate) fn on_received(&mut self, symbol: Symbol) -> bool {
        self.received.insert(symbol.get())
    }

    /// The receiver has the source slices in `map`, although it had acknowledged enough. If it says so for
    /// longer than frames are on the way, the chunk was wrong there, and it starts over: so it does here,
    /// from source slices alone. Returns whether it does.
    pub(crate) fn on_lacking(&mut self, now: Instant, map: &[u8], patience: Duration) -> bool {
        if !self.has_enough() || self.restarts >= MAX_RESTARTS {
            return false;
        }
        let since = *self.lacking_since.get_or_insert(now);
        let here =
            |index: usize| map.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 != 0);
        let sources = || (0..self.next_source).filter(|&index| here(index));
        if now.since(since) < patience || sources().count() >= self.cut.count() {
            return false;
        }
        let mut received = BitSet::EMPTY;
        for index in sources() {
            received.insert(index);
        }
        (self.received, self.lacking_since) = (received, None);
        self.restarts += 1;
        self.repairs = 0;
        true
    }

    /// One more of its slices in flight is expected to arrive, unless it is lost behind the bottleneck.
    pub(crate) const fn expect(&mut self) {
        self.in_flight += 1;
    }

    /// One of these is not, or not any more.
    pub(crate) const fn unexpect(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Slices in flight that are expected to arrive.
    #[cfg(test)]
    pub(crate) const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether every source slice was sent once.
    pub(crate) const fn is_sent(&self) -> bool {
        self.next_source >= self.cut.count()
    }

    /// The source slices with a bit in `map` of which it is not known that the receiver has them. Those that
    /// were never sent are left out.
    pub(crate) fn news_in(&self, map: &[u8]) -> [u32; MAX_SLICES / 32] {
        let mut news = [0; MAX_SLICES / 32];
        let known = self.received.words();
        for (at, (news, known)) in news.iter_mut().zip(known).enumerate() {
            let bytes: [u8; 4] =
                core::array::from_fn(|n| map.get(4 * at + n).copied().unwrap_or_default());
            let sent = match self.next_source.saturating_sub(32 * at) {
                sent @ ..32 => (1 << sent) - 1,
                _ => u32::MAX,
            };
            *news = u32::from_le_bytes(bytes) & sent & !known;
        }
        news
    }

    /// Whether the receiver has enough slices to reconstruct the chunk.
    pub(crate) const fn has_enough(&self) -> bool {
        self.received.len() >= self.cut.count()
    }

    /// Whether slices are missing that those in flight cannot replace.
    pub(crate) fn lacks_slices(&self) -> bool {
        !self.has_enough() && self.received() + f64::from(self.in_flight) < self.needed()
    }

    /// Whether the slices received and expected are fewer than those needed and a margin of this many
    /// standard deviations, of the losses and of their estimate. Half a slice is added to the deviation,
    /// unless losses are unlikely.
    pub(crate) fn is_short(&self, losses: &Losses, sigmas: f64) -> bool {
        let Losses { share, in_flight: lost, packets, inflation } = *losses;
        if self.has_enough() || self.needed() * share < NO_LOSS {
            return self.lacks_slices();
        }
        let in_flight = f64::from(self.in_flight);
        let expected = self.received() + in_flight * (1.0 - lost);
        let uncertainty = in_flight * in_flight * share * (1.0 - share) / (packets + 1.0);
        let variance = (in_flight * lost * (1.0 - lost) + uncertainty) * inflation;
        let surplus = expected - self.needed() - sigmas * 0.5;
        if surplus > 0.0 && surplus * surplus > ROUNDING * sigmas * sigmas * variance {
            // Far from it, as nearly all are: without a root.
            return false;
        }
        expected < self.needed() + sigmas * (sqrt(variance) + 0.5)
    }

    #[expect(clippy::cast_precision_loss, reason = "at most 512")]
    const fn received(&self) -> f64 {
        self.received.len() as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "at most 256")]
    const fn needed(&self) -> f64 {
        self.cut.count() as f64
    }

    /// The next unsent slice: source slices in order, then repair slices.
    pub(crate) fn next_unsent(&mut self) -> Option<Symbol> {
        if !self.is_sent() {
            self.next_source += 1;
            return source(self.next_source - 1);
        }
        if self.next_repair < self.repairs {
            self.next_repair += 1;
            return repair(self.next_repair - 1);
        }
        None
    }

    /// Whether the next slice is repair, if a source slice may not go again as it is (`is_exact`).
    pub(super) fn is_next_repair(&self, is_exact: bool) -> bool {
        let mut words = self.lost.iter().zip(self.received.words());
        let has_lost = is_exact && words.any(|(lost, received)| lost & !received != 0);
        self.is_sent() && self.repairs > 0 && !has_lost
    }

    /// The first source slice that is known to be lost, and is not on its way again.
    pub(crate) fn next_lost(&mut self) -> Option<Symbol> {
        let words = self.lost.iter_mut().zip(self.received.words()).enumerate();
        let mut missing = words.filter_map(|(at, (lost, received))| {
            *lost &= !received;
            (*lost != 0).then_some((at, lost))
        });
        let (at, lost) = missing.next()?;
        let bit = lost.trailing_zeros();
        *lost &= !(1 << bit);
        source(32 * at + bit as usize)
    }

    /// The slice to retransmit once all were sent: of those that the receiver does not have, the first with
    /// the fewest copies in flight.
    pub(crate) fn next_repeated(&mut self, ledger: &Ledger) -> Symbol {
        let mut copies = self.copies.take().unwrap_or_else(|| Box::new([0; SYMBOLS]));
        if !core::mem::replace(&mut self.is_counted, true) {
            self.count_copies(ledger, &mut copies);
        }
        let sources = (0..self.cut.count()).filter_map(source);
        let repairs = (0..self.next_repair.min(self.repairs)).filter_map(repair);
        let missing = sources.chain(repairs).filter(|symbol| !self.received.contains(symbol.get()));
        let in_flight = |symbol: &Symbol| copies.get(symbol.get()).copied();
        let next = missing.min_by_key(in_flight).unwrap_or(Symbol::source(0));
        self.copies = Some(copies);
        next
    }

    fn count_copies(&self, ledger: &Ledger, copies: &mut [u8; SYMBOLS]) {
        copies.fill(0);
        for datagram in ledger.iter_from(ledger.settled()) {
            if let (Fate::InFlight, Some((at, symbol))) = (datagram.fate, datagram.slice)
                && at == self.at
                && self.counts(datagram.number)
                && let Some(count) = copies.get_mut(symbol.get())
            {
                *count = count.saturating_add(1);
            }
        }
    }

    /// A slice was sent.
    pub(crate) fn on_sent(&mut self, symbol: Symbol) {
        if let Some(count) = self.copy_mut(symbol) {
            *count = count.saturating_add(1);
        }
    }

    /// A slice is no longer in flight.
    pub(crate) fn on_landed(&mut self, symbol: Symbol) {
        if let Some(count) = self.copy_mut(symbol) {
            *count = count.saturating_sub(1);
        }
    }

    /// This slice is not in flight any more, and was lost.
    pub(crate) fn on_lost(&mut self, symbol: Symbol) {
        let (index, is_repair) = symbol.index();
        if let Some(word) = self.lost.get_mut(usize::from(index) / 32).filter(|_| !is_repair) {
            *word |= 1 << (index % 32);
        }
    }

    /// All that was in flight is given up.
    pub(crate) const fn on_given_up(&mut self) {
        (self.in_flight, self.is_counted) = (0, false);
    }

    fn copy_mut(&mut self, symbol: Symbol) -> Option<&mut u8> {
        self.copies.as_mut().filter(|_| self.is_counted)?.get_mut(symbol.get())
    }

    /// What is known of each of its slices.
    pub(crate) fn map(&self) -> ChunkMap {
        let mut map = ChunkMap::new(self.at.index, self.cut.count());
        for slice in 0..self.next_source.min(self.cut.count()) {
            let is_lost =
                self.lost.get(slice / 32).is_some_and(|word| word >> (slice % 32) & 1 != 0);
            map.mark(
                slice,
                match (self.received.contains(slice), is_lost) {
                    (true, _) => SliceState::Arrived,
                    (false, true) => SliceState::Missing,
                    (false, false) => SliceState::InFlight,
                },
            );
        }
        let repairs = self.next_repair.min(self.repairs);
        let arrived = (0..repairs).filter(|&index| self.received.contains(MAX_SLICES + index));
        map.repairs_arrived = u16::try_from(arrived.count()).unwrap_or(u16::MAX);
        map.repairs_sent = u16::try_from(repairs).unwrap_or(u16::MAX);
        map
    }

    /// Bytes that the receiver has, estimated from its slices.
    pub(crate) fn received_bytes(&self) -> usize {
        (self.received.len() * self.cut.size().bytes()).min(self.cut.chunk_bytes())
    }

    /// Memory held, in bytes.
    pub(crate) const fn memory_bytes(&self) -> usize {
        size_of::<Self>() + if self.copies.is_some() { SYMBOLS } else { 0 }
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.next_source <= self.cut.count(), "a slice that it does not have");
        assert!(self.next_repair <= repair_count(self.cut), "a repair slice that it does not have");
        assert!(self.received.len() <= self.next_source + self.next_repair, "never sent");
    }
}

fn source(index: usize) -> Option<Symbol> {
    u8::try_from(index).ok().map(Symbol::source)
}

fn repair(index: usize) -> Option<Symbol> {
    u8::try_from(index).ok().map(Symbol::repair)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::super::cut::SliceSize;
    use super::*;

    fn chunk(bytes: usize, size: usize, has_repair: bool) -> OpenChunk {
        let cut = Cut::new(bytes, SliceSize::new(size).unwrap()).unwrap();
        OpenChunk::new(ChunkAt { block: 0, index: 0 }, cut, has_repair, 0)
    }

    #[test]
    fn sources_come_first_and_then_as_many_repair_slices_as_the_cut_has() {
        let mut with = chunk(7000, 1024, true);
        let symbols = core::iter::from_fn(|| with.next_unsent()).map(Symbol::get);
        assert!(symbols.eq((0..7).chain(256..264)), "8 for 7");
        let mut without = chunk(7000, 1024, false);
        assert_eq!(core::iter::from_fn(|| without.next_unsent()).count(), 7);
        let mut alone = chunk(700, 1024, true);
        assert_eq!(core::iter::from_fn(|| alone.next_unsent()).count(), 1);
    }

    /// Without repair slices the sources are sent again, those least in flight first.
    #[test]
    fn the_slice_that_is_least_in_flight_is_repeated() {
        let mut chunk = chunk(4000, 1000, false);
        while chunk.next_unsent().is_some() {}
        assert!(chunk.on_received(Symbol::source(1)));
        let mut repeat = || {
            let symbol = chunk.next_repeated(&Ledger::new());
            chunk.on_sent(symbol);
            symbol.get()
        };
        assert_eq!([repeat(), repeat(), repeat(), repeat()], [0, 2, 3, 0]);
        chunk.on_landed(Symbol::source(3));
        assert_eq!(chunk.next_repeated(&Ledger::new()).get(), 3);
    }

    /// A receiver that found a chunk wrong gets its source slices once more; one that says so without end
    /// does not.
    #[test]
    fn a_chunk_that_was_wrong_is_sent_again_from_its_sources() {
        let mut chunk = chunk(4000, 1000, true);
        for _ in 0..6 {
            chunk.next_unsent();
        }
        let patience = Duration::from_millis(220);
        let lacks = |chunk: &mut OpenChunk, ms| {
            chunk.on_lacking(Instant::from_millis(ms), &[0b0010], patience)
        };
        assert!(!lacks(&mut chunk, 0), "it lacks some here too");
        for round in [1_000, 2_000] {
            for index in 0..4 {
                chunk.on_received(Symbol::source(index));
            }
            assert!(chunk.has_enough() && !lacks(&mut chunk, round), "it may be on the way");
            assert!(!lacks(&mut chunk, round + 219) && lacks(&mut chunk, round + 220));
            assert!(chunk.lacks_slices());
            chunk.check_invariants();
            let mut repeat = || {
                let symbol = chunk.next_repeated(&Ledger::new());
                chunk.on_sent(symbol);
                symbol.get()
            };
            let mut repeated = [repeat(), repeat(), repeat()];
            repeated.sort_unstable();
            assert_eq!(repeated, [0, 2, 3], "round {round}");
            for index in repeated {
                chunk.on_landed(source(index).unwrap());
            }
        }
        for index in 0..4 {
            chunk.on_received(Symbol::source(index));
        }
        assert!(!lacks(&mut chunk, 3_000) && !lacks(&mut chunk, 9_000));
    }

    #[test]
    fn a_lost_source_slice_is_named_once() {
        let mut chunk = chunk(40_000, 1000, true);
        while !chunk.is_sent() {
            chunk.next_unsent();
        }
        [35, 3, 38].into_iter().map(Symbol::source).for_each(|lost| chunk.on_lost(lost));
        chunk.on_lost(Symbol::repair(1));
        assert!(chunk.on_received(Symbol::source(35)), "it came late");
        let named: Vec<_> = core::iter::from_fn(|| chunk.next_lost()).map(Symbol::get).collect();
        assert_eq!(named, [3, 38]);
        chunk.on_lost(Symbol::source(3));
        assert_eq!(chunk.next_lost(), Some(Symbol::source(3)), "and was lost again");
    }

    #[test]
    fn a_chunk_that_is_cut_anew_starts_over() {
        let mut chunk = chunk(4000, 2000, true);
        while chunk.next_unsent().is_some() {}
        assert!(chunk.on_received(Symbol::source(1)) && chunk.on_received(Symbol::repair(1)));
        assert!(chunk.has_enough() && chunk.counts(0));
        chunk.cut_anew(Cut::new(4000, SliceSize::new(1024).unwrap()).unwrap(), 9);
        assert!(!chunk.has_enough() && !chunk.is_sent() && !chunk.counts(8) && chunk.counts(9));
        assert_eq!(core::iter::from_fn(|| chunk.next_unsent()).count(), 8, "4 and 4");
        chunk.check_invariants();
    }
}
