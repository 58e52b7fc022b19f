//! A piece of a packet, as a type without illegal values, and how a packet is cut into them.

use thiserror::Error;

use crate::Sequence;
use crate::debug_as;

/// Bytes in every fragment but the last.
pub const FRAGMENT_BYTES: usize = 1024;

/// Fragments that one packet may be cut into.
pub const MAX_FRAGMENTS: usize = 256;

/// The largest packet that fragments can carry: 256 of 1024 bytes.
pub const MAX_FRAGMENTED_BYTES: usize = MAX_FRAGMENTS * FRAGMENT_BYTES;

/// The rule that a fragment breaks, or a packet that cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum FragmentError {
    /// A fragment or a packet without data.
    #[error("a fragment has at least one byte")]
    Empty,
    /// More than 1024 bytes.
    #[error("a fragment has at most {FRAGMENT_BYTES} bytes")]
    TooLong,
    /// A packet of no fragments.
    #[error("a packet has at least one fragment")]
    CountZero,
    /// A packet of more than 256 fragments.
    #[error("a packet has at most {MAX_FRAGMENTS} fragments")]
    CountTooLarge,
    /// An index at or above the count.
    #[error("the index of a fragment is below their count")]
    IndexOutOfRange,
    /// Shorter than 1024 bytes, and not the last of its packet.
    #[error("only the last fragment of a packet may be shorter than {FRAGMENT_BYTES} bytes")]
    MiddleNotFull,
}

/// A piece of a packet: fragment `index` of `count`, with its bytes.
///
/// Always: `index < count`, `count` from 1 to 256, 1 to 1024 bytes, and exactly 1024 except in the last.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a> {
    sequence: Sequence,
    index: u8,
    count: u16,
    data: &'a [u8],
}

debug_as! {
    Fragment['_]: |piece|
    sequence = piece.sequence,
    index = piece.index,
    count = piece.count,
    bytes = piece.data.len(),
}

impl<'a> Fragment<'a> {
    /// A fragment, if its numbers and its length agree.
    ///
    /// # Errors
    /// The rule that they break.
    pub const fn new(
        sequence: Sequence,
        index: usize,
        count: usize,
        data: &'a [u8],
    ) -> Result<Self, FragmentError> {
        match count {
            0 => return Err(FragmentError::CountZero),
            1..=MAX_FRAGMENTS => {}
            _ => return Err(FragmentError::CountTooLarge),
        }
        if index >= count {
            return Err(FragmentError::IndexOutOfRange);
        }
        match data.len() {
            0 => Err(FragmentError::Empty),
            1..FRAGMENT_BYTES if index + 1 < count => Err(FragmentError::MiddleNotFull),
            #[expect(clippy::cast_possible_truncation, reason = "a count is at most 256")]
            1..=FRAGMENT_BYTES => {
                Ok(Self { sequence, index: index as u8, count: count as u16, data })
            }
            _ => Err(FragmentError::TooLong),
        }
    }

    /// Piece `index` of a packet of 1 to 256 KiB; an index beyond it gives the last.
    #[must_use]
    pub fn of_packet(sequence: Sequence, index: usize, packet: &'a [u8]) -> Self {
        let count = packet.len().div_ceil(FRAGMENT_BYTES).clamp(1, MAX_FRAGMENTS);
        let index = index.min(count - 1);
        let start = packet.get(index * FRAGMENT_BYTES..).unwrap_or_default();
        let data = start.get(..FRAGMENT_BYTES).unwrap_or(start);
        #[expect(clippy::cast_possible_truncation, reason = "count is at most 256, index below it")]
        Self { sequence, index: index as u8, count: count as u16, data }
    }

    /// The sequence of the packet it is a piece of.
    #[must_use]
    pub const fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Which piece, from 0.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index as usize
    }

    /// Of how many.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count as usize
    }

    /// Its bytes.
    #[must_use]
    pub const fn data(&self) -> &'a [u8] {
        self.data
    }
}

/// Cuts a packet into fragments, in the order in which they are sent. A packet of up to 1024 bytes gives one
/// fragment; both wires send such packets whole instead.
///
/// # Errors
/// [`FragmentError::Empty`] for an empty packet, [`FragmentError::CountTooLarge`] above
/// [`MAX_FRAGMENTED_BYTES`].
pub fn split(
    sequence: Sequence,
    packet: &[u8],
) -> Result<impl DoubleEndedIterator<Item = Fragment<'_>> + ExactSizeIterator, FragmentError> {
    let count = packet.len().div_ceil(FRAGMENT_BYTES);
    match count {
        0 => return Err(FragmentError::Empty),
        1..=MAX_FRAGMENTS => {}
        _ => return Err(FragmentError::CountTooLarge),
    }
    Ok((0..count).map(move |index| Fragment::of_packet(sequence, index, packet)))
}
