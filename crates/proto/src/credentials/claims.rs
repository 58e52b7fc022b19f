//! The content of a token: what a matchmaker says about a client.
//!
//! It is parsed only after the seal is verified, so invalid content is the matchmaker's fault; even then it
//! is an error and not a panic.

use alloc::vec::Vec;
use core::net::SocketAddr;
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

/// A rate in a token: whole bytes per second, 8 bit/s to 34 Gbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenRate(NonZeroU32);

impl TokenRate {
    /// The rate of so many bits per second, rounded up to whole bytes. `None` for 0, which means no limit in
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
    /// What a matchmaker tells a server about a client, in secret.
    #[derive(Clone, PartialEq, Eq)]
    pub struct TokenClaims new(
        /// When the token expires, in Unix seconds. From that second on it is refused.
        expiry_unix: u64,
    ) {
        /// The application's name for the player. Not the id of its connection. Default 0.
        client_id: [u8; 8] = [0; 8], with_client_id;
        /// The servers that the token is for, at most 8. If empty, the default, all servers with the token
        /// key.
        servers: Vec<SocketAddr> = Vec::new(), with_servers;
        /// The address at which the matchmaker knows the client; its port is not compared. The address of a
        /// client at it counts as validated. A client at another address is not refused. Default `None`.
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

    /// Whether the token is for a server at one of these addresses.
    pub(crate) fn is_for(&self, own: &[SocketAddr]) -> bool {
        let same = |a: &SocketAddr, b: &SocketAddr| {
            a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
        };
        self.servers.is_empty()
            || self.servers.iter().any(|server| own.iter().any(|own| same(server, own)))
    }

    /// The plaintext of the sealed part. The expiry is not in it, but in the header before it.
    pub(super) fn write(&self, secret: &Secret, out: &mut Vec<u8>) -> Result<(), IssueError> {
        out.extend(self.client_id);
        out.extend(secret.as_bytes());
        out.push(if self.client_address.is_some() { HAS_CLIENT_ADDRESS } else { 0 });
        if let Some(address) = self.client_address {
            write_address(out, address);
        }
        write_addresses(out, &self.servers).ok_or(IssueError::TooManyServers)?;
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
        let client_address = match fields.u8()? {
            0 => None,
            HAS_CLIENT_ADDRESS => Some(read_address(&mut fields)?),
            _ => return Err(ReadError::Wrong),
        };
        let servers = read_addresses(&mut fields)?;
        let mut rate = || fields.u32().map(|rate| NonZeroU32::new(rate).map(TokenRate));
        let (min_rate, max_rate) = (rate()?, rate()?);
        let length = usize::from(fields.u16()?);
        if length > MAX_USER_DATA_BYTES {
            return Err(ReadError::Wrong);
        }
        let user_data = fields.bytes(length)?.to_vec();
        fields.end()?;
        let claims =
            Self { client_id, servers, expiry_unix, client_address, min_rate, max_rate, user_data };
        Ok((claims, secret))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn client_addresses_are_compared_without_port_and_family() {
        let claims = TokenClaims::new(0).with_client_address(Some(at("192.0.2.1:9")));
        assert!(claims.is_at(at("192.0.2.1:4000")));
        assert!(claims.is_at(at("[::ffff:192.0.2.1]:4000")));
        assert!(!claims.is_at(at("192.0.2.2:9")));
        assert!(!TokenClaims::new(0).is_at(at("192.0.2.1:9")));
    }

    #[test]
    fn server_addresses_are_compared_with_their_port() {
        let servers = [at("192.0.2.1:9"), at("[2001:db8::1]:9")].into();
        let claims = TokenClaims::new(0).with_servers(servers);
        assert!(claims.is_for(&[at("[::1]:9"), at("[::ffff:192.0.2.1]:9")]));
        assert!(claims.is_for(&[at("[2001:db8::1]:9")]));
        assert!(!claims.is_for(&[at("192.0.2.1:8"), at("192.0.2.3:9")]));
        assert!(!claims.is_for(&[]));
        assert!(TokenClaims::new(0).is_for(&[]));
    }
}
