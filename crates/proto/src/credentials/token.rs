//! The connect token: a matchmaker issues it, a client passes it on, a server opens it.
//!
//! The sealed part is for servers; the client passes it on unread. The other part is the client's, with the
//! secret that both ends will have. A server checks length, version and expiry before it spends time on the
//! seal, and allocates only after that is verified.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddr;

use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use zeroize::Zeroizing;

use super::bytes::{ReadError, from_text, read_addresses, to_text, write_addresses};
use super::claims::TokenClaims;
use crate::crypto::Secret;
use crate::debug_as;
use crate::fields::{FieldError, Fields};
use crate::wire::field_u16;
use crate::wire::request::MAX_SEALED_BYTES;

/// The length of the shortest sealed part, without addresses and user data.
const MIN_SEALED_BYTES: usize = HEADER_BYTES + 60 + TAG_BYTES;

/// The version of a sealed part, its first byte.
const VERSION: u8 = b'1';

/// Bytes before the ciphertext: version, key id, expiry, nonce.
const HEADER_BYTES: usize = 1 + 4 + 8 + NONCE_BYTES;

/// Bytes of the nonce of XChaCha20-Poly1305: long enough to be random.
const NONCE_BYTES: usize = 24;

/// Bytes of its tag.
const TAG_BYTES: usize = 16;

/// The first bytes of the client's part.
const MAGIC: [u8; 4] = *b"HLT1";

/// The flag of a client's part with an identity.
const HAS_IDENTITY: u8 = 1;

/// The start of a token as text.
const TEXT_PREFIX: &str = "haulier-token1:";

/// The key that a matchmaker shares with its servers.
///
/// # Examples
/// ```
/// use haulier_proto::credentials::{Secret, TokenClaims, TokenKey, TokenServers};
///
/// // The same in the matchmaker and in its servers. `haulier::issue_token` draws the random bytes.
/// let key = TokenKey { id: 1, key: Secret::from_bytes([7; 32]) };
/// let claims = TokenClaims::new(1_900_000_000, 1_900_000_060, TokenServers::Every);
/// let (fresh_secret, fresh_nonce) = (Secret::from_bytes([8; 32]), [9; 24]); // yours: random
/// let token = key.issue(7, &claims, fresh_secret, fresh_nonce)?;
/// assert_eq!(token.expiry_unix(), 1_900_000_060);
/// # Ok::<(), haulier_proto::credentials::IssueError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenKey {
    /// Names the key, so that servers can have the next one before a matchmaker uses it.
    pub id: u32,
    /// The key.
    pub key: Secret,
}

impl TokenKey {
    /// Issues a token. `secret` and `nonce` must be random and fresh for each token: the client's keys are
    /// derived from the secret, and two tokens with the same nonce reveal each other.
    ///
    /// The server's identity, if it has one, is added with
    /// [`ConnectToken::with_identity`](ConnectToken::with_identity).
    ///
    /// # Errors
    /// [`IssueError`] for claims beyond a limit of [`TokenClaims`].
    pub fn issue(
        &self,
        protocol_id: u64,
        claims: &TokenClaims,
        secret: Secret,
        nonce: [u8; NONCE_BYTES],
    ) -> Result<ConnectToken, IssueError> {
        if claims.expiry_unix <= claims.issued_unix {
            return Err(IssueError::ExpiresBeforeIssued);
        }
        let mut sealed = vec![VERSION];
        sealed.extend(self.id.to_le_bytes());
        sealed.extend(claims.expiry_unix.to_le_bytes());
        sealed.extend(nonce);
        let aad = associated(protocol_id, &sealed);
        // With capacity, so that growing leaves no copy of the secret behind.
        let mut plain = Zeroizing::new(Vec::with_capacity(MAX_SEALED_BYTES));
        claims.write(&secret, &mut plain)?;
        let tag = XChaCha20Poly1305::new(self.key.as_bytes().into())
            .encrypt_in_place_detached(&nonce.into(), &aad, &mut plain)
            .map_err(|_| IssueError::TooMuchUserData)?;
        sealed.extend(&*plain);
        sealed.extend(tag);
        Ok(ConnectToken {
            protocol_id,
            expiry_unix: claims.expiry_unix,
            secret,
            servers: claims.servers.addresses().to_vec(),
            identity: None,
            sealed,
        })
    }

    /// Opens the sealed part of a request. Nothing is allocated before the seal is verified. The caller
    /// checks that the token is for this server and was not used before.
    ///
    /// # Errors
    /// [`TokenError`].
    #[doc(hidden)]
    pub fn open(
        &self,
        protocol_id: u64,
        sealed: &[u8],
        now_unix: u64,
    ) -> Result<OpenedToken, TokenError> {
        let header = Header::read(sealed)?;
        if header.expiry_unix <= now_unix {
            return Err(TokenError::Expired);
        }
        if header.key_id != self.id {
            return Err(TokenError::UnknownKey);
        }
        let mut buffer = Zeroizing::new([0; MAX_SEALED_BYTES]);
        let plain = buffer.get_mut(..header.ciphertext.len()).ok_or(TokenError::Malformed)?;
        plain.copy_from_slice(header.ciphertext);
        XChaCha20Poly1305::new(self.key.as_bytes().into())
            .decrypt_in_place_detached(
                &header.nonce.into(),
                &associated(protocol_id, header.bytes),
                plain,
                header.tag.into(),
            )
            .map_err(|_| TokenError::BadSeal)?;
        let (claims, secret) = TokenClaims::read(plain, header.expiry_unix)?;
        Ok(OpenedToken { claims, secret, nonce: header.nonce })
    }

    /// The id of the key that a sealed part names.
    #[doc(hidden)]
    #[must_use]
    pub fn id_of(sealed: &[u8]) -> Option<u32> {
        Header::read(sealed).ok().map(|header| header.key_id)
    }
}

/// The associated data of the seal: the protocol id and the header.
fn associated(protocol_id: u64, header: &[u8]) -> [u8; 8 + HEADER_BYTES] {
    let mut aad = [0; 8 + HEADER_BYTES];
    let bytes = protocol_id.to_le_bytes().into_iter().chain(header.iter().copied());
    aad.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    aad
}

/// The parts of a sealed part, none of them verified.
struct Header<'a> {
    bytes: &'a [u8],
    key_id: u32,
    expiry_unix: u64,
    nonce: [u8; NONCE_BYTES],
    ciphertext: &'a [u8],
    tag: &'a [u8; TAG_BYTES],
}

impl<'a> Header<'a> {
    fn read(sealed: &'a [u8]) -> Result<Self, TokenError> {
        if !(MIN_SEALED_BYTES..=MAX_SEALED_BYTES).contains(&sealed.len()) {
            return Err(TokenError::Malformed);
        }
        let (bytes, rest) = sealed.split_at_checked(HEADER_BYTES).ok_or(TokenError::Malformed)?;
        let (ciphertext, tag) = rest.split_last_chunk().ok_or(TokenError::Malformed)?;
        let mut fields = Fields(bytes);
        if fields.u8()? != VERSION {
            return Err(TokenError::Malformed);
        }
        let (key_id, expiry_unix, nonce) = (fields.u32()?, fields.u64()?, fields.array()?);
        Ok(Self { bytes, key_id, expiry_unix, nonce, ciphertext, tag })
    }
}

/// The content of a sealed part whose seal is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedToken {
    /// What the matchmaker says about the client.
    pub claims: TokenClaims,
    /// The keys of the request are derived from it; the client has it too.
    pub secret: Secret,
    /// Unique for each token. A server remembers it until the token expires.
    pub nonce: [u8; NONCE_BYTES],
}

/// The client's part of a token: the servers, the secret, and the sealed part to be passed on.
///
/// # Examples
/// ```
/// # use haulier_proto::credentials::{Secret, TokenClaims, TokenKey, TokenServers};
/// use haulier_proto::credentials::ConnectToken;
///
/// # let key = TokenKey { id: 1, key: Secret::from_bytes([7; 32]) };
/// # let server = TokenServers::One("192.0.2.7:4016".parse()?);
/// # let claims = TokenClaims::new(1_900_000_000, 1_900_000_060, server);
/// # let text = key.issue(7, &claims, Secret::from_bytes([8; 32]), [9; 24])?.to_text();
/// // What the matchmaker answered.
/// let token = ConnectToken::parse(&text)?;
/// assert_eq!(token.servers(), ["192.0.2.7:4016".parse()?]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ConnectToken {
    protocol_id: u64,
    expiry_unix: u64,
    secret: Secret,
    servers: Vec<SocketAddr>,
    identity: Option<[u8; 32]>,
    sealed: Vec<u8>,
}

impl ConnectToken {
    /// The same token with the public key of its servers, which the client then requires.
    #[must_use]
    pub fn with_identity(mut self, identity: [u8; 32]) -> Self {
        self.identity = Some(identity);
        self
    }

    /// The application's protocol id.
    #[must_use]
    pub const fn protocol_id(&self) -> u64 {
        self.protocol_id
    }

    /// When the token expires, in Unix seconds.
    #[must_use]
    pub const fn expiry_unix(&self) -> u64 {
        self.expiry_unix
    }

    /// The secret that the keys of the request are derived from.
    #[doc(hidden)]
    #[must_use]
    pub const fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The servers to try, in this order, at most 8. Empty if the client knows them from elsewhere.
    #[must_use]
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// The public key of the servers, if the client must require it.
    #[must_use]
    pub const fn identity(&self) -> Option<&[u8; 32]> {
        self.identity.as_ref()
    }

    /// The sealed part for the server, 113 to 640 bytes.
    #[doc(hidden)]
    #[must_use]
    pub fn sealed(&self) -> &[u8] {
        &self.sealed
    }

    /// The bytes for the client, to be sent over a channel that keeps secrets.
    #[doc(hidden)]
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        out.extend(MAGIC);
        out.extend(self.protocol_id.to_le_bytes());
        out.extend(self.expiry_unix.to_le_bytes());
        out.extend(self.secret.as_bytes());
        // Neither servers nor sealed part are too long: `issue` and `from_bytes` checked them.
        let _fits = write_addresses(&mut out, &self.servers);
        out.push(if self.identity.is_some() { HAS_IDENTITY } else { 0 });
        out.extend(self.identity.iter().flatten());
        out.extend(field_u16(self.sealed.len()).to_le_bytes());
        out.extend(&self.sealed);
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`ConnectTokenError`] for anything else.
    #[doc(hidden)]
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ConnectTokenError> {
        let mut fields = Fields(bytes);
        if fields.array()? != MAGIC {
            return Err(ConnectTokenError::NotAToken);
        }
        let (protocol_id, expiry_unix) = (fields.u64()?, fields.u64()?);
        let secret = Secret::from_bytes(fields.array()?);
        let servers = read_addresses(&mut fields)?;
        let identity = match fields.u8()? {
            0 => None,
            HAS_IDENTITY => Some(fields.array()?),
            _ => return Err(ConnectTokenError::Damaged),
        };
        let length = usize::from(fields.u16()?);
        if !(MIN_SEALED_BYTES..=MAX_SEALED_BYTES).contains(&length) {
            return Err(ConnectTokenError::Damaged);
        }
        let sealed = fields.bytes(length)?.to_vec();
        fields.end()?;
        Ok(Self { protocol_id, expiry_unix, secret, servers, identity, sealed })
    }

    /// The bytes as text: `haulier-token1:` and base64url. It is as secret as the bytes are.
    #[must_use]
    pub fn to_text(&self) -> String {
        to_text(TEXT_PREFIX, &Zeroizing::new(self.to_bytes()))
    }

    /// Reads what [`to_text`](Self::to_text) wrote. White space around it is ignored.
    ///
    /// # Errors
    /// [`ConnectTokenError`] for anything else.
    pub fn parse(text: &str) -> Result<Self, ConnectTokenError> {
        let encoded = text.trim().strip_prefix(TEXT_PREFIX).ok_or(ConnectTokenError::NotAToken)?;
        Self::from_bytes(&from_text(encoded).map_err(|_| ConnectTokenError::Damaged)?)
    }
}

debug_as! {
    ConnectToken: |token| expiry_unix = token.expiry_unix, servers = token.servers
}

/// Why a token could not be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssueError {
    /// `servers` has more than 8 addresses.
    #[error("`servers` may name at most 8 servers")]
    TooManyServers,
    /// `servers` names none. A token for every server is [`TokenServers::Every`](super::TokenServers).
    #[error("`servers` has to name a server, or say that the token is for every one")]
    NoServer,
    /// It expires before it is issued.
    #[error("`expiry_unix` has to be after `issued_unix`")]
    ExpiresBeforeIssued,
    /// `user_data` has more than 256 bytes.
    #[error("`user_data` may have at most 256 bytes")]
    TooMuchUserData,
}

/// Why a server refuses a sealed part, in the order in which it checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It is malformed or of another version. Inside the seal, that is the matchmaker's fault.
    #[error("this is not a connect token of version 1")]
    Malformed,
    /// It has expired. Only this reason is reported to the client (STANDARD-1, 3.5).
    #[error("the connect token has expired")]
    Expired,
    /// It is sealed with a key of another id.
    #[error("the connect token is sealed with a key that this server does not have")]
    UnknownKey,
    /// It is not sealed with this key for this protocol id, or damaged.
    #[error("the seal of the connect token is wrong")]
    BadSeal,
}

/// Why a client could not read a connect token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectTokenError {
    /// It does not start like a token of this version.
    #[error("this is not a connect token; one starts with haulier-token1:")]
    NotAToken,
    /// It ends too early.
    #[error("the connect token is cut off; pass on all of it")]
    CutOff,
    /// It starts like a token, but has an invalid field.
    #[error("the connect token is damaged; ask the matchmaker for another one")]
    Damaged,
}

impl From<FieldError> for TokenError {
    fn from(error: FieldError) -> Self {
        ReadError::from(error).into()
    }
}

impl From<ReadError> for TokenError {
    fn from(_: ReadError) -> Self {
        Self::Malformed
    }
}

impl From<FieldError> for ConnectTokenError {
    fn from(error: FieldError) -> Self {
        ReadError::from(error).into()
    }
}

impl From<ReadError> for ConnectTokenError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::CutOff => Self::CutOff,
            ReadError::Wrong => Self::Damaged,
        }
    }
}

#[cfg(test)]
mod tests;
