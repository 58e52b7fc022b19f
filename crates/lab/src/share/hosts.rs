//! The two ends of a haulier flow: a server that never runs out of blocks, a client that counts them.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
use haulier_proto::connection::{Block, ConnectionConfig, Event};
use haulier_proto::server::{
    ConnectionId, ServerConfig, ServerCredentials, ServerEvent, ServerMachine,
};
use haulier_proto::time::earliest;
use haulier_proto::{Instant, Machine};

use super::{GameStream, Throughput};
use haulier_sim::join::PROTOCOL_ID;
use haulier_sim::join::UNIX_TIME;
use haulier_sim::{Host, Rng};

/// Blocks that wait behind the one being sent, so that there is never a pause between two.
const WAITING: usize = 2;

/// A server for one client, with as many blocks as it takes, and a game if there is one.
///
/// Nothing is encrypted: the time is virtual, and a minute of 100 Mbit/s should not take one.
#[derive(Debug)]
pub struct Source {
    /// The server, to look at.
    pub server: ServerMachine,
    block: Option<Block>,
    client: Option<ConnectionId>,
    /// Blocks handed over and not yet sent.
    queued: usize,
    game: Option<GameStream>,
    next_packet: Option<Instant>,
    packets: Vec<Instant>,
}

impl Source {
    /// A server that sends blocks of so many bytes; none if that is 0.
    #[must_use]
    pub fn new(
        connection: ConnectionConfig,
        block_bytes: usize,
        game: Option<GameStream>,
        rng: &mut Rng,
    ) -> Self {
        let credentials = ServerCredentials { open: true, ..ServerCredentials::default() };
        let config = ServerConfig { connection, ..ServerConfig::new(PROTOCOL_ID, credentials) };
        Self {
            server: ServerMachine::new(Instant::ZERO, UNIX_TIME, config, seed(rng))
                .expect("a configuration that works"),
            block: (block_bytes > 0).then(|| Block::new(1, rng.bytes(block_bytes))),
            client: None,
            queued: 0,
            game,
            next_packet: None,
            packets: Vec::new(),
        }
    }

    /// The game, if there is one.
    #[must_use]
    pub const fn game(&self) -> Option<&GameStream> {
        self.game.as_ref()
    }

    /// When each packet of the game was sent.
    #[must_use]
    pub fn game_packets(&self) -> &[Instant] {
        &self.packets
    }

    fn hear(&mut self, now: Instant) {
        while let Some((id, event)) = self.server.poll_event(now) {
            match event {
                ServerEvent::Connecting { .. } => self.client = Some(id),
                ServerEvent::Connection(Event::Connected) => {
                    self.next_packet = self.game.map(|_| Instant::ZERO);
                }
                ServerEvent::Connection(Event::BlockSent { .. }) => self.queued -= 1,
                ServerEvent::Connection(Event::Closed(_)) => {
                    (self.client, self.next_packet) = (None, None);
                }
                _ => {}
            }
        }
    }

    fn blocks_from(&self) -> Instant {
        self.game.map_or(Instant::ZERO, |game| game.blocks_from)
    }

    fn feed(&mut self, now: Instant) {
        let blocks_from = self.blocks_from();
        let Some(connection) = self.client.and_then(|id| self.server.connection_mut(id)) else {
            return;
        };
        if let Some(block) = self.block.as_ref().filter(|_| now >= blocks_from) {
            while self.queued <= WAITING && connection.send_block(now, block).is_ok() {
                self.queued += 1;
            }
        }
        if let Some(game) = &self.game
            && self.next_packet.is_some_and(|at| at <= now)
        {
            let mut packet = vec![0; game.bytes.max(8)];
            packet[..8].copy_from_slice(&now.as_nanos().to_le_bytes());
            // Counted as sent all the same: a player does not care why it did not come.
            let _full = connection.send_packet(packet);
            self.packets.push(now);
            self.next_packet = Some(now + game.interval);
        }
    }
}

impl Host for Source {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        let _counted = self.server.handle_datagram(now, from, datagram);
        self.hear(now);
        self.feed(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.server.handle_timeout(now);
        self.hear(now);
        self.feed(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        self.server.poll_datagram(now, datagram).map(|to| to.remote)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let wants_block = self.client.is_some() && self.block.is_some() && self.queued == 0;
        let feeds = wants_block.then(|| self.blocks_from());
        earliest(earliest(self.server.poll_timeout(), self.next_packet), feeds)
    }
}

/// A client that takes in blocks, and packets of a game.
#[derive(Debug)]
pub struct Sink {
    /// The client; `None` before it begins.
    pub client: Option<ClientMachine>,
    /// Bytes of blocks, by when they came. A block's first progress counts what came before it.
    pub throughput: Throughput,
    config: ClientConfig,
    starts: Instant,
    seed: [u8; 32],
    /// Bytes of the block in progress that are counted.
    counted: u64,
    packets: Vec<(Instant, Duration)>,
    is_over: bool,
}

impl Sink {
    /// A client that begins at `starts`.
    #[must_use]
    pub fn new(
        connection: ConnectionConfig,
        server: SocketAddr,
        starts: Instant,
        rng: &mut Rng,
    ) -> Self {
        let config = ClientConfig::new(server, PROTOCOL_ID, Credentials::Open);
        Self {
            client: None,
            throughput: Throughput::default(),
            config: ClientConfig { connection, ..config },
            starts,
            seed: seed(rng),
            counted: 0,
            packets: Vec::new(),
            is_over: false,
        }
    }

    /// Whether the connection was closed.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// When each of the game's packets that came was sent, and how long it took.
    #[must_use]
    pub fn game_packets(&self) -> &[(Instant, Duration)] {
        &self.packets
    }

    fn hear(&mut self, now: Instant) {
        let Some(client) = &mut self.client else { return };
        while let Some(event) = client.poll_event(now) {
            match event {
                Event::BlockProgress { received, .. } => {
                    self.throughput.add(now, received.saturating_sub(self.counted));
                    self.counted = self.counted.max(received);
                }
                Event::Block { data, .. } => {
                    self.throughput.add(now, (data.len() as u64).saturating_sub(self.counted));
                    self.counted = 0;
                }
                Event::Packet { data, .. } => {
                    let stamp = data.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                    let sent_at = Instant::from_nanos(stamp);
                    self.packets.push((sent_at, now.since(sent_at)));
                }
                Event::Closed(_) => self.is_over = true,
                _ => {}
            }
        }
    }
}

impl Host for Sink {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        if let Some(client) = &mut self.client
            && from == client.server()
        {
            let _counted = client.handle_datagram(now, client.server(), datagram);
        }
        self.hear(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.client.is_none() && now >= self.starts {
            let client = ClientMachine::new(now, self.config.clone(), self.seed);
            self.client = Some(client.expect("a configuration that makes a client"));
        }
        if let Some(client) = &mut self.client {
            client.handle_timeout(now);
        }
        self.hear(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        let client = self.client.as_mut()?;
        client.poll_datagram(now, datagram).map(|to| to.remote)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let Some(client) = &self.client else { return Some(self.starts) };
        client.poll_timeout()
    }
}

fn seed(rng: &mut Rng) -> [u8; 32] {
    let mut seed = [0; 32];
    seed.copy_from_slice(&rng.bytes(32));
    seed
}
