//! The request: the only datagram of a stranger that a server acts on (STANDARD-1, 3.1).

use alloc::vec::Vec;

use super::{Fields, Kind, MAX_DATAGRAM_BYTES, VERSION, WireId, field_u16};
use crate::DropReason;
use crate::crypto::COOKIE_BYTES;

/// Bytes of every request.
pub const REQUEST_BYTES: usize = MAX_DATAGRAM_BYTES;

/// The longest sealed token, in bytes: what a request has room for beside the longest hello.
pub(crate) const MAX_SEALED_BYTES: usize = 640;

/// Bytes before the check.
pub(crate) const CHECKED_BYTES: usize = REQUEST_BYTES - 16;

/// Bytes before the cookie.
const FIXED_BYTES: usize = 19;

/// What the keys are derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// There are no keys.
    Open,
    /// A secret that both ends have.
    Secret,
    /// A connect token.
    Token,
}

/// The mode byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mode {
    /// What the keys are derived from.
    pub source: Source,
    /// Whether the client requires the server's identity.
    pub identity: bool,
}

impl Mode {
    const IDENTITY: u8 = 0x10;

    /// Its byte.
    #[must_use]
    pub const fn byte(self) -> u8 {
        self.source as u8 | if self.identity { Self::IDENTITY } else { 0 }
    }

    /// The mode with this byte, if there is one.
    #[must_use]
    pub(crate) const fn of_byte(byte: u8) -> Option<Self> {
        let identity = byte & Self::IDENTITY != 0;
        let source = match byte & !Self::IDENTITY {
            0 if !identity => Source::Open,
            1 => Source::Secret,
            2 => Source::Token,
            _ => return None,
        };
        Some(Self { source, identity })
    }
}

/// The parts of a request, none of them verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestParts<'a> {
    /// How it is protected.
    pub mode: Mode,
    /// The client's id.
    pub client_id: WireId,
    /// The cookie, if a server has sent one.
    pub cookie: Option<[u8; COOKIE_BYTES]>,
    /// The sealed token; empty unless the mode requires one.
    pub token: &'a [u8],
    /// Noise message 1, or the bare hello.
    pub hello_message: &'a [u8],
    /// The bytes before the check.
    pub checked: &'a [u8],
    /// The check.
    pub check: [u8; 16],
}

/// The fields that are the same in all versions of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnyVersion {
    pub(crate) version: u32,
    pub(crate) client_id: WireId,
}

impl AnyVersion {
    /// Reads the version and id of a request of any version. Fails with [`DropReason::WrongLength`] if it
    /// has less than [`REQUEST_BYTES`], or is of our version and has more.
    pub(crate) fn read(datagram: &[u8]) -> Result<Self, DropReason> {
        let mut fields = Fields(datagram);
        let [_kind] = fields.array()?;
        let version = fields.u32()?;
        let is_longer_version = version != VERSION && datagram.len() > REQUEST_BYTES;
        if datagram.len() != REQUEST_BYTES && !is_longer_version {
            return Err(DropReason::WrongLength);
        }
        Ok(Self { version, client_id: WireId(fields.array()?) })
    }
}

impl<'a> RequestParts<'a> {
    /// Divides a request into its parts, without allocating.
    ///
    /// # Errors
    /// [`DropReason::WrongLength`], [`DropReason::WrongVersion`], [`DropReason::OutOfRange`] for an invalid
    /// mode or length.
    pub fn read(datagram: &'a [u8]) -> Result<Self, DropReason> {
        if AnyVersion::read(datagram)?.version != VERSION {
            return Err(DropReason::WrongVersion);
        }
        let (checked, check) = datagram.split_last_chunk::<16>().ok_or(DropReason::WrongLength)?;
        let mut fields = Fields(checked);
        fields.bytes(5)?;
        let client_id = WireId(fields.array()?);
        let mode = Mode::of_byte(fields.u8()?).ok_or(DropReason::OutOfRange)?;
        let cookie_bytes = usize::from(fields.u8()?);
        let token_bytes = usize::from(fields.u16()?);
        let hello_bytes = usize::from(fields.u16()?);
        let has_token = mode.source == Source::Token;
        if (token_bytes > 0) != has_token || token_bytes > MAX_SEALED_BYTES {
            return Err(DropReason::OutOfRange);
        }
        let cookie = match cookie_bytes {
            0 => None,
            COOKIE_BYTES => Some(fields.array()?),
            _ => return Err(DropReason::OutOfRange),
        };
        Ok(Self {
            mode,
            client_id,
            cookie,
            token: fields.bytes(token_bytes)?,
            hello_message: fields.bytes(hello_bytes)?,
            checked,
            check: *check,
        })
    }

    /// The prologue of the Noise handshake: the name of the wire and bytes 1 to 13 of the request, so that
    /// changing version, mode or id gives other keys.
    #[must_use]
    pub fn prologue(mode: Mode, client_id: WireId) -> [u8; 22] {
        let mut prologue = *b"haulier/1\0\0\0\0\0\0\0\0\0\0\0\0\0";
        let fields = VERSION.to_le_bytes().into_iter().chain(client_id.0).chain([mode.byte()]);
        prologue.iter_mut().skip(9).zip(fields).for_each(|(to, byte)| *to = byte);
        prologue
    }

    /// Appends everything but the check. `padding` fills the rest with random bytes. Returns `false`, and
    /// appends nothing, if the parts do not fit.
    #[must_use]
    pub fn write(&self, out: &mut Vec<u8>, padding: impl FnOnce(&mut [u8])) -> bool {
        let start = out.len();
        let cookie = self.cookie.as_ref().map_or(&[][..], |cookie| cookie);
        let end = FIXED_BYTES + cookie.len() + self.token.len() + self.hello_message.len();
        if end > CHECKED_BYTES {
            return false;
        }
        out.push(Kind::Request.byte());
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.client_id.0);
        out.push(self.mode.byte());
        out.push(if cookie.is_empty() { 0 } else { 20 });
        for part in [self.token, self.hello_message] {
            out.extend_from_slice(&field_u16(part.len()).to_le_bytes());
        }
        out.extend_from_slice(cookie);
        out.extend_from_slice(self.token);
        out.extend_from_slice(self.hello_message);
        out.resize(start + CHECKED_BYTES, 0);
        padding(out.get_mut(start + end..).unwrap_or_default());
        true
    }
}
