//! The machines of haulier/1: a server that gives whoever asks a block, and a client who asks.
//!
//! Both have the configuration that everybody has who sets nothing. Their invariants are checked by the
//! soaks and not here, where every run is one of ten thousand.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier_proto::connection::{Block, Event};
use haulier_proto::credentials::{TokenClaims, TokenKey};
use haulier_proto::crypto::Secret;
use haulier_proto::server::{
    ConnectionId, ServerConfig, ServerCredentials, ServerEvent, ServerMachine,
};
use haulier_proto::{Instant, Machine};

use super::stage::{End, Place, ReceivingEnd, SendingEnd, Stage, addresses};
use super::{Kit, Moment, Outcome};
use haulier_sim::join::PROTOCOL_ID;
use haulier_sim::{Host, Rng};

/// How long a connection is quiet before its block is timed: what was measured in the visit is old then.
const QUIET: Duration = Duration::from_secs(2);

/// The time of day at the beginning, of which only the token knows anything.
const UNIX_TIME: u64 = 1_795_219_200;

type Credentialled = (ServerCredentials, Credentials);

/// A block over a connection that is there.
pub(super) fn warm(place: &Place<'_>, kit: &Kit, moments: Option<&mut Vec<Moment>>) -> Outcome {
    let mut stage = stage(place, by_secret(), &kit.visit);
    let visit = stage.run(None);
    if let Some(reason) = visit.hang {
        return Outcome { hang: Some(format!("in the visit before: {reason}")), ..visit };
    }
    stage.wait(QUIET);
    stage.restart(|server, now| server.send(now, &kit.timed));
    stage.run(moments)
}

/// A join with a secret that both know: the server has to be careful with an address until it answers.
pub(super) fn cold_ticket(
    place: &Place<'_>,
    kit: &Kit,
    moments: Option<&mut Vec<Moment>>,
) -> Outcome {
    stage(place, by_secret(), &kit.timed).run(moments)
}

/// A join with a token that says where the client is: the server may send at once.
pub(super) fn cold_token(
    place: &Place<'_>,
    kit: &Kit,
    moments: Option<&mut Vec<Moment>>,
) -> Outcome {
    stage(place, by_token(), &kit.timed).run(moments)
}

fn by_secret() -> Credentialled {
    let secret = Secret::from_bytes([7; 32]);
    let server = ServerCredentials { secret: Some(secret.clone()), ..ServerCredentials::default() };
    (server, Credentials::Secret { secret, identity: None })
}

fn by_token() -> Credentialled {
    let key = TokenKey { id: 1, key: Secret::from_bytes([8; 32]) };
    let claims = TokenClaims {
        expiry_unix: UNIX_TIME + 3600,
        client_address: Some(addresses().1),
        ..TokenClaims::default()
    };
    let token = key
        .issue(PROTOCOL_ID, &claims, Secret::from_bytes([9; 32]), [1; 24])
        .expect("claims that fit a token");
    let server = ServerCredentials { token_keys: vec![key], ..ServerCredentials::default() };
    (server, Credentials::Token(token))
}

fn stage<'a>(
    place: &Place<'a>,
    (server, client): Credentialled,
    block: &Block,
) -> Stage<'a, ServerEnd, ClientEnd> {
    let config = ServerConfig::new(PROTOCOL_ID, server);
    let server = ServerEnd {
        server: ServerMachine::new(Instant::ZERO, UNIX_TIME, config, bytes(place.seed, 11))
            .expect("a configuration that works"),
        block: Some(block.clone()),
        client: None,
        slices_sent: 0,
        failure: None,
    };
    let config = ClientConfig::new(addresses().0, PROTOCOL_ID, client);
    let client = ClientMachine::new(Instant::ZERO, config, bytes(place.seed, 12));
    let client = ClientEnd {
        client: client.expect("a configuration that makes a client"),
        blocks: 0,
        whole: Instant::ZERO,
        failure: None,
    };
    Stage::new(place, server, client)
}

fn bytes(seed: u64, purpose: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(&Rng::stream(seed, purpose).bytes(32));
    bytes
}

struct ServerEnd {
    server: ServerMachine,
    /// For who asks.
    block: Option<Block>,
    client: Option<ConnectionId>,
    /// Of a connection that is gone, as far as it got.
    slices_sent: u64,
    failure: Option<String>,
}

impl ServerEnd {
    fn send(&mut self, now: Instant, block: &Block) {
        let Some(connection) = self.client.and_then(|id| self.server.connection_mut(id)) else {
            return;
        };
        if let Err(error) = connection.send_block(now, block) {
            self.failure = Some(format!("the server took no block: {error}"));
        }
    }

    fn hear(&mut self, now: Instant) {
        while let Some((id, event)) = self.server.poll_event(now) {
            match event {
                ServerEvent::Connecting { .. } => {
                    self.client = Some(id);
                    if let Some(block) = self.block.take() {
                        self.send(now, &block);
                    }
                }
                ServerEvent::Connection(Event::Closed(reason)) => {
                    self.failure.get_or_insert_with(|| format!("the server: {reason}"));
                }
                _ => {}
            }
        }
        if let Some(connection) = self.client.and_then(|id| self.server.connection(id)) {
            self.slices_sent = connection.stats().slices_sent;
        }
    }
}

impl Host for ServerEnd {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        let _counted = self.server.handle_datagram(now, from, datagram);
        self.hear(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.server.handle_timeout(now);
        self.hear(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        self.server.poll_datagram(now, datagram).map(|to| to.remote)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.server.poll_timeout()
    }
}

impl End for ServerEnd {
    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}

impl SendingEnd for ServerEnd {
    fn slices_sent(&self) -> u64 {
        let connection = self.client.and_then(|id| self.server.connection(id));
        connection.map_or(self.slices_sent, |connection| connection.stats().slices_sent)
    }

    fn is_done(&self) -> bool {
        let connection = self.client.and_then(|id| self.server.connection(id));
        connection.is_some_and(haulier_proto::connection::Connection::all_acked)
    }
}

struct ClientEnd {
    client: ClientMachine,
    blocks: usize,
    whole: Instant,
    failure: Option<String>,
}

impl ClientEnd {
    fn hear(&mut self, now: Instant) {
        while let Some(event) = self.client.poll_event(now) {
            match event {
                Event::Block { .. } => {
                    self.blocks += 1;
                    self.whole = now;
                }
                Event::Closed(reason) => self.failure = Some(format!("the client: {reason}")),
                _ => {}
            }
        }
    }
}

impl Host for ClientEnd {
    fn handle_datagram(&mut self, now: Instant, _from: SocketAddr, datagram: &mut [u8]) {
        let _counted = self.client.handle_datagram(now, self.client.server(), datagram);
        self.hear(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.client.handle_timeout(now);
        self.hear(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        self.client.poll_datagram(now, datagram).map(|to| to.remote)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.client.poll_timeout()
    }
}

impl End for ClientEnd {
    fn failure(&self) -> Option<String> {
        self.failure.clone()
    }
}

impl ReceivingEnd for ClientEnd {
    fn blocks(&self) -> (usize, Instant) {
        (self.blocks, self.whole)
    }
}
