//! A server's answers without a connection: retry, refusal, reset (STANDARD-1, 3.5 and 3.6).

use alloc::vec::Vec;

use super::{Fields, Kind, VERSION, WireId};
use crate::DropReason;
use crate::crypto::COOKIE_BYTES;

/// The maximum of versions that a refusal lists.
const MAX_VERSIONS: usize = 8;

/// Why a server refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalCode {
    /// It does not speak the request's version.
    Version,
    /// It has another secret, or does not offer the mode.
    Key,
    /// It has as many connections as it accepts, or cannot remember another token.
    Full,
    /// It is shutting down.
    ShuttingDown,
    /// The token has expired.
    TokenExpired,
    /// The token was used for another connection, or may have been: the server was started after it was
    /// issued.
    TokenUsed,
    /// The token is for another server.
    WrongServer,
}

impl RefusalCode {
    /// Every code, in the order of their bytes.
    pub const ALL: [Self; 7] = [
        Self::Version,
        Self::Key,
        Self::Full,
        Self::ShuttingDown,
        Self::TokenExpired,
        Self::TokenUsed,
        Self::WrongServer,
    ];

    /// Its byte.
    #[doc(hidden)]
    #[must_use]
    pub const fn byte(self) -> u8 {
        self as u8 + 1
    }

    /// Whether the server has verified the request, so that the refusal has a check that can be verified.
    #[must_use]
    pub(crate) const fn is_verified(self) -> bool {
        matches!(self, Self::Full | Self::ShuttingDown | Self::TokenUsed | Self::WrongServer)
    }

    /// Its name in events and JSON.
    #[doc(hidden)]
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Key => "key",
            Self::Full => "full",
            Self::ShuttingDown => "shutting_down",
            Self::TokenExpired => "token_expired",
            Self::TokenUsed => "token_used",
            Self::WrongServer => "wrong_server",
        }
    }
}

impl core::fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Version => "the server speaks another version",
            Self::Key => "the server has another secret or does not offer this mode",
            Self::Full => "the server is full",
            Self::ShuttingDown => "the server is shutting down",
            Self::TokenExpired => "the token has expired",
            Self::TokenUsed => "the token was used before, or is older than the server's start",
            Self::WrongServer => "the token is for another server",
        })
    }
}

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// The client's id.
    pub to: WireId,
    /// Why.
    pub code: RefusalCode,
    /// The versions that the server speaks, if the version is the reason.
    pub versions: &'a [u8],
    /// The bytes before the check.
    pub checked: &'a [u8],
    /// The check, or zeros.
    pub check: [u8; 16],
}

impl<'a> Refusal<'a> {
    /// Writes everything but the check.
    pub(crate) fn write(to: WireId, code: RefusalCode, out: &mut Vec<u8>) {
        out.clear();
        out.push(Kind::Refusal.byte());
        out.extend_from_slice(&to.0);
        out.push(code.byte());
        match code {
            RefusalCode::Version => out.extend_from_slice(&[1, VERSION]),
            _ => out.push(0),
        }
    }

    /// Reads one. Its check is still to be verified.
    ///
    /// # Errors
    /// [`DropReason::UnknownKind`], [`DropReason::Truncated`], [`DropReason::TrailingBytes`],
    /// [`DropReason::OutOfRange`].
    pub fn read(datagram: &'a [u8]) -> Result<Self, DropReason> {
        let (checked, check) = datagram.split_last_chunk::<16>().ok_or(DropReason::Truncated)?;
        let mut fields = Fields(checked);
        if Kind::of_byte(fields.u8()?)? != Kind::Refusal {
            return Err(DropReason::UnknownKind);
        }
        let to = WireId(fields.array()?);
        let byte = fields.u8()?;
        let code = RefusalCode::ALL.into_iter().find(|code| code.byte() == byte);
        let code = code.ok_or(DropReason::OutOfRange)?;
        let count = usize::from(fields.u8()?);
        if count > MAX_VERSIONS {
            return Err(DropReason::OutOfRange);
        }
        let versions = fields.bytes(count)?;
        fields.end()?;
        Ok(Self { to, code, versions, checked, check: *check })
    }
}

/// A retry: asks for the same request with this cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The client's id.
    pub to: WireId,
    /// Validates the client's address.
    pub cookie: [u8; COOKIE_BYTES],
}

impl Retry {
    /// Writes it.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        out.push(Kind::Retry.byte());
        out.extend_from_slice(&self.to.0);
        out.extend_from_slice(&self.cookie);
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`DropReason::UnknownKind`], [`DropReason::Truncated`], [`DropReason::TrailingBytes`].
    pub fn read(datagram: &[u8]) -> Result<Self, DropReason> {
        let mut fields = Fields(datagram);
        if Kind::of_byte(fields.u8()?)? != Kind::Retry {
            return Err(DropReason::UnknownKind);
        }
        let retry = Self { to: WireId(fields.array()?), cookie: fields.array()? };
        fields.end()?;
        Ok(retry)
    }
}

/// Writes a reset with this token.
pub fn write_reset(token: [u8; 16], out: &mut Vec<u8>) {
    out.clear();
    out.push(Kind::Reset.byte());
    out.extend_from_slice(&token);
}

/// The token of a reset.
///
/// # Errors
/// [`DropReason::UnknownKind`], [`DropReason::Truncated`], [`DropReason::TrailingBytes`].
pub fn read_reset(datagram: &[u8]) -> Result<[u8; 16], DropReason> {
    let mut fields = Fields(datagram);
    if Kind::of_byte(fields.u8()?)? != Kind::Reset {
        return Err(DropReason::UnknownKind);
    }
    let token = fields.array()?;
    fields.end()?;
    Ok(token)
}
