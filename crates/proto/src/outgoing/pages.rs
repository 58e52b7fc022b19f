//! Which pages of a block's tree were sent (STANDARD-1, 4.2.5): each once before the first chunk that needs
//! it, and again when it is lost.
//!
//! The invariant: a page that waits to be sent again was sent.

use alloc::vec::Vec;

use crate::bulk::tree::{PAGE_VALUES, Tree, level_len};

/// Values of a page, as indices count them.
const PAGE: u32 = 32;

const _: () = assert!(PAGE as usize == PAGE_VALUES);

/// The pages of a block, a bit for each: those of the chunks first, then level by level.
#[derive(Debug)]
pub(super) struct Pages {
    chunks: u32,
    sent: Vec<u64>,
    lost: Vec<u32>,
}

impl Pages {
    /// The pages of a block of `chunks` chunks, of which none was sent.
    pub(super) const fn new(chunks: u32) -> Self {
        Self { chunks, sent: Vec::new(), lost: Vec::new() }
    }

    /// The place of a page that was lost and is sent again.
    pub(super) fn lost(&self) -> Option<u32> {
        self.lost.last().copied()
    }

    /// The place of the first page that this chunk needs and that was not sent, from the topmost down.
    pub(super) fn missing(&self, tree: &Tree, chunk: u32) -> Option<u32> {
        let mut places = tree.pages_of(chunk).map(|(level, first)| self.place(level, first));
        places.find(|&place| !self.is_sent(place))
    }

    /// The level of the page at this place, and the index of its first value.
    pub(super) fn page(&self, place: u32) -> (u8, u32) {
        let (mut level, mut rest) = (0, place);
        while rest >= self.pages_on(level) && self.pages_on(level) > 1 {
            rest -= self.pages_on(level);
            level += 1;
        }
        (level, rest * PAGE)
    }

    fn place(&self, level: u8, first: u32) -> u32 {
        let below: u32 = (0..level).map(|level| self.pages_on(level)).sum();
        below + first / PAGE
    }

    fn pages_on(&self, level: u8) -> u32 {
        level_len(self.chunks, level).div_ceil(PAGE)
    }

    fn is_sent(&self, place: u32) -> bool {
        self.sent.get(place as usize / 64).is_some_and(|word| word >> (place % 64) & 1 != 0)
    }

    /// A page is sent.
    pub(super) fn on_sent(&mut self, place: u32) {
        self.lost.retain(|lost| *lost != place);
        let word = place as usize / 64;
        if self.sent.len() <= word {
            self.sent.resize(word + 1, 0);
        }
        if let Some(word) = self.sent.get_mut(word) {
            *word |= 1 << (place % 64);
        }
    }

    /// A page is lost. It is of no use any more if all chunks below `first` are done, and its are.
    pub(super) fn on_lost(&mut self, place: u32, first: u32) {
        let (level, value) = self.page(place);
        let is_used = level > 0 || value + PAGE > first;
        if is_used && self.is_sent(place) && !self.lost.contains(&place) {
            self.lost.push(place);
        }
    }

    /// Memory held, in bytes.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.sent.capacity() * 8 + self.lost.capacity() * 4
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.lost.iter().all(|place| self.is_sent(*place)), "lost before it was sent");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_has_a_place() {
        let pages = Pages::new(40_000);
        // 1250 pages of chunks, 40 above them, 2 above those, and the topmost.
        for (level, first, place) in
            [(0, 0, 0), (0, 39_968, 1249), (1, 0, 1250), (2, 32, 1291), (3, 0, 1292)]
        {
            assert_eq!((pages.place(level, first), pages.page(place)), (place, (level, first)));
        }
    }

    #[test]
    fn a_page_is_sent_once_and_again_when_it_is_lost() {
        let block = alloc::vec![7; 32 * 262_144 + 1];
        let (tree, mut pages) = (Tree::of(&block), Pages::new(33));
        let mut send = |chunk| {
            let place = pages.missing(&tree, chunk)?;
            pages.on_sent(place);
            pages.check_invariants();
            Some(pages.page(place))
        };
        assert_eq!([send(0), send(0), send(0)], [Some((1, 0)), Some((0, 0)), None]);
        assert_eq!([send(31), send(32), send(32)], [None, Some((0, 32)), None]);
        pages.on_lost(0, 31);
        assert_eq!(pages.lost(), Some(0));
        pages.on_sent(0);
        pages.on_lost(0, 32);
        assert_eq!(pages.lost(), None, "its chunks are done");
        pages.on_lost(2, 32);
        assert_eq!(pages.lost().map(|place| pages.page(place)), Some((1, 0)));
    }
}
