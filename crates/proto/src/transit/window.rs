//! The replay window: which of the newest packet numbers arrived.
//!
//! It begins with 8192 numbers and doubles as datagrams arrive, up to 131,072; its memory follows the numbers
//! that were used. Its lower edge never moves down: a window that grows takes in numbers to come, and none
//! that had left it. Nothing is known of those any more, and a recorded datagram would pass as a new one.
//!
//! The invariant: a set bit is that of a number that arrived and is in the window.

use alloc::boxed::Box;
use alloc::vec;
use core::ops::RangeInclusive;

/// Packet numbers that a receiver can tell apart from repeated ones at first [H-2.2b]: the largest and 8191
/// below. At 1200 bytes that is 9.8 MB in flight, 0.8 s at 100 Mbit/s, for up to 1 KiB of memory.
const MIN_WINDOW: u64 = 8192;

/// And in the end: 157 MB in flight, 0.12 s at 10 Gbit/s, for 16 KiB of memory.
const MAX_WINDOW: u64 = 1 << 17;

/// The smallest window, for what needs no larger one.
pub(crate) const SMALLEST: u64 = MIN_WINDOW;

/// The window after this many datagrams arrived: eight for each, as a power of two. A sender that doubles
/// its datagrams in flight with each round trip has four times as many in flight as arrived, so the window
/// never limits it. And little is kept for a connection on which little has arrived.
pub(super) const fn window_after(datagrams: u64) -> u64 {
    let wanted = datagrams.saturating_mul(8);
    if wanted <= MIN_WINDOW {
        MIN_WINDOW
    } else if wanted >= MAX_WINDOW {
        MAX_WINDOW
    } else {
        1 << wanted.ilog2()
    }
}

/// Words that need no heap, for numbers below 128: a connection that was refused, or has only begun, stays
/// small.
const FEW: usize = 2;

#[derive(Clone, Debug)]
enum Numbers {
    /// No number was above 127.
    Few([u64; FEW]),
    Many(Box<[u64]>),
}

/// Bits by number, in a ring of up to `MAX`: number `n` is bit `n % 64` of word `n / 64 % words`. As all
/// numbers of [`Numbers::Few`] are below 128, the same rule fits both.
#[derive(Clone, Debug)]
pub(crate) struct ReplayWindow<const MAX: u64 = MAX_WINDOW> {
    largest: Option<u64>,
    /// The lower edge: numbers below have left the window.
    oldest: u64,
    /// How many arrived.
    count: u64,
    numbers: Numbers,
}

/// What is known of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Fresh,
    Duplicate,
    TooOld,
}

impl<const MAX: u64> ReplayWindow<MAX> {
    pub(crate) const fn new() -> Self {
        Self { largest: None, oldest: 0, count: 0, numbers: Numbers::Few([0; FEW]) }
    }

    pub(super) const fn largest(&self) -> Option<u64> {
        self.largest
    }

    /// How many arrived.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn place(&self, number: u64) -> Place {
        if self.largest < Some(number) {
            Place::Fresh
        } else if number < self.oldest {
            Place::TooOld
        } else if self.word(number) & bit(number) == 0 {
            Place::Fresh
        } else {
            Place::Duplicate
        }
    }

    /// Adds a fresh number; the window follows the largest.
    pub(crate) fn insert(&mut self, number: u64) {
        self.count = self.count.saturating_add(1);
        self.grow(number);
        let ahead = self.largest.map_or(0, |largest| number.saturating_sub(largest));
        self.clear_below(number, ahead);
        let index = self.index(number);
        if let Some(word) = self.words_mut().get_mut(index) {
            *word |= bit(number);
        }
        self.largest = self.largest.max(Some(number));
        let oldest = self.largest.unwrap_or_default().saturating_sub(self.len() - 1);
        self.oldest = self.oldest.max(oldest);
    }

    /// How many numbers from `from` downwards, including it, arrived (or did not), up to `limit`. They must
    /// be in the window; the count ends at number 0.
    pub(super) fn run_down(&self, from: u64, has_arrived: bool, limit: u32) -> u32 {
        let limit = u64::from(limit).min(from.saturating_add(1));
        let mut count = 0;
        while count < limit {
            let number = from - count;
            let word = if has_arrived { self.word(number) } else { !self.word(number) };
            let in_word = number % 64 + 1;
            let run = u64::from((word << (64 - in_word)).leading_ones());
            count += run;
            if run < in_word {
                break;
            }
        }
        u32::try_from(count.min(limit)).unwrap_or(u32::MAX)
    }

    /// The whole run of numbers that arrived around this one; `None` if it did not, or is out of date.
    pub(super) fn run_of(&self, number: u64) -> Option<RangeInclusive<u64>> {
        if self.place(number) != Place::Duplicate {
            return None;
        }
        let largest = self.largest?;
        let mut end = number;
        while end < largest {
            let run = (self.word(end + 1) >> ((end + 1) % 64)).trailing_ones();
            end = (end + u64::from(run)).min(largest);
            // It goes on if it reached the last bit of its word.
            if run == 0 || end % 64 != 63 {
                break;
            }
        }
        let run = self.run_down(end, true, self.numbers_down_from(end));
        Some(end - u64::from(run.saturating_sub(1))..=end)
    }

    /// The next run below this number, which did not arrive or is the lowest of its own run.
    pub(super) fn run_below(&self, number: u64) -> Option<RangeInclusive<u64>> {
        let above = number.checked_sub(1)?;
        let left = self.numbers_down_from(above);
        let gap = self.run_down(above, false, left);
        let end = above.checked_sub(gap.into())?;
        let run = self.run_down(end, true, left - gap);
        (run > 0).then(|| end - u64::from(run - 1)..=end)
    }

    /// Numbers in the window.
    pub(super) fn len(&self) -> u64 {
        (64 * self.words().len() as u64).max(MIN_WINDOW)
    }

    /// Memory held, in bytes, besides itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.numbers {
            Numbers::Few(_) => 0,
            Numbers::Many(words) => size_of_val::<[u64]>(words),
        }
    }

    /// How many numbers of the window are not above this one.
    fn numbers_down_from(&self, number: u64) -> u32 {
        let count = number.saturating_add(1).saturating_sub(self.oldest);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    fn words(&self) -> &[u64] {
        match &self.numbers {
            Numbers::Few(words) => words,
            Numbers::Many(words) => words,
        }
    }

    fn words_mut(&mut self) -> &mut [u64] {
        match &mut self.numbers {
            Numbers::Few(words) => words,
            Numbers::Many(words) => words,
        }
    }

    fn index(&self, number: u64) -> usize {
        let words = self.words().len() as u64;
        usize::try_from(number / 64 % words).unwrap_or(0)
    }

    fn word(&self, number: u64) -> u64 {
        self.words().get(self.index(number)).copied().unwrap_or(0)
    }

    /// Makes room for this number. Until the ring turns it has only the words for the numbers seen, and it
    /// doubles each time it grows.
    fn grow(&mut self, number: u64) {
        let highest = self.largest.max(Some(number)).unwrap_or_default();
        let window = window_after(self.count).min(MAX);
        let needed = if highest < window { (highest + 1).next_power_of_two() } else { window };
        let wanted = usize::try_from(needed / 64).unwrap_or_default();
        if wanted <= self.words().len() {
            return;
        }
        let mut words = vec![0; wanted].into_boxed_slice();
        let mut keep = |number: u64, bits: u64| {
            let index = usize::try_from(number / 64 % words.len() as u64).unwrap_or_default();
            if let Some(word) = words.get_mut(index) {
                *word |= bits;
            }
        };
        // The word of the largest number holds those up to it, and above it some of one turn ago.
        let largest = self.largest.unwrap_or_default();
        let newest = u64::MAX >> (63 - largest % 64);
        keep(largest, self.word(largest) & newest);
        let turn = 64 * self.words().len() as u64;
        for below in (64..=turn).step_by(64) {
            let Some(number) = (largest / 64 * 64).checked_sub(below) else { break };
            let bits = if below == turn { !newest } else { u64::MAX };
            keep(number, self.word(number) & bits);
        }
        self.numbers = Numbers::Many(words);
    }

    /// Clears the `count` places up to that of `number`, which held numbers one turn of the ring ago.
    fn clear_below(&mut self, number: u64, count: u64) {
        if count >= self.len() {
            self.words_mut().fill(0);
            return;
        }
        let mut left = count;
        while left > 0 {
            // From the top down, a word at a time: the bits from `lowest` to that of `top`.
            let top = number - (count - left);
            let taken = left.min(top % 64 + 1);
            let lowest = top % 64 + 1 - taken;
            let mask = (u64::MAX >> (64 - taken)) << lowest;
            let index = self.index(top);
            if let Some(word) = self.words_mut().get_mut(index) {
                *word &= !mask;
            }
            left -= taken;
        }
    }
}

const fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// A model that the window must match: all numbers that ever arrived, and the lowest that never left the
    /// window.
    #[derive(Default)]
    struct Model {
        arrived: BTreeSet<u64>,
        oldest: u64,
    }

    impl Model {
        fn largest(&self) -> Option<u64> {
            self.arrived.last().copied()
        }

        fn place(&self, number: u64) -> Place {
            if self.arrived.contains(&number) && number >= self.oldest {
                Place::Duplicate
            } else if number < self.oldest {
                Place::TooOld
            } else {
                Place::Fresh
            }
        }

        fn insert(&mut self, number: u64) {
            self.arrived.insert(number);
            let window = window_after(self.arrived.len() as u64);
            let oldest = self.largest().unwrap().saturating_sub(window - 1);
            self.oldest = oldest.max(self.oldest);
        }
    }

    #[test]
    fn the_edge_of_the_window() {
        for largest in [8191, 8192, 100_000, u64::MAX] {
            let mut window = <ReplayWindow>::new();
            window.insert(largest);
            let edge = largest - 8191;
            assert_eq!(window.place(edge), Place::Fresh);
            window.insert(edge);
            assert_eq!(window.place(edge), Place::Duplicate);
            if let Some(beyond) = edge.checked_sub(1) {
                assert_eq!(window.place(beyond), Place::TooOld);
            }
        }
    }

    /// It doubles with what arrives, and forgets nothing as it does.
    #[test]
    fn the_window_grows_with_what_arrives() {
        let sizes = [(0, 8192), (2_047, 8192), (2_048, 16_384), (1 << 14, 1 << 17)];
        for (datagrams, window) in sizes.into_iter().chain([(u64::MAX, 1 << 17)]) {
            assert_eq!(window_after(datagrams), window);
        }
        let mut window = <ReplayWindow>::new();
        let arrived = |number: u64| !number.is_multiple_of(3);
        let mut number = 0;
        while window.len() < MAX_WINDOW {
            let (before, largest) = (window.len(), number);
            if arrived(number) {
                window.insert(number);
            }
            if window.len() > before {
                for number in largest.saturating_sub(before - 1)..=largest {
                    let place = if arrived(number) { Place::Duplicate } else { Place::Fresh };
                    assert_eq!(window.place(number), place, "{number} at {largest}");
                }
            }
            number += 1;
        }
        assert!(window.count >= 1 << 14);
    }

    /// A connection after its handshake holds no bitmap.
    #[test]
    fn few_numbers_need_no_heap() {
        let mut window = <ReplayWindow>::new();
        (0..128).for_each(|number| window.insert(number));
        assert!(matches!(window.numbers, Numbers::Few(_)));
        window.insert(128);
        assert!((0..=128).all(|number| window.place(number) == Place::Duplicate));
        (129..600).for_each(|number| window.insert(number));
        assert_eq!((window.words().len(), window.len()), (16, MIN_WINDOW), "128 bytes");
    }

    /// What arrives next: the distance from the largest number, how many numbers, and the stride between
    /// them. Strides are what losses leave of a sender's numbers, runs of thousands make the window grow.
    fn steps() -> impl Strategy<Value = Vec<(i64, u64, u64)>> {
        let step = prop_oneof![
            4 => -3..4i64,
            2 => -200..200i64,
            1 => -8200..-8180i64,
            1 => 8180..8200i64,
            1 => -9000..9000i64,
            1 => -140_000..140_000i64,
        ];
        let run = prop_oneof![6 => Just(1u64), 2 => 1..70u64, 1 => 500..4_000u64];
        let stride = prop_oneof![3 => Just(1u64), 2 => 2..20u64];
        prop::collection::vec((step, run, stride), 1..100)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// However it grows: it names what arrived, and nothing that left it passes as new again.
        #[test]
        fn the_window_is_a_set_whose_edge_never_moves_down(
            start in prop_oneof![3 => Just(0u64), 1 => any::<u64>()], steps in steps(),
        ) {
            let (mut window, mut model) = (<ReplayWindow>::new(), Model::default());
            for (step, run, stride) in steps {
                let from = model.largest().unwrap_or(start).saturating_add_signed(step);
                for number in (0..run).map(|n| from.saturating_add(n * stride)) {
                    let place = model.place(number);
                    prop_assert_eq!(window.place(number), place, "{}", number);
                    if place == Place::Fresh {
                        window.insert(number);
                        model.insert(number);
                    }
                }
                let largest = model.largest().unwrap();
                prop_assert_eq!(window.largest(), Some(largest));
                let edge = model.oldest;
                let probes = [0, edge.saturating_sub(1), edge, edge.saturating_add(1)];
                let old = model.arrived.iter().copied().step_by(1 + model.arrived.len() / 256);
                for number in probes.into_iter().chain(old) {
                    prop_assert_eq!(window.place(number), model.place(number), "{}", number);
                }
                for has_arrived in [true, false] {
                    let down = (0..1024).map_while(|n| largest.checked_sub(n));
                    let run = down.take_while(|n| model.arrived.contains(n) == has_arrived).count();
                    prop_assert_eq!(window.run_down(largest, has_arrived, 1024) as usize, run);
                }
                let mut named = window.run_of(largest);
                while let Some(run) = named {
                    prop_assert!(*run.start() >= edge, "{:?} at {}", run, edge);
                    let arrived = model.arrived.range(run.clone()).count() as u64;
                    prop_assert_eq!(arrived, run.end() - run.start() + 1);
                    named = window.run_below(*run.start());
                }
            }
        }
    }
}
