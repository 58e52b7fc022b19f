//! Classes of blocks: whose turn it is.
//!
//! Blocks without a weight that have one priority are a class, and go one after the other. A block with a
//! weight is a class of its own. The highest priority that has something to send always goes first; within a
//! priority each class gets its weight's share of the bytes, by start-time fair queueing as for lanes
//! ([`channels::lanes`](crate::channels)). The class of the blocks without a weight has the weight 1.
//!
//! The invariant: classes are in the order in which they are asked for something to send, the highest
//! priority first, and within it the one that is least far in its virtual time.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::transit::ChunkAt;

/// Virtual time of one byte at weight 1: weights are exact to one in 2^16, and 2^48 bytes fit.
const SCALE: u64 = 1 << 16;

/// Which blocks go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClassKey {
    pub(super) priority: u8,
    /// The number of a block with a weight of its own.
    pub(super) alone: Option<u32>,
}

/// Blocks that go one after the other.
#[derive(Debug)]
pub(super) struct Class {
    pub(super) key: ClassKey,
    weight: u16,
    virtual_time: u64,
    /// Open chunks of which the receiver has not enough, in order.
    pub(super) active: VecDeque<ChunkAt>,
    /// Those of them that may lack slices, in order: all that do, once they are sent.
    pub(super) lacking: VecDeque<ChunkAt>,
    /// Open chunks, and their bytes.
    pub(super) open: usize,
    pub(super) open_bytes: u64,
    pub(super) searched: Searched,
}

/// The active chunks before these places are not what is searched for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Searched {
    /// The place in `lacking`; the others are places in `active`.
    pub(super) lacking: usize,
    pub(super) unsent: usize,
    pub(super) short: usize,
    pub(super) short_of_tail: usize,
}

impl Searched {
    fn each(&mut self, change: impl Fn(&mut usize)) {
        let Self { unsent, short, short_of_tail, .. } = self;
        [unsent, short, short_of_tail].into_iter().for_each(change);
    }
}

impl Class {
    /// This chunk is active, and may lack anything.
    pub(super) fn add(&mut self, at: ChunkAt) {
        let place = insert(&mut self.active, at);
        self.searched.each(|searched| *searched = place.min(*searched));
        self.add_lacking(at);
    }

    /// This active chunk may lack slices.
    pub(super) fn add_lacking(&mut self, at: ChunkAt) {
        let place = insert(&mut self.lacking, at);
        self.searched.lacking = place.min(self.searched.lacking);
    }

    pub(super) fn remove(&mut self, at: ChunkAt) {
        if let Some(place) = remove(&mut self.active, at) {
            self.searched.each(|searched| *searched -= usize::from(*searched > place));
        }
        if let Some(place) = remove(&mut self.lacking, at) {
            self.searched.lacking -= usize::from(self.searched.lacking > place);
        }
    }

    /// A search ended here: those before lack nothing.
    pub(super) fn note(&mut self, searched: Searched) {
        let passed = searched.lacking.min(self.lacking.len());
        self.lacking.drain(..passed);
        self.searched = Searched { lacking: 0, ..searched };
    }

    /// A block of the class is done or given up. It had `open` open chunks, of `bytes` bytes together.
    pub(super) fn forget(&mut self, block: u32, open: usize, bytes: u64) {
        self.open -= open;
        self.open_bytes -= bytes;
        self.active.retain(|at| at.block != block);
        self.lacking.retain(|at| at.block != block);
        self.searched = Searched::default();
    }

    /// Searches begin with the first chunk.
    fn search_anew(&mut self) {
        self.lacking.clone_from(&self.active);
        self.searched = Searched::default();
    }
}

/// Inserts a chunk in order, unless it is there. Returns its place.
fn insert(chunks: &mut VecDeque<ChunkAt>, at: ChunkAt) -> usize {
    let place = chunks.partition_point(|other| *other < at);
    if chunks.get(place) != Some(&at) {
        chunks.insert(place, at);
    }
    place
}

/// Removes a chunk. Returns where it was.
fn remove(chunks: &mut VecDeque<ChunkAt>, at: ChunkAt) -> Option<usize> {
    let place = chunks.binary_search(&at).ok()?;
    chunks.remove(place);
    Some(place)
}

/// The classes that there are.
#[derive(Debug)]
pub(super) struct Classes(Vec<Class>);

impl Classes {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// In the order in which they are asked for something to send.
    pub(super) fn iter(&self) -> core::slice::Iter<'_, Class> {
        self.0.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The one that is asked at this place.
    pub(super) fn at(&self, place: usize) -> Option<&Class> {
        self.0.get(place)
    }

    pub(super) fn at_mut(&mut self, place: usize) -> Option<&mut Class> {
        self.0.get_mut(place)
    }

    pub(super) fn get_mut(&mut self, key: ClassKey) -> Option<&mut Class> {
        self.0.iter_mut().find(|class| class.key == key)
    }

    /// Whether nothing of a lower priority than this is sent.
    pub(super) fn is_lowest(&self, priority: u8) -> bool {
        self.0.last().is_none_or(|last| last.key.priority == priority)
    }

    /// Adds a class, unless it is there. It has nothing to make up for.
    pub(super) fn insert(&mut self, key: ClassKey, weight: u16) {
        if self.get_mut(key).is_some() {
            return;
        }
        let place = self.0.partition_point(|class| class.key.priority > key.priority);
        let first = self.0.get(place).filter(|class| class.key.priority == key.priority);
        let virtual_time = first.map_or(0, |first| first.virtual_time);
        let (active, lacking) = (VecDeque::new(), VecDeque::new());
        let class = Class {
            key,
            weight: weight.max(1),
            virtual_time,
            active,
            lacking,
            open: 0,
            open_bytes: 0,
            searched: Searched::default(),
        };
        self.0.insert(place, class);
        self.sort(key.priority);
    }

    pub(super) fn remove(&mut self, key: ClassKey) {
        self.0.retain(|class| class.key != key);
    }

    /// `bytes` bytes of a class were sent. The classes that were asked before it had nothing to send: they
    /// have nothing to make up for.
    pub(super) fn on_sent(&mut self, key: ClassKey, bytes: usize) {
        let Some(class) = self.get_mut(key) else { return };
        let (now, cost) = (class.virtual_time, bytes as u64 * SCALE / u64::from(class.weight));
        class.virtual_time = now.saturating_add(cost);
        let others = self.0.iter_mut().filter(|class| class.key.priority == key.priority);
        others.for_each(|class| class.virtual_time = class.virtual_time.max(now));
        self.sort(key.priority);
    }

    /// Searches begin with the first chunk.
    pub(super) fn search_anew(&mut self) {
        self.0.iter_mut().for_each(Class::search_anew);
    }

    /// Searches for a margin begin with the first chunk.
    pub(super) fn rescan_margins(&mut self) {
        for Class { searched, .. } in &mut self.0 {
            (searched.short, searched.short_of_tail) = (0, 0);
        }
    }

    /// Memory held, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let places = |class: &Class| class.active.capacity() + class.lacking.capacity();
        let places: usize = self.0.iter().map(places).sum();
        self.0.capacity() * size_of::<Class>() + places * size_of::<ChunkAt>()
    }

    pub(super) fn check_invariants(&self) {
        let rank = |class: &Class| (core::cmp::Reverse(class.key.priority), class.virtual_time);
        assert!(self.0.is_sorted_by_key(rank), "not in order");
    }

    /// Puts those of a priority into their order. Of equals, the first stays the first.
    fn sort(&mut self, priority: u8) {
        let from = self.0.partition_point(|class| class.key.priority > priority);
        let to = self.0.partition_point(|class| class.key.priority >= priority);
        if let Some(classes) = self.0.get_mut(from..to).filter(|classes| classes.len() > 1) {
            classes.sort_by_key(|class| class.virtual_time);
        }
    }
}
