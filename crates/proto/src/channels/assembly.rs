//! Puts a message together from its parts.
//!
//! The invariant: memory follows arrival. A message is kept in pages, which are allocated when the first of
//! their bytes arrives, and a bit of each byte says whether it is there: so any parts will do, in any order
//! and however often, and their number costs nothing.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;

use super::MessageViolation;

/// Bytes in a page, about as many as in a part of a datagram of 1200 bytes: one byte that arrives makes its
/// receiver hold at most this, and an eighth.
const PAGE_BYTES: usize = 1024;

/// Bytes of the message from `index * PAGE_BYTES` on.
#[derive(Debug)]
struct Page {
    index: u8,
    /// The bytes, then the bits.
    memory: Box<[u8]>,
    len: u16,
}

/// A message of which some parts are missing.
#[derive(Debug)]
pub(super) struct Assembly {
    whole: u32,
    /// Bytes that are there.
    arrived: u32,
    /// In the order of their index.
    pages: Vec<Page>,
    page_bytes: usize,
}

impl Assembly {
    /// A message of `whole` bytes, of which nothing has arrived.
    pub(super) const fn new(whole: u32) -> Self {
        Self { whole, arrived: 0, pages: Vec::new(), page_bytes: 0 }
    }

    pub(super) const fn whole(&self) -> u32 {
        self.whole
    }

    /// Adds a part. Returns whether any byte of it is new.
    ///
    /// # Errors
    /// [`MessageViolation::Contradiction`] if it is not within the message, or if a byte was another before.
    pub(super) fn insert(
        &mut self,
        offset: u32,
        mut data: &[u8],
    ) -> Result<bool, MessageViolation> {
        let mut at = offset as usize;
        if data.len() > (self.whole as usize).saturating_sub(at) {
            return Err(MessageViolation::Contradiction);
        }
        let before = self.arrived;
        while !data.is_empty() {
            let within = at % PAGE_BYTES;
            let count = data.len().min(PAGE_BYTES - within);
            let (head, rest) = data.split_at(count);
            let page = self.page_mut(at / PAGE_BYTES);
            let arrived = page.insert(within, head)?;
            self.arrived += arrived;
            (at, data) = (at + count, rest);
        }
        Ok(self.arrived > before)
    }

    /// Whether all of it is there.
    pub(super) const fn is_whole(&self) -> bool {
        self.arrived == self.whole
    }

    /// The message, once it is whole.
    pub(super) fn join(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(self.whole as usize);
        self.pages.iter().for_each(|page| bytes.extend_from_slice(page.bytes()));
        Bytes::from(bytes)
    }

    /// Bytes on the heap.
    pub(super) const fn heap_bytes(&self) -> usize {
        self.page_bytes + self.pages.capacity() * size_of::<Page>()
    }

    fn page_mut(&mut self, index: usize) -> &mut Page {
        let place = self.pages.partition_point(|page| usize::from(page.index) < index);
        if self.pages.get(place).is_none_or(|page| usize::from(page.index) != index) {
            let rest = (self.whole as usize).saturating_sub(index * PAGE_BYTES);
            let page = Page::new(index, rest.min(PAGE_BYTES));
            self.page_bytes += page.memory.len();
            self.pages.insert(place, page);
        }
        &mut self.pages[place]
    }

    /// Panics if it contradicts itself. For tests, fuzzers and the simulator.
    pub(super) fn check_invariants(&self) {
        let arrived: u32 = self.pages.iter().map(|page| page.count(0, page.bytes().len())).sum();
        assert_eq!(arrived, self.arrived, "bytes that arrived");
        assert!(self.pages.is_sorted_by(|a, b| a.index < b.index), "pages out of order");
        let held: usize = self.pages.iter().map(|page| page.memory.len()).sum();
        assert_eq!(held, self.page_bytes, "bytes of pages");
    }
}

impl Page {
    fn new(index: usize, len: usize) -> Self {
        // Both are small: a message has at most 64 pages.
        let (index, small) = (u8::try_from(index), u16::try_from(len));
        let memory = vec![0; len + len.div_ceil(8)].into_boxed_slice();
        Self { index: index.unwrap_or(u8::MAX), memory, len: small.unwrap_or(u16::MAX) }
    }

    fn bytes(&self) -> &[u8] {
        self.memory.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Adds bytes that are within the page. Returns how many are new.
    fn insert(&mut self, at: usize, data: &[u8]) -> Result<u32, MessageViolation> {
        let end = at + data.len();
        let there = self.count(at, end);
        let (bytes, bits) = self.memory.split_at_mut(self.len.into());
        let Some(place) = bytes.get_mut(at..end) else {
            return Err(MessageViolation::Contradiction);
        };
        if there == 0 {
            place.copy_from_slice(data);
        } else {
            for (index, (place, &byte)) in (at..).zip(place.iter_mut().zip(data)) {
                if bits[index / 8] >> (index % 8) & 1 == 0 {
                    *place = byte;
                } else if *place != byte {
                    return Err(MessageViolation::Contradiction);
                }
            }
        }
        for (byte, mask) in masks(at, end) {
            bits[byte] |= mask;
        }
        Ok(u32::try_from(data.len()).unwrap_or(u32::MAX) - there)
    }

    /// How many of these bytes are there.
    fn count(&self, at: usize, end: usize) -> u32 {
        let bits = self.memory.get(usize::from(self.len)..).unwrap_or_default();
        masks(at, end).filter_map(|(byte, mask)| Some((bits.get(byte)? & mask).count_ones())).sum()
    }
}

/// The bits from `at` to `end`: each byte that has some, and which.
fn masks(at: usize, end: usize) -> impl Iterator<Item = (usize, u8)> {
    (at / 8..end.div_ceil(8)).map(move |byte| {
        let from = at.saturating_sub(8 * byte);
        let to = (end - 8 * byte).min(8);
        let below = |bit: usize| (1_u16 << bit) - 1;
        // Both are bits of one byte.
        (byte, u8::try_from(below(to) & !below(from)).unwrap_or(u8::MAX))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn content(whole: u32) -> Vec<u8> {
        (0..whole).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect()
    }

    proptest! {
        #[test]
        fn any_parts_in_any_order(
            whole in 1..5000u32, parts in prop::collection::vec((any::<u32>(), 1..1500u32), 0..40),
        ) {
            let (bytes, mut assembly) = (content(whole), Assembly::new(whole));
            let mut model = vec![false; whole as usize];
            let last = (0..whole).step_by(700).map(|at| (at, 700));
            for (at, count) in parts.into_iter().chain(last) {
                let at = at % whole;
                let range = at as usize..(at + count).min(whole) as usize;
                let is_new = model[range.clone()].iter().any(|there| !there);
                model[range.clone()].fill(true);
                prop_assert_eq!(assembly.insert(at, &bytes[range]), Ok(is_new));
                assembly.check_invariants();
                prop_assert_eq!(assembly.is_whole(), model.iter().all(|there| *there));
            }
            prop_assert_eq!(assembly.join(), bytes);
        }
    }

    #[test]
    fn memory_follows_arrival() {
        let mut assembly = Assembly::new(65_536);
        assert_eq!(assembly.heap_bytes(), 0);
        assert_eq!(assembly.insert(65_535, &[1]), Ok(true));
        assert_eq!(assembly.insert(0, &[1]), Ok(true));
        assert!(assembly.heap_bytes() <= 2 * (1024 + 128) + 4 * 32, "{}", assembly.heap_bytes());
        let mut small = Assembly::new(100);
        assert_eq!(small.insert(99, &[1]), Ok(true));
        assert!(small.heap_bytes() <= 100 + 13 + 4 * 32, "{}", small.heap_bytes());
    }

    #[test]
    fn a_byte_that_changes_is_a_contradiction() {
        let mut assembly = Assembly::new(2000);
        assert_eq!(assembly.insert(1000, &[5; 100]), Ok(true));
        assert_eq!(assembly.insert(1050, &[5; 100]), Ok(true));
        assert_eq!(assembly.insert(1050, &[5; 100]), Ok(false));
        assert_eq!(assembly.insert(900, &[6; 101]), Err(MessageViolation::Contradiction));
        assert_eq!(assembly.insert(1999, &[5; 2]), Err(MessageViolation::Contradiction));
        assert_eq!(assembly.insert(u32::MAX, &[5]), Err(MessageViolation::Contradiction));
    }
}
