//! The memory of one incomplete chunk: as much as arrived, in the order of arrival.
//!
//! A buffer with a place for every slice would let one forged slice "255 of 256" cost 256 KiB. Here a
//! slice takes the next free place, whatever its index, and the buffer grows in steps as slices come:
//! at most twice what arrived and one step, for every order of arrival. In order, which is the common
//! case, the buffer *is* the chunk; otherwise one pass puts the slices in their places at the end.

use alloc::vec::Vec;

use super::{ChunkId, SLICE_BYTES, Slice, SliceCount, SliceSet};
use crate::debug_as;

/// Slices that the first allocation holds. Doubled at each step, so that a whole chunk takes six.
const FIRST_STEP: usize = 8;

/// The slices of one chunk that have arrived.
#[derive(Clone)]
pub struct Assembly {
    received: SliceSet,
    /// The slices in the order of arrival, each in a place of full size.
    places: Vec<u8>,
    /// The slice index of each place.
    order: Vec<u8>,
    /// Bytes of the last slice, once it has arrived.
    last_slice_bytes: Option<usize>,
}

debug_as! { Assembly: |chunk| received = chunk.received().count(), slices = chunk.received().len() }

impl Assembly {
    /// Nothing of a chunk of `count` slices, and no memory for it.
    #[must_use]
    pub const fn new(count: SliceCount) -> Self {
        Self {
            received: SliceSet::empty(count),
            places: Vec::new(),
            order: Vec::new(),
            last_slice_bytes: None,
        }
    }

    /// The slices that have arrived.
    #[must_use]
    pub const fn received(&self) -> &SliceSet {
        &self.received
    }

    /// The size of the chunk; unknown before its last slice has arrived.
    #[must_use]
    pub fn chunk_bytes(&self) -> Option<usize> {
        Some((self.received.count().get() - 1) * SLICE_BYTES + self.last_slice_bytes?)
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.places.capacity() + self.order.capacity()
    }

    /// Stores a slice. Returns whether it is new; the first copy wins.
    pub fn insert(&mut self, slice: &Slice<'_>) -> bool {
        if !self.received.insert(slice.index()) {
            return false;
        }
        self.grow();
        let place = self.places.len();
        self.places.extend_from_slice(slice.data());
        self.places.resize(place + SLICE_BYTES, 0);
        #[expect(clippy::cast_possible_truncation, reason = "an index is under 256")]
        self.order.push(slice.index().get() as u8);
        if slice.index().is_last() {
            self.last_slice_bytes = Some(slice.data().len());
        }
        true
    }

    /// The slices that have arrived, in the order of arrival.
    pub fn slices(&self, chunk_id: ChunkId) -> impl Iterator<Item = Slice<'_>> {
        let count = self.received.count();
        self.order.iter().zip(self.places.chunks(SLICE_BYTES)).filter_map(move |(&index, place)| {
            let index = count.index(index.into())?;
            let bytes = if index.is_last() { self.last_slice_bytes? } else { SLICE_BYTES };
            Slice::new(chunk_id, index, place.get(..bytes)?)
        })
    }

    /// The chunk, once every slice has arrived; `None` before.
    #[must_use]
    pub fn finish(self) -> Option<Vec<u8>> {
        if !self.received.is_full() {
            return None;
        }
        let bytes = self.chunk_bytes()?;
        let mut chunk = if self.is_in_order() { self.places } else { self.sorted() };
        chunk.truncate(bytes);
        Some(chunk)
    }

    fn is_in_order(&self) -> bool {
        self.order.iter().enumerate().all(|(place, &index)| place == usize::from(index))
    }

    fn sorted(&self) -> Vec<u8> {
        let mut place_of = [0u8; super::MAX_SLICES];
        for (place, &index) in (0u8..=u8::MAX).zip(&self.order) {
            place_of[usize::from(index)] = place;
        }
        let mut chunk = Vec::with_capacity(self.places.len());
        for &place in place_of.iter().take(self.order.len()) {
            let start = usize::from(place) * SLICE_BYTES;
            chunk.extend_from_slice(&self.places[start..start + SLICE_BYTES]);
        }
        chunk
    }

    fn grow(&mut self) {
        if self.places.len() < self.places.capacity() {
            return;
        }
        let held = self.order.len();
        let more = held.max(FIRST_STEP).min(self.received.count().get() - held);
        self.places.reserve_exact(more * SLICE_BYTES);
        self.order.reserve_exact(more);
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        assert_eq!(self.received.len(), self.order.len());
        assert_eq!(self.places.len(), self.order.len() * SLICE_BYTES);
        let max = 2 * self.order.len().max(FIRST_STEP) * (SLICE_BYTES + 1);
        assert!(self.capacity_bytes() <= max, "more memory than what arrived needs");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices(chunk: &[u8]) -> Vec<Slice<'_>> {
        let count = SliceCount::for_bytes(chunk.len()).unwrap();
        count
            .indices()
            .map(|index| Slice::of_chunk(ChunkId::new(0), index, chunk).unwrap())
            .collect()
    }

    fn chunk() -> Vec<u8> {
        (0..40_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
    }

    #[test]
    fn any_order_gives_the_same_chunk() {
        let chunk = chunk();
        let forwards = slices(&chunk);
        let mut backwards = forwards.clone();
        backwards.reverse();
        let mut shuffled = forwards.clone();
        (0..shuffled.len()).for_each(|i| shuffled.swap(i, (i * 7 + 3) % forwards.len()));
        for order in [forwards, backwards, shuffled] {
            let mut assembly = Assembly::new(order[0].index().count());
            for slice in &order {
                assert!(assembly.clone().finish().is_none());
                assert!(assembly.insert(slice));
                assert!(!assembly.insert(slice));
                assembly.check_invariants();
            }
            assert_eq!(assembly.finish().unwrap(), chunk);
        }
    }

    #[test]
    fn one_slice_of_the_largest_chunk_costs_one_step() {
        let count = SliceCount::new(256).unwrap();
        let mut assembly = Assembly::new(count);
        assert_eq!(assembly.capacity_bytes(), 0);
        let last = Slice::new(ChunkId::new(0), count.index(255).unwrap(), &[1]).unwrap();
        assembly.insert(&last);
        assert!(assembly.capacity_bytes() <= FIRST_STEP * (SLICE_BYTES + 1));
    }
}
