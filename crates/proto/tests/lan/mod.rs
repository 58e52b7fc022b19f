//! A server and clients on one link: every datagram arrives at once, unless the test drops it.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "each test program uses its own part, and a panic is how it reports"
)]

use std::net::{Ipv4Addr, SocketAddr};

use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier_proto::connection::{Block, BlockHandle, CloseCode, Connection, Event, SendError};
use haulier_proto::credentials::Secret;
use haulier_proto::server::{
    ConnectionId, ServerConfig, ServerCredentials, ServerEvent, ServerMachine,
};
use haulier_proto::{AesSupport, Instant, Machine, Platform};

/// The protocol id of every test.
pub const PROTOCOL_ID: u64 = 77;

/// The Unix time of the server, 2026-11-21.
pub const UNIX_TIME: u64 = 1_795_219_200;

/// The secret that the server and all clients share.
pub fn secret() -> Secret {
    Secret::from_bytes([3; 32])
}

/// The server's address.
pub fn server_address() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(192, 0, 2, 1), 4000))
}

/// The address of client `n`.
pub fn address(n: usize) -> SocketAddr {
    let low = u32::try_from(n).unwrap();
    SocketAddr::from((Ipv4Addr::from_bits((10 << 24) + low / 1000), 5000 + (low % 1000) as u16))
}

/// A server configuration with [`secret`].
pub fn server_config() -> ServerConfig {
    let credentials = ServerCredentials::default().with_secret(secret());
    let mut config =
        ServerConfig::new(PROTOCOL_ID, credentials).with_addresses(vec![server_address()]);
    config.limits.connections = 20_000;
    config.limits.connections_per_prefix = 20_000;
    config
}

/// A client configuration with [`secret`].
pub fn client_config() -> ClientConfig {
    let credentials = Credentials::Secret { secret: secret(), identity: None };
    ClientConfig::new(server_address(), PROTOCOL_ID, credentials).with_copies(1)
}

/// The direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From this client to the server.
    Up(usize),
    /// From the server to this client.
    Down(usize),
}

/// A server and its clients, on one clock.
#[derive(Debug)]
pub struct Lan {
    pub now: Instant,
    pub server: ServerMachine,
    pub clients: Vec<ClientMachine>,
    /// The address of each client.
    pub addresses: Vec<SocketAddr>,
    pub server_events: Vec<(ConnectionId, ServerEvent)>,
    pub client_events: Vec<Vec<Event>>,
    client_aes: AesSupport,
}

impl Lan {
    /// A server without clients.
    pub fn new(config: ServerConfig) -> Self {
        Self::with_aes(config, AesSupport::Software, AesSupport::Software)
    }

    /// As [`new`](Self::new), on processors with or without AES.
    pub fn with_aes(config: ServerConfig, server: AesSupport, client_aes: AesSupport) -> Self {
        let platform = Platform::new([9; 32], server);
        Self {
            now: Instant::ZERO,
            server: ServerMachine::new(Instant::ZERO, UNIX_TIME, config, platform).unwrap(),
            clients: Vec::new(),
            addresses: Vec::new(),
            server_events: Vec::new(),
            client_events: Vec::new(),
            client_aes,
        }
    }

    /// Adds a client and returns its index.
    pub fn add(&mut self, config: ClientConfig) -> usize {
        let n = self.clients.len();
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&(n as u64).to_le_bytes());
        let platform = Platform::new(seed, self.client_aes);
        self.clients.push(ClientMachine::new(self.now, config, platform).unwrap());
        self.addresses.push(address(n));
        self.client_events.push(Vec::new());
        n
    }

    /// A server with one connected client.
    pub fn joined(server: ServerConfig, client: ClientConfig) -> Self {
        let mut lan = Self::new(server);
        lan.add(client);
        lan.settle();
        assert!(lan.clients[0].connection().is_some(), "no connection");
        lan
    }

    /// The connection of client `n`.
    pub fn client(&mut self, n: usize) -> Timed<'_> {
        let connection = self.clients[n].connection_mut().expect("a connection");
        Timed { now: self.now, connection }
    }

    /// The server's end of its first connection.
    pub fn peer(&mut self) -> Timed<'_> {
        let id = self.server.connections().next().expect("a connection");
        Timed { now: self.now, connection: self.server.connection_mut(id).unwrap() }
    }

    /// Exchanges datagrams until none are left at this instant.
    pub fn settle(&mut self) {
        self.settle_with(|_, _| true);
    }

    /// As [`settle`](Self::settle): `passes` is called with each datagram, may change it, and returns
    /// whether it arrives.
    pub fn settle_with(&mut self, mut passes: impl FnMut(Way, &mut Vec<u8>) -> bool) {
        let mut datagram = Vec::new();
        for _ in 0..100_000 {
            let mut is_quiet = true;
            self.poll_events();
            while let Some(to) = self.server.poll_datagram(self.now, &mut datagram) {
                is_quiet = false;
                let n = self.addresses.iter().position(|&address| address == to.remote);
                if let Some(n) = n
                    && passes(Way::Down(n), &mut datagram)
                {
                    let from = server_address();
                    let _refused = self.clients[n].handle_datagram(self.now, from, &mut datagram);
                }
                self.poll_events();
            }
            for n in 0..self.clients.len() {
                while self.clients[n].poll_datagram(self.now, &mut datagram).is_some() {
                    is_quiet = false;
                    if passes(Way::Up(n), &mut datagram) {
                        let from = self.addresses[n];
                        let _refused = self.server.handle_datagram(self.now, from, &mut datagram);
                    }
                    self.poll_events();
                }
            }
            self.server.check_invariants();
            if is_quiet {
                return;
            }
        }
        panic!("datagrams never end");
    }

    /// Advances the clock in steps of a millisecond, and settles after each.
    pub fn run(&mut self, millis: u64) {
        self.run_with(millis, |_, _| true);
    }

    /// As [`run`](Self::run), with `passes` as in [`settle_with`](Self::settle_with).
    pub fn run_with(&mut self, millis: u64, mut passes: impl FnMut(Way, &mut Vec<u8>) -> bool) {
        for _ in 0..millis {
            self.now = Instant::from_nanos(self.now.as_nanos() + 1_000_000);
            self.server.handle_timeout(self.now);
            for client in &mut self.clients {
                client.handle_timeout(self.now);
            }
            self.settle_with(&mut passes);
        }
    }

    fn poll_events(&mut self) {
        self.server_events.extend(std::iter::from_fn(|| self.server.poll_event(self.now)));
        for (client, events) in self.clients.iter_mut().zip(&mut self.client_events) {
            events.extend(std::iter::from_fn(|| client.poll_event(self.now)));
        }
    }
}

/// A connection, and the time of its link.
#[derive(Debug)]
pub struct Timed<'a> {
    now: Instant,
    connection: &'a mut Connection,
}

impl Timed<'_> {
    pub fn send_block(&mut self, block: &Block) -> Result<BlockHandle, SendError> {
        self.connection.send_block(self.now, block)
    }

    pub fn close(&mut self, code: CloseCode, reason: &str) {
        self.connection.close(self.now, code, reason);
    }

    pub fn poll_event(&mut self) -> Option<Event> {
        self.connection.poll_event(self.now)
    }
}

impl std::ops::Deref for Timed<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl std::ops::DerefMut for Timed<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        self.connection
    }
}
