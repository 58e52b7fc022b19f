//! The ends of a join: the hosts of [`join`](haulier_sim::join), and a second block on the same connection.

use std::net::SocketAddr;

use haulier_proto::Instant;
use haulier_proto::client::{ClientConfig, Credentials};
use haulier_proto::connection::{Block, ConnectionConfig, Event};
use haulier_proto::crypto::Secret;
use haulier_proto::server::{ServerConfig, ServerCredentials};

use super::{BLOCK_BYTES, Party};
use haulier_sim::join::{Answer, ClientHost, PROTOCOL_ID, ServerHost};
use haulier_sim::{Host, Rng};

fn secret() -> Secret {
    Secret::from_bytes([7; 32])
}

/// A server that sends a block to who asks, and another one when it is told to.
pub(super) struct HaulierServer {
    host: ServerHost,
    block: Block,
}

impl HaulierServer {
    pub(super) fn new(connection: ConnectionConfig, seed: u64) -> Self {
        let credentials =
            ServerCredentials { secret: Some(secret()), ..ServerCredentials::default() };
        let config = ServerConfig { connection, ..ServerConfig::new(PROTOCOL_ID, credentials) };
        let block = Block::new(1, Rng::stream(seed, 92).bytes(BLOCK_BYTES));
        Self { host: ServerHost::new(config, Answer::Block(block.clone()), seed), block }
    }
}

impl Host for HaulierServer {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        self.host.handle_datagram(now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        self.host.poll_transmit(now, datagram)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.host.poll_timeout()
    }

    fn check_invariants(&self) {
        self.host.check_invariants();
    }
}

impl Party for HaulierServer {
    fn send_block(&mut self, now: Instant) {
        let server = &mut self.host.server;
        let id = server.connections().next();
        if let Some(connection) = id.and_then(|id| server.connection_mut(id)) {
            connection.send_block(now, &self.block).expect("room for one block");
        }
    }
}

/// A client that stays.
pub(super) struct HaulierClient {
    host: ClientHost,
    /// Events looked at, and blocks among them.
    seen: usize,
    blocks: usize,
}

impl HaulierClient {
    pub(super) fn new(connection: ConnectionConfig, server: SocketAddr, seed: u64) -> Self {
        let credentials = Credentials::Secret { secret: secret(), identity: None };
        let config = ClientConfig::new(server, PROTOCOL_ID, credentials);
        let mut host = ClientHost::new(ClientConfig { connection, ..config }, Instant::ZERO, seed);
        host.leaves_after_blocks = None;
        Self { host, seen: 0, blocks: 0 }
    }

    fn count(&mut self) {
        let news = &self.host.events[self.seen..];
        self.blocks +=
            news.iter().filter(|(_, event)| matches!(event, Event::Block { .. })).count();
        self.seen = self.host.events.len();
    }
}

impl Host for HaulierClient {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        self.host.handle_datagram(now, from, datagram);
        self.count();
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.host.handle_timeout(now);
        self.count();
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        self.host.poll_transmit(now, datagram)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.host.poll_timeout()
    }

    fn check_invariants(&self) {
        self.host.check_invariants();
    }
}

impl Party for HaulierClient {
    fn blocks(&self) -> usize {
        self.blocks
    }
}
