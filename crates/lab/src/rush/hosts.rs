//! The two ends of haulier/1: a server that gives a block to each client, and a client that leaves with it.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier_proto::connection::{Block, CloseCode, ConnectionConfig, Event};
use haulier_proto::credentials::{ConnectToken, Secret, TokenClaims, TokenKey, TokenServers};
use haulier_proto::server::{
    ConnectionId, ServerConfig, ServerCredentials, ServerEvent, ServerMachine,
};
use haulier_proto::{Batch, Ecn, FourTuple, Instant, Machine};
use haulier_sim::Host;
use haulier_sim::hosts::{PROTOCOL_ID, UNIX_TIME, secret};

use super::Sender;

/// The first byte of a request (STANDARD-1, 3.1), of which a client sends several before it has heard
/// anything.
const REQUEST: u8 = 0x04;

/// From when a server's program could know of a client until it has given it a block: a hand-over to its
/// thread and one back, beside the other joins of a crowd. The first datagrams have gone by then, without
/// slices. Measured over real sockets.
const PROGRAM_TAKES: Duration = Duration::from_millis(1);

/// Gives its block to every client.
pub(super) struct Server {
    machine: ServerMachine,
    block: Block,
    heard: HashMap<SocketAddr, Instant>,
    /// The clients that are connecting, and when the program gives each its block.
    connecting: VecDeque<(Instant, ConnectionId)>,
}

impl Server {
    pub(super) fn new(block: Block, at: SocketAddr, seed: [u8; 32]) -> Self {
        let credentials =
            ServerCredentials::default().with_secret(secret()).with_token_key(token_key());
        let connection = connection(block.data().len() as u64);
        let config = ServerConfig::new(PROTOCOL_ID, credentials)
            .with_addresses(vec![at])
            .with_connection(connection);
        let machine = ServerMachine::new(Instant::ZERO, UNIX_TIME, config, seed)
            .expect("a configuration that works");
        Self { machine, block, heard: HashMap::new(), connecting: VecDeque::new() }
    }

    /// When it first heard of this client anything but requests: the first feedback.
    pub(super) fn heard(&self, client: SocketAddr) -> Option<Instant> {
        self.heard.get(&client).copied()
    }

    fn turn(&mut self, now: Instant) {
        while let Some((id, event)) = self.machine.poll_event(now) {
            if let ServerEvent::Connecting { .. } = event {
                self.connecting.push_back((now + PROGRAM_TAKES, id));
            }
        }
        while let Some(&(at, id)) = self.connecting.front()
            && at <= now
        {
            self.connecting.pop_front();
            if let Some(connection) = self.machine.connection_mut(id) {
                // Refused if it has ended meanwhile.
                let _refused = connection.send_block(now, &self.block);
            }
        }
    }
}

impl Machine for Server {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        self.handle_marked_datagram(now, path, Ecn::NotEct, datagram);
    }

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        if datagram.first() != Some(&REQUEST) {
            self.heard.entry(path.remote).or_insert(now);
        }
        let _counted = self.machine.handle_marked_datagram(now, path, ecn, datagram);
        self.turn(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine.handle_timeout(now);
        self.turn(now);
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        self.machine.poll_transmit(now, batch);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.connecting.front().map(|&(at, _)| at);
        due.into_iter().chain(self.machine.poll_timeout()).min()
    }
}

impl Host for Server {}

/// A client that leaves when it has its block. What is over takes no memory: a crowd has thousands.
pub(crate) struct Client {
    /// When it had its block.
    pub(crate) done_at: Option<Instant>,
    /// Why its connection ended before that, if it did.
    pub(crate) why: Option<String>,
    begins: Instant,
    /// What it begins with, until then.
    start: Option<Box<(ClientConfig, [u8; 32])>>,
    machine: Option<Box<ClientMachine>>,
}

impl Client {
    pub(super) fn new(
        sender: Sender,
        (at, server): (SocketAddr, SocketAddr),
        bytes: u64,
        begins: Instant,
        seed: [u8; 32],
    ) -> Self {
        let credentials = match sender {
            Sender::Token => Credentials::Token(token(at)),
            _ => Credentials::Secret { secret: secret(), identity: None },
        };
        let config =
            ClientConfig::new(server, PROTOCOL_ID, credentials).with_connection(connection(bytes));
        Self::with_config(config, begins, seed)
    }

    /// One that joins with this configuration.
    pub(crate) fn with_config(config: ClientConfig, begins: Instant, seed: [u8; 32]) -> Self {
        let start = Some(Box::new((config, seed)));
        Self { done_at: None, why: None, begins, start, machine: None }
    }

    /// Whether it has its block, or will not get it.
    pub(crate) const fn is_over(&self) -> bool {
        self.done_at.is_some() || self.why.is_some()
    }

    fn turn(&mut self, now: Instant) {
        let Some(machine) = &mut self.machine else { return };
        while let Some(event) = machine.poll_event(now) {
            match event {
                Event::Block { .. } => {
                    self.done_at = Some(now);
                    machine.close(now, CloseCode::DONE, "");
                }
                Event::Closed(reason) if self.done_at.is_none() => {
                    self.why = Some(reason.to_string());
                }
                _ => {}
            }
        }
        if machine.is_closed() && machine.poll_timeout().is_none() {
            self.machine = None;
        }
    }
}

impl Machine for Client {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        self.handle_marked_datagram(now, path, Ecn::NotEct, datagram);
    }

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        if let Some(machine) = &mut self.machine {
            let _counted = machine.handle_marked_datagram(now, path, ecn, datagram);
            self.turn(now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if now >= self.begins
            && let Some(start) = self.start.take()
        {
            let (config, seed) = *start;
            let machine = ClientMachine::new(now, config, seed).expect("a configuration");
            self.machine = Some(Box::new(machine));
        }
        if let Some(machine) = &mut self.machine {
            machine.handle_timeout(now);
            self.turn(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        self.machine.iter_mut().for_each(|machine| machine.poll_transmit(now, batch));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let begins = self.start.as_ref().map(|_| self.begins);
        begins.or_else(|| self.machine.as_ref()?.poll_timeout())
    }
}

impl Host for Client {}

/// What drivers configure on a system that does not split datagrams: larger ones are looked for.
const MAX_DATAGRAM_BYTES: u16 = 1472;

fn connection(bytes: u64) -> ConnectionConfig {
    ConnectionConfig::default()
        .with_max_block_bytes(bytes)
        .with_max_datagram_bytes(MAX_DATAGRAM_BYTES)
}

fn token_key() -> TokenKey {
    TokenKey { id: 1, key: Secret::from_bytes([8; 32]) }
}

/// A token of its own for a client at this address, for a server anywhere.
fn token(client: SocketAddr) -> ConnectToken {
    let claims = TokenClaims::new(UNIX_TIME, UNIX_TIME + 3600, TokenServers::Every)
        .with_client_address(Some(client));
    let mut nonce = [1; 24];
    nonce[..2].copy_from_slice(&client.port().to_le_bytes());
    token_key()
        .issue(PROTOCOL_ID, &claims, Secret::from_bytes([9; 32]), nonce)
        .expect("claims that fit a token")
}
