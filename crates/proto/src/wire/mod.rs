//! The datagrams of haulier/1 as values: `docs/STANDARD-1.md`, sections 2 to 4.
//!
//! Bytes become one of these types or a [`DropReason`]. Nothing here keeps state or decrypts.

pub(crate) mod answer;

pub(crate) mod frames;
pub(crate) mod header;
pub(crate) mod hello;
pub(crate) mod parameters;
pub(crate) mod request;

pub(crate) use header::{DataHeader, ResponseHeader, Role};
pub(crate) use hello::{Hello, Versions, Welcome};
pub(crate) use parameters::{EndParameters, Grease};
pub(crate) use request::{Mode, RequestParts};

use crate::DropReason;
pub(crate) use crate::fields::Fields;

/// The version of the wire that this crate speaks.
pub const VERSION: u32 = 1;

/// The versions that this crate speaks, best first.
pub(crate) const SPOKEN: [u32; 1] = [VERSION];

/// The longest datagram until the path is known to carry more, in bytes of UDP payload: practically every
/// path carries it (RFC 9000, 14).
pub(crate) const MAX_DATAGRAM_BYTES: usize = 1200;

/// Bytes of the tag of a datagram in mode `open`: the sender's id and a crc32.
pub const OPEN_TAG_BYTES: usize = 12;

/// The id of a connection at one of its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WireId(pub [u8; 8]);

/// The kind of a datagram, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `0x04`: requests a connection.
    Request,
    /// `0x05`: asks for the request again, with a cookie.
    Retry,
    /// `0x06`: refuses a request, with a reason.
    Refusal,
    /// `0x07`: the welcome and frames.
    Response,
    /// `0x08`: the server does not have the connection.
    Reset,
    /// `0x0c` to `0x0f`: frames.
    Data {
        /// The end that sent it.
        from: Role,
        /// The key phase.
        phase: bool,
    },
}

impl Kind {
    /// The kind with this first byte.
    ///
    /// # Errors
    /// [`DropReason::UnknownKind`].
    pub(crate) const fn of_byte(byte: u8) -> Result<Self, DropReason> {
        Ok(match byte {
            0x04 => Self::Request,
            0x05 => Self::Retry,
            0x06 => Self::Refusal,
            0x07 => Self::Response,
            0x08 => Self::Reset,
            0x0c..=0x0f => Self::Data {
                from: if byte & 2 == 0 { Role::Client } else { Role::Server },
                phase: byte & 1 != 0,
            },
            _ => return Err(DropReason::UnknownKind),
        })
    }

    /// Its first byte.
    #[must_use]
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Request => 0x04,
            Self::Retry => 0x05,
            Self::Refusal => 0x06,
            Self::Response => 0x07,
            Self::Reset => 0x08,
            Self::Data { from: Role::Client, phase } => 0x0c + phase as u8,
            Self::Data { from: Role::Server, phase } => 0x0e + phase as u8,
        }
    }

    /// The kind of this datagram.
    ///
    /// # Errors
    /// [`DropReason::TooShort`] if it is empty, [`DropReason::TooLong`], [`DropReason::UnknownKind`].
    pub fn of(datagram: &[u8]) -> Result<Self, DropReason> {
        let kind = Self::of_byte(*datagram.first().ok_or(DropReason::TooShort)?)?;
        let max = match kind {
            // Requests of other versions may be larger.
            Self::Data { .. } | Self::Request => parameters::LARGEST_DATAGRAM_BYTES,
            _ => MAX_DATAGRAM_BYTES,
        };
        if datagram.len() > max { Err(DropReason::TooLong) } else { Ok(kind) }
    }
}

/// A length or index as a field of 8 bits. A value that does not fit is a fault of this crate, and would make
/// a frame with another meaning.
pub(crate) fn field_u8(value: usize) -> u8 {
    assert!(value <= usize::from(u8::MAX), "{value} does not fit its field");
    #[expect(clippy::cast_possible_truncation, reason = "asserted")]
    let field = value as u8;
    field
}

/// A length or index as a field of 16 bits. A value that does not fit is a fault of this crate, as in
/// [`field_u8`].
pub(crate) fn field_u16(value: usize) -> u16 {
    assert!(value <= usize::from(u16::MAX), "{value} does not fit its field");
    #[expect(clippy::cast_possible_truncation, reason = "asserted")]
    let field = value as u16;
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9443: the first bytes of STUN, ZRTP, DTLS, TURN, QUIC, RTP and RTCP, on a port that carries all.
    #[test]
    fn a_shared_port_tells_haulier_from_the_others() {
        let others = [0..=3, 16..=19, 20..=63, 64..=79, 64..=127, 128..=191, 192..=255];
        let all = others.into_iter().flatten();
        assert!(all.into_iter().all(|byte| Kind::of_byte(byte).is_err()));
    }

    #[test]
    fn each_first_byte_is_one_kind_or_none() {
        let known = (0..=255).filter(|&byte| Kind::of_byte(byte).is_ok());
        assert!(known.eq([4, 5, 6, 7, 8, 12, 13, 14, 15]));
        for byte in (0..=255).filter(|&byte| Kind::of_byte(byte).is_ok()) {
            assert_eq!(Kind::of_byte(byte).map(Kind::byte), Ok(byte));
        }
    }
}
