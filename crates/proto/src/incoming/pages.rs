//! The pages of a block's tree, checked against the page above or the root, in any order (STANDARD-1,
//! 4.2.5).
//!
//! The invariant: each value of a checked page is that of the block with the announced root, and pages are
//! kept only for chunks that may be open: about 33 KiB, however large the block.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::done_map::WINDOW;
use super::{Fate, Fault, Work};
use crate::bulk::tree::{PAGE_VALUES, Value, join, level_len, top_level};
use crate::wire::frames::HashesFrame;

/// Pages kept that cannot be checked yet.
pub(super) const MAX_UNCHECKED: usize = 8;

/// Bits of an index that a level takes: a page has 32 values.
const LEVEL_BITS: u32 = PAGE_VALUES.trailing_zeros();

/// Level, and index of the first value.
type PageAt = (u8, u32);

/// The pages of a block of two chunks or more.
#[derive(Debug)]
pub(super) struct Pages {
    root: Value,
    chunks: u32,
    top: u8,
    checked: BTreeMap<PageAt, Vec<Value>>,
    unchecked: Vec<(PageAt, Vec<Value>)>,
    /// Bytes of the values of all pages.
    value_bytes: usize,
}

impl Pages {
    pub(super) fn new(root: Value, chunks: u32) -> Self {
        let top = top_level(chunks);
        let (checked, unchecked) = (BTreeMap::new(), Vec::new());
        Self { root, chunks, top, checked, unchecked, value_bytes: 0 }
    }

    /// A page arrived; `first` is the lowest chunk that is not done.
    pub(super) fn insert(
        &mut self,
        frame: &HashesFrame<'_>,
        first: u32,
        work: &mut Work,
    ) -> Result<Fate, Fault> {
        let fate = self.insert_page(frame, first, work);
        self.count_values();
        fate
    }

    fn insert_page(
        &mut self,
        frame: &HashesFrame<'_>,
        first: u32,
        work: &mut Work,
    ) -> Result<Fate, Fault> {
        let len = level_len(self.chunks, frame.level).saturating_sub(frame.first);
        if frame.level > self.top || len == 0 || frame.values.len() != PAGE_VALUES.min(len as usize)
        {
            return Err(Fault::Protocol);
        }
        let at = (frame.level, frame.first);
        if chunks_end(at) <= u64::from(first) {
            return Ok(Fate::Dropped);
        }
        if chunks_start(at) >= u64::from(first) + u64::from(WINDOW) {
            return Ok(Fate::NotKept);
        }
        let unchecked = self.unchecked.iter().find(|(other, _)| *other == at);
        if let Some(known) = self.checked.get(&at).or(unchecked.map(|(_, values)| values)) {
            // Two different pages cannot both be right.
            return if known == frame.values { Ok(Fate::Dropped) } else { Err(Fault::Damaged) };
        }
        if !self.is_checkable(at) {
            if self.unchecked.len() >= MAX_UNCHECKED {
                return Ok(Fate::NotKept);
            }
            self.unchecked.reserve_exact(1);
            self.unchecked.push((at, frame.values.to_vec()));
            return Ok(Fate::New);
        }
        self.check(at, frame.values.to_vec(), work)?;
        // One page may be what others waited for.
        while let Some(next) = self.unchecked.iter().position(|&(at, _)| self.is_checkable(at)) {
            let (at, values) = self.unchecked.swap_remove(next);
            self.check(at, values, work)?;
        }
        Ok(Fate::New)
    }

    /// The value of a chunk, if its page was checked.
    pub(super) fn value(&self, chunk: u32) -> Option<&Value> {
        self.value_at(0, chunk)
    }

    /// All chunks below `first` are done: forgets the pages that only they needed.
    pub(super) fn forget_below(&mut self, first: u32) {
        self.checked.retain(|&at, _| chunks_end(at) > u64::from(first));
        self.unchecked.retain(|&(at, _)| chunks_end(at) > u64::from(first));
        self.count_values();
    }

    /// After pages came or went: there are some 40 at most.
    fn count_values(&mut self) {
        let values = self.checked.values().chain(self.unchecked.iter().map(|(_, values)| values));
        self.value_bytes = values.map(|values| values.capacity() * size_of::<Value>()).sum();
    }

    /// Memory held, in bytes, besides itself.
    pub(super) fn memory_bytes(&self) -> usize {
        let entry = size_of::<(PageAt, Vec<Value>)>();
        self.value_bytes + super::map_bytes(&self.checked) + self.unchecked.capacity() * entry
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.unchecked.len() <= MAX_UNCHECKED);
        assert!(self.unchecked.iter().all(|(at, _)| !self.checked.contains_key(at)));
        let levels = usize::from(self.top) + 1;
        assert!(self.checked.len() <= WINDOW as usize / PAGE_VALUES + 1 + 3 * levels);
    }

    fn is_checkable(&self, (level, first): PageAt) -> bool {
        level == self.top || self.value_at(level + 1, first >> LEVEL_BITS).is_some()
    }

    fn value_at(&self, level: u8, index: u32) -> Option<&Value> {
        let place = index as usize % PAGE_VALUES;
        let first = index >> LEVEL_BITS << LEVEL_BITS;
        self.checked.get(&(level, first))?.get(place)
    }

    /// Compares a page with the value above it.
    fn check(&mut self, at: PageAt, values: Vec<Value>, work: &mut Work) -> Result<(), Fault> {
        let (level, first) = at;
        let is_root = level == self.top;
        let above =
            if is_root { Some(&self.root) } else { self.value_at(level + 1, first >> LEVEL_BITS) };
        work.hashed_bytes += (values.len() * size_of::<Value>()) as u64;
        if above != Some(&join(&values, is_root)) {
            return Err(Fault::Damaged);
        }
        self.checked.insert(at, values);
        Ok(())
    }
}

/// The first chunk under a page.
fn chunks_start((level, first): PageAt) -> u64 {
    u64::from(first) << (u32::from(level) * LEVEL_BITS)
}

/// The chunk after the last one under a page.
fn chunks_end((level, first): PageAt) -> u64 {
    (u64::from(first) + PAGE_VALUES as u64) << (u32::from(level) * LEVEL_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::tree::Tree;

    /// 40 chunks of the tree of a block: two pages and one above.
    fn tree() -> Tree {
        Tree::of(&alloc::vec![7; 39 * crate::chunk::MAX_CHUNK_BYTES + 5])
    }

    fn insert(pages: &mut Pages, tree: &Tree, level: u8, first: u32) -> Result<Fate, Fault> {
        let frame = HashesFrame { block: 0, level, first, values: tree.page(level, first) };
        let fate = pages.insert(&frame, 0, &mut Work::default());
        pages.check_invariants();
        fate
    }

    #[test]
    fn pages_are_checked_in_any_order() {
        let tree = tree();
        let order = [(0, 0), (0, 32), (1, 0)];
        for turn in 0..3 {
            let mut pages = Pages::new(*tree.root(), 40);
            for (level, first) in order.into_iter().cycle().skip(turn).take(3) {
                assert_eq!(insert(&mut pages, &tree, level, first), Ok(Fate::New));
                assert_eq!(insert(&mut pages, &tree, level, first), Ok(Fate::Dropped));
            }
            for chunk in 0..40 {
                let value = &tree.page(0, chunk / 32 * 32)[chunk as usize % 32];
                assert_eq!(pages.value(chunk), Some(value));
            }
            assert_eq!(pages.value(40), None);
            pages.forget_below(32);
            assert!(pages.value(0).is_none() && pages.value(39).is_some());
        }
    }

    #[test]
    fn a_wrong_page_is_found_before_or_after_the_one_above() {
        let tree = tree();
        let mut values = tree.page(0, 0).to_vec();
        values[3][5] ^= 1;
        let wrong = HashesFrame { block: 0, level: 0, first: 0, values: &values };
        let mut pages = Pages::new(*tree.root(), 40);
        assert_eq!(pages.insert(&wrong, 0, &mut Work::default()), Ok(Fate::New));
        assert_eq!(insert(&mut pages, &tree, 0, 0), Err(Fault::Damaged), "two of one place");
        assert_eq!(insert(&mut pages, &tree, 1, 0), Err(Fault::Damaged));
        let mut pages = Pages::new(*tree.root(), 40);
        assert_eq!(insert(&mut pages, &tree, 1, 0), Ok(Fate::New));
        assert_eq!(pages.insert(&wrong, 0, &mut Work::default()), Err(Fault::Damaged));
        let mut pages = Pages::new([1; 32], 40);
        assert_eq!(insert(&mut pages, &tree, 1, 0), Err(Fault::Damaged), "another root");
    }

    #[test]
    fn a_page_that_the_tree_does_not_have_is_a_violation() {
        let mut pages = Pages::new([0; 32], 40);
        let values = [[0; 32]; 32];
        for (level, first, count) in [(2, 0, 1), (0, 64, 1), (0, 0, 31), (0, 32, 9), (1, 0, 3)] {
            let frame = HashesFrame { block: 0, level, first, values: &values[..count] };
            let fate = pages.insert(&frame, 0, &mut Work::default());
            assert_eq!(fate, Err(Fault::Protocol), "{level} {first} {count}");
        }
    }

    /// A block of 2^30 chunks keeps only the pages of the chunks that may be open, and eight pages that
    /// cannot be checked.
    #[test]
    fn a_large_tree_takes_little_memory() {
        let mut pages = Pages::new([0; 32], 1 << 30);
        let values = [[0; 32]; 32];
        let mut insert = |first: u32| {
            let frame = HashesFrame { block: 0, level: 0, first, values: &values };
            pages.insert(&frame, 1000, &mut Work::default()).unwrap()
        };
        assert_eq!(insert(968 - 8), Fate::Dropped, "these are done");
        assert_eq!(insert(2048), Fate::NotKept, "beyond the window");
        let kept = (0..32).filter(|page| insert(1024 + 32 * page) == Fate::New).count();
        assert_eq!(kept, MAX_UNCHECKED);
        assert!(pages.memory_bytes() <= MAX_UNCHECKED * 1100);
    }
}
