//! A server's answers without a connection: retry, refusal, reset (STANDARD-1, 3.5 and 3.6).

use alloc::vec::Vec;
use core::time::Duration;

use super::{Fields, Kind, Versions, WireId, field_u8};
use crate::DropReason;
use crate::crypto::COOKIE_BYTES;

/// Why a server refuses a request.
///
/// # Examples
/// ```
/// use haulier_proto::connection::RefusalCode;
///
/// /// Whether to ask the matchmaker for another token.
/// fn wants_new_token(code: RefusalCode) -> bool {
///     matches!(code, RefusalCode::TokenExpired | RefusalCode::TokenUsed)
/// }
/// assert!(!wants_new_token(RefusalCode::Full));
/// ```
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
    /// The hello lists a version that the server prefers to that of the request: somebody in between has
    /// talked the client down.
    Downgrade,
    /// The application rejected the request.
    NotAccepted,
}

impl RefusalCode {
    /// Every code, in the order of their bytes.
    pub const ALL: [Self; 9] = [
        Self::Version,
        Self::Key,
        Self::Full,
        Self::ShuttingDown,
        Self::TokenExpired,
        Self::TokenUsed,
        Self::WrongServer,
        Self::Downgrade,
        Self::NotAccepted,
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
        !matches!(self, Self::Version | Self::Key | Self::TokenExpired)
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
            Self::Downgrade => "downgrade",
            Self::NotAccepted => "not_accepted",
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
            Self::Downgrade => "the server speaks a better version than that of the request",
            Self::NotAccepted => "the application rejected the request",
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
    pub versions: Versions<'a>,
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
            RefusalCode::Version => {
                let versions = Versions::OURS;
                out.push(field_u8(versions.iter().count()));
                out.extend_from_slice(versions.bytes());
            }
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
        let versions = Versions::read_any(fields.bytes(4 * count)?)?;
        fields.end()?;
        Ok(Self { to, code, versions, checked, check: *check })
    }
}

/// The byte that stands in the place of a refusal's code when a client waits in line.
const IN_LINE: u8 = 10;

/// Stands for an unknown place or estimate.
const UNKNOWN: u32 = u32::MAX;

/// The answer to a client for which no seat is free yet: its place in line, and when to ask again. It is
/// written as a refusal with three numbers in the place of versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InLine {
    /// The client's id.
    pub to: WireId,
    /// The client's position in line, from 1, which is the next. 0 is a call: a seat is free. `None` if even
    /// the line is full.
    pub place: Option<u32>,
    /// The estimated time until the client has a seat, if the server knows one.
    pub estimate: Option<Duration>,
    /// The time after which the client asks again.
    pub again: Duration,
}

impl InLine {
    /// Whether a datagram with the first byte of a refusal is an `InLine`.
    #[must_use]
    pub fn is(datagram: &[u8]) -> bool {
        datagram.get(9) == Some(&IN_LINE)
    }

    /// Writes everything but the check. Times are in ms, and at most 49 days.
    pub fn write(&self, out: &mut Vec<u8>) {
        let in_ms = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(UNKNOWN - 1);
        out.clear();
        out.push(Kind::Refusal.byte());
        out.extend_from_slice(&self.to.0);
        out.extend_from_slice(&[IN_LINE, 3]);
        let estimate = self.estimate.map_or(UNKNOWN, in_ms);
        for number in [self.place.unwrap_or(UNKNOWN), estimate, in_ms(self.again)] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Reads one, and the bytes before its check, which is still to be verified.
    ///
    /// # Errors
    /// [`DropReason::UnknownKind`], [`DropReason::Truncated`], [`DropReason::TrailingBytes`],
    /// [`DropReason::OutOfRange`].
    pub fn read(datagram: &[u8]) -> Result<(Self, &[u8], [u8; 16]), DropReason> {
        let (checked, check) = datagram.split_last_chunk::<16>().ok_or(DropReason::Truncated)?;
        let mut fields = Fields(checked);
        if Kind::of_byte(fields.u8()?)? != Kind::Refusal {
            return Err(DropReason::UnknownKind);
        }
        let to = WireId(fields.array()?);
        if fields.u8()? != IN_LINE || fields.u8()? != 3 {
            return Err(DropReason::OutOfRange);
        }
        let [place, estimate, again] =
            [fields.array()?, fields.array()?, fields.array()?].map(u32::from_le_bytes);
        fields.end()?;
        let in_ms = |number: u32| Duration::from_millis(number.into());
        let read = Self {
            to,
            place: (place != UNKNOWN).then_some(place),
            estimate: (estimate != UNKNOWN).then(|| in_ms(estimate)),
            again: in_ms(again),
        };
        Ok((read, checked, *check))
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
