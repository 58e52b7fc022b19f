//! The datagrams of haulier/1 as values: `docs/STANDARD-1.md`, sections 2 to 4.
//!
//! Bytes become one of these types or a [`DropReason`]. Nothing here keeps state or decrypts.

pub(crate) mod answer;
pub(crate) mod frame;
pub(crate) mod frames;
pub(crate) mod header;
pub(crate) mod hello;
pub(crate) mod request;

pub(crate) use frame::{Frame, Frames};
pub(crate) use header::{DataHeader, ResponseHeader, Role};
pub(crate) use hello::{Hello, Welcome};
pub(crate) use request::{Mode, RequestParts};

use crate::DropReason;
pub(crate) use crate::fields::Fields;

/// The version of the wire that this crate speaks.
pub const VERSION: u8 = 1;

/// The longest datagram, in bytes of UDP payload: practically every path carries it (RFC 9000, 14).
pub(crate) const MAX_DATAGRAM_BYTES: usize = 1200;

/// Bytes of the tag of a datagram in mode `open`: the sender's id and a crc32.
pub const OPEN_TAG_BYTES: usize = 12;

/// The id of a connection at one of its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WireId(pub [u8; 8]);

/// The kind of a datagram, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `0x80`: requests a connection.
    Request,
    /// `0x81`: asks for the request again, with a cookie.
    Retry,
    /// `0x82`: refuses a request, with a reason.
    Refusal,
    /// `0x83`: the welcome and frames.
    Response,
    /// `0x84`: the server no longer knows the connection.
    Reset,
    /// `0x40` to `0x43`: frames.
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
            0x80 => Self::Request,
            0x81 => Self::Retry,
            0x82 => Self::Refusal,
            0x83 => Self::Response,
            0x84 => Self::Reset,
            0x40..=0x43 => Self::Data {
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
            Self::Request => 0x80,
            Self::Retry => 0x81,
            Self::Refusal => 0x82,
            Self::Response => 0x83,
            Self::Reset => 0x84,
            Self::Data { from: Role::Client, phase } => 0x40 + phase as u8,
            Self::Data { from: Role::Server, phase } => 0x42 + phase as u8,
        }
    }

    /// The kind of this datagram.
    ///
    /// # Errors
    /// [`DropReason::TooShort`] if it is empty, [`DropReason::TooLong`], [`DropReason::UnknownKind`].
    pub fn of(datagram: &[u8]) -> Result<Self, DropReason> {
        if datagram.len() > MAX_DATAGRAM_BYTES {
            return Err(DropReason::TooLong);
        }
        Self::of_byte(*datagram.first().ok_or(DropReason::TooShort)?)
    }
}

/// A length or index as a field of 8 bits. One that does not fit is a fault of this crate, and would make a
/// frame with another meaning.
pub(crate) fn field_u8(value: usize) -> u8 {
    assert!(value <= usize::from(u8::MAX), "{value} does not fit its field");
    #[expect(clippy::cast_possible_truncation, reason = "asserted")]
    let field = value as u8;
    field
}

/// The same for a field of 16 bits.
pub(crate) fn field_u16(value: usize) -> u16 {
    assert!(value <= usize::from(u16::MAX), "{value} does not fit its field");
    #[expect(clippy::cast_possible_truncation, reason = "asserted")]
    let field = value as u16;
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_first_byte_is_one_kind_or_none() {
        let known = (0..=255).filter(|&byte| Kind::of_byte(byte).is_ok());
        assert!(known.eq([0x40, 0x41, 0x42, 0x43, 0x80, 0x81, 0x82, 0x83, 0x84]));
        for byte in (0..=255).filter(|&byte| Kind::of_byte(byte).is_ok()) {
            assert_eq!(Kind::of_byte(byte).map(Kind::byte), Ok(byte));
        }
    }
}
