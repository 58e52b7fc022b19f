//! Which blocks are announced and not finished: at most 64, in any order (H-4.2a).
//!
//! A sender announces in the order of its numbers, so a number below the highest that is not here was
//! finished, or its announcement is on the way. The invariant: at most 64 slots, whatever finishes when.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;

use super::Fault;
use super::block::Block;

/// Blocks announced and not finished (H-4.2a).
pub(crate) const MAX_BLOCKS: u8 = 64;

/// Additional blocks that the application has already. For their sender they are finished when the report of
/// that arrives; here they are finished when its acknowledgement arrives.
const MAX_HERE: usize = 32;

/// A block that is not finished.
#[derive(Debug)]
pub(super) enum Slot {
    /// One with a higher number was announced.
    Expected,
    /// Announced.
    Open(Box<Block>),
    /// The application has it already, by this root of its list; finished when the sender knows that.
    Here { root: u8, chunks: u32 },
    /// Declined; finished when its sender has cancelled it.
    Declined {
        /// Chunks that were seen.
        seen: u64,
        /// Why, as a number of the application.
        code: u32,
    },
}

/// What is known of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Finished,
    /// Not announced, and it may be.
    Awaited,
    /// Not announced, and too many others are not finished.
    TooFar,
    Announced,
}

/// The blocks that are not finished.
#[derive(Debug)]
pub(super) struct Slots {
    slots: BTreeMap<u32, Slot>,
    /// The lowest number of which nothing was heard.
    next: u64,
}

impl Slots {
    pub(super) const fn new() -> Self {
        Self { slots: BTreeMap::new(), next: 0 }
    }

    pub(super) fn standing(&self, number: u32) -> Standing {
        match self.slots.get(&number) {
            Some(Slot::Expected) => Standing::Awaited,
            Some(_) => Standing::Announced,
            None if u64::from(number) < self.next => Standing::Finished,
            None => match self.unfinished() as u64 + (u64::from(number) - self.next) {
                others if others < MAX_BLOCKS.into() => Standing::Awaited,
                _ => Standing::TooFar,
            },
        }
    }

    /// Blocks that are not finished for their sender either.
    pub(super) fn unfinished(&self) -> usize {
        let is_here = |slot: &&Slot| matches!(slot, Slot::Here { .. });
        self.slots.len() - self.slots.values().filter(is_here).count().min(MAX_HERE)
    }

    /// All blocks with lower numbers are finished.
    pub(super) fn floor(&self) -> u32 {
        let first = self.slots.keys().next().copied();
        first.unwrap_or_else(|| u32::try_from(self.next).unwrap_or(u32::MAX))
    }

    /// Puts an awaited block in its slot.
    pub(super) fn set(&mut self, number: u32, slot: Slot) -> Result<(), Fault> {
        if self.standing(number) == Standing::TooFar {
            return Err(Fault::Protocol);
        }
        while self.next <= u64::from(number) {
            if let Ok(next) = u32::try_from(self.next) {
                self.slots.insert(next, Slot::Expected);
            }
            self.next += 1;
        }
        self.slots.insert(number, slot);
        Ok(())
    }

    /// A block is finished.
    pub(super) fn remove(&mut self, number: u32) -> Option<Slot> {
        self.slots.remove(&number)
    }

    pub(super) fn get(&self, number: u32) -> Option<&Slot> {
        self.slots.get(&number)
    }

    pub(super) fn open(&self, number: u32) -> Option<&Block> {
        match self.slots.get(&number) {
            Some(Slot::Open(block)) => Some(block),
            _ => None,
        }
    }

    pub(super) fn open_mut(&mut self, number: u32) -> Option<&mut Block> {
        match self.slots.get_mut(&number) {
            Some(Slot::Open(block)) => Some(block),
            _ => None,
        }
    }

    /// The announced blocks that are neither here nor declined.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (u32, &Block)> {
        self.slots.iter().filter_map(|(&number, slot)| match slot {
            Slot::Open(block) => Some((number, &**block)),
            _ => None,
        })
    }

    pub(super) fn blocks_mut(&mut self) -> impl Iterator<Item = (u32, &mut Block)> {
        self.slots.iter_mut().filter_map(|(&number, slot)| match slot {
            Slot::Open(block) => Some((number, &mut **block)),
            _ => None,
        })
    }

    /// The blocks that are here already, by this root of the application's list, and their chunks.
    pub(super) fn here(&self, root: u8) -> impl Iterator<Item = (u32, u32)> {
        self.slots.iter().filter_map(move |(&number, slot)| match slot {
            Slot::Here { root: it, chunks } if *it == root => Some((number, *chunks)),
            _ => None,
        })
    }

    /// Memory held, in bytes, besides itself.
    pub(super) fn memory_bytes(&self) -> usize {
        let blocks = self.blocks().map(|(_, block)| size_of::<Block>() + block.memory_bytes());
        super::map_bytes(&self.slots) + blocks.sum::<usize>()
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.slots.len() <= usize::from(MAX_BLOCKS) + MAX_HERE);
        assert!(self.slots.keys().all(|&number| u64::from(number) < self.next));
        self.blocks().for_each(|(_, block)| block.check_invariants());
        let is_finished = |block: &Block| block.done.is_full() && block.unheard_here == 0;
        assert!(self.blocks().all(|(_, block)| !is_finished(block)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Slot = Slot::Declined { seen: 0, code: 0 };

    #[test]
    fn blocks_finish_in_any_order_and_64_are_open() {
        let mut slots = Slots::new();
        assert_eq!(slots.standing(63), Standing::Awaited);
        assert_eq!(slots.standing(64), Standing::TooFar);
        assert_eq!(slots.set(64, SLOT), Err(Fault::Protocol));
        assert_eq!(slots.set(1, SLOT), Ok(()));
        assert_eq!(
            (slots.standing(0), slots.standing(1)),
            (Standing::Awaited, Standing::Announced)
        );
        assert!(slots.remove(1).is_some());
        assert_eq!((slots.standing(1), slots.floor()), (Standing::Finished, 0));
        // The first stays open while thousands after it finish.
        for number in 2..5000 {
            assert_eq!(slots.set(number, SLOT), Ok(()));
            assert_eq!(slots.standing(number + 63), Standing::TooFar);
            slots.remove(number);
            slots.check_invariants();
        }
        assert_eq!(slots.set(5062, SLOT), Ok(()), "63 after the first");
        assert_eq!(slots.set(5063, SLOT), Err(Fault::Protocol));
        slots.remove(0);
        assert_eq!(slots.floor(), 5000);
        assert_eq!(slots.set(5063, SLOT), Ok(()));
        slots.check_invariants();
    }

    #[test]
    fn the_last_numbers() {
        let mut slots = Slots { slots: BTreeMap::new(), next: u64::from(u32::MAX) };
        assert_eq!(slots.set(u32::MAX, SLOT), Ok(()));
        slots.remove(u32::MAX);
        assert_eq!((slots.standing(u32::MAX), slots.floor()), (Standing::Finished, u32::MAX));
    }
}
