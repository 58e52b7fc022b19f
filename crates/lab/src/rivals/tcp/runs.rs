//! A set of segment numbers as runs: a hole is found without walking over the numbers in the set.
//!
//! The invariant: no two runs overlap or touch.

use std::collections::BTreeMap;
use std::ops::Range;

/// Where each run begins, and its exclusive end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Runs(BTreeMap<u32, u32>);

impl Runs {
    /// Adds these numbers; returns those that are new.
    pub(super) fn insert(&mut self, added: Range<u32>) -> Vec<Range<u32>> {
        let touching = self.0.range(..=added.end).rev();
        let touching: Vec<Range<u32>> = touching
            .map(|(&from, &to)| from..to)
            .take_while(|run| run.end >= added.start)
            .collect();
        let (mut new, mut at, mut whole) = (Vec::new(), added.start, added.clone());
        for run in touching.into_iter().rev() {
            if run.start > at {
                new.push(at..run.start);
            }
            at = at.max(run.end);
            whole = whole.start.min(run.start)..whole.end.max(run.end);
            self.0.remove(&run.start);
        }
        if at < added.end {
            new.push(at..added.end);
        }
        if !whole.is_empty() {
            self.0.insert(whole.start, whole.end);
        }
        new
    }

    /// The run with this number.
    pub(super) fn run_of(&self, number: u32) -> Option<(u32, u32)> {
        let (&from, &to) = self.0.range(..=number).next_back()?;
        (number < to).then_some((from, to))
    }

    /// Removes the run that begins here; returns its end.
    pub(super) fn take_from(&mut self, number: u32) -> Option<u32> {
        self.0.remove(&number)
    }

    /// Removes all runs that end by this number. One that goes on beyond it stays as it is.
    pub(super) fn forget_until(&mut self, number: u32) {
        while let Some(first) = self.0.first_entry().filter(|first| *first.get() <= number) {
            first.remove();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Panics if two runs touch, or one begins at `next` or before.
    pub(super) fn check_invariants(&self, next: u32) {
        let mut end = next;
        for (&from, &to) in &self.0 {
            assert!(end < from && from < to, "{self:?} beyond {next}");
            end = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_are_the_holes() {
        let mut runs = Runs::default();
        let mut insert = |added| -> Vec<(u32, u32)> {
            runs.insert(added).into_iter().map(|run| (run.start, run.end)).collect()
        };
        assert_eq!(insert(10..12), [(10, 12)]);
        assert_eq!(insert(20..22), [(20, 22)]);
        assert_eq!(insert(11..12), []);
        assert_eq!(insert(5..30), [(5, 10), (12, 20), (22, 30)]);
        assert_eq!(insert(30..31), [(30, 31)], "touching ones are one run");
        assert_eq!(insert(2..5), [(2, 5)]);
        assert_eq!(runs.run_of(29), Some((2, 31)));
        assert_eq!(runs, Runs([(2, 31)].into()));
    }

    #[test]
    fn runs_are_forgotten_from_the_front() {
        let mut runs = Runs([(2, 4), (6, 8), (10, 12)].into());
        runs.check_invariants(1);
        assert_eq!((runs.take_from(6), runs.take_from(7)), (Some(8), None));
        runs.forget_until(11);
        assert_eq!((runs.run_of(3), runs.run_of(11)), (None, Some((10, 12))));
    }
}
