//! The memory of one incomplete chunk: as much as arrived, in the order of arrival, for slices of any size.
//!
//! A buffer with a place for every slice would let one slice cost a whole chunk. Here a slice takes the next
//! free place, whatever its index, and the buffer grows in steps as slices come. In order, which is the
//! common case, the buffer is the chunk, and may be one that a chunk before it had. The invariant: another
//! one is at most [`GROWTH`] times what arrived and one step, and never has places for more slices than the
//! chunk has.

use alloc::vec::Vec;

use crate::BitSet;
use crate::bulk::cut::Cut;
use crate::bulk::repair::{decode, repair_count};
use crate::chunk::MAX_CHUNK_BYTES;

/// Bytes of the first allocation, rounded down to slices.
const FIRST_STEP_BYTES: usize = 8192;

/// How many times as large the buffer is after each step: a whole chunk takes three. Each is a copy of what
/// arrived into memory that was never touched, which in a join over a local network took longer than to
/// decrypt it. Credit counts a chunk as whole from its first slice on, so that the budget holds anyway.
const GROWTH: usize = 8;

/// Symbols from here on are repair slices; those before are source slices.
const FIRST_REPAIR: u16 = 256;

/// The slices of one chunk that have arrived: any of them, source or repair, up to as many as it has.
pub(super) struct Assembly {
    cut: Cut,
    sources: BitSet<8>,
    repairs: BitSet<8>,
    /// The slices in the order of arrival, each in a place of full size.
    places: Vec<u8>,
    /// The symbol of each place.
    order: Vec<u16>,
}

crate::debug_as! { Assembly: |chunk| cut = chunk.cut, slices = chunk.order.len() }

impl Assembly {
    /// Nothing of a chunk that is cut this way, and no memory for it.
    pub(super) const fn new(cut: Cut) -> Self {
        Self::within(cut, Vec::new())
    }

    /// Nothing of a chunk that is cut this way, in `memory`, which is empty.
    pub(super) const fn within(cut: Cut, memory: Vec<u8>) -> Self {
        let (sources, repairs) = (BitSet::EMPTY, BitSet::EMPTY);
        Self { cut, sources, repairs, places: memory, order: Vec::new() }
    }

    /// How its chunk is cut.
    pub(super) const fn cut(&self) -> Cut {
        self.cut
    }

    /// The source slices that have arrived.
    pub(super) const fn sources(&self) -> &BitSet<8> {
        &self.sources
    }

    /// The repair slices that have arrived.
    pub(super) const fn repairs(&self) -> &BitSet<8> {
        &self.repairs
    }

    /// Whether a repair slice is among the slices.
    pub(super) const fn has_repairs(&self) -> bool {
        !self.repairs.is_empty()
    }

    /// Whether there are enough slices to [`finish`](Self::finish).
    pub(super) const fn is_enough(&self) -> bool {
        self.order.len() >= self.cut.count()
    }

    /// Bytes of the chunk that have arrived, in whole slices.
    pub(super) fn received_bytes(&self) -> usize {
        (self.order.len() * self.cut.size().bytes()).min(self.cut.chunk_bytes())
    }

    /// Stores a source slice. Returns whether it is new; the first copy wins. One of another length than the
    /// chunk's slices have is not stored.
    pub(super) fn insert_source(&mut self, index: u8, data: &[u8]) -> bool {
        let fits = self.cut.range(index).is_some_and(|range| range.len() == data.len());
        if !fits || self.is_enough() || !self.sources.insert(index.into()) {
            return false;
        }
        self.push(index.into(), data);
        true
    }

    /// Stores a repair slice. Returns whether it is new.
    pub(super) fn insert_repair(&mut self, index: u8, data: &[u8]) -> bool {
        let fits =
            usize::from(index) < repair_count(self.cut) && data.len() == self.cut.size().bytes();
        if !fits || self.is_enough() || !self.repairs.insert(index.into()) {
            return false;
        }
        self.push(FIRST_REPAIR + u16::from(index), data);
        true
    }

    /// The chunk, from as many slices as it has; `None` if they are fewer. With a repair slice among them it
    /// has to be decoded.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        if !self.is_enough() {
            return None;
        }
        if self.has_repairs() {
            return self.decode();
        }
        let is_in_order = (0_u16..).zip(&self.order).all(|(place, &symbol)| place == symbol);
        if !is_in_order {
            return self.sorted();
        }
        self.places.truncate(self.cut.chunk_bytes());
        self.places.shrink_to_fit();
        Some(self.places)
    }

    /// Bytes of memory held.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.places.capacity() + self.order.capacity() * size_of::<u16>()
    }

    /// Panics if the parts contradict each other.
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.sources.len() + self.repairs.len(), self.order.len());
        let padded = self.order.len() * self.place_bytes();
        assert!(self.places.len() == padded || self.is_enough() && self.places.len() < padded);
        let places = (GROWTH * self.order.len()).max(self.first_step()).min(self.cut.count());
        assert!(self.order.len() <= self.cut.count() && self.order.capacity() <= places.max(4));
        let is_used_again = self.places.capacity() == MAX_CHUNK_BYTES;
        assert!(
            is_used_again || self.places.capacity() <= places * self.place_bytes(),
            "more than what arrived needs"
        );
    }

    /// Bytes of a place. A chunk of one slice may be much shorter than its slice size.
    fn place_bytes(&self) -> usize {
        self.cut.size().bytes().min(self.cut.chunk_bytes())
    }

    fn first_step(&self) -> usize {
        (FIRST_STEP_BYTES / self.place_bytes()).max(1)
    }

    fn push(&mut self, symbol: u16, data: &[u8]) {
        let (held, count) = (self.order.len(), self.cut.count());
        let more = ((GROWTH - 1) * held).max(self.first_step()).min(count - held);
        // The last place is as long as what is in it.
        let is_last = held + 1 == count;
        let place = if is_last { data.len() } else { self.place_bytes() };
        if self.places.capacity() - self.places.len() < place {
            let more = if is_last { place } else { more * place };
            let chunk = self.cut.chunk_bytes().saturating_sub(self.places.len());
            // In order, the last of all is the short one: then the buffer is as long as the chunk.
            self.places.reserve_exact(if place <= chunk { more.min(chunk) } else { more });
        }
        if held == self.order.capacity() {
            self.order.reserve_exact(more);
        }
        self.places.extend_from_slice(data);
        if !is_last {
            self.places.resize((held + 1) * self.place_bytes(), 0);
        }
        self.order.push(symbol);
    }

    /// The slices of one kind: index, and data without what fills its place up.
    fn slices(&self, is_repair: bool) -> impl Iterator<Item = (u8, &[u8])> {
        let places = self.order.iter().zip(self.places.chunks(self.place_bytes()));
        places.filter_map(move |(&symbol, place)| {
            let index = symbol.checked_sub(if is_repair { FIRST_REPAIR } else { 0 })?;
            let index = u8::try_from(index).ok()?;
            let bytes = if is_repair { place.len() } else { self.cut.range(index)?.len() };
            Some((index, place.get(..bytes)?))
        })
    }

    fn sorted(&self) -> Option<Vec<u8>> {
        let mut chunk = alloc::vec![0; self.cut.chunk_bytes()];
        for (index, data) in self.slices(false) {
            chunk.get_mut(self.cut.range(index)?)?.copy_from_slice(data);
        }
        Some(chunk)
    }

    fn decode(&self) -> Option<Vec<u8>> {
        decode(self.cut, self.slices(false), self.slices(true))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cut_of, pattern};
    use super::*;
    use crate::bulk::repair::encode;

    #[test]
    fn any_order_gives_the_same_chunk() {
        for (bytes, size) in [(1, 2), (40_000, 1024), (40_001, 1434), (262_144, 65_472)] {
            let (chunk, cut) = (pattern(bytes), cut_of(bytes, size));
            let forwards: Vec<u8> = (0..cut.count()).map(|at| u8::try_from(at).unwrap()).collect();
            let backwards: Vec<u8> = forwards.iter().rev().copied().collect();
            for order in [forwards, backwards] {
                let mut assembly = Assembly::new(cut);
                assert_eq!(assembly.memory_bytes(), 0);
                for &index in &order {
                    assert!(!assembly.is_enough());
                    let data = &chunk[cut.range(index).unwrap()];
                    assert!(assembly.insert_source(index, data));
                    assert!(!assembly.insert_source(index, data));
                    assembly.check_invariants();
                }
                assert_eq!(assembly.received_bytes(), bytes);
                assert!(assembly.finish().unwrap() == chunk);
            }
        }
    }

    #[test]
    fn repair_slices_take_the_place_of_any() {
        let (chunk, cut) = (pattern(30_001), cut_of(30_001, 1434));
        let repairs = encode(&chunk, cut);
        let mut assembly = Assembly::new(cut);
        for index in 0..21_u8 {
            assert!(assembly.has_repairs() == (index > 1));
            let taken = match index % 2 {
                0 => assembly.insert_source(index, &chunk[cut.range(index).unwrap()]),
                _ => assembly.insert_repair(index, &repairs[usize::from(index) * 1434..][..1434]),
            };
            assert!(taken, "{index}");
            assembly.check_invariants();
        }
        assert!(assembly.is_enough() && assembly.finish().unwrap() == chunk);
    }

    /// Neither one slice of the largest chunk nor a chunk of one byte in the largest slice costs much.
    #[test]
    fn memory_follows_what_arrived() {
        let mut assembly = Assembly::new(cut_of(262_144, 1024));
        assert!(assembly.insert_source(255, &[1; 1024]));
        assert!(assembly.memory_bytes() <= FIRST_STEP_BYTES + 16);
        let mut assembly = Assembly::new(cut_of(1, 65_472));
        assert!(!assembly.insert_source(0, &[1; 2]), "the chunk has one byte");
        assert!(assembly.insert_source(0, &[1]));
        assert!(assembly.memory_bytes() <= 4);
    }
}
