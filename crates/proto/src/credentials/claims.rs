//! The content of a token: what a matchmaker says about a client.
//!
//! It is parsed only after the seal is verified, so invalid content is the matchmaker's fault; even then it
//! is an error and not a panic.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU32;

use super::bytes::{ReadError, read_address, read_addresses, write_address, write_addresses};
use super::token::IssueError;
use crate::crypto::Secret;
use crate::fields::Fields;
use crate::{debug_as, settings};

/// The maximum of user data in a token, in bytes.
const MAX_USER_DATA_BYTES: usize = 256;

/// The flag of a token that gives the client's address.
const HAS_CLIENT_ADDRESS: u8 = 1;

/// The flag of a token that more than one server may accept.
const IS_FOR_SEVERAL: u8 = 2;

/// The servers that accept a token.
///
/// Each server remembers the tokens it has accepted, and tells no other. So a token is one admission only if
/// one server accepts it; for more, the issuer has to say so.
///
/// # Examples
/// ```
/// use haulier_proto::credentials::TokenServers;
///
/// // One server that is reached at two addresses.
/// let server = TokenServers::Each(vec!["192.0.2.7:4016".parse()?, "[2001:db8::7]:4016".parse()?]);
/// assert_eq!(server.addresses().len(), 2);
/// assert!(TokenServers::Every.addresses().is_empty());
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenServers {
    /// The server at this address, once.
    One(SocketAddr),
    /// The servers at these addresses, 1 to 8, once each. Also for one server with several addresses.
    Each(Vec<SocketAddr>),
    /// Every server with the token key, once each.
    Every,
}

impl TokenServers {
    /// The addresses that are named.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        match self {
            Self::One(address) => core::slice::from_ref(address),
            Self::Each(addresses) => addresses,
            Self::Every => &[],
        }
    }
}

/// A rate in a token: whole bytes per second, 8 bit/s to 34 Gbit/s.
///
/// # Examples
/// ```
/// use haulier_proto::credentials::TokenRate;
///
/// assert_eq!(TokenRate::from_bps(1_000_001).map(TokenRate::bps), Some(1_000_008));
/// assert_eq!(TokenRate::from_bps(0), None); // in a token that is "no limit"
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenRate(NonZeroU32);

impl TokenRate {
    /// This rate in bits per second, rounded up to whole bytes. `None` for 0, which means no limit in
    /// a token, and for more than a token can hold.
    #[must_use]
    pub fn from_bps(bps: u64) -> Option<Self> {
        u32::try_from(bps.div_ceil(8)).ok().and_then(NonZeroU32::new).map(Self)
    }

    /// In bits per second.
    #[must_use]
    pub fn bps(self) -> u64 {
        u64::from(self.0.get()) * 8
    }
}

settings! {
    /// What a matchmaker states about a client, sealed for the server.
    ///
    /// # Examples
    /// ```
    /// use haulier_proto::credentials::{TokenClaims, TokenRate, TokenServers};
    ///
    /// let (now, server) = (1_900_000_000, "192.0.2.7:4016".parse()?);
    /// let claims = TokenClaims::new(now, now + 60, TokenServers::One(server))
    ///     .with_client_id(42u64.to_le_bytes())
    ///     .with_client_address(Some("198.51.100.3:50000".parse()?)) // saves a round trip
    ///     .with_max_rate(TokenRate::from_bps(20_000_000))
    ///     .with_user_data(b"name=alice".to_vec());
    /// assert_eq!(claims.servers.addresses(), [server]);
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    #[derive(Clone, PartialEq, Eq)]
    pub struct TokenClaims new(
        /// When the token is issued, in Unix seconds. A server that was started later refuses it: it does
        /// not know whether it accepted it before.
        issued_unix: u64,
        /// When the token expires, in Unix seconds. From that second on it is refused.
        expiry_unix: u64,
        /// The servers that accept it.
        servers: TokenServers,
    ) {
        /// The application's name for the player, not the id of its connection. Clients of one name share
        /// what the server remembers of their path, and a share of its memory. Default 0, no name.
        client_id: [u8; 8] = [0; 8], with_client_id;
        /// The address at which the matchmaker knows the client; its port is not compared. A client at it is
        /// sent up to 384 KiB before it has answered from there. A client at another address is not
        /// refused. Default `None`.
        client_address: Option<SocketAddr> = None, with_client_address;
        /// A minimum rate for this client, for the application: the connection ignores it. Default `None`,
        /// not set.
        min_rate: Option<TokenRate> = None, with_min_rate;
        /// The maximum rate of blocks for this client. Default `None`, no limit.
        max_rate: Option<TokenRate> = None, with_max_rate;
        /// Data from the matchmaker for the server, at most 256 bytes. Default none.
        user_data: Vec<u8> = Vec::new(), with_user_data;
    }
}

debug_as! {
    TokenClaims: |claims|
    issued_unix = claims.issued_unix,
    expiry_unix = claims.expiry_unix,
    servers = claims.servers,
    min_rate = claims.min_rate,
    max_rate = claims.max_rate,
    user_data_bytes = claims.user_data.len(),
}

impl TokenClaims {
    /// Whether `address` is the one at which the matchmaker knows the client. `::ffff:1.2.3.4` is `1.2.3.4`.
    pub(crate) fn is_at(&self, address: SocketAddr) -> bool {
        self.client_address
            .is_some_and(|known| known.ip().to_canonical() == address.ip().to_canonical())
    }

    /// Whether the token is for a server at one of these addresses, which was asked at `local`. An own
    /// address whose IP is unspecified stands for every address of this host, at that port.
    pub(crate) fn is_for(&self, own: &[SocketAddr], local: Option<IpAddr>) -> bool {
        let is_own = |server: &SocketAddr| {
            own.iter().any(|own| {
                let ip = if own.ip().is_unspecified() { local } else { Some(own.ip()) };
                let is_same = ip.is_some_and(|ip| ip.to_canonical() == server.ip().to_canonical());
                own.port() == server.port() && is_same
            })
        };
        self.servers == TokenServers::Every || self.servers.addresses().iter().any(is_own)
    }

    /// The client's id, if it has one.
    pub(crate) fn client(&self) -> Option<[u8; 8]> {
        Some(self.client_id).filter(|id| *id != [0; 8])
    }

    /// The plaintext of the sealed part. The expiry is not in it, but in the header before it.
    pub(super) fn write(&self, secret: &Secret, out: &mut Vec<u8>) -> Result<(), IssueError> {
        out.extend(self.client_id);
        out.extend(secret.as_bytes());
        out.extend(self.issued_unix.to_le_bytes());
        let has_address = if self.client_address.is_some() { HAS_CLIENT_ADDRESS } else { 0 };
        let is_for_several = match &self.servers {
            TokenServers::One(_) => 0,
            TokenServers::Each(addresses) if addresses.is_empty() => {
                return Err(IssueError::NoServer);
            }
            TokenServers::Each(_) | TokenServers::Every => IS_FOR_SEVERAL,
        };
        out.push(has_address | is_for_several);
        if let Some(address) = self.client_address {
            write_address(out, address);
        }
        write_addresses(out, self.servers.addresses()).ok_or(IssueError::TooManyServers)?;
        for rate in [self.min_rate, self.max_rate] {
            out.extend(rate.map_or(0, |rate| rate.0.get()).to_le_bytes());
        }
        if self.user_data.len() > MAX_USER_DATA_BYTES {
            return Err(IssueError::TooMuchUserData);
        }
        let length =
            u16::try_from(self.user_data.len()).map_err(|_| IssueError::TooMuchUserData)?;
        out.extend(length.to_le_bytes());
        out.extend(&self.user_data);
        Ok(())
    }

    pub(super) fn read(plain: &[u8], expiry_unix: u64) -> Result<(Self, Secret), ReadError> {
        let mut fields = Fields(plain);
        let client_id = fields.array()?;
        let secret = Secret::from_bytes(fields.array()?);
        let issued_unix = fields.u64()?;
        let flags = fields.u8()?;
        if flags & !(HAS_CLIENT_ADDRESS | IS_FOR_SEVERAL) != 0 {
            return Err(ReadError::Wrong);
        }
        let client_address = match flags & HAS_CLIENT_ADDRESS {
            0 => None,
            _ => Some(read_address(&mut fields)?),
        };
        let addresses = read_addresses(&mut fields)?;
        let servers = match (flags & IS_FOR_SEVERAL, &*addresses) {
            (0, &[address]) => TokenServers::One(address),
            (0, _) => return Err(ReadError::Wrong),
            (_, []) => TokenServers::Every,
            (_, _) => TokenServers::Each(addresses),
        };
        let mut rate = || fields.u32().map(|rate| NonZeroU32::new(rate).map(TokenRate));
        let (min_rate, max_rate) = (rate()?, rate()?);
        let length = usize::from(fields.u16()?);
        if length > MAX_USER_DATA_BYTES {
            return Err(ReadError::Wrong);
        }
        let user_data = fields.bytes(length)?.to_vec();
        fields.end()?;
        let claims = Self {
            issued_unix,
            expiry_unix,
            servers,
            client_id,
            client_address,
            min_rate,
            max_rate,
            user_data,
        };
        Ok((claims, secret))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn claims(servers: TokenServers) -> TokenClaims {
        TokenClaims::new(0, 1, servers)
    }

    #[test]
    fn client_addresses_are_compared_without_port_and_family() {
        let claims = claims(TokenServers::Every);
        assert!(!claims.is_at(at("192.0.2.1:9")));
        let claims = claims.with_client_address(Some(at("192.0.2.1:9")));
        assert!(claims.is_at(at("192.0.2.1:4000")));
        assert!(claims.is_at(at("[::ffff:192.0.2.1]:4000")));
        assert!(!claims.is_at(at("192.0.2.2:9")));
    }

    #[test]
    fn server_addresses_are_compared_with_their_port() {
        let each = claims(TokenServers::Each([at("192.0.2.1:9"), at("[2001:db8::1]:9")].into()));
        assert!(each.is_for(&[at("[::1]:9"), at("[::ffff:192.0.2.1]:9")], None));
        assert!(each.is_for(&[at("[2001:db8::1]:9")], None));
        assert!(!each.is_for(&[at("192.0.2.1:8"), at("192.0.2.3:9")], None));
        assert!(!each.is_for(&[], None));
        assert!(claims(TokenServers::Every).is_for(&[], None));
    }

    /// A server at `0.0.0.0` or `[::]` compares the address that the request was sent to.
    #[test]
    fn an_unspecified_address_is_the_one_that_was_asked() {
        let claims = claims(TokenServers::One(at("192.0.2.1:9")));
        let asked = |own: &str, ip: &str| claims.is_for(&[at(own)], Some(ip.parse().unwrap()));
        assert!(asked("0.0.0.0:9", "192.0.2.1") && asked("[::]:9", "::ffff:192.0.2.1"));
        assert!(!asked("0.0.0.0:9", "192.0.2.2") && !asked("0.0.0.0:8", "192.0.2.1"));
        assert!(!claims.is_for(&[at("0.0.0.0:9")], None), "it is not known where it was asked");
    }
}
