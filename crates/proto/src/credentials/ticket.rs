//! The ticket: a line of text that `haulier serve` prints, people copy, and `haulier fetch` reads.
//!
//! People mistype lines, cut them off and mix them up, so a ticket ends with four bytes of a hash, and each
//! error says what to do. A ticket is a secret, so its `Debug` does not print it; [`Ticket::to_text`] does.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::SocketAddr;

use zeroize::Zeroizing;

use super::bytes::{MAX_ADDRESSES, ReadError, from_text, read_addresses, to_text, write_addresses};
use crate::crypto::Secret;
use crate::debug_as;
use crate::fields::{FieldError, Fields};

/// The start of a ticket.
const PREFIX: &str = "haulier1:";

// The flags of a ticket (STANDARD-1, 7).
const HAS_DIGEST: u8 = 1;
const HAS_IDENTITY: u8 = 2;
const IS_OPEN: u8 = 4;

/// All flags of this version: another one is of a newer version [H-7].
const FLAGS: u8 = HAS_DIGEST | HAS_IDENTITY | IS_OPEN;

/// Bytes of the hash at the end, enough to detect typing errors.
const CHECK_BYTES: usize = 4;

/// Which clients the server of a ticket accepts.
///
/// # Examples
/// ```
/// use haulier_proto::credentials::{Ticket, TicketAccess};
///
/// let ticket = Ticket::new(vec!["192.0.2.7:4016".parse()?], 7, TicketAccess::Open)?;
/// let is_encrypted = *ticket.access() != TicketAccess::Open;
/// assert!(!is_encrypted);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TicketAccess {
    /// Mode `open`: all clients, without encryption.
    Open,
    /// Mode `secret`: clients with this secret.
    Secret(Secret),
}

/// The addresses of a server, and what a client needs to join it.
///
/// # Examples
/// ```
/// use haulier_proto::credentials::{Secret, Ticket, TicketAccess};
///
/// // `Server::ticket` makes one of a server's own settings. By hand:
/// let access = TicketAccess::Secret(Secret::from_bytes([7; 32])); // yours: 32 random bytes
/// let ticket = Ticket::new(vec!["192.0.2.7:4016".parse()?], 7, access)?;
/// let text = ticket.to_text();
/// assert!(text.starts_with("haulier1:"));
/// assert_eq!(Ticket::parse(&text)?.addresses(), ticket.addresses());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    addresses: Vec<SocketAddr>,
    protocol_id: u64,
    access: TicketAccess,
    digest: Option<[u8; 32]>,
    identity: Option<[u8; 32]>,
}

impl Ticket {
    /// A ticket for a server at these addresses, 1 to 8, the most likely one first.
    ///
    /// # Errors
    /// [`TicketError::Addresses`] for none or more than 8; [`TicketError::Unspecified`] and
    /// [`TicketError::LinkLocal`] for one that leads nobody to the server.
    pub fn new(
        addresses: Vec<SocketAddr>,
        protocol_id: u64,
        access: TicketAccess,
    ) -> Result<Self, TicketError> {
        if !(1..=MAX_ADDRESSES).contains(&addresses.len()) {
            return Err(TicketError::Addresses);
        }
        addresses.iter().try_for_each(check_address)?;
        Ok(Self { addresses, protocol_id, access, digest: None, identity: None })
    }

    /// The same ticket with the BLAKE3 of the file that is served.
    #[must_use]
    pub const fn with_digest(mut self, digest: [u8; 32]) -> Self {
        self.digest = Some(digest);
        self
    }

    /// The same ticket with the server's public key, which the client then requires.
    ///
    /// # Errors
    /// [`TicketError::OpenIdentity`] in mode `open`, where it could not be proven.
    pub fn with_identity(mut self, identity: [u8; 32]) -> Result<Self, TicketError> {
        if self.access == TicketAccess::Open {
            return Err(TicketError::OpenIdentity);
        }
        self.identity = Some(identity);
        Ok(self)
    }

    /// The server's addresses, 1 to 8.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The application's protocol id.
    #[must_use]
    pub const fn protocol_id(&self) -> u64 {
        self.protocol_id
    }

    /// The mode and its secret.
    #[must_use]
    pub const fn access(&self) -> &TicketAccess {
        &self.access
    }

    /// The BLAKE3 of the file that is served.
    #[must_use]
    pub const fn digest(&self) -> Option<&[u8; 32]> {
        self.digest.as_ref()
    }

    /// The server's public key.
    #[must_use]
    pub const fn identity(&self) -> Option<&[u8; 32]> {
        self.identity.as_ref()
    }

    /// The ticket as a line of text. It is a secret, unless the mode is `open`.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut bytes = Zeroizing::new(Vec::with_capacity(512));
        bytes.push(self.flags());
        bytes.extend(self.protocol_id.to_le_bytes());
        // Not too many: `new` and `parse` checked them.
        let _fits = write_addresses(&mut bytes, &self.addresses);
        if let TicketAccess::Secret(secret) = &self.access {
            bytes.extend(secret.as_bytes());
        }
        bytes.extend(self.digest.iter().flatten());
        bytes.extend(self.identity.iter().flatten());
        let check = check(&bytes);
        bytes.extend(check);
        to_text(PREFIX, &bytes)
    }

    /// Reads what [`to_text`](Self::to_text) wrote. White space around it is ignored.
    ///
    /// # Errors
    /// A [`TicketError`] whose message says what to do.
    pub fn parse(text: &str) -> Result<Self, TicketError> {
        let text = text.trim();
        let encoded = text.strip_prefix(PREFIX).ok_or_else(|| foreign(text))?;
        let bytes = match from_text(encoded) {
            Ok(bytes) => bytes,
            // Base64 never has a length of 4 n + 1, unless it is cut off.
            Err(_) if encoded.len() % 4 == 1 => return Err(TicketError::CutOff),
            Err(_) => return Err(TicketError::Mistyped),
        };
        let mut fields = Fields(&bytes);
        if let Some((before, found)) = bytes.split_last_chunk()
            && before.first().is_some_and(|flags| flags & !FLAGS != 0)
            && check(before) == *found
        {
            return Err(TicketError::Newer);
        }
        let ticket = Self::read(&mut fields)?;
        let found = fields.array()?;
        fields.end()?;
        let (before, _) = bytes.split_last_chunk::<CHECK_BYTES>().ok_or(TicketError::CutOff)?;
        if check(before) != found {
            return Err(TicketError::Mistyped);
        }
        Ok(ticket)
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, TicketError> {
        let flags = fields.u8()?;
        let is_open = flags & IS_OPEN != 0;
        if flags & !FLAGS != 0 || is_open && flags & HAS_IDENTITY != 0 {
            return Err(TicketError::Mistyped);
        }
        let protocol_id = fields.u64()?;
        let addresses = read_addresses(fields)?;
        if addresses.is_empty() {
            return Err(TicketError::Mistyped);
        }
        addresses.iter().try_for_each(check_address)?;
        let access = if is_open {
            TicketAccess::Open
        } else {
            TicketAccess::Secret(Secret::from_bytes(fields.array()?))
        };
        let digest = if flags & HAS_DIGEST != 0 { Some(fields.array()?) } else { None };
        let identity = if flags & HAS_IDENTITY != 0 { Some(fields.array()?) } else { None };
        Ok(Self { addresses, protocol_id, access, digest, identity })
    }

    const fn flags(&self) -> u8 {
        let digest = if self.digest.is_some() { HAS_DIGEST } else { 0 };
        let identity = if self.identity.is_some() { HAS_IDENTITY } else { 0 };
        let open = if matches!(self.access, TicketAccess::Open) { IS_OPEN } else { 0 };
        digest | identity | open
    }
}

/// The error for a text without the prefix: a ticket of a later version, the start of one, or something else.
fn foreign(text: &str) -> TicketError {
    if !text.is_empty() && PREFIX.starts_with(text) {
        return TicketError::CutOff;
    }
    let version = text.strip_prefix("haulier").and_then(|rest| rest.split_once(':'));
    match version {
        Some((digits, _)) if digits.parse::<u32>().is_ok_and(|n| n > 1) => TicketError::Newer,
        _ => TicketError::NotATicket,
    }
}

/// Whether a client on another host can go there.
fn check_address(address: &SocketAddr) -> Result<(), TicketError> {
    if address.ip().is_unspecified() || address.port() == 0 {
        return Err(TicketError::Unspecified(*address));
    }
    match address {
        // fe80::/10. A ticket has no room for a scope, which is another one on each host anyway.
        SocketAddr::V6(v6) if v6.ip().segments()[0] & 0xffc0 == 0xfe80 => {
            Err(TicketError::LinkLocal(*address))
        }
        _ => Ok(()),
    }
}

fn check(bytes: &[u8]) -> [u8; CHECK_BYTES] {
    let mut check = [0; CHECK_BYTES];
    blake3::Hasher::new().update(bytes).finalize_xof().fill(&mut check);
    check
}

debug_as! { Ticket: |ticket| addresses = ticket.addresses }

/// Why a ticket could not be read or made.
///
/// # Examples
/// ```
/// use haulier_proto::credentials::{Ticket, TicketError};
///
/// assert_eq!(Ticket::parse("hello").unwrap_err(), TicketError::NotATicket);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TicketError {
    /// It does not start like a ticket.
    #[error("this is not a ticket; copy the whole line that starts with haulier1:")]
    NotATicket,
    /// It starts like one of a version that this program does not know.
    #[error("this ticket is from a newer version of haulier; update this one")]
    Newer,
    /// It seems to end too early. A mistyped length looks the same.
    #[error("the ticket is cut off or mistyped; copy the whole line again, to its end")]
    CutOff,
    /// It is not the ticket that was printed. A ticket that lost its end may look so, too.
    #[error("the ticket is mistyped or cut off; copy the whole line again, to its end")]
    Mistyped,
    /// It has no address, or more than 8.
    #[error("a ticket needs 1 to 8 addresses")]
    Addresses,
    /// An address that leads nowhere: `0.0.0.0`, `[::]`, or port 0.
    #[error(
        "{0} leads nobody to the server: name an address of its host, as players reach it, and its port"
    )]
    Unspecified(SocketAddr),
    /// A link-local address, which means something else on every interface of every host.
    #[error(
        "{0} is a link-local address, which a ticket cannot carry: name another one of the host"
    )]
    LinkLocal(SocketAddr),
    /// It has an identity in mode `open`.
    #[error("a server in mode open cannot prove an identity")]
    OpenIdentity,
}

impl From<FieldError> for TicketError {
    fn from(error: FieldError) -> Self {
        ReadError::from(error).into()
    }
}

impl From<ReadError> for TicketError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::CutOff => Self::CutOff,
            ReadError::Wrong => Self::Mistyped,
        }
    }
}

#[cfg(test)]
mod tests;
