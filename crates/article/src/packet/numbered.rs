//! The packets of the packet layer: payload with acks, and acks alone (STANDARD §9.1, §9.2).
//!
//! ```
//! use haulier_article::ack::AckBits;
//! use haulier_article::packet::{self, ProtocolId, numbered::NumberedPacket};
//! use haulier_article::Sequence;
//!
//! let acks = Some(AckBits { ack: Sequence::new(100), bits: 0b1 });
//! let packet = NumberedPacket::Payload { sequence: Sequence::new(7), acks, payload: b"jump" };
//! let mut buffer = [0; packet::MAX_PACKET_BYTES];
//! let length = packet::write(packet, ProtocolId::PACKETS, &mut buffer)?;
//! assert_eq!(length, 17 + 4);
//! assert_eq!(packet::read(ProtocolId::PACKETS, &buffer[..length]), Ok(packet));
//! # Ok::<(), haulier_article::PacketDropReason>(())
//! ```

use haulier_core::fragment::MAX_FRAGMENTED_BYTES;

use crate::ack::AckBits;
use crate::bits::{Result as BitsResult, Stream};
use crate::packet::{Packet, packet_type};
use crate::{PacketDropReason, Sequence};

/// Bytes of a payload packet with acks besides its payload; without acks 6 fewer.
pub const NUMBERED_HEADER_BYTES: usize = 17;

/// The largest payload: a packet of 256 fragments, less its header.
pub const MAX_PAYLOAD_BYTES: usize = MAX_FRAGMENTED_BYTES - NUMBERED_HEADER_BYTES;

const END_CHECK_BYTES: usize = 4;

/// Type 0 is the fragment, and type 3 is not used.
const TYPES: i32 = 4;
const PAYLOAD: i32 = 1;
const ACK: i32 = 2;

const BLANK_ACKS: AckBits = AckBits { ack: Sequence::new(0), bits: 0 };

/// A packet of the packet layer that is not a fragment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NumberedPacket<'a> {
    /// A payload of the application, and what has arrived from the peer.
    Payload {
        /// Its number.
        sequence: Sequence,
        /// What the sender has received; `None` if nothing yet.
        acks: Option<AckBits>,
        /// The application's bytes.
        payload: &'a [u8],
    },
    /// Only what has arrived, from an end that has no payload to send.
    Ack(AckBits),
}

/// The length of a payload, never its bytes.
impl core::fmt::Debug for NumberedPacket<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Payload { sequence, acks, payload } => f
                .debug_struct("Payload")
                .field("sequence", sequence)
                .field("acks", acks)
                .field("bytes", &payload.len())
                .finish(),
            Self::Ack(acks) => f.debug_tuple("Ack").field(acks).finish(),
        }
    }
}

impl<'a> Packet<'a> for NumberedPacket<'a> {
    const BLANK: Self = Self::Ack(BLANK_ACKS);

    fn serialize<S: Stream<'a>>(self, stream: &mut S) -> Result<Self, PacketDropReason> {
        let (kind, sequence, acks, payload): (_, _, _, &[u8]) = match self {
            Self::Payload { sequence, acks, payload } => (PAYLOAD, sequence, acks, payload),
            Self::Ack(acks) => (ACK, Sequence::new(0), Some(acks), &[]),
        };
        let sequence = sixteen(stream, sequence)?;
        match packet_type(stream, kind, TYPES)? {
            PAYLOAD => {
                let has_acks = stream.bool(acks.is_some())?;
                let acks =
                    has_acks.then(|| ack_bits(stream, acks.unwrap_or(BLANK_ACKS))).transpose()?;
                // The payload fills the packet up to the end check.
                let length = match stream.remaining() {
                    Some(rest) => {
                        rest.checked_sub(END_CHECK_BYTES).ok_or(PacketDropReason::Truncated)?
                    }
                    None => payload.len(),
                };
                let payload = stream.bytes(payload, length)?;
                Ok(Self::Payload { sequence, acks, payload })
            }
            ACK if sequence == Sequence::new(0) => {
                Ok(Self::Ack(ack_bits(stream, acks.unwrap_or(BLANK_ACKS))?))
            }
            ACK => Err(PacketDropReason::OutOfRange),
            _ => Err(PacketDropReason::BadType),
        }
    }
}

fn ack_bits<'a, S: Stream<'a>>(stream: &mut S, acks: AckBits) -> BitsResult<AckBits> {
    Ok(AckBits { ack: sixteen(stream, acks.ack)?, bits: stream.bits(acks.bits, 32)? })
}

fn sixteen<'a, S: Stream<'a>>(stream: &mut S, sequence: Sequence) -> BitsResult<Sequence> {
    #[expect(clippy::cast_possible_truncation, reason = "16 bits were asked for")]
    Ok(Sequence::new(stream.bits(u32::from(sequence.get()), 16)? as u16))
}

/// Whether the type of a datagram is that of a fragment. The checksum is not checked.
#[must_use]
pub fn claims_to_be_fragment(datagram: &[u8]) -> bool {
    // After checksum and sequence, the two low bits are the type.
    datagram.get(6).is_some_and(|byte| byte & 3 == 0)
}
