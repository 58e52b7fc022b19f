//! Which chunks of a block are done: the lowest that is not, and a bit for each of the 1024 after it.
//!
//! Chunks that the application has already are done too; they are a map of their own, because they may be
//! anywhere. The invariant: the lowest chunk that is not done has no bit, and no bit is outside the window.

use alloc::vec::Vec;

/// The most chunks between the first that is not done and the last that is open (H-4.2f).
pub(super) const WINDOW: u32 = 1024;

const WORDS: usize = WINDOW as usize / 32;

/// The done chunks of a block of `count`.
#[derive(Debug)]
pub(super) struct DoneMap {
    count: u32,
    /// The lowest chunk that is not done; `count` if all are.
    first: u32,
    /// No chunk from here on is done.
    end: u32,
    /// The bit of a chunk of the window is at its index modulo [`WINDOW`].
    bits: [u32; WORDS],
    /// Chunks that were here before, a bit each from chunk 0 on.
    here: Vec<u8>,
}

impl DoneMap {
    pub(super) const fn new(count: u32) -> Self {
        Self { count, first: 0, end: 0, bits: [0; WORDS], here: Vec::new() }
    }

    /// Chunks of the block.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// The lowest chunk that is not done.
    pub(super) const fn first(&self) -> u32 {
        self.first
    }

    pub(super) const fn is_full(&self) -> bool {
        self.first == self.count
    }

    /// Whether this chunk was here before the block was announced.
    pub(super) fn was_here(&self, index: u32) -> bool {
        let byte = self.here.get(index as usize / 8);
        index < self.count && byte.is_some_and(|byte| byte >> (index % 8) & 1 != 0)
    }

    pub(super) fn is_done(&self, index: u32) -> bool {
        index < self.first || self.has_bit(index) || self.was_here(index)
    }

    /// Whether a chunk is so far ahead that nothing of it may arrive yet.
    pub(super) const fn is_beyond_window(&self, index: u32) -> bool {
        index >= self.first.saturating_add(WINDOW)
    }

    /// A chunk of the window is done.
    pub(super) fn insert(&mut self, index: u32) {
        if !self.is_done(index) && !self.is_beyond_window(index) {
            let (word, bit) = place(index);
            if let Some(word) = self.bits.get_mut(word) {
                *word |= bit;
            }
            self.end = self.end.max(index + 1);
            self.advance();
        }
    }

    /// The application has these chunks, a bit each. Called once, before any slice.
    pub(super) fn set_here(&mut self, map: Vec<u8>) {
        self.here = map;
        self.here.truncate(self.count.div_ceil(8) as usize);
        self.here.shrink_to_fit();
        self.end = self.count;
        self.advance();
    }

    /// The chunks that were here, as a map from chunk 0 on.
    pub(super) fn here(&self) -> &[u8] {
        &self.here
    }

    /// Appends a map of the chunks after the first that is not done, up to the last that is done, in at most
    /// `max_bytes` bytes. Returns the number of bytes.
    pub(super) fn write(&self, max_bytes: usize, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        let last = self.end.min(self.first.saturating_add(WINDOW));
        for from in (self.first.saturating_add(1)..last).step_by(8).take(max_bytes) {
            let beyond = (from + 8).saturating_sub(last);
            out.push(self.eight_from(from) & (u8::MAX >> beyond));
        }
        while out.len() > start && out.last() == Some(&0) {
            out.pop();
        }
        out.len() - start
    }

    /// Memory held, in bytes, besides itself.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.here.capacity()
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.first <= self.count && self.end <= self.count);
        assert!(self.is_full() || !self.is_done(self.first));
    }

    /// A bit says nothing of a chunk that is not in the window.
    fn has_bit(&self, index: u32) -> bool {
        let (word, bit) = place(index);
        !self.is_beyond_window(index) && self.bits.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Whether each of the eight chunks from this one on is done, the lowest bit first. It must be above the
    /// first that is not; of chunks that the window or the block does not have, the bit means nothing.
    fn eight_from(&self, index: u32) -> u8 {
        let (word, _) = place(index);
        let low = self.bits.get(word).copied().unwrap_or_default();
        let high = self.bits.get((word + 1) % WORDS).copied().unwrap_or_default();
        let [done, ..] = (pair(low, high) >> (index % 32)).to_le_bytes();
        let byte = |at: usize| self.here.get(at).copied().unwrap_or_default();
        let at = index as usize / 8;
        let [here, _] = (u16::from_le_bytes([byte(at), byte(at + 1)]) >> (index % 8)).to_le_bytes();
        done | here
    }

    fn advance(&mut self) {
        while !self.is_full() && (self.has_bit(self.first) || self.was_here(self.first)) {
            let (word, bit) = place(self.first);
            if let Some(word) = self.bits.get_mut(word) {
                *word &= !bit;
            }
            self.first += 1;
        }
    }
}

fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

const fn place(index: u32) -> (usize, u32) {
    ((index % WINDOW / 32) as usize, 1 << (index % 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(done: &DoneMap) -> Vec<u8> {
        let mut out = Vec::new();
        assert_eq!(done.write(128, &mut out), out.len());
        out
    }

    #[test]
    fn the_first_moves_over_what_is_done() {
        let mut done = DoneMap::new(3000);
        done.insert(1);
        done.insert(9);
        done.insert(1023);
        assert_eq!((done.first(), map(&done).len()), (0, 128));
        assert_eq!(map(&done)[..2], [0b1, 0b1]);
        assert!(done.is_beyond_window(1024) && !done.is_beyond_window(1023));
        done.insert(0);
        assert_eq!((done.first(), map(&done)[0]), (2, 1 << 6));
        for index in 2..3000 {
            done.check_invariants();
            assert_eq!(done.is_done(index), matches!(index, 9 | 1023));
            done.insert(index);
        }
        assert!(done.is_full() && map(&done).is_empty());
    }

    #[test]
    fn what_was_here_is_done() {
        let mut done = DoneMap::new(20);
        done.set_here(alloc::vec![0b1000_0011, 0xff, 0xff, 0xff]);
        assert_eq!((done.first(), done.memory_bytes()), (2, 3));
        assert!(done.is_done(7) && !done.is_done(6) && done.was_here(19) && !done.was_here(20));
        assert_eq!(map(&done), [0b1111_0000, 0xff, 0b1], "from chunk 3 on");
        (2..7).for_each(|index| done.insert(index));
        assert!(done.is_full());
    }

    /// Eight chunks at a time are as one after the other, wherever the window lies in its ring.
    #[test]
    fn a_map_says_of_each_chunk_whether_it_is_done() {
        for (first, step) in [(0, 3), (1, 7), (31, 2), (1000, 5), (2047, 11)] {
            let mut done = DoneMap::new(first + 900);
            (0..first).for_each(|index| done.insert(index));
            ((first + 1)..(first + 900)).step_by(step).for_each(|index| done.insert(index));
            let map = map(&done);
            for bit in 0..899_u32 {
                let byte = map.get(bit as usize / 8).copied().unwrap_or_default();
                let is_said = byte >> (bit % 8) & 1 != 0;
                assert_eq!(is_said, done.is_done(first + 1 + bit), "{first} {bit}");
            }
        }
    }

    #[test]
    fn a_map_may_be_cut_short() {
        let mut done = DoneMap::new(100);
        [3, 50, 90].into_iter().for_each(|index| done.insert(index));
        let mut out = Vec::new();
        assert_eq!(done.write(2, &mut out), 1);
        assert_eq!(out, [0b100]);
    }
}
