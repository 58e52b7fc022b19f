//! A ring of entries keyed by sequence: the newest `N` numbers, found in one step.
//!
//! From *Packet Fragmentation and Reassembly*, "Receiving Packet Fragments". The invariant: every
//! stored entry lies in the window of the `N` numbers up to the newest one inserted.

use alloc::boxed::Box;
use alloc::vec::Vec;

use core::fmt::{self, Debug};

use crate::{Sequence, SequenceNumber};

/// Packets that are remembered in each direction: four seconds at 60 a second, where a packet counts as
/// lost after one.
pub const PACKET_WINDOW: u16 = 256;

/// Entries for the newest `N` sequences. `N` must be a power of two, which makes it a divisor of 65,536:
/// with any other size two live sequences would share a slot just after the wrap. A bad size does not
/// compile.
///
/// ```
/// use haulier_core::{Sequence, SequenceBuffer};
///
/// let mut buffer = SequenceBuffer::<&str, 8>::new();
/// buffer.insert(Sequence::new(65_535), "before the wrap");
/// buffer.insert(Sequence::new(2), "after it");
/// assert_eq!(buffer.get(Sequence::new(65_535)), Some(&"before the wrap"));
/// assert!(buffer.insert(Sequence::new(65_000), "too old").is_none());
/// ```
#[derive(Clone)]
pub struct SequenceBuffer<T, const N: usize, S = Sequence> {
    /// The number after the newest inserted; `None` until the first insert.
    next: Option<S>,
    slots: Box<[Option<(S, T)>]>,
}

/// How full it is, not each of its places.
impl<T, const N: usize, S: Debug> Debug for SequenceBuffer<T, N, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filled = self.slots.iter().flatten().count();
        f.debug_struct("SequenceBuffer").field("next", &self.next).field("filled", &filled).finish()
    }
}

impl<T, const N: usize, S: SequenceNumber> SequenceBuffer<T, N, S> {
    const SIZE: u16 = {
        assert!(N.is_power_of_two() && N <= 32_768, "size must be a power of two up to 32,768");
        #[expect(clippy::cast_possible_truncation, reason = "asserted above")]
        let size = N as u16;
        size
    };

    /// An empty buffer. Allocates its `N` slots here, and never again.
    #[must_use]
    pub fn new() -> Self {
        let _ = Self::SIZE;
        Self {
            next: None,
            slots: core::iter::repeat_with(|| None).take(N).collect::<Vec<_>>().into(),
        }
    }

    /// The number after the newest one inserted; 0 before the first insert.
    #[must_use]
    pub fn next_sequence(&self) -> S {
        self.next.unwrap_or_default()
    }

    /// Stores `value` under `sequence`, over whatever its slot held, and returns it there; `None` if the
    /// number is older than the window. The first insert is always taken, whatever its number.
    pub fn insert(&mut self, sequence: S, value: T) -> Option<&mut T> {
        self.insert_with(sequence, value, drop)
    }

    /// As [`insert`](Self::insert); every entry that falls out of the window is handed to `removed`.
    pub fn insert_with(
        &mut self,
        sequence: S,
        value: T,
        mut removed: impl FnMut(T),
    ) -> Option<&mut T> {
        if self.is_too_old(sequence) {
            return None;
        }
        match self.next {
            None => self.next = Some(sequence.next()),
            Some(next) if sequence.next().is_newer_than(next) => {
                self.advance(next, sequence, &mut removed);
            }
            Some(_) => {}
        }
        let slot = &mut self.slots[Self::index(sequence)];
        if let Some((_, old)) = slot.take() {
            removed(old);
        }
        Some(&mut slot.insert((sequence, value)).1)
    }

    /// Whether this number is older than the window, so that nothing can be stored under it.
    #[must_use]
    pub fn is_too_old(&self, sequence: S) -> bool {
        self.next.is_some_and(|next| next.minus(Self::SIZE).is_newer_than(sequence))
    }

    /// The newest number inserted, or `None` before the first insert.
    #[must_use]
    pub fn newest(&self) -> Option<S> {
        self.next.map(|next| next.minus(1))
    }

    /// The entry of exactly this sequence.
    #[must_use]
    pub fn get(&self, sequence: S) -> Option<&T> {
        match &self.slots[Self::index(sequence)] {
            Some((stored, value)) if *stored == sequence => Some(value),
            _ => None,
        }
    }

    /// The entry of exactly this sequence, to change.
    #[must_use]
    pub fn get_mut(&mut self, sequence: S) -> Option<&mut T> {
        match &mut self.slots[Self::index(sequence)] {
            Some((stored, value)) if *stored == sequence => Some(value),
            _ => None,
        }
    }

    /// Takes the entry of exactly this sequence out.
    pub fn remove(&mut self, sequence: S) -> Option<T> {
        self.get(sequence)?;
        self.slots[Self::index(sequence)].take().map(|(_, value)| value)
    }

    /// Forgets everything, as if new.
    pub fn clear(&mut self) {
        self.clear_with(drop);
    }

    /// As [`clear`](Self::clear); every entry is handed to `removed`.
    pub fn clear_with(&mut self, mut removed: impl FnMut(T)) {
        self.slots.iter_mut().filter_map(Option::take).for_each(|(_, old)| removed(old));
        self.next = None;
    }

    /// Removes every entry that `keep` refuses. The window then ends with the newest entry left.
    pub fn retain(&mut self, keep: impl Fn(S, &T) -> bool) {
        let Some(next) = self.next else { return };
        for slot in &mut self.slots {
            slot.take_if(|(sequence, value)| !keep(*sequence, value));
        }
        let mut kept = (1..=Self::SIZE).map(|n| next.minus(n)).filter(|&s| self.get(s).is_some());
        self.next = kept.next().map(S::next);
    }

    /// The slot of a sequence: its rolling index.
    #[must_use]
    pub fn index(sequence: S) -> usize {
        usize::from(sequence.low_bits() & (Self::SIZE - 1))
    }

    /// Moves the window so that `newest` is its last number, and empties every slot that the move skips.
    ///
    /// The 2016 original did not empty them. An entry then survived until something overwrote it, and
    /// once the sequence had wrapped it was found again: a packet that never came was acked a second
    /// time (vectors/sequence.json, "stale entry makes a false ack").
    fn advance(&mut self, next: S, newest: S, removed: &mut impl FnMut(T)) {
        let steps = newest.next().distance_from(next).unsigned_abs();
        let mut skipped = next;
        // A jump over more than the window empties each slot once.
        for _ in 0..steps.min(u64::from(Self::SIZE)) {
            if let Some((_, old)) = self.slots[Self::index(skipped)].take() {
                removed(old);
            }
            skipped = skipped.next();
        }
        self.next = Some(newest.next());
    }

    /// Panics if an entry lies outside the window or in a slot that is not its own. For tests, fuzzers
    /// and the simulator.
    pub fn check_invariants(&self) {
        for (index, slot) in self.slots.iter().enumerate() {
            let Some((sequence, _)) = slot else { continue };
            assert_eq!(index, Self::index(*sequence), "entry in a foreign slot");
            let age = self.next_sequence().distance_from(*sequence);
            assert!((1..=i64::from(Self::SIZE)).contains(&age), "entry outside the window");
        }
    }
}

impl<T, const N: usize, S: SequenceNumber> Default for SequenceBuffer<T, N, S> {
    fn default() -> Self {
        Self::new()
    }
}
