//! Packet numbers that a sender left out, to catch a peer that acknowledges what it never received [H-2.2c].

use alloc::vec::Vec;

/// Numbers remembered. An ack reaches back over 1024 numbers, in which a sender that skips one in
/// each 256 has 4 or 5, and one whose skips are 1 to 256 apart by chance has 8. More than 16 are
/// the caller's choice: the oldest are forgotten, and an ack of those counts as one of something
/// without contents.
const MAX_SKIPPED: usize = 16;

/// The newest skipped numbers.
#[derive(Clone, Debug)]
pub(super) struct Skipped {
    /// No room for more than there are: most connections have one or two.
    numbers: Vec<u64>,
    /// The place of the oldest, once there are all, which the next one takes.
    oldest: usize,
}

impl Skipped {
    pub(super) const fn new() -> Self {
        Self { numbers: Vec::new(), oldest: 0 }
    }

    pub(super) fn insert(&mut self, number: u64) {
        if self.numbers.len() < MAX_SKIPPED {
            self.numbers.reserve_exact(1);
            self.numbers.push(number);
        } else if let Some(to) = self.numbers.get_mut(self.oldest) {
            *to = number;
            self.oldest = (self.oldest + 1) % MAX_SKIPPED;
        }
    }

    /// How many are between these two numbers, or are one of them.
    pub(super) fn count_in(&self, from: u64, to: u64) -> u64 {
        self.numbers.iter().map(|number| u64::from((from..=to).contains(number))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered() {
        let mut skipped = Skipped::new();
        assert_eq!(skipped.count_in(0, u64::MAX), 0);
        (0..20).for_each(|i| skipped.insert(i * 100));
        assert_eq!(skipped.count_in(0, 399), 0, "forgotten");
        assert_eq!(skipped.count_in(400, 400), 1);
        assert_eq!(skipped.count_in(401, 499), 0);
        assert_eq!(skipped.count_in(499, 602), 2);
        assert_eq!(skipped.count_in(0, u64::MAX), 16);
    }
}
