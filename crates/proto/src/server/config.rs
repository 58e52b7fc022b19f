//! The settings of a server: which clients it accepts, and how many.

use alloc::vec::Vec;
use core::net::SocketAddr;

use super::connection_id::MAX_CONNECTIONS;
use crate::connection::{Block, ConfigError, ConnectionConfig};
use crate::credentials::TokenKey;
use crate::crypto::{Identity, Secret};
use crate::fields::MAX_VARINT;
use crate::settings;

/// Which clients a server accepts. The default accepts none.
///
/// # Examples
/// ```
/// use haulier_proto::credentials::{Identity, Secret, TokenKey};
/// use haulier_proto::server::ServerCredentials;
///
/// // All of these would be 32 random bytes, from `haulier::random_secret`.
/// let random = |byte| Secret::from_bytes([byte; 32]);
/// let credentials = ServerCredentials::default()
///     .with_secret(random(1)) // friends, by a ticket
///     .with_token_key(TokenKey { id: 1, key: random(2) }) // players, by a matchmaker's tokens
///     .with_identity(Identity::new(random(3))); // the ticket names this server, and no other
/// assert_eq!(credentials.token_keys.len(), 1);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServerCredentials {
    /// Clients with this secret, from a ticket.
    pub secret: Option<Secret>,
    /// Clients with this secret too, from another ticket, which may give other rights:
    /// [`Connection::has_other_secret`](crate::connection::Connection::has_other_secret) says which it is.
    pub other_secret: Option<Secret>,
    /// Clients with a connect token sealed with one of these keys. Two are in use while a key is replaced.
    pub token_keys: Vec<TokenKey>,
    /// Proves this server to clients that require it.
    pub identity: Option<Identity>,
    /// All clients, without encryption: for a LAN and for tests. Default `false`.
    pub open: bool,
    /// Lets clients notice at once that this server was restarted: 32 bytes that it keeps, and that no other
    /// running server has. Two servers with the same secret could be used to end each other's connections.
    /// Without it, clients notice a restart by the idle timeout.
    pub reset_secret: Option<Secret>,
}

impl ServerCredentials {
    /// Accepts clients with this secret, from a ticket.
    #[must_use]
    pub fn with_secret(mut self, secret: Secret) -> Self {
        self.secret = Some(secret);
        self
    }

    /// Accepts clients with this secret too, from another ticket, and distinguishes them from the first's.
    #[must_use]
    pub fn with_other_secret(mut self, secret: Secret) -> Self {
        self.other_secret = Some(secret);
        self
    }

    /// Accepts clients with a connect token sealed with this key, besides those of other keys.
    #[must_use]
    pub fn with_token_key(mut self, key: TokenKey) -> Self {
        // A vector that grows leaves its old contents behind. Here each key is copied, its old place wiped.
        let mut keys = Vec::with_capacity(self.token_keys.len() + 1);
        keys.extend(self.token_keys.iter().cloned());
        keys.push(key);
        self.token_keys = keys;
        self
    }

    /// Whether the reset secret is also another credential, which others may have.
    pub(crate) fn shares_reset_secret(&self) -> bool {
        let tokens = self.token_keys.iter().map(|token_key| &token_key.key);
        let identity = self.identity.as_ref().map(Identity::private);
        let mut others = tokens.chain(&self.secret).chain(&self.other_secret).chain(identity);
        self.reset_secret.as_ref().is_some_and(|own| others.any(|other| other == own))
    }

    /// Proves this server to clients that require it.
    #[must_use]
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Lets clients notice at once that this server was restarted: with 32 bytes that it keeps, and that no
    /// other running server has. Two servers with one secret could be used to end each other's connections.
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
    ///
    /// # Examples
    /// ```
    /// use haulier_proto::server::ServerLimits;
    ///
    /// // A match of 64, with a queue in front of it, on a small host.
    /// let limits = ServerLimits::default()
    ///     .with_connections(64)
    ///     .with_line(1_000)
    ///     .with_memory_bytes(256 << 20);
    /// assert_eq!(limits.seats(), 64);
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ServerLimits {
        /// Connections, including handshakes in progress, without those that have ended. By default
        /// (`usize::MAX`) one for each 64 KiB of `memory_bytes` ([`seats`](Self::seats)): an idle connection
        /// takes some 5 KiB, one that is sent a block some 30 KiB.
        connections: usize = usize::MAX, with_connections;
        /// Clients that wait in line while there are as many connections as allowed, some 400 bytes each; of
        /// one prefix 1,024 at most. With 0 they are refused as `Full`. Default 16,384.
        line: usize = 16_384, with_line;
        /// Connections from one source prefix (an IPv4 address, an IPv6 /64). Default 256: a school behind
        /// one address.
        connections_per_prefix: usize = 256, with_connections_per_prefix;
        /// Handshakes in progress, and those that were refused and are not gone. At the limit the prefix with
        /// the most loses one to a prefix with fewer; among equals, the oldest one ends if it is a second
        /// old. If no handshake can be ended, requests are dropped without an answer, because clients repeat
        /// them. Default 12,288, some 9 KB each: a tenth of the default `memory_bytes`, and three quarters of
        /// the default seats.
        handshakes: usize = 12_288, with_handshakes;
        /// Handshakes in progress from one source prefix; further requests are dropped without an answer.
        /// Default 64: one address with the secret must not use up all handshakes.
        handshakes_per_prefix: usize = 64, with_handshakes_per_prefix;
        /// Handshakes in progress above which a request needs a cookie, which costs a round trip, unless it
        /// has a token, which takes one place at most. Default 1,024.
        handshakes_without_cookie: usize = 1_024, with_handshakes_without_cookie;
        /// Bytes that all clients together may make this server hold: blocks, packets and messages that are
        /// incomplete or not read. Above it, the connection that holds the most is closed with `resources`.
        /// Default 1 GiB.
        memory_bytes: usize = 1 << 30, with_memory_bytes;
        /// Refusals and resets per second, for all sources together. Default 100.
        answers_per_second: u32 = 100, with_answers_per_second;
        /// Tokens remembered until they expire, some 130 bytes each, and as many requests without a token,
        /// some 30 bytes each, so that none is accepted twice. When the tokens reach this number, others are
        /// refused as `Full`; when the requests reach it, others need a cookie for the rest of the run, which
        /// costs a round trip. Default 262,144.
        remembered: usize = 262_144, with_remembered;
    }
}

/// The part of `memory_bytes` for each connection: twice the memory of a connection that is sent a block,
/// with the system's part of it.
const SEAT_BYTES: usize = 64 << 10;

impl ServerLimits {
    /// The maximum number of connections at a time: `connections`, or if that is not set, one for each 64 KiB
    /// of `memory_bytes`. 16,384 by default.
    ///
    /// # Examples
    /// ```
    /// use haulier_proto::server::ServerLimits;
    ///
    /// let small = ServerLimits::default().with_memory_bytes(64 << 20);
    /// assert_eq!(small.seats(), 1024);
    /// assert_eq!(small.with_connections(100).seats(), 100);
    /// ```
    #[must_use]
    pub fn seats(&self) -> usize {
        let by_memory = self.memory_bytes / SEAT_BYTES;
        let seats = if self.connections == usize::MAX { by_memory } else { self.connections };
        seats.min(MAX_CONNECTIONS)
    }
}

/// Which tokens a server accepts, by the servers they name.
///
/// # Examples
/// ```
/// use haulier_proto::server::{ServerConfig, ServerCredentials, TokenAudience};
///
/// // Behind a load balancer whose address is in the tokens: the server does not know that one.
/// let config = ServerConfig::new(7, ServerCredentials::default())
///     .with_token_audience(TokenAudience::Any);
/// assert!(config.addresses.is_empty());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenAudience {
    /// Those that name one of its `addresses`, or are for every server.
    #[default]
    Own,
    /// All, whatever server they name. Each of several such servers with one key accepts a token once.
    Any,
}

/// How a server treats its uplink when no rate is configured for it.
///
/// # Examples
/// ```
/// use haulier_proto::server::{ServerConfig, ServerCredentials, UnknownUplink};
///
/// // A host of which nobody knows what its provider gives it.
/// let config = ServerConfig::new(7, ServerCredentials::default())
///     .with_unknown_uplink(UnknownUplink::FoundOut);
/// assert_eq!(config.max_uplink_bps, u64::MAX);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownUplink {
    /// It takes the uplink for unlimited: each connection finds out the rate of its own link.
    #[default]
    Unlimited,
    /// When 16 or more connections send blocks at a time, it finds out the rate that they have together, and
    /// they take turns as with a configured limit.
    FoundOut,
}

/// What a server does with tokens that were issued before it was started.
///
/// # Examples
/// ```
/// use haulier_proto::server::{EarlierTokens, ServerConfig, ServerCredentials};
///
/// // Started for a match whose players already have their tokens.
/// let config = ServerConfig::new(7, ServerCredentials::default())
///     .with_earlier_tokens(EarlierTokens::Accepted);
/// assert_eq!(config.earlier_tokens, EarlierTokens::Accepted);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EarlierTokens {
    /// It refuses them, because an earlier run may have accepted them, and the client asks for another.
    #[default]
    Refused,
    /// It accepts them: for a server that is started for clients that have their tokens. After a restart each
    /// token may be used once more, until it expires.
    Accepted,
}

settings! {
    /// The settings of a server.
    ///
    /// # Examples
    /// ```
    /// use haulier_proto::connection::ConnectionConfig;
    /// use haulier_proto::server::{ServerConfig, ServerCredentials};
    ///
    /// let credentials = ServerCredentials::default().with_open_access(); // for a LAN
    /// let config = ServerConfig::new(7, credentials)
    ///     .with_max_uplink_bps(900_000_000) // nine tenths of what the host has
    ///     .with_connection(ConnectionConfig::default().with_max_block_bytes(0)); // clients send no blocks
    /// assert_eq!(config.protocol_id, 7);
    /// ```
    #[derive(Clone, Debug)]
    pub struct ServerConfig new(
        /// The number of the application's protocol, never sent; both ends must have the same.
        protocol_id: u64,
        /// Which clients it accepts.
        credentials: ServerCredentials,
    ) {
        /// The addresses at which clients reach it, to be compared with those in a token: all of them, those
        /// in front of a router too. One with an unspecified IP, as `0.0.0.0:4016`, stands for every address
        /// of this host that a request was sent to. A server with token keys needs at least one.
        addresses: Vec<SocketAddr> = Vec::new(), with_addresses;
        /// Which tokens it accepts, by the servers they name. Default those that name this server.
        token_audience: TokenAudience = TokenAudience::default(), with_token_audience;
        /// Whether it accepts tokens that were issued before it was started. Default no.
        earlier_tokens: EarlierTokens = EarlierTokens::default(), with_earlier_tokens;
        /// How many clients it accepts, and how much memory and work they may cause.
        limits: ServerLimits = ServerLimits::default(), with_limits;
        /// Bits per second that it sends in all, UDP and IPv4 headers included, at least 100,000: the rate
        /// of its own uplink. Blocks, and messages that share the rate with them, wait for this budget, and
        /// clients take turns; a game's packets and all else go at once, and are counted. Default no limit.
        max_uplink_bps: u64 = u64::MAX, with_max_uplink_bps;
        /// How it treats its uplink without such a limit. Default `Unlimited`.
        unknown_uplink: UnknownUplink = UnknownUplink::default(), with_unknown_uplink;
        /// A block that each client is sent as soon as its request is accepted, in the same flight as the
        /// answer: the world that players join. No thread of the program has to handle the client before, so
        /// a program that refuses a client later has already sent it the beginning of the block. A client
        /// that accepts no blocks of this size is closed as `NOT_ACCEPTED`. Default none.
        first_block: Option<Block> = None, with_first_block;
        /// The settings of its connections.
        connection: ConnectionConfig = ConnectionConfig::default(), with_connection;
    }
}

/// The lowest limit of a server's uplink, in bit/s: below it a single client's handshake takes a second.
const LOWEST_MAX_UPLINK_BPS: u64 = 100_000;

impl ServerConfig {
    /// The first setting that cannot work.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.connection.check()?;
        if self.limits.remembered == 0 {
            return Err(ConfigError::NothingRemembered);
        }
        if self.max_uplink_bps < LOWEST_MAX_UPLINK_BPS {
            return Err(ConfigError::MaxUplinkTooLow);
        }
        if self.first_block.as_ref().is_some_and(|block| block.tag() > MAX_VARINT) {
            return Err(ConfigError::FirstBlockTag);
        }
        let compares = self.token_audience == TokenAudience::Own;
        if compares && !self.credentials.token_keys.is_empty() && self.addresses.is_empty() {
            return Err(ConfigError::NoServerAddress);
        }
        Ok(())
    }
}
