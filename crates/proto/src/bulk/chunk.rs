//! One chunk on its way out: what of it was sent, what is with the receiver, and what is still expected
//! there. What is in flight is the ledger's to say.

use libm::sqrt;

use bytes::Bytes;

use super::loss::LossEstimate;
use super::repair::{BlockRepair, REPAIR_SLICES, RepairSlice, has_repair};
use super::tuning::choice::NO_LOSS;
use crate::BitSet;
use crate::chunk::{ChunkId, MAX_SLICES, SLICE_BYTES, Slice, SliceCount, SliceSet};
use crate::transit::{Fate, Ledger, Symbol};

/// Symbols of a chunk: sources from 0, repair slices from 256.
const SYMBOLS: usize = MAX_SLICES + REPAIR_SLICES;

/// A chunk that was handed to the sender.
#[derive(Clone, Debug)]
pub(crate) struct Chunk {
    pub(crate) bytes: Bytes,
    pub(crate) repair: BlockRepair,
    /// Which of its block it is.
    pub(crate) place: usize,
}

/// A slice as it goes on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WireSlice<'a> {
    Source(Slice<'a>),
    Repair(RepairSlice<'a>),
}

/// A chunk with slices on the way.
#[derive(Clone, Debug)]
pub(crate) struct OpenChunk {
    pub(crate) id: ChunkId,
    pub(crate) chunk: Chunk,
    count: SliceCount,
    /// Symbols that are with the receiver.
    with_peer: BitSet<{ SYMBOLS / 32 }>,
    next_source: u16,
    next_repair: u16,
    /// Slices in flight that passed the bottleneck's queue, if the model is right.
    flying: f64,
    /// Those of them expected to arrive, and the variance of their number.
    expected: f64,
    variance: f64,
    /// The receiver says that it has all.
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
            with_peer: BitSet::EMPTY,
            next_source: 0,
            next_repair: 0,
            flying: 0.0,
            expected: 0.0,
            variance: 0.0,
            is_done: false,
        })
    }

    /// It is with the receiver. Returns whether that is news.
    pub(crate) fn on_received(&mut self, symbol: Symbol) -> bool {
        self.with_peer.insert(symbol.into())
    }

    /// What the receiver says of the source slices. Returns whether it brought news.
    pub(crate) fn on_ack(&mut self, received: &SliceSet) -> bool {
        if received.count() != self.count {
            return false;
        }
        let mut news = received.is_full() && !self.is_done;
        self.is_done |= received.is_full();
        for index in received.iter() {
            news |= self.on_received(symbol_of(index.get()));
        }
        news
    }

    /// One more of its slices is on the way, and is lost with this probability.
    pub(crate) fn expect(&mut self, loss: f64) {
        self.flying += 1.0;
        self.expected += 1.0 - loss;
        self.variance += loss * (1.0 - loss);
    }

    /// Expects nothing, to count anew.
    pub(crate) const fn expect_nothing(&mut self) {
        (self.flying, self.expected, self.variance) = (0.0, 0.0, 0.0);
    }

    /// Whether every slice was sent once.
    pub(crate) fn is_sent(&self) -> bool {
        usize::from(self.next_source) >= self.count.get()
    }

    /// Enough is there, or said to be there, that nothing more need be sent.
    pub(crate) fn is_enough(&self) -> bool {
        self.is_done || self.with_peer.len() >= self.count.get()
    }

    /// Whether slices are missing that nothing on the way can replace.
    pub(crate) fn lacks_slices(&self) -> bool {
        !self.is_enough() && self.got() + self.flying < self.need()
    }

    /// Whether what is there and expected is less than is needed and so many standard deviations more: those
    /// of the losses, and of their estimate. Half a slice counts as doubt, too, unless losses are hardly to
    /// be expected.
    pub(crate) fn is_short(&self, loss: &LossEstimate, sigmas: f64) -> bool {
        let share = loss.share();
        if self.is_enough() || self.need() * share < NO_LOSS {
            return self.lacks_slices();
        }
        let doubt = self.flying * self.flying * share * (1.0 - share) / (loss.packets() + 1.0);
        let deviation = sqrt((self.variance + doubt) * loss.inflation());
        self.got() + self.expected < self.need() + sigmas * (deviation + 0.5)
    }

    #[expect(clippy::cast_precision_loss, reason = "at most 512")]
    const fn got(&self) -> f64 {
        self.with_peer.len() as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "at most 256")]
    const fn need(&self) -> f64 {
        self.count.get() as f64
    }

    /// The next slice that was not sent yet: source slices in order, then repair slices.
    pub(crate) fn next_unsent(&mut self) -> Option<Symbol> {
        if !self.is_sent() {
            self.next_source += 1;
            return Some(self.next_source - 1);
        }
        if has_repair(self.count) && usize::from(self.next_repair) < REPAIR_SLICES {
            self.next_repair += 1;
            return Some(symbol_of(MAX_SLICES) + self.next_repair - 1);
        }
        None
    }

    /// The slice to send again, once all were sent: one that the receiver does not have, and of these the
    /// first that is least in flight.
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
            sources.chain(repairs).filter(|&symbol| !self.with_peer.contains(symbol.into()));
        let times = |symbol: &Symbol| in_flight.get(usize::from(*symbol)).copied();
        missing.min_by_key(times).unwrap_or(0)
    }

    /// The slice with this number, as it goes on the wire. The first repair slice that is asked for makes
    /// all.
    pub(crate) fn slice(&self, symbol: Symbol) -> Option<WireSlice<'_>> {
        let Some(index) = symbol.checked_sub(symbol_of(MAX_SLICES)) else {
            let index = self.count.index(symbol.into())?;
            return Slice::of_chunk(self.id, index, &self.chunk.bytes).map(WireSlice::Source);
        };
        let (index, bytes) = (u8::try_from(index).ok()?, &self.chunk.bytes);
        let last_bytes = bytes.len() - (self.count.get() - 1) * SLICE_BYTES;
        Some(WireSlice::Repair(RepairSlice {
            chunk_id: self.id,
            count: self.count,
            index,
            last_bytes: u16::try_from(last_bytes).ok()?,
            data: self.chunk.repair.slice(self.chunk.place, bytes, index)?,
        }))
    }

    /// Bytes that are with the receiver, as far as slices tell.
    pub(crate) fn bytes_with_peer(&self) -> usize {
        (self.with_peer.len() * SLICE_BYTES).min(self.chunk.bytes.len())
    }
}

fn symbol_of(at: usize) -> Symbol {
    Symbol::try_from(at).unwrap_or(Symbol::MAX)
}
