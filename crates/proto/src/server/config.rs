//! The settings of a server: which clients it accepts, and how many.

use alloc::vec::Vec;
use core::net::SocketAddr;

use crate::connection::ConnectionConfig;
use crate::credentials::TokenKey;
use crate::crypto::{Identity, Secret};
use crate::settings;

/// Which clients a server accepts. The default accepts none.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServerCredentials {
    /// Clients with this secret, from a ticket.
    pub secret: Option<Secret>,
    /// Clients with a connect token sealed with one of these keys. Two are in use while a key is replaced.
    pub token_keys: Vec<TokenKey>,
    /// Proves this server to clients that require it.
    pub identity: Option<Identity>,
    /// All clients, without encryption: for a LAN and for tests. Default `false`.
    pub open: bool,
    /// Lets clients notice at once that this server was restarted: 32 bytes that it keeps, and that no other
    /// running server has. Two servers with the same could be used to end each other's connections. Without
    /// it, clients notice a restart by the idle timeout.
    pub reset_secret: Option<Secret>,
}

impl ServerCredentials {
    /// Accepts clients with this secret, from a ticket.
    #[must_use]
    pub fn with_secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Accepts clients with a connect token sealed with this key, besides those of other keys.
    #[must_use]
    pub fn with_token_key(mut self, key: TokenKey) -> Self {
        // A vector that grows leaves what it held behind. Here each key is copied, and its old place wiped.
        let mut keys = Vec::with_capacity(self.token_keys.len() + 1);
        keys.extend(self.token_keys.iter().cloned());
        keys.push(key);
        self.token_keys = keys;
        self
    }

    /// Whether anybody else may have the reset secret.
    pub(crate) fn shares_reset_secret(&self) -> bool {
        let tokens = self.token_keys.iter().map(|token_key| &token_key.key);
        let identity = self.identity.as_ref().map(Identity::private);
        let mut others = tokens.chain(&self.secret).chain(identity);
        self.reset_secret.as_ref().is_some_and(|own| others.any(|other| other == own))
    }

    /// Proves this server to clients that require it.
    #[must_use]
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Lets clients notice at once that this server was restarted: with 32 bytes that it keeps, and that no
    /// other running server has. Two servers with the same could be used to end each other's connections.
    #[must_use]
    pub fn with_reset_secret(mut self, secret: Secret) -> Self {
        self.reset_secret = Some(secret);
        self
    }

    /// Accepts all clients, without encryption: for a LAN and for tests.
    #[must_use]
    pub const fn with_open_access(mut self) -> Self {
        self.open = true;
        self
    }
}

settings! {
    /// The limits of a server. Each one bounds memory or work that strangers could cause.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ServerLimits {
        /// Connections, including handshakes in progress. Default 1024.
        connections: usize = 1024, with_connections;
        /// Connections from one source prefix (an IPv4 address, an IPv6 /64). Default 256: a school behind
        /// one address.
        connections_per_prefix: usize = 256, with_connections_per_prefix;
        /// Handshakes in progress. At the limit the prefix with the most loses one to a prefix with fewer;
        /// among equals, the oldest one ends if it is a second old. If there is none, requests are dropped
        /// without an answer, because clients repeat them. Default 256.
        handshakes: usize = 256, with_handshakes;
        /// Handshakes in progress from one source prefix; more are dropped the same way. Default 64: one
        /// address with the secret must not use up all handshakes.
        handshakes_per_prefix: usize = 64, with_handshakes_per_prefix;
        /// Handshakes in progress above which a request needs a cookie, which costs a round trip. Default 64.
        handshakes_without_cookie: usize = 64, with_handshakes_without_cookie;
        /// Bytes that all clients together may make this server hold: blocks, packets and messages that are
        /// incomplete or not read. Above it, the connection that holds the most is closed with `resources`.
        /// Default 1 GiB.
        memory_bytes: usize = 1 << 30, with_memory_bytes;
        /// Refusals and resets per second, for all sources together. Default 100.
        answers_per_second: u32 = 100, with_answers_per_second;
        /// Requests and used tokens remembered to detect replays, some 100 bytes each. Default 65,536.
        remembered: usize = 65_536, with_remembered;
    }
}

settings! {
    /// The settings of a server.
    #[derive(Clone, Debug)]
    pub struct ServerConfig new(
        /// The number of the application's protocol, never sent; both ends must have the same.
        protocol_id: u64,
        /// Which clients it accepts.
        credentials: ServerCredentials,
    ) {
        /// The addresses at which clients reach it, to be compared with those in a token. If empty, nothing
        /// is compared.
        addresses: Vec<SocketAddr> = Vec::new(), with_addresses;
        /// How many clients it accepts, and how much memory and work they may cause.
        limits: ServerLimits = ServerLimits::default(), with_limits;
        /// The settings of its connections.
        connection: ConnectionConfig = ConnectionConfig::default(), with_connection;
    }
}
