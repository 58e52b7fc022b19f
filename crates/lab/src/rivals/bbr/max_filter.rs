//! The largest of the values of the last rounds.

use std::collections::VecDeque;

/// The maximum over a window that is counted in rounds.
#[derive(Clone, Debug)]
pub(super) struct MaxFilter {
    rounds: u64,
    /// Falling values with their rounds: the first is the largest.
    values: VecDeque<(u64, f64)>,
}

impl MaxFilter {
    /// Of this many rounds.
    pub(super) const fn new(rounds: u64) -> Self {
        Self { rounds, values: VecDeque::new() }
    }

    pub(super) fn add(&mut self, round: u64, value: f64) {
        while self.values.back().is_some_and(|&(_, smaller)| smaller <= value) {
            self.values.pop_back();
        }
        self.values.push_back((round, value));
        while self.values.front().is_some_and(|&(old, _)| old + self.rounds <= round) {
            self.values.pop_front();
        }
    }

    /// The largest; zero before the first.
    pub(super) fn max(&self) -> f64 {
        self.values.front().map_or(0.0, |&(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_the_last_rounds() {
        let mut filter = MaxFilter::new(3);
        let values = [(1, 5.0, 5.0), (2, 9.0, 9.0), (3, 4.0, 9.0), (4, 6.0, 9.0), (5, 1.0, 6.0)];
        for (round, value, largest) in values {
            filter.add(round, value);
            assert_eq!(filter.max().to_bits(), f64::to_bits(largest), "round {round}");
        }
    }
}
