//! The connect token: a matchmaker issues it, a client carries it, a server opens it.
//!
//! The sealed part is for servers; the client passes it on unread. The other part is the client's own,
//! with the secret both will have. A server looks at length, version and expiry before it spends time on
//! the seal, and takes memory only once that holds.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::net::SocketAddr;

use base64ct::{Base64UrlUnpadded, Encoding};
use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInPlace, KeyInit};
use zeroize::{Zeroize, Zeroizing};

use super::bytes::{ReadError, read_addresses, write_addresses};
use super::claims::TokenClaims;
use crate::crypto::Secret;
use crate::fields::{FieldError, Fields};

/// The fewest bytes in a sealed part: no address, no user data.
pub const MIN_SEALED_BYTES: usize = HEADER_BYTES + 52 + TAG_BYTES;

/// The most bytes in a sealed part that a request has room for.
pub const MAX_SEALED_BYTES: usize = 640;

const VERSION: u8 = b'1';
/// Version, key id, expiry, nonce.
const HEADER_BYTES: usize = 1 + 4 + 8 + NONCE_BYTES;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;

/// How the client's part begins.
const MAGIC: [u8; 4] = *b"HLT1";
const HAS_IDENTITY: u8 = 1;
const TEXT_PREFIX: &str = "haulier-token1:";

/// The key a matchmaker and its servers share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenKey {
    /// Names the key, so that servers can have the next one before a matchmaker uses it.
    pub id: u32,
    /// The key itself.
    pub key: Secret,
}

impl TokenKey {
    /// Makes a token. `secret` and `nonce` are random, fresh ones for each: the secret is what the
    /// client's keys come from, and two tokens of one nonce betray each other.
    ///
    /// The server's identity, if it has one, is added with
    /// [`ConnectToken::with_identity`](ConnectToken::with_identity).
    ///
    /// # Errors
    /// Claims that break a limit of [`TokenClaims`].
    pub fn issue(
        &self,
        protocol_id: u64,
        claims: &TokenClaims,
        secret: Secret,
        nonce: [u8; NONCE_BYTES],
    ) -> Result<ConnectToken, IssueError> {
        let mut sealed = vec![VERSION];
        sealed.extend(self.id.to_le_bytes());
        sealed.extend(claims.expiry_unix.to_le_bytes());
        sealed.extend(nonce);
        let aad = associated(protocol_id, &sealed);
        // Sized, so that no growth leaves a copy of the secret behind.
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
            servers: claims.servers.clone(),
            identity: None,
            sealed,
        })
    }

    /// Opens the sealed part of a request. Nothing is allocated unless its seal holds.
    ///
    /// That the token is for this server, and was not used before, is asked of the answer.
    ///
    /// # Errors
    /// The first [`TokenError`] in their order.
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

    /// The id of the key that a sealed part says it needs, for a server with several.
    #[must_use]
    pub fn id_of(sealed: &[u8]) -> Option<u32> {
        Header::read(sealed).ok().map(|header| header.key_id)
    }
}

/// The protocol id, then the header: what the seal also covers.
fn associated(protocol_id: u64, header: &[u8]) -> [u8; 8 + HEADER_BYTES] {
    let mut aad = [0; 8 + HEADER_BYTES];
    let bytes = protocol_id.to_le_bytes().into_iter().chain(header.iter().copied());
    aad.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    aad
}

/// A sealed part in its pieces, none of them verified.
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

/// A sealed part whose seal held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedToken {
    /// What the matchmaker says.
    pub claims: TokenClaims,
    /// What the keys of the request come from; the client has it too.
    pub secret: Secret,
    /// The token's own name: no two tokens have the same. A server remembers it until the expiry.
    pub nonce: [u8; NONCE_BYTES],
}

/// The client's part of a token: where to go, with which secret, and the sealed part to show there.
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
    /// The same with the public key of its servers, which the client will insist on.
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

    /// When the token ends, in Unix seconds.
    #[must_use]
    pub const fn expiry_unix(&self) -> u64 {
        self.expiry_unix
    }

    /// What the keys of the request come from.
    #[must_use]
    pub const fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Where to go, at most 8 addresses, in this order. Empty if the client is told another way.
    #[must_use]
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// The public key of the servers, if the client must insist on it.
    #[must_use]
    pub const fn identity(&self) -> Option<&[u8; 32]> {
        self.identity.as_ref()
    }

    /// The part for the server, [`MIN_SEALED_BYTES`] to [`MAX_SEALED_BYTES`].
    #[must_use]
    pub fn sealed(&self) -> &[u8] {
        &self.sealed
    }

    /// The bytes to hand to the client, over a channel that keeps secrets.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        out.extend(MAGIC);
        out.extend(self.protocol_id.to_le_bytes());
        out.extend(self.expiry_unix.to_le_bytes());
        out.extend(self.secret.as_bytes());
        // Neither can be too many: both came through a constructor that looked.
        let _within = write_addresses(&mut out, &self.servers);
        out.push(if self.identity.is_some() { HAS_IDENTITY } else { 0 });
        out.extend(self.identity.iter().flatten());
        out.extend(u16::try_from(self.sealed.len()).unwrap_or(u16::MAX).to_le_bytes());
        out.extend(&self.sealed);
        out
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`TextError`] for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TextError> {
        let mut fields = Fields(bytes);
        if fields.array()? != MAGIC {
            return Err(TextError::NotAToken);
        }
        let (protocol_id, expiry_unix) = (fields.u64()?, fields.u64()?);
        let secret = Secret::from_bytes(fields.array()?);
        let servers = read_addresses(&mut fields)?;
        let identity = match fields.u8()? {
            0 => None,
            HAS_IDENTITY => Some(fields.array()?),
            _ => return Err(TextError::Damaged),
        };
        let length = usize::from(fields.u16()?);
        if !(MIN_SEALED_BYTES..=MAX_SEALED_BYTES).contains(&length) {
            return Err(TextError::Damaged);
        }
        let sealed = fields.bytes(length)?.to_vec();
        fields.end()?;
        Ok(Self { protocol_id, expiry_unix, secret, servers, identity, sealed })
    }

    /// The bytes as text: `haulier-token1:` and base64url. It is as secret as the bytes are.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut bytes = self.to_bytes();
        let mut text = String::from(TEXT_PREFIX);
        text.push_str(&Base64UrlUnpadded::encode_string(&bytes));
        bytes.zeroize();
        text
    }

    /// Reads what [`to_text`](Self::to_text) wrote. White space around it is passed over.
    ///
    /// # Errors
    /// [`TextError`] for anything else.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let encoded = text.trim().strip_prefix(TEXT_PREFIX).ok_or(TextError::NotAToken)?;
        let bytes = Base64UrlUnpadded::decode_vec(encoded).map_err(|_| TextError::Damaged)?;
        Self::from_bytes(&Zeroizing::new(bytes))
    }
}

impl fmt::Debug for ConnectToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectToken")
            .field("expiry_unix", &self.expiry_unix)
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}

/// Why claims do not make a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssueError {
    /// More than 8 servers.
    #[error("a token names at most 8 servers")]
    TooManyServers,
    /// More than 256 bytes of user data.
    #[error("a token holds at most 256 bytes of user data")]
    TooMuchUserData,
}

/// Why a server refuses a sealed part, in the order in which it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// Not the form of one, or of another version. After the seal: the matchmaker's fault.
    #[error("this is no connect token of version 1")]
    Malformed,
    /// The time it names has come. The one reason that a client is told (STANDARD-1, 3.5).
    #[error("the connect token has expired")]
    Expired,
    /// Sealed with a key of another id.
    #[error("the connect token is sealed with a key this server does not have")]
    UnknownKey,
    /// Not sealed with this key for this protocol id.
    #[error("the seal of the connect token does not hold")]
    BadSeal,
}

/// Why bytes or a text are no connect token. For the client, who got them from a matchmaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// It does not begin like a token, or like one of this version.
    #[error("this is no connect token; one begins with haulier-token1:")]
    NotAToken,
    /// It ends too early.
    #[error("the connect token is cut off; pass on all of it")]
    CutOff,
    /// It begins like one, and what follows cannot be right.
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

impl From<FieldError> for TextError {
    fn from(error: FieldError) -> Self {
        ReadError::from(error).into()
    }
}

impl From<ReadError> for TextError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::CutOff => Self::CutOff,
            ReadError::Wrong => Self::Damaged,
        }
    }
}

#[cfg(test)]
mod tests;
