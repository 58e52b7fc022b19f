//! The fragment packet of *Packet Fragmentation and Reassembly*: a piece of a packet above the MTU.
//!
//! Only its bytes are here (STANDARD §5): parsed into a type that has no illegal value, or refused.
//! The count is written as count - 1, which is what "1 to 256 in 8 bits" needs. The 2016 original
//! wrote the count itself, so that 256 became 0; [`RawFragmentPacket`] speaks that encoding.

use crate::bits::Stream;
use crate::packet::{Packet, packet_type};
use crate::{DropReason, Sequence};

/// Bytes in every fragment but the last.
pub const FRAGMENT_BYTES: usize = 1024;

/// Bytes of a fragment packet before its data.
pub const FRAGMENT_HEADER_BYTES: usize = 9;

/// Fragments that one packet may be cut into.
pub const MAX_FRAGMENTS: usize = 256;

/// Packet types of the protocol that fragments belong to: this one and three of the application's
/// (STANDARD §5.1).
const TYPES: i32 = 4;
const FRAGMENT: i32 = 0;

/// A piece of a packet: fragment `index` of `count`, with its bytes.
///
/// Always: `index < count`, `count` from 1 to 256, 1 to 1024 bytes, and exactly 1024 but for the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment<'a> {
    sequence: Sequence,
    index: u8,
    count: u16,
    data: &'a [u8],
}

impl<'a> Fragment<'a> {
    const BLANK: Self = Self { sequence: Sequence::new(0), index: 0, count: 1, data: &[0] };

    /// A fragment, if its numbers and its length fit each other.
    ///
    /// # Errors
    /// The rule that they break.
    pub fn new(
        sequence: Sequence,
        index: usize,
        count: usize,
        data: &'a [u8],
    ) -> Result<Self, DropReason> {
        let count = u16::try_from(count).map_err(|_| DropReason::OutOfRange)?;
        match count {
            0 => return Err(DropReason::FragmentCountZero),
            1..=256 => {}
            _ => return Err(DropReason::OutOfRange),
        }
        let index = u8::try_from(index).map_err(|_| DropReason::FragmentIdOutOfRange)?;
        if u16::from(index) >= count {
            return Err(DropReason::FragmentIdOutOfRange);
        }
        match data.len() {
            0 => Err(DropReason::FragmentEmpty),
            1..FRAGMENT_BYTES if u16::from(index) + 1 < count => {
                Err(DropReason::MiddleFragmentNotFull)
            }
            1..=FRAGMENT_BYTES => Ok(Self { sequence, index, count, data }),
            _ => Err(DropReason::FragmentTooBig),
        }
    }

    /// Piece `index` of a packet of 1 to 256 KiB; an index beyond it gives the last.
    pub(crate) fn of_packet(sequence: Sequence, index: usize, packet: &'a [u8]) -> Self {
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

    fn serialize<S: Stream<'a>>(
        self,
        stream: &mut S,
        count_minus: u16,
    ) -> Result<Self, DropReason> {
        #[expect(clippy::cast_possible_truncation, reason = "16 bits were asked for")]
        let sequence = Sequence::new(stream.bits(u32::from(self.sequence.get()), 16)? as u16);
        packet_type(stream, FRAGMENT, TYPES).and_then(|kind| match kind {
            FRAGMENT => Ok(()),
            _ => Err(DropReason::BadType),
        })?;
        let index = stream.bits(u32::from(self.index), 8)?;
        let count = stream.bits(u32::from(self.count - count_minus), 8)? + u32::from(count_minus);
        let length = stream.remaining().unwrap_or(self.data.len());
        let data = stream.bytes(self.data, length)?;
        Self::new(sequence, index as usize, count as usize, data)
    }
}

/// A fragment on the wire with its count as count - 1: what haulier sends and reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentPacket<'a>(pub Fragment<'a>);

impl<'a> Packet<'a> for FragmentPacket<'a> {
    const BLANK: Self = Self(Fragment::BLANK);
    const HAS_END_CHECK: bool = false;

    fn serialize<S: Stream<'a>>(self, stream: &mut S) -> Result<Self, DropReason> {
        self.0.serialize(stream, 1).map(Self)
    }
}

/// A fragment with its count as it is, the 2016 original's encoding: 1 to 255, and 256 cannot be said
/// (8 bits make it 0, which reader and writer refuse).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawFragmentPacket<'a>(pub Fragment<'a>);

impl<'a> Packet<'a> for RawFragmentPacket<'a> {
    const BLANK: Self = Self(Fragment::BLANK);
    const HAS_END_CHECK: bool = false;

    fn serialize<S: Stream<'a>>(self, stream: &mut S) -> Result<Self, DropReason> {
        self.0.serialize(stream, 0).map(Self)
    }
}
