//! A set of numbers as ranges: chunks that are here, bytes that have come, pieces that are wanted.
//!
//! The invariant: the ranges are sorted, none is empty, and no two touch. So each set has one form, and a
//! file of which all has come is one range, however long it is.

use std::ops::Range;

use crate::fields::{Fields, FormatError, put_varint};

/// Ranges of one set on the wire: what fits in a message with room to spare.
pub const MAX_WIRE_RANGES: usize = 4096;

/// A set of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// No number.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The numbers below this.
    #[must_use]
    pub fn up_to(end: u64) -> Self {
        Self::from_iter([0..end])
    }

    /// The numbers whose bits are set: bit 0 of the first byte is number 0.
    #[must_use]
    pub fn from_bitmap(bitmap: &[u8]) -> Self {
        let bits = (0..).zip(bitmap).flat_map(|(at, &byte)| {
            (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| at * 8 + bit)
        });
        bits.map(|number: u64| number..number + 1).collect()
    }

    /// Adds these, and returns how many of them are new. It costs little at the end, and as much as there
    /// are ranges elsewhere.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let first = self.0.partition_point(|it| it.end < range.start);
        let after = self.0.partition_point(|it| it.start <= range.end);
        let touched = self.0.get(first..after).unwrap_or_default();
        let start = touched.first().map_or(range.start, |it| it.start.min(range.start));
        let end = touched.last().map_or(range.end, |it| it.end.max(range.end));
        let before: u64 = touched.iter().map(|it| it.end - it.start).sum();
        self.0.splice(first..after, [start..end]);
        end - start - before
    }

    /// Takes these out.
    pub(crate) fn remove(&mut self, range: &Range<u64>) {
        if self.touches(range) {
            let parts = self.0.iter().flat_map(|it| {
                [it.start..it.end.min(range.start), it.start.max(range.end)..it.end]
            });
            self.0 = parts.filter(|part| !part.is_empty()).collect();
        }
    }

    /// Whether all of these are in the set.
    #[must_use]
    pub fn contains(&self, range: &Range<u64>) -> bool {
        range.is_empty()
            || self.overlapping(range).any(|it| it.start <= range.start && range.end <= it.end)
    }

    /// Whether any of these is in the set.
    #[must_use]
    pub fn touches(&self, range: &Range<u64>) -> bool {
        !range.is_empty() && self.overlapping(range).next().is_some()
    }

    fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = &Range<u64>> {
        let first = self.0.partition_point(|it| it.end <= range.start);
        let end = range.end;
        self.0.get(first..).unwrap_or_default().iter().take_while(move |it| it.start < end)
    }

    /// The first number that is not in the set.
    #[must_use]
    pub fn first_missing(&self) -> u64 {
        self.0.first().filter(|it| it.start == 0).map_or(0, |it| it.end)
    }

    /// The numbers below `end` that are not in the set.
    #[must_use]
    pub fn missing_below(&self, end: u64) -> Self {
        let ends = self.0.iter().map(|it| it.end);
        let starts = self.0.iter().map(|it| it.start).chain([end]);
        let gaps = [0].into_iter().chain(ends).zip(starts);
        Self(gaps.map(|(from, to)| from..to.min(end)).filter(|gap| !gap.is_empty()).collect())
    }

    /// These numbers in units of `unit`, each unit of which one is in the set.
    #[must_use]
    pub fn in_units(&self, unit: u64) -> Self {
        let unit = unit.max(1);
        self.0.iter().map(|it| it.start / unit..it.end.div_ceil(unit)).collect()
    }

    /// This set if it has at most `max_ranges` ranges; else a larger one, with the narrowest gaps closed.
    #[must_use]
    pub fn with_at_most(mut self, max_ranges: usize) -> Self {
        let surplus = self.0.len().saturating_sub(max_ranges.max(1));
        if surplus == 0 {
            return self;
        }
        let mut gaps: Vec<u64> =
            self.0.windows(2).map(|pair| pair[1].start - pair[0].end).collect();
        let (_, &mut widest, _) = gaps.select_nth_unstable(surplus - 1);
        let mut closed: Vec<Range<u64>> = Vec::new();
        for range in self.0.drain(..) {
            match closed.last_mut() {
                Some(last) if range.start - last.end <= widest => last.end = range.end,
                _ => closed.push(range),
            }
        }
        Self(closed)
    }

    /// How many numbers are in the set.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|it| it.end - it.start).sum()
    }

    /// Whether none is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges, sorted.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Range<u64>> + '_ {
        self.0.iter().cloned()
    }

    /// How many ranges, then of each the gap before it and its length.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.0.len() as u64);
        let mut end = 0;
        for range in &self.0 {
            put_varint(out, range.start - end);
            put_varint(out, range.end - range.start);
            end = range.end;
        }
    }

    pub(crate) fn read(fields: &mut Fields<'_>, max: u64) -> Result<Self, FormatError> {
        let count = fields.at_most(MAX_WIRE_RANGES as u64, "too many ranges")?;
        let mut ranges = Vec::new();
        let mut end = 0;
        for index in 0..count {
            let gap = fields.at_most(max - end, "a range beyond the end")?;
            let start = end + gap;
            let length = fields.at_most(max - start, "a range beyond the end")?;
            if length == 0 || (gap == 0 && index > 0) {
                return Err(FormatError::Value("an empty range, or two that touch"));
            }
            end = start + length;
            ranges.push(start..end);
        }
        Ok(Self(ranges))
    }
}

impl FromIterator<Range<u64>> for Ranges {
    fn from_iter<T: IntoIterator<Item = Range<u64>>>(ranges: T) -> Self {
        let mut set = Self::new();
        for range in ranges {
            set.insert(range);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a plain set.
        #[test]
        fn a_set_is_a_set(
            ops in vec((0_u64..60, 0_u64..9), 0..40),
            at in 0_u64..70,
            len in 0_u64..9,
        ) {
            let mut model = std::collections::BTreeSet::new();
            let mut set = Ranges::new();
            for (start, len) in ops {
                let before = model.len() as u64;
                model.extend(start..start + len);
                prop_assert_eq!(set.insert(start..start + len), model.len() as u64 - before);
                prop_assert!(set.0.iter().all(|it| !it.is_empty()));
                prop_assert!(set.0.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
            prop_assert!(set.iter().flatten().eq(model.iter().copied()));
            let mut less = set.clone();
            less.remove(&(at..at + len));
            let left = model.iter().copied().filter(|it| !(at..at + len).contains(it));
            prop_assert!(less.iter().flatten().eq(left) && less.0.iter().all(|it| !it.is_empty()));
            let range = at..at + len;
            prop_assert_eq!(set.contains(&range), range.clone().all(|it| model.contains(&it)));
            prop_assert_eq!(set.touches(&range), { range }.any(|it| model.contains(&it)));
            let missing: Vec<u64> = (0..at).filter(|it| !model.contains(it)).collect();
            prop_assert!(missing.first().is_none_or(|&first| first == set.first_missing()));
            prop_assert!(set.missing_below(at).iter().flatten().eq(missing));
            let mut bytes = Vec::new();
            set.put(&mut bytes);
            prop_assert_eq!(Ranges::read(&mut Fields::new(&bytes), 100), Ok(set.clone()));
            let fewer = set.clone().with_at_most(2);
            prop_assert!(fewer.0.len() <= 2 && set.iter().all(|it| fewer.contains(&it)));
        }

        #[test]
        fn any_bytes_are_ranges_or_an_error(bytes in vec(any::<u8>(), 0..60), max in any::<u64>()) {
            if let Ok(set) = Ranges::read(&mut Fields::new(&bytes), max >> 2) {
                prop_assert!(set.0.iter().all(|it| !it.is_empty() && it.end <= max >> 2));
                prop_assert!(set.0.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }

    #[test]
    fn bits_and_units() {
        let set = Ranges::from_bitmap(&[0b0000_0110, 0, 0b1000_0000]);
        assert!(set.iter().eq([1..3, 23..24]));
        assert!(set.in_units(4).iter().eq([0..1, 5..6]));
        assert_eq!((set.count(), Ranges::up_to(0).is_empty()), (3, true));
    }
}
