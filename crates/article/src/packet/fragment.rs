//! The fragment packet of *Packet Fragmentation and Reassembly*: a piece of a packet above the MTU.
//!
//! Only its bytes are here (STANDARD §5): they become a type without illegal values, or a drop reason. The
//! count is written as count - 1, which is what "1 to 256 in 8 bits" needs. The 2016 original wrote the
//! count itself, so that 256 became 0; [`RawFragmentPacket`] has that encoding.

use haulier_core::fragment::Fragment;

use crate::bits::Stream;
use crate::packet::{Packet, packet_type};
use crate::{PacketDropReason, Sequence};

/// Bytes of a fragment packet before its data.
pub const FRAGMENT_HEADER_BYTES: usize = 9;

/// Packet types of the protocol that fragments belong to: this one and three of the application's
/// (STANDARD §5.1).
const TYPES: i32 = 4;
const FRAGMENT: i32 = 0;

const BLANK: Fragment<'static> = match Fragment::new(Sequence::new(0), 0, 1, &[0]) {
    Ok(fragment) => fragment,
    Err(_) => unreachable!(),
};

/// A fragment whose count is written as count - 1, the encoding that haulier uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentPacket<'a>(pub Fragment<'a>);

impl<'a> Packet<'a> for FragmentPacket<'a> {
    const BLANK: Self = Self(BLANK);
    const HAS_END_CHECK: bool = false;

    fn serialize<S: Stream<'a>>(self, stream: &mut S) -> Result<Self, PacketDropReason> {
        serialize(self.0, stream, 1).map(Self)
    }
}

/// A fragment whose count is written as it is, the 2016 original's encoding: 1 to 255. 256 becomes 0 in 8
/// bits, which reader and writer refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawFragmentPacket<'a>(pub Fragment<'a>);

impl<'a> Packet<'a> for RawFragmentPacket<'a> {
    const BLANK: Self = Self(BLANK);
    const HAS_END_CHECK: bool = false;

    fn serialize<S: Stream<'a>>(self, stream: &mut S) -> Result<Self, PacketDropReason> {
        serialize(self.0, stream, 0).map(Self)
    }
}

fn serialize<'a, S: Stream<'a>>(
    fragment: Fragment<'a>,
    stream: &mut S,
    count_minus: u32,
) -> Result<Fragment<'a>, PacketDropReason> {
    #[expect(clippy::cast_possible_truncation, reason = "16 bits were asked for")]
    let sequence = Sequence::new(stream.bits(u32::from(fragment.sequence().get()), 16)? as u16);
    packet_type(stream, FRAGMENT, TYPES).and_then(|kind| match kind {
        FRAGMENT => Ok(()),
        _ => Err(PacketDropReason::BadType),
    })?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "an index is below 256, a count at most 256"
    )]
    let (index, count) = (fragment.index() as u32, fragment.count() as u32);
    let index = stream.bits(index, 8)?;
    let count = stream.bits(count - count_minus, 8)? + count_minus;
    let length = stream.remaining().unwrap_or(fragment.data().len());
    let data = stream.bytes(fragment.data(), length)?;
    Ok(Fragment::new(sequence, index as usize, count as usize, data)?)
}
