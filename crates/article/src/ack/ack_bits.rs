//! An ack and its 32 bits: one packet acknowledges up to 33.

use crate::{Sequence, SequenceNumber};

/// The newest packet received, and which of the 32 before it were: the article's convention (STANDARD §9.1).
/// "Nothing received yet" is not such a value but a `None` in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AckBits<S = Sequence> {
    /// The newest sequence received. It is itself acknowledged.
    pub ack: S,
    /// Bit `n - 1` acknowledges `ack - n`.
    pub bits: u32,
}

impl<S: SequenceNumber> AckBits<S> {
    /// Everything it acknowledges, newest first: 1 to 33 sequences.
    pub fn sequences(self) -> impl Iterator<Item = S> {
        let earlier = (1..=32u16).filter(move |n| self.bits >> (n - 1) & 1 != 0);
        core::iter::once(self.ack).chain(earlier.map(move |n| self.ack.minus(n)))
    }

    /// Whether this sequence is acknowledged.
    #[must_use]
    pub fn contains(self, sequence: S) -> bool {
        self.sequences().any(|acked| acked == sequence)
    }

    /// The bits in the convention of the 2016 original: bit `n` is `ack - n`, bit 0 the ack itself. They
    /// reach back to `ack - 31` only.
    #[must_use]
    pub const fn in_original_convention(self) -> u32 {
        self.bits << 1 | 1
    }
}
