//! Packets on the wire: one typed packet per datagram, behind a checksum.
//!
//! [`Packet`] is implemented by everything that crosses the wire; [`read`] and [`write()`] handle the frame
//! of STANDARD §3 around it. What the packets of the article carry is in [`article`] (slices and acks),
//! [`numbered`] (payload with acks) and [`fragment`] (pieces of a packet above the MTU).

pub mod article;
pub mod fragment;
mod frame;
pub mod numbered;

pub(crate) use frame::compose;
pub use frame::{
    END_OF_PACKET, MAX_PACKET_BYTES, ProtocolId, checksum, is_of_protocol, read, read_reassembled,
    write,
};

use crate::PacketDropReason;
use crate::bits::Stream;

/// Something that fills one datagram, described once for writing, reading and measuring.
///
/// # Implementing
///
/// `serialize` starts with the packet's type ([`packet_type`]) and ends with its last field; frame,
/// end-of-packet check and the test for trailing bytes are up to [`read`] and [`write()`]. A reader ignores
/// the fields of `self`, and starts from [`BLANK`](Self::BLANK).
pub trait Packet<'a>: Sized {
    /// Any legal packet, as the start for a reader.
    const BLANK: Self;

    /// Whether the end-of-packet check follows. Fragments, whose data fills the packet, have none.
    const HAS_END_CHECK: bool = true;

    /// Writes, reads or measures the packet, and returns it.
    ///
    /// # Errors
    /// A reader returns why the bytes are not such a packet.
    fn serialize<S: Stream<'a>>(self, stream: &mut S) -> Result<Self, PacketDropReason>;
}

/// The packet type: an integer in `[0, types - 1]`, as wide as that range needs (STANDARD §3.3).
///
/// # Errors
/// [`PacketDropReason::BadType`] for a number that fits the width but names no type.
pub fn packet_type<'a, S: Stream<'a>>(
    stream: &mut S,
    kind: i32,
    types: i32,
) -> Result<i32, PacketDropReason> {
    use crate::bits::Error::OutOfRange;
    stream.int(kind, 0, types - 1).map_err(|error| match error {
        OutOfRange => PacketDropReason::BadType,
        other => other.into(),
    })
}
