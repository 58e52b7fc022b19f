//! Hello and welcome: the payloads of the two handshake messages (STANDARD-1, 3.1 and 3.2).

use alloc::vec::Vec;
use core::time::Duration;

use super::{Fields, VERSION, WireId, field_u8, field_u16};
use crate::DropReason;
use crate::crypto::{Suite, Suites};

/// The longest request of an application, in bytes: it shares the first datagram with a token.
pub(crate) const MAX_REQUEST_BYTES: usize = 400;

/// Bytes of a welcome.
pub const WELCOME_BYTES: usize = 38;

/// The maximum of versions that a hello lists.
const MAX_VERSIONS: usize = 8;

/// What a client says about itself in its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The versions it speaks, 1 to 8 of them.
    pub versions: &'a [u8],
    /// The suites it can use.
    pub suites: Suites,
    /// The idle timeout that it proposes, in whole milliseconds.
    pub idle_timeout: Duration,
    /// The largest block that it accepts, in bytes.
    pub max_block_bytes: u64,
    /// The application's request. Anyone with the secret can read it, and it can be replayed.
    pub request: &'a [u8],
}

impl<'a> Hello<'a> {
    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let count = self.versions.len().min(MAX_VERSIONS);
        out.push(field_u8(count));
        out.extend_from_slice(self.versions.get(..count).unwrap_or_default());
        out.push(self.suites.bits());
        out.extend_from_slice(&millis(self.idle_timeout).to_le_bytes());
        out.extend_from_slice(&self.max_block_bytes.to_le_bytes());
        out.extend_from_slice(&field_u16(self.request.len()).to_le_bytes());
        out.extend_from_slice(self.request);
    }

    /// Reads all of `bytes`.
    ///
    /// # Errors
    /// [`DropReason::Truncated`], [`DropReason::TrailingBytes`], [`DropReason::OutOfRange`],
    /// [`DropReason::WrongVersion`] if [`VERSION`] is not listed.
    pub fn read(bytes: &'a [u8]) -> Result<Self, DropReason> {
        let mut fields = Fields(bytes);
        let count = usize::from(fields.u8()?);
        if count == 0 || count > MAX_VERSIONS {
            return Err(DropReason::OutOfRange);
        }
        let versions = fields.bytes(count)?;
        let hello = Self {
            versions,
            suites: Suites::from_bits(fields.u8()?).ok_or(DropReason::OutOfRange)?,
            idle_timeout: Duration::from_millis(fields.u32()?.into()),
            max_block_bytes: fields.u64()?,
            request: fields.long_bytes()?,
        };
        fields.end()?;
        if hello.request.len() > MAX_REQUEST_BYTES {
            return Err(DropReason::OutOfRange);
        }
        if !versions.contains(&VERSION) {
            return Err(DropReason::WrongVersion);
        }
        Ok(hello)
    }
}

/// A server's answer to a hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The server's id, for data.
    pub server_id: WireId,
    /// The cipher suite of the connection.
    pub suite: Suite,
    /// The idle timeout of both ends, in whole milliseconds.
    pub idle_timeout: Duration,
    /// The largest block that it accepts, in bytes.
    pub max_block_bytes: u64,
    /// The token of a valid reset.
    pub reset_token: [u8; 16],
}

impl Welcome {
    /// Appends it: [`WELCOME_BYTES`].
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.server_id.0);
        out.push(VERSION);
        out.push(self.suite as u8);
        out.extend_from_slice(&millis(self.idle_timeout).to_le_bytes());
        out.extend_from_slice(&self.max_block_bytes.to_le_bytes());
        out.extend_from_slice(&self.reset_token);
    }

    /// Reads all of `bytes`.
    ///
    /// # Errors
    /// [`DropReason::Truncated`], [`DropReason::TrailingBytes`], [`DropReason::OutOfRange`],
    /// [`DropReason::WrongVersion`].
    pub fn read(bytes: &[u8]) -> Result<Self, DropReason> {
        let mut fields = Fields(bytes);
        let server_id = WireId(fields.array()?);
        if fields.u8()? != VERSION {
            return Err(DropReason::WrongVersion);
        }
        let welcome = Self {
            server_id,
            suite: Suite::from_u8(fields.u8()?).ok_or(DropReason::OutOfRange)?,
            idle_timeout: Duration::from_millis(fields.u32()?.into()),
            max_block_bytes: fields.u64()?,
            reset_token: fields.array()?,
        };
        fields.end()?;
        Ok(welcome)
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
