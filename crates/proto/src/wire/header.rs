//! The headers of data and responses, which are not encrypted (STANDARD-1, 2.2 and 3.2).

use alloc::vec::Vec;

use super::hello::MAX_WELCOME_MESSAGE_BYTES;
use super::{Fields, Kind, WireId, field_u16};
use crate::DropReason;

/// Bytes before the frames of a data datagram.
pub const DATA_HEADER_BYTES: usize = 13;

/// Bytes of a response before the welcome message: kind and client id.
const RESPONSE_PREFIX_BYTES: usize = 11;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The end that opened it.
    Client,
    /// The end that accepted it.
    Server,
}

impl Role {
    /// The other end.
    #[must_use]
    pub(crate) const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The header of a data datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// The end that sends it.
    pub from: Role,
    /// The key phase.
    pub phase: bool,
    /// The receiver's id.
    pub to: WireId,
    /// The low 32 bits of the packet number.
    pub number: u32,
}

impl DataHeader {
    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(Kind::Data { from: self.from, phase: self.phase }.byte());
        out.extend_from_slice(&self.to.0);
        out.extend_from_slice(&self.number.to_le_bytes());
    }

    /// Reads it from the start of a datagram.
    ///
    /// # Errors
    /// [`DropReason::UnknownKind`] if it is not data, [`DropReason::Truncated`].
    pub fn read(datagram: &[u8]) -> Result<Self, DropReason> {
        let mut fields = Fields(datagram);
        let Kind::Data { from, phase } = Kind::of_byte(fields.u8()?)? else {
            return Err(DropReason::UnknownKind);
        };
        Ok(Self { from, phase, to: WireId(fields.array()?), number: fields.u32()? })
    }
}

/// The header of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHeader<'a> {
    /// The client's id.
    pub to: WireId,
    /// Noise message 2, or the bare welcome.
    pub welcome_message: &'a [u8],
    /// The low 32 bits of the packet number.
    pub number: u32,
}

impl<'a> ResponseHeader<'a> {
    /// Bytes before the frames if the welcome message has `welcome_bytes`.
    #[must_use]
    pub const fn bytes(welcome_bytes: usize) -> usize {
        RESPONSE_PREFIX_BYTES + welcome_bytes + 4
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(Kind::Response.byte());
        out.extend_from_slice(&self.to.0);
        out.extend_from_slice(&field_u16(self.welcome_message.len()).to_le_bytes());
        out.extend_from_slice(self.welcome_message);
        out.extend_from_slice(&self.number.to_le_bytes());
    }

    /// Reads it from the start of a datagram.
    ///
    /// # Errors
    /// [`DropReason::UnknownKind`] if it is not a response, [`DropReason::Truncated`],
    /// [`DropReason::OutOfRange`] for a welcome message of more than 256 bytes.
    pub fn read(datagram: &'a [u8]) -> Result<Self, DropReason> {
        let mut fields = Fields(datagram);
        if Kind::of_byte(fields.u8()?)? != Kind::Response {
            return Err(DropReason::UnknownKind);
        }
        let to = WireId(fields.array()?);
        let welcome_message = fields.long_bytes()?;
        if welcome_message.len() > MAX_WELCOME_MESSAGE_BYTES {
            return Err(DropReason::OutOfRange);
        }
        Ok(Self { to, welcome_message, number: fields.u32()? })
    }
}
