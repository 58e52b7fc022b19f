//! A set of slices of one chunk: which were received, which are acked.

use crate::BitSet;

use super::{MAX_SLICES, SliceCount, SliceIndex};

const WORDS: usize = MAX_SLICES / 32;

/// Flags for the slices of one chunk. Slices are only ever added: in the words of the article, an ack blows
/// a fuse (*Sending Large Blocks of Data*, "Packet Structure").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceSet {
    count: SliceCount,
    /// Its words are in the order in which an ack packet carries them.
    flags: BitSet<WORDS>,
}

impl SliceSet {
    /// None of the slices of a chunk of `count`.
    #[must_use]
    pub const fn empty(count: SliceCount) -> Self {
        Self { count, flags: BitSet::EMPTY }
    }

    /// All slices of a chunk of `count`.
    #[must_use]
    pub fn full(count: SliceCount) -> Self {
        let mut set = Self::empty(count);
        count.indices().for_each(|index| {
            set.insert(index);
        });
        set
    }

    /// How many slices the chunk has.
    #[must_use]
    pub const fn count(&self) -> SliceCount {
        self.count
    }

    /// How many slices are in the set.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.flags.len()
    }

    /// Whether no slice is in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.flags.is_empty()
    }

    /// Whether every slice of the chunk is in it.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.len() == self.count.get()
    }

    /// Whether this slice is in it; never so for a slice of a chunk with another count.
    #[must_use]
    pub fn contains(&self, index: SliceIndex) -> bool {
        index.count() == self.count && self.flags.contains(index.get())
    }

    /// Adds a slice. Returns whether it is new; a slice of a chunk with another count is not added.
    pub fn insert(&mut self, index: SliceIndex) -> bool {
        index.count() == self.count && self.flags.insert(index.get())
    }

    /// The slices in the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = SliceIndex> + '_ {
        self.count.indices().filter(|&index| self.contains(index))
    }

    /// The flags as words of up to 32 bits, each with its width, in the order of an ack packet.
    pub fn words(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.flags.words().iter().zip(widths(self.count)).map(|(&word, width)| (word, width))
    }

    /// A set from the words of an ack packet. `next` reads a word of the given width, masked to it.
    ///
    /// # Errors
    /// Those of `next`.
    pub fn from_words<E>(
        count: SliceCount,
        mut next: impl FnMut(u32) -> Result<u32, E>,
    ) -> Result<Self, E> {
        let mut words = [0; WORDS];
        for (word, width) in words.iter_mut().zip(widths(count)) {
            *word = next(width)?;
        }
        Ok(Self { count, flags: words.into() })
    }
}

/// The widths of the words that hold the flags of `count` slices; 0 for words that hold none.
fn widths(count: SliceCount) -> impl Iterator<Item = u32> {
    #[expect(clippy::cast_possible_truncation, reason = "at most 32")]
    (0..WORDS).map(move |word| count.get().saturating_sub(word * 32).min(32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_added_once() {
        let count = SliceCount::new(40).unwrap();
        let mut set = SliceSet::empty(count);
        assert!(set.insert(count.index(39).unwrap()));
        assert!(!set.insert(count.index(39).unwrap()));
        assert_eq!((set.len(), set.is_full()), (1, false));
    }

    #[test]
    fn slices_of_another_chunk_do_not_get_in() {
        let mut set = SliceSet::empty(SliceCount::ONE);
        let foreign = SliceCount::new(200).unwrap().index(150).unwrap();
        assert!(!set.insert(foreign));
        assert!(!set.contains(foreign));
        assert!(set.is_empty());
    }

    #[test]
    fn words_cover_exactly_the_count() {
        for count in 1..=MAX_SLICES {
            let full = SliceSet::full(SliceCount::new(count).unwrap());
            assert_eq!(full.words().map(|(_, width)| width as usize).sum::<usize>(), count);
            assert_eq!(full.words().map(|(w, _)| w.count_ones() as usize).sum::<usize>(), count);
            assert_eq!((full.len(), full.is_full()), (count, true));
        }
    }
}
