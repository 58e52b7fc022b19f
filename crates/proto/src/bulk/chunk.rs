//! One chunk of the sender: which of its slices were sent, which the receiver has, and how many more are
//! expected to arrive. The ledger has those in flight.

use libm::sqrt;

use bytes::Bytes;

use super::cut::{Cut, SliceSize};
use super::loss::LossEstimate;
use super::repair::{BlockRepair, MAX_REPAIR_SLICES, RepairSlice, repair_count};
use super::tuning::choice::NO_LOSS;
use crate::BitSet;
use crate::chunk::{ChunkId, MAX_SLICES, SLICE_BYTES, Slice, SliceCount, SliceSet};
use crate::transit::{Fate, Ledger, Symbol};

/// Symbols of a chunk: sources from 0, repair slices from 256.
const SYMBOLS: usize = MAX_SLICES + MAX_REPAIR_SLICES;

/// A chunk to send.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) bytes: Bytes,
    pub(crate) repair: BlockRepair,
    /// Its position in the block.
    pub(crate) place: usize,
}

/// A slice as it goes on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WireSlice<'a> {
    Source(Slice<'a>),
    Repair(RepairSlice<'a>),
}

/// A chunk of which slices were sent.
#[derive(Clone, Debug)]
pub(crate) struct OpenChunk {
    pub(crate) id: ChunkId,
    pub(crate) chunk: Chunk,
    count: SliceCount,
    /// Symbols that the receiver has.
    received: BitSet<{ SYMBOLS / 32 }>,
    next_source: u16,
    next_repair: u16,
    /// Slices in flight that the model expects to pass the bottleneck's queue.
    in_flight: f64,
    /// The expected number of them that arrive, and its variance.
    expected: f64,
    variance: f64,
    /// The receiver reported that the chunk is complete.
    pub(crate) is_done: bool,
}

impl OpenChunk {
    /// `None` if there is no chunk of this size.
    pub(crate) fn new(id: ChunkId, chunk: Chunk) -> Option<Self> {
        let count = SliceCount::for_bytes(chunk.bytes.len())?;
        Some(Self {
            id,
            chunk,
            count,
            received: BitSet::EMPTY,
            next_source: 0,
            next_repair: 0,
            in_flight: 0.0,
            expected: 0.0,
            variance: 0.0,
            is_done: false,
        })
    }

    /// The receiver has this symbol. Returns whether that is new.
    pub(crate) fn on_received(&mut self, symbol: Symbol) -> bool {
        self.received.insert(symbol.into())
    }

    /// Reads which source slices the receiver has. Returns whether that is progress.
    pub(crate) fn on_ack(&mut self, received: &SliceSet) -> bool {
        if received.count() != self.count {
            return false;
        }
        let mut is_progress = received.is_full() && !self.is_done;
        self.is_done |= received.is_full();
        for index in received.iter() {
            is_progress |= self.on_received(symbol_of(index.get()));
        }
        is_progress
    }

    /// One more of its slices is in flight; it is lost with this probability.
    pub(crate) fn expect(&mut self, loss: f64) {
        self.in_flight += 1.0;
        self.expected += 1.0 - loss;
        self.variance += loss * (1.0 - loss);
    }

    /// Resets the count of slices in flight.
    pub(crate) const fn clear_expected(&mut self) {
        (self.in_flight, self.expected, self.variance) = (0.0, 0.0, 0.0);
    }

    /// Whether every source slice was sent once.
    pub(crate) fn is_sent(&self) -> bool {
        usize::from(self.next_source) >= self.count.get()
    }

    /// Whether the receiver has enough slices to reconstruct the chunk.
    pub(crate) fn has_enough(&self) -> bool {
        self.is_done || self.received.len() >= self.count.get()
    }

    /// Whether slices are missing that those in flight cannot replace.
    pub(crate) fn lacks_slices(&self) -> bool {
        !self.has_enough() && self.received() + self.in_flight < self.needed()
    }

    /// Whether the slices received and expected are fewer than those needed and a margin of this many
    /// standard deviations, of the losses and of their estimate. Half a slice is added to the deviation,
    /// unless losses are unlikely.
    pub(crate) fn is_short(&self, loss: &LossEstimate, sigmas: f64) -> bool {
        let share = loss.share();
        if self.has_enough() || self.needed() * share < NO_LOSS {
            return self.lacks_slices();
        }
        let uncertainty =
            self.in_flight * self.in_flight * share * (1.0 - share) / (loss.packets() + 1.0);
        let deviation = sqrt((self.variance + uncertainty) * loss.inflation());
        self.received() + self.expected < self.needed() + sigmas * (deviation + 0.5)
    }

    #[expect(clippy::cast_precision_loss, reason = "at most 512")]
    const fn received(&self) -> f64 {
        self.received.len() as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "at most 256")]
    const fn needed(&self) -> f64 {
        self.count.get() as f64
    }

    /// The next unsent slice: source slices in order, then repair slices.
    pub(crate) fn next_unsent(&mut self) -> Option<Symbol> {
        if !self.is_sent() {
            self.next_source += 1;
            return Some(self.next_source - 1);
        }
        let repairs = self.cut().map_or(0, repair_count);
        if usize::from(self.next_repair) < repairs {
            self.next_repair += 1;
            return Some(symbol_of(MAX_SLICES) + self.next_repair - 1);
        }
        None
    }

    /// The slice to retransmit once all were sent: of those that the receiver does not have, the first with
    /// the fewest copies in flight.
    pub(crate) fn next_repeated(&self, ledger: &Ledger) -> Symbol {
        let mut in_flight = [0_u8; SYMBOLS];
        for datagram in ledger.iter_from(ledger.settled()) {
            if let (Fate::InFlight, Some((id, symbol))) = (datagram.fate, datagram.slice)
                && id == self.id
                && let Some(times) = in_flight.get_mut(usize::from(symbol))
            {
                *times = times.saturating_add(1);
            }
        }
        let sources = 0..symbol_of(self.count.get());
        let repairs = symbol_of(MAX_SLICES)..symbol_of(MAX_SLICES) + self.next_repair;
        let missing =
            sources.chain(repairs).filter(|&symbol| !self.received.contains(symbol.into()));
        let times = |symbol: &Symbol| in_flight.get(usize::from(*symbol)).copied();
        missing.min_by_key(times).unwrap_or(0)
    }

    /// The slice of this symbol, as sent. The first request for a repair slice encodes all of them.
    pub(crate) fn slice(&self, symbol: Symbol) -> Option<WireSlice<'_>> {
        let Some(index) = symbol.checked_sub(symbol_of(MAX_SLICES)) else {
            let index = self.count.index(symbol.into())?;
            return Slice::of_chunk(self.id, index, &self.chunk.bytes).map(WireSlice::Source);
        };
        let (index, bytes) = (u8::try_from(index).ok()?, &self.chunk.bytes);
        let place = self.chunk.place;
        let last_bytes = bytes.len() - (self.count.get() - 1) * SLICE_BYTES;
        Some(WireSlice::Repair(RepairSlice {
            chunk_id: self.id,
            count: self.count,
            index,
            last_bytes: u16::try_from(last_bytes).ok()?,
            data: self.chunk.repair.slice(place, bytes, self.cut()?, index)?.first_chunk()?,
        }))
    }

    /// How it is cut: always into slices of 1024 bytes.
    fn cut(&self) -> Option<Cut> {
        Cut::new(self.chunk.bytes.len(), SliceSize::SMALLEST_OF_FULL_CHUNK)
    }

    /// Bytes that the receiver has, estimated from its slices.
    pub(crate) fn received_bytes(&self) -> usize {
        (self.received.len() * SLICE_BYTES).min(self.chunk.bytes.len())
    }
}

fn symbol_of(at: usize) -> Symbol {
    Symbol::try_from(at).unwrap_or(Symbol::MAX)
}
