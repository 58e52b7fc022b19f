//! What was in the datagrams of a connection, in one ring: no datagram needs a list of its own.
//!
//! The invariant: items are in the order of their datagrams, and those of the datagram being composed are
//! the last.

use alloc::collections::VecDeque;

use super::sent_block::{Control, ProgressMark};
use super::sent_message::{SentLimit, SentPart};
use crate::Sequence;

/// Records and items that there is room for even when nothing is in flight: otherwise an end that sends a
/// little all the time would allocate for each datagram.
pub(super) const MIN_ROOM: usize = 4;

/// A part of a datagram that matters when it is acknowledged or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Packet(Sequence),
    /// A message, or a part of one.
    Part(SentPart),
    /// A whole message that is in flight in another datagram, too.
    Copy(SentPart),
    ChannelLimit(SentLimit),
    /// The announcement of a block.
    Block(u32),
    /// The state of a receiver of blocks.
    Progress(ProgressMark),
    /// A frame of a receiver of blocks that has to arrive.
    Control(Control),
    ResetToken,
    /// A page of the tree of a block: its place among the block's pages.
    Page {
        block: u32,
        place: u32,
    },
    /// That this block is given up.
    Cancel(u32),
    /// How often acks are wanted.
    AckFrequency,
}

/// The items of one datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    /// Counted from the connection's first item; wraps.
    first: u32,
    len: u16,
}

/// The items of all recorded datagrams.
#[derive(Clone, Debug)]
pub(super) struct Items {
    ring: VecDeque<Item>,
    /// The count of the ring's first item; wraps.
    first: u32,
    /// Items at the end that belong to the datagram being composed.
    staged: u16,
    /// The most items since [`shrink`](Self::shrink).
    peak: usize,
}

impl Items {
    pub(super) const fn new() -> Self {
        Self { ring: VecDeque::new(), first: 0, staged: 0, peak: 0 }
    }

    /// Drops the items added for a datagram that was not sent, or is not acknowledged.
    pub(super) fn discard(&mut self) {
        self.ring.truncate(self.ring.len().saturating_sub(self.staged.into()));
        self.staged = 0;
    }

    /// This goes into the datagram being composed.
    pub(super) fn add(&mut self, item: Item) {
        self.ring.push_back(item);
        self.staged += 1;
        self.peak = self.peak.max(self.ring.len());
    }

    /// The datagram is sent: what was added for it.
    pub(super) fn commit(&mut self) -> Span {
        let len = core::mem::take(&mut self.staged);
        let before = self.ring.len().saturating_sub(len.into());
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        Span { first: self.first.wrapping_add(before), len }
    }

    /// The `n`th item of a datagram.
    pub(super) fn get(&self, span: Span, n: u16) -> Option<Item> {
        let place = usize::try_from(span.first.wrapping_sub(self.first)).ok()?;
        let item = self.ring.get(place.checked_add(n.into())?);
        item.copied().filter(|_| n < span.len)
    }

    /// The oldest datagram, with this span, is forgotten.
    pub(super) fn drop_front(&mut self, span: Span) {
        for _ in 0..span.len {
            self.ring.pop_front();
        }
        self.first = self.first.wrapping_add(span.len.into());
    }

    /// Gives memory back that was not needed since the last call.
    pub(super) fn shrink(&mut self) {
        let needed = self.peak.max(MIN_ROOM);
        if self.ring.capacity() > 2 * needed {
            self.ring.shrink_to(needed);
        }
        self.peak = self.ring.len();
    }

    /// Gives back all memory, if no item is in it.
    pub(super) fn rest(&mut self) {
        if self.ring.is_empty() {
            (self.ring, self.peak) = (VecDeque::new(), 0);
        }
    }

    /// Memory held, in bytes, besides itself.
    pub(super) fn memory_bytes(&self) -> usize {
        self.ring.capacity() * size_of::<Item>()
    }

    /// Panics unless these are the datagrams, in their order.
    pub(super) fn check_invariants(&self, spans: impl Iterator<Item = Span>) {
        let mut next = self.first;
        for span in spans {
            assert_eq!(span.first, next, "not in order");
            next = next.wrapping_add(span.len.into());
        }
        let counted = usize::try_from(next.wrapping_sub(self.first)).unwrap_or(usize::MAX);
        assert_eq!(counted + usize::from(self.staged), self.ring.len(), "of no datagram");
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn sent(items: &mut Items, contents: &[u32]) -> Span {
        contents.iter().for_each(|&number| items.add(Item::Block(number)));
        items.commit()
    }

    fn of(items: &Items, span: Span) -> Vec<Item> {
        (0..).map_while(|n| items.get(span, n)).collect()
    }

    /// The count of items wraps after 2^32 of them, which a game of messages reaches.
    #[test]
    fn each_datagram_has_its_own() {
        let mut items = Items { first: u32::MAX - 1, ..Items::new() };
        let spans = [&[1, 2][..], &[], &[3]].map(|contents| sent(&mut items, contents));
        items.check_invariants(spans.into_iter());
        assert_eq!(of(&items, spans[0]), [Item::Block(1), Item::Block(2)]);
        assert_eq!((of(&items, spans[1]), of(&items, spans[2])), (vec![], vec![Item::Block(3)]));
        items.drop_front(spans[0]);
        assert_eq!(of(&items, spans[2]), [Item::Block(3)]);
        assert_eq!(of(&items, spans[0]), [], "forgotten");
    }

    #[test]
    fn what_was_not_sent_is_in_no_datagram() {
        let mut items = Items::new();
        items.add(Item::Block(1));
        items.discard();
        let span = sent(&mut items, &[2]);
        assert_eq!(of(&items, span), [Item::Block(2)]);
        items.check_invariants([span].into_iter());
    }

    #[test]
    fn memory_follows_what_is_needed() {
        let mut items = Items::new();
        let span = sent(&mut items, &[0; 1000]);
        items.shrink();
        items.drop_front(span);
        items.shrink();
        items.shrink();
        assert!(items.ring.capacity() <= 2 * MIN_ROOM, "{}", items.ring.capacity());
    }
}
