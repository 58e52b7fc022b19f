//! Whom a server lets in, and how many.

use alloc::vec::Vec;
use core::net::SocketAddr;

use crate::connection::ConnectionConfig;
use crate::credentials::TokenKey;
use crate::crypto::{Identity, Secret};

/// Whom a server lets in.
#[derive(Clone, Debug, Default)]
pub struct ServerCredentials {
    /// Who has this secret (a ticket).
    pub secret: Option<Secret>,
    /// Who has a connect token sealed with one of these. Two live at once while keys are changed.
    pub token_keys: Vec<TokenKey>,
    /// What this server proves itself with, to clients that insist.
    pub identity: Option<Identity>,
    /// Everybody, without encryption: for a LAN and for tests. Off unless asked for.
    pub open: bool,
}

/// How many, and how much. Each limit bounds memory or work that strangers could ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections, those in their handshake included. Default 1024.
    pub connections: usize,
    /// Of these, from one source prefix (an IPv4 address, an IPv6 /64). Default 256: a school behind one
    /// address.
    pub connections_per_prefix: usize,
    /// Handshakes in progress. At the limit the prefix with the most gives one up for one with fewer; of
    /// equals, one that is a second old. If there is none, requests are passed over without a word, for
    /// their clients ask again. Default 256.
    pub handshakes: usize,
    /// Of these, from one source prefix; more are passed over the same way. Default 64: who has a key must
    /// not take all places from one address.
    pub handshakes_per_prefix: usize,
    /// Handshakes in progress above which a request must bring a cookie, at the price of a round trip.
    /// Default 64.
    pub handshakes_without_cookie: usize,
    /// Bytes that clients may make this server hold, all together: blocks, packets and messages that are half
    /// here, or whole and not read. Above it the connection that holds the most is closed with `resources`.
    /// Default 1 GiB.
    pub memory_bytes: usize,
    /// Refusals and resets a second, for all sources together. Default 100.
    pub answers_per_second: u32,
    /// Requests and used tokens remembered against replay, some 100 bytes each. Default 65,536.
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

/// How a server behaves.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The number of the application's protocol, never sent; both ends must have the same.
    pub protocol_id: u64,
    /// Whom it lets in.
    pub credentials: ServerCredentials,
    /// Where clients reach it, to compare with the list in a token; empty compares nothing.
    pub addresses: Vec<SocketAddr>,
    /// How many, and how much.
    pub limits: ServerLimits,
    /// Every connection; each can be changed later.
    pub connection: ConnectionConfig,
}

impl ServerConfig {
    /// With these credentials and the rest as it usually is.
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
