//! Packet numbers that a sender left out, to catch a peer that acks what it never got [H-2.2c].

/// Ranges remembered. An ack reaches back over 1024 numbers, in which a sender that skips one in
/// each 256 has 4 or 5, and one whose skips lie 1 to 256 apart by chance has 8. More than 16 are
/// the caller's whim: the oldest are forgotten, and an ack of those is believed to be of something
/// without contents.
const RANGES: u8 = 16;

/// The newest ranges of skipped numbers.
#[derive(Clone, Debug)]
pub(super) struct Skipped {
    firsts: [u64; RANGES as usize],
    /// How many numbers each range has; 0 where there is none yet.
    counts: [u8; RANGES as usize],
    /// The place of the oldest, which the next one takes.
    oldest: u8,
}

impl Skipped {
    pub(super) const fn new() -> Self {
        Self { firsts: [0; RANGES as usize], counts: [0; RANGES as usize], oldest: 0 }
    }

    pub(super) fn insert(&mut self, first: u64, count: u8) {
        let oldest = usize::from(self.oldest);
        if let (Some(to), Some(len)) = (self.firsts.get_mut(oldest), self.counts.get_mut(oldest)) {
            *to = first;
            *len = count;
        }
        self.oldest = (self.oldest + 1) % RANGES;
    }

    /// How many skipped numbers lie from `start` to `end`, both among them.
    pub(super) fn count_within(&self, start: u64, end: u64) -> u64 {
        let ranges = self.firsts.iter().zip(&self.counts).filter(|&(_, &count)| count > 0);
        let overlaps = ranges.map(|(&first, &count)| {
            let last = first.saturating_add(u64::from(count) - 1);
            let (from, to) = (first.max(start), last.min(end));
            to.checked_sub(from).map_or(0, |distance| distance + 1)
        });
        overlaps.sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_ranges_are_counted() {
        let mut skipped = Skipped::new();
        assert_eq!(skipped.count_within(0, u64::MAX), 0);
        (0..20u8).for_each(|i| skipped.insert(u64::from(i) * 100, 1 + i % 2));
        assert_eq!(skipped.count_within(0, 399), 0, "forgotten");
        assert_eq!(skipped.count_within(400, 400), 1);
        assert_eq!(skipped.count_within(401, 499), 0);
        assert_eq!(skipped.count_within(499, 502), 2);
        assert_eq!(skipped.count_within(501, 600), 2);
        assert_eq!(skipped.count_within(0, u64::MAX), 24);
    }
}
