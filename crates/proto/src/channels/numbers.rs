//! Which numbers were there: so that each message is delivered once, in whatever order they come.
//!
//! The invariant: the runs are in order, and at least one number is missing between two of them. A channel's
//! limit is at most 256 messages above those read, so at most 256 numbers below it are missing, and there
//! are at most 257 runs, however long the connection lasts.

use alloc::vec::Vec;

/// Numbers that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u64,
    /// The number after the last.
    end: u64,
}

/// A set of numbers, mostly without gaps. Without gaps it uses no heap memory.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// All numbers below it are in the set, and it is not.
    floor: u64,
    /// Those above.
    runs: Vec<Run>,
}

impl Numbers {
    pub(super) fn contains(&self, number: u64) -> bool {
        self.end_of_run(number).is_some()
    }

    /// The number after the run that this number is in; `None` if it is not in the set.
    pub(super) fn end_of_run(&self, number: u64) -> Option<u64> {
        if number < self.floor {
            return Some(self.floor);
        }
        let run = self.runs.get(self.place(number))?;
        (run.first <= number).then_some(run.end)
    }

    /// Adds a number. Returns whether it is new.
    pub(super) fn insert(&mut self, number: u64) -> bool {
        if self.contains(number) {
            return false;
        }
        let end = number + 1;
        if number == self.floor {
            let joins = self.runs.first().is_some_and(|run| run.first == end);
            self.floor = if joins { self.runs.remove(0).end } else { end };
            if self.runs.is_empty() {
                self.runs = Vec::new();
            }
            return true;
        }
        let at = self.place(number);
        let joins_next = self.runs.get(at).is_some_and(|run| run.first == end);
        let before = at.checked_sub(1).filter(|&at| self.runs[at].end == number);
        match (before, joins_next) {
            (Some(before), true) => self.runs[before].end = self.runs.remove(at).end,
            (Some(before), false) => self.runs[before].end = end,
            (None, true) => self.runs[at].first = number,
            (None, false) => self.runs.insert(at, Run { first: number, end }),
        }
        true
    }

    /// Bytes on the heap.
    pub(super) const fn heap_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>()
    }

    /// The first run that ends above this number.
    fn place(&self, number: u64) -> usize {
        self.runs.partition_point(|run| run.end <= number)
    }

    /// Panics if the set contradicts itself. For tests, fuzzers and the simulator.
    pub(super) fn check_invariants(&self) {
        let mut before = self.floor;
        for run in &self.runs {
            assert!(before < run.first && run.first < run.end, "not in order");
            before = run.end;
        }
        assert!(self.runs.len() <= 257, "more runs than a channel's limit allows");
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_set_is_one(numbers in prop::collection::vec(0..120u64, 0..250)) {
            let (mut set, mut model) = (Numbers::default(), BTreeSet::new());
            for number in numbers {
                prop_assert_eq!(set.insert(number), model.insert(number));
                set.check_invariants();
                prop_assert_eq!(set.floor, (0..).find(|n| !model.contains(n)).unwrap());
            }
            let there: Vec<u64> = (0..130).filter(|&n| set.contains(n)).collect();
            prop_assert_eq!(there, model.iter().copied().collect::<Vec<_>>());
            for n in 0..130 {
                let end = model.contains(&n).then(|| (n..).find(|n| !model.contains(n)).unwrap());
                prop_assert_eq!(set.end_of_run(n), end);
            }
        }
    }

    #[test]
    fn without_gaps_there_is_no_memory() {
        let mut set = Numbers::default();
        for number in (1..100).step_by(2).chain((0..100).step_by(2)) {
            assert!(set.insert(number));
        }
        assert_eq!((set.floor, set.heap_bytes()), (100, 0));
    }
}
