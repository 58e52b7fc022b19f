//! A set of small numbers: which slices of a chunk arrived, which fragments of a packet.
//!
//! The invariant: the count is that of the bits set.

/// Numbers below `32 * WORDS`, one bit each, with a running count. Numbers are only ever added.
///
/// ```
/// use haulier_core::BitSet;
///
/// let mut set = BitSet::<8>::EMPTY;
/// assert!(set.insert(255) && !set.insert(255));
/// assert!(!set.insert(256), "there is no room for it");
/// assert!(set.contains(255) && !set.contains(256) && set.len() == 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitSet<const WORDS: usize> {
    len: u32,
    words: [u32; WORDS],
}

impl<const WORDS: usize> BitSet<WORDS> {
    /// No number.
    pub const EMPTY: Self = Self { len: 0, words: [0; WORDS] };

    /// How many numbers are in the set.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether no number is in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether this number is in it.
    #[must_use]
    pub fn contains(&self, number: usize) -> bool {
        self.words.get(number / 32).is_some_and(|word| word >> (number % 32) & 1 != 0)
    }

    /// Adds a number. Returns whether it is new; one that there is no room for is not added.
    pub fn insert(&mut self, number: usize) -> bool {
        if number / 32 >= WORDS || self.contains(number) {
            return false;
        }
        self.words[number / 32] |= 1 << (number % 32);
        self.len += 1;
        true
    }

    /// The bits, the lowest number in the lowest bit of the first word.
    #[must_use]
    pub const fn words(&self) -> &[u32; WORDS] {
        &self.words
    }
}

impl<const WORDS: usize> From<[u32; WORDS]> for BitSet<WORDS> {
    fn from(words: [u32; WORDS]) -> Self {
        Self { len: words.iter().map(|word| word.count_ones()).sum(), words }
    }
}
