//! The settings of a server: which clients it accepts, and how many.

use alloc::vec::Vec;
use core::net::SocketAddr;

use crate::connection::ConnectionConfig;
use crate::credentials::TokenKey;
use crate::crypto::{Identity, Secret};

/// Which clients a server accepts.
#[derive(Clone, Debug, Default)]
pub struct ServerCredentials {
    /// Clients with this secret, from a ticket.
    pub secret: Option<Secret>,
    /// Clients with a connect token sealed with one of these keys. Two are in use while a key is replaced.
    pub token_keys: Vec<TokenKey>,
    /// Proves this server to clients that require it.
    pub identity: Option<Identity>,
    /// All clients, without encryption: for a LAN and for tests. Default `false`.
    pub open: bool,
}

/// The limits of a server. Each one bounds memory or work that strangers could cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections, including handshakes in progress. Default 1024.
    pub connections: usize,
    /// Of these, from one source prefix (an IPv4 address, an IPv6 /64). Default 256: a school behind one
    /// address.
    pub connections_per_prefix: usize,
    /// Handshakes in progress. At the limit the prefix with the most loses one to a prefix with fewer; among
    /// equals, the oldest one ends if it is a second old. If there is none, requests are dropped without an
    /// answer, because clients repeat them. Default 256.
    pub handshakes: usize,
    /// Of these, from one source prefix; more are dropped the same way. Default 64: one address with the
    /// secret must not use up all handshakes.
    pub handshakes_per_prefix: usize,
    /// Handshakes in progress above which a request needs a cookie, which costs a round trip. Default 64.
    pub handshakes_without_cookie: usize,
    /// Bytes that all clients together may make this server hold: blocks, packets and messages that are
    /// incomplete or not read. Above it, the connection that holds the most is closed with `resources`.
    /// Default 1 GiB.
    pub memory_bytes: usize,
    /// Refusals and resets per second, for all sources together. Default 100.
    pub answers_per_second: u32,
    /// Requests and used tokens remembered to detect replays, some 100 bytes each. Default 65,536.
    pub remembered: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            connections_per_prefix: 256,
            handshakes: 256,
            handshakes_per_prefix: 64,
            handshakes_without_cookie: 64,
            memory_bytes: 1 << 30,
            answers_per_second: 100,
            remembered: 65_536,
        }
    }
}

/// The settings of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The number of the application's protocol, never sent; both ends must have the same.
    pub protocol_id: u64,
    /// Which clients it accepts.
    pub credentials: ServerCredentials,
    /// The addresses at which clients reach it, to be compared with those in a token. If empty, nothing is
    /// compared.
    pub addresses: Vec<SocketAddr>,
    /// How many clients it accepts, and how much memory and work they may cause.
    pub limits: ServerLimits,
    /// The settings of its connections.
    pub connection: ConnectionConfig,
}

impl ServerConfig {
    /// These credentials, and the defaults for everything else.
    #[must_use]
    pub fn new(protocol_id: u64, credentials: ServerCredentials) -> Self {
        Self {
            protocol_id,
            credentials,
            addresses: Vec::new(),
            limits: ServerLimits::default(),
            connection: ConnectionConfig::default(),
        }
    }
}
