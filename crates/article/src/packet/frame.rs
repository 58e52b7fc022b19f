//! The frame around every packet: a crc32 that starts with a protocol id that is never sent.
//!
//! A receiver with another protocol id computes another checksum and drops the datagram before it reads any
//! field. This is no authentication: anyone who knows the id can forge every packet (STANDARD §3.1, "What
//! the checksum is not").

use haulier_core::DatagramBuffer;
use haulier_core::fragment::MAX_FRAGMENTED_BYTES;

use crate::PacketDropReason;
use crate::bits::{Reader, Stream, Writer};
use crate::packet::Packet;

/// The largest datagram of this wire, in bytes of UDP payload: a conservative MTU of 1200.
pub const MAX_PACKET_BYTES: usize = 1200;

/// The text whose hash ends a packet.
pub const END_OF_PACKET: &str = "end of packet";

const CRC_BYTES: usize = 4;

/// A number that both ends know and that is never sent. Games use a hash of their name and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProtocolId(pub u32);

impl ProtocolId {
    /// The id of the 2016 original's chunk example, so that both interoperate by default.
    pub const ARTICLE: Self = Self(0x1122_3344);

    /// The id of the original's fragmentation example, and the default of the packet layer here.
    pub const PACKETS: Self = Self(0x5566_7788);
}

/// The checksum of a packet whose bytes after the crc field are `body`: crc32 over the protocol id
/// (little endian), four zero bytes in the checksum's own place, then the body (STANDARD §3.1).
#[must_use]
pub fn checksum(protocol: ProtocolId, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    // The id and the zeros in one piece: two updates of four bytes take longer.
    hasher.update(&u64::from(protocol.0).to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

/// Writes one framed packet to the start of `out` and returns its length in bytes.
///
/// # Errors
/// [`PacketDropReason::Truncated`] if `out` is too small; [`MAX_PACKET_BYTES`] are always enough for the
/// packets of this crate.
pub fn write<'a, P: Packet<'a>>(
    packet: P,
    protocol: ProtocolId,
    out: &mut [u8],
) -> Result<usize, PacketDropReason> {
    let (crc, body) =
        out.split_first_chunk_mut::<CRC_BYTES>().ok_or(PacketDropReason::Truncated)?;
    let mut writer = Writer::new(body);
    packet.serialize(&mut writer)?;
    if P::HAS_END_CHECK {
        writer.check(END_OF_PACKET)?;
    }
    let length = writer.finish()?;
    let body = body.get(..length).ok_or(PacketDropReason::Truncated)?;
    *crc = checksum(protocol, body).to_le_bytes();
    Ok(CRC_BYTES + length)
}

/// Writes a framed packet of at most [`MAX_PACKET_BYTES`] at the end of `datagram`, and returns whether it
/// did.
pub(crate) fn compose<'a, P: Packet<'a>>(
    packet: P,
    protocol: ProtocolId,
    datagram: &mut DatagramBuffer<'_>,
) -> bool {
    let end = datagram.vec().len() + MAX_PACKET_BYTES;
    datagram.vec().resize(end, 0);
    let length = write(packet, protocol, datagram);
    debug_assert!(length.is_ok(), "acks, slices and fragments fit 1200 bytes");
    datagram.truncate(length.unwrap_or(0));
    length.is_ok()
}

/// Reads a datagram as one packet. The size is checked first, then the checksum, then the fields in their
/// order; the first fault is the one reported.
///
/// # Errors
/// Why the datagram is not such a packet: always a hostile [`PacketDropReason`].
pub fn read<'a, P: Packet<'a>>(
    protocol: ProtocolId,
    datagram: &'a [u8],
) -> Result<P, PacketDropReason> {
    read_up_to(MAX_PACKET_BYTES, protocol, datagram)
}

/// Reads a packet that was reassembled from fragments: as [`read`], but of up to 256 KiB.
///
/// # Errors
/// As [`read`].
pub fn read_reassembled<'a, P: Packet<'a>>(
    protocol: ProtocolId,
    packet: &'a [u8],
) -> Result<P, PacketDropReason> {
    read_up_to(MAX_FRAGMENTED_BYTES, protocol, packet)
}

/// Whether the checksum of a datagram is right for a protocol id. For programs that receive several
/// protocols on one socket; [`read`] checks it as well.
#[must_use]
pub fn is_of_protocol(protocol: ProtocolId, datagram: &[u8]) -> bool {
    datagram.len() <= MAX_PACKET_BYTES
        && datagram
            .split_first_chunk::<CRC_BYTES>()
            .is_some_and(|(crc, body)| u32::from_le_bytes(*crc) == checksum(protocol, body))
}

fn read_up_to<'a, P: Packet<'a>>(
    limit: usize,
    protocol: ProtocolId,
    datagram: &'a [u8],
) -> Result<P, PacketDropReason> {
    if datagram.len() > limit {
        return Err(PacketDropReason::TooLong);
    }
    // The original took 4 from the length first, and read gigabytes past a datagram of 3.
    let Some((crc, body)) =
        datagram.split_first_chunk::<CRC_BYTES>().filter(|(_, b)| !b.is_empty())
    else {
        return Err(PacketDropReason::TooShort);
    };
    if u32::from_le_bytes(*crc) != checksum(protocol, body) {
        return Err(PacketDropReason::BadCrc);
    }
    let mut reader = Reader::new(body);
    let packet = P::BLANK.serialize(&mut reader)?;
    if P::HAS_END_CHECK {
        reader.check(END_OF_PACKET)?;
    }
    reader.finish()?;
    Ok(packet)
}
