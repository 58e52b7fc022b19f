//! Packet numbers that a sender left out, to catch a peer that acknowledges what it never received [H-2.2c].

/// Numbers remembered. An ack reaches back over 1024 numbers, in which a sender that skips one in
/// each 256 has 4 or 5, and one whose skips are 1 to 256 apart by chance has 8. More than 16 are
/// the caller's choice: the oldest are forgotten, and an ack of those counts as one of something
/// without contents.
const MAX_SKIPPED: usize = 16;

/// No number that a connection reaches.
const NONE: u64 = u64::MAX;

/// The newest skipped numbers.
#[derive(Clone, Debug)]
pub(super) struct Skipped {
    /// [`NONE`] where there is none yet.
    numbers: [u64; MAX_SKIPPED],
    /// The place of the oldest, which the next one takes.
    oldest: u8,
}

impl Skipped {
    pub(super) const fn new() -> Self {
        Self { numbers: [NONE; MAX_SKIPPED], oldest: 0 }
    }

    pub(super) fn insert(&mut self, number: u64) {
        let oldest = usize::from(self.oldest) % MAX_SKIPPED;
        if let Some(to) = self.numbers.get_mut(oldest) {
            *to = number;
        }
        self.oldest = self.oldest.wrapping_add(1);
    }

    /// How many are between these two numbers, or are one of them.
    pub(super) fn count_in(&self, from: u64, to: u64) -> u64 {
        let numbers = self.numbers.iter().filter(|&&number| number != NONE);
        numbers.map(|number| u64::from((from..=to).contains(number))).sum()
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
