//! Packet numbers that a sender left out, to catch a peer that acknowledges what it never received [H-2.2c].
//!
//! An ack has an effect only on a datagram that the ledger has a record of. So all numbers are remembered
//! that were skipped since the oldest record, however many datagrams are in flight: with one skipped in
//! each 256 these are 512 at most, 4 KiB beside 6 MB of records. (The newest 16 were remembered once. Acks
//! of all but the newest 4,300 numbers then cost nothing, and a link of 10 Mbit/s was sent 640 to 1,782.)
//!
//! What that is worth: a peer that names a number it did not get names the skipped one of its 256 with a
//! chance of one in 256 at least, whatever it knows of the others. So `n` false acks pass with a chance of
//! `(255 / 256)^n` at most, `e^(-n / 256)`: 3,537 of them, 4.2 MB, with one in a million.
//!
//! The invariant: the numbers are in order.

use alloc::collections::VecDeque;

/// The skipped numbers that an ack may still name with effect.
#[derive(Clone, Debug)]
pub(super) struct Skipped(VecDeque<u64>);

impl Skipped {
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// A number above all before.
    pub(super) fn insert(&mut self, number: u64) {
        self.0.push_back(number);
    }

    /// No record has a number below this one.
    pub(super) fn forget_below(&mut self, number: u64) {
        while self.0.front().is_some_and(|&oldest| oldest < number) {
            self.0.pop_front();
        }
    }

    /// How many are between these two numbers, or are one of them.
    pub(super) fn count_in(&self, from: u64, to: u64) -> u64 {
        let below = self.0.partition_point(|&number| number < from);
        let up_to = self.0.partition_point(|&number| number <= to);
        up_to.saturating_sub(below) as u64
    }

    /// Memory held, in bytes, besides itself.
    pub(super) fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }

    /// Gives back the memory of those that were forgotten.
    pub(super) fn rest(&mut self) {
        self.0.shrink_to_fit();
    }

    pub(super) fn is_in_order(&self) -> bool {
        self.0.iter().zip(self.0.iter().skip(1)).all(|(a, b)| a < b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_remembered_until_they_are_forgotten() {
        let mut skipped = Skipped::new();
        assert_eq!(skipped.count_in(0, u64::MAX), 0);
        (0..600).for_each(|i| skipped.insert(i * 100));
        assert_eq!(skipped.count_in(0, u64::MAX), 600);
        assert_eq!(skipped.count_in(400, 400), 1);
        assert_eq!(skipped.count_in(401, 499), 0);
        assert_eq!(skipped.count_in(499, 602), 2);
        skipped.forget_below(401);
        assert_eq!(skipped.count_in(0, 499), 0, "forgotten");
        assert_eq!(skipped.count_in(0, 500), 1);
        skipped.forget_below(u64::MAX);
        skipped.rest();
        assert_eq!(skipped.memory_bytes(), 0);
    }
}
