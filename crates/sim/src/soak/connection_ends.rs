//! The two ends of a soaked connection: programs that know what must come, and say so when it does not.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::client::{ClientConfig, ClientMachine};
use haulier_proto::connection::{Block, CloseCode, CloseReason, Connection, Event};
use haulier_proto::server::{ConnectionId, ServerConfig, ServerEvent, ServerMachine};
use haulier_proto::time::earliest;
use haulier_proto::{Instant, Machine};

use crate::join::AmplificationMeter;
use crate::{Host, Rng};

/// A packet goes out this often, as in a game.
const FRAME: Duration = Duration::from_millis(50);

/// What an end has done, over all its sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) blocks: u64,
    pub(super) packets: u64,
    pub(super) sessions_ended: u64,
    slices: u64,
    messages: u64,
}

impl Tally {
    /// Packets do not count: they are no progress. Neither do sessions, or one that always fails would be.
    pub(super) const fn progress(&self) -> u64 {
        self.blocks + self.messages + self.slices
    }
}

/// What crosses in one direction of a session.
#[derive(Clone, Debug)]
struct Plan {
    key: u64,
    blocks: Vec<usize>,
    messages: u32,
}

impl Plan {
    fn draw(seed: u64, client: u32, session: u32, direction: u64) -> Self {
        let purpose = u64::from(client) << 40 | u64::from(session) << 8 | direction;
        let mut rng = Rng::stream(seed ^ 0x5eed, purpose);
        let blocks = (0..rng.below(4)).map(|_| match rng.below(6) {
            0 => 0,
            1 => rng.between(100_000, 300_000) as usize,
            _ => rng.between(1, 20_000) as usize,
        });
        let blocks = blocks.collect();
        let messages = *rng.pick(&[0, 5, 50, 600]);
        Self { key: rng.next_u64(), blocks, messages }
    }

    fn bytes(&self, kind: u64, index: u32, length: usize) -> Vec<u8> {
        Rng::stream(self.key, kind << 32 | u64::from(index)).bytes(length)
    }

    fn block(&self, index: usize) -> Option<Vec<u8>> {
        Some(self.bytes(1, index as u32, *self.blocks.get(index)?))
    }

    fn message(&self, index: u32) -> Vec<u8> {
        let length = Rng::stream(self.key, 7 << 32 | u64::from(index)).below(300) as usize;
        self.bytes(2, index, length)
    }

    fn packet(&self, index: u32) -> Vec<u8> {
        let length = Rng::stream(self.key, 8 << 32 | u64::from(index)).below(2_500) as usize;
        [&index.to_le_bytes()[..], &self.bytes(3, index, length)].concat()
    }
}

/// One end of a session.
#[derive(Debug)]
struct Session {
    out: Plan,
    back: Plan,
    blocks_sent: usize,
    messages_sent: u32,
    packets_sent: u32,
    next_packet: Instant,
    blocks: usize,
    messages: u32,
    packets: BTreeSet<u32>,
}

impl Session {
    fn new(seed: u64, client: u32, session: u32, is_client: bool, now: Instant) -> Self {
        let plan = |direction| Plan::draw(seed, client, session, direction);
        let (out, back) = if is_client { (plan(0), plan(1)) } else { (plan(1), plan(0)) };
        Self {
            out,
            back,
            blocks_sent: 0,
            messages_sent: 0,
            packets_sent: 0,
            next_packet: now,
            blocks: 0,
            messages: 0,
            packets: BTreeSet::new(),
        }
    }

    /// Gives the connection what it takes.
    fn pump(&mut self, now: Instant, connection: &mut Connection) {
        while let Some(bytes) = self.out.block(self.blocks_sent)
            && connection.send_block(now, &Block::new(self.blocks_sent as u64, bytes)).is_ok()
        {
            self.blocks_sent += 1;
        }
        while self.messages_sent < self.out.messages
            && connection.send_message(self.out.message(self.messages_sent)).is_ok()
        {
            self.messages_sent += 1;
        }
        if self.next_packet <= now {
            self.next_packet = now + FRAME;
            if connection.send_packet(self.out.packet(self.packets_sent)).is_ok() {
                self.packets_sent += 1;
            }
        }
    }

    fn hear(&mut self, event: &Event, tally: &mut Tally) -> Result<(), String> {
        match event {
            Event::Block { tag, data } => {
                let expected = self.back.block(self.blocks);
                if *tag != self.blocks as u64 || expected.as_deref() != Some(&data[..]) {
                    return Err(format!("block {tag} of {} bytes for {}", data.len(), self.blocks));
                }
                self.blocks += 1;
                tally.blocks += 1;
            }
            Event::Message(data) => {
                if self.messages >= self.back.messages
                    || self.back.message(self.messages) != data[..]
                {
                    return Err(format!("message {} is another one", self.messages));
                }
                self.messages += 1;
                tally.messages += 1;
            }
            Event::Packet { data, .. } => {
                let index = data.first_chunk().map(|index| u32::from_le_bytes(*index));
                let index = index.filter(|&index| self.back.packet(index) == data[..]);
                let index = index.ok_or("a packet that was never sent")?;
                if !self.packets.insert(index) {
                    return Err(format!("packet {index} twice"));
                }
                tally.packets += 1;
            }
            Event::BlockProgress { .. } => tally.slices += 1,
            _ => {}
        }
        Ok(())
    }

    fn has_all(&self) -> bool {
        self.blocks == self.back.blocks.len() && self.messages == self.back.messages
    }

    fn has_sent_all(&self, connection: &Connection) -> bool {
        self.blocks_sent == self.out.blocks.len()
            && self.messages_sent == self.out.messages
            && connection.all_acked()
    }
}

/// A client, session after session until one is finished.
#[derive(Debug)]
pub(super) struct ClientEnd {
    config: ClientConfig,
    seed: u64,
    number: u32,
    client: Option<ClientMachine>,
    session: Session,
    sessions: u32,
    begins: Instant,
    is_done: bool,
    tally: Tally,
    wrong: Option<String>,
    ended: Vec<CloseReason>,
}

impl ClientEnd {
    pub(super) fn new(config: ClientConfig, seed: u64, number: u32) -> Self {
        Self {
            config,
            seed,
            number,
            client: None,
            session: Session::new(seed, number, 0, true, Instant::ZERO),
            sessions: 0,
            begins: Instant::ZERO,
            is_done: false,
            tally: Tally::default(),
            wrong: None,
            ended: Vec::new(),
        }
    }

    fn begin(&mut self, now: Instant) {
        self.sessions += 1;
        self.session = Session::new(self.seed, self.number, self.sessions, true, now);
        self.config.request = [self.number.to_le_bytes(), self.sessions.to_le_bytes()].concat();
        let stream = 1_000_000 + u64::from(self.number) * 10_000 + u64::from(self.sessions);
        let mut seed = [0; 32];
        seed.copy_from_slice(&Rng::stream(self.seed, stream).bytes(32));
        let client = ClientMachine::new(now, self.config.clone(), seed);
        self.client = Some(client.expect("a configuration that works"));
    }

    fn turn(&mut self, now: Instant) {
        if self.client.is_none() && !self.is_done && self.begins <= now {
            self.begin(now);
        }
        let Some(client) = &mut self.client else { return };
        while let Some(event) = client.poll_event(now) {
            if let Err(what) = self.session.hear(&event, &mut self.tally) {
                self.wrong = Some(format!("client {}: {what}", self.number));
            }
            if let Event::Closed(reason) = event {
                // The next attempt a moment later, as a program would.
                self.begins = now + Duration::from_millis(500);
                self.tally.sessions_ended += u64::from(!self.is_done);
                self.ended.push(reason);
            }
        }
        if let Some(connection) = client.connection_mut()
            && connection.state().is_open()
        {
            self.session.pump(now, connection);
            if self.session.has_all() && self.session.has_sent_all(connection) {
                connection.close(now, CloseCode::DONE, "");
                self.is_done = true;
            }
        }
        if client.is_closed() && client.poll_timeout().is_none() {
            self.client = None;
        }
    }
}

/// The server of all of them.
#[derive(Debug)]
pub(super) struct ServerEnd {
    server: ServerMachine,
    seed: u64,
    sessions: BTreeMap<ConnectionId, Session>,
    meter: AmplificationMeter,
    tally: Tally,
    wrong: Option<String>,
    next_packet: Option<Instant>,
}

impl ServerEnd {
    pub(super) fn new(config: ServerConfig, seed: u64, life: u64) -> Self {
        Self::starting_at(Instant::ZERO, config, seed, life)
    }

    fn starting_at(now: Instant, config: ServerConfig, seed: u64, life: u64) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(&Rng::stream(seed, 2_000_000 + life).bytes(32));
        Self {
            server: ServerMachine::new(now, 1_795_219_200, config, bytes)
                .expect("a configuration that works"),
            seed,
            sessions: BTreeMap::new(),
            meter: AmplificationMeter::default(),
            tally: Tally::default(),
            wrong: None,
            next_packet: None,
        }
    }

    fn turn(&mut self, now: Instant) {
        while let Some((id, event)) = self.server.poll_event(now) {
            match event {
                ServerEvent::Connecting { request, .. } => {
                    let number = |at: usize| {
                        let bytes = request.get(at..at + 4).and_then(|b| b.try_into().ok());
                        u32::from_le_bytes(bytes.unwrap_or_default())
                    };
                    let session = Session::new(self.seed, number(0), number(4), false, now);
                    self.sessions.insert(id, session);
                }
                ServerEvent::Connection(event) => self.hear(id, &event),
                _ => {}
            }
        }
        self.next_packet = None;
        for (&id, session) in &mut self.sessions {
            // Looking at it wakes it, so only those that have something to say.
            let Some(connection) = self.server.connection(id) else { continue };
            let has_more = session.blocks_sent < session.out.blocks.len()
                || session.messages_sent < session.out.messages
                || session.next_packet <= now;
            if has_more
                && connection.state().is_open()
                && let Some(connection) = self.server.connection_mut(id)
            {
                session.pump(now, connection);
            }
            self.next_packet = earliest(self.next_packet, Some(session.next_packet));
        }
    }

    fn hear(&mut self, id: ConnectionId, event: &Event) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if let Err(what) = session.hear(event, &mut self.tally) {
            self.wrong = Some(format!("server: {what}"));
        }
        if let Event::Closed(reason) = event {
            let is_done =
                matches!(reason, CloseReason::There { code, .. } if *code == CloseCode::DONE);
            // Its client was told that everything it sent is here.
            if is_done && !session.has_all() {
                self.wrong = Some(format!(
                    "server: acked and not delivered: {} of {} blocks, {} of {} messages",
                    session.blocks,
                    session.back.blocks.len(),
                    session.messages,
                    session.back.messages
                ));
            }
            self.sessions.remove(&id);
        }
    }
}

/// Either.
#[derive(Debug)]
pub(super) enum SoakHost {
    Server(Box<ServerEnd>),
    Client(Box<ClientEnd>),
}

impl SoakHost {
    pub(super) fn restart_server(
        &mut self,
        now: Instant,
        config: ServerConfig,
        seed: u64,
        life: u64,
    ) {
        if let Self::Server(server) = self {
            let tally = server.tally;
            **server = ServerEnd::starting_at(now, config, seed, life);
            server.tally = tally;
        }
    }

    pub(super) fn crash_client(&mut self, now: Instant) {
        if let Self::Client(client) = self
            && !client.is_done
        {
            client.client = None;
            client.begins = now + Duration::from_millis(100);
            client.tally.sessions_ended += 1;
        }
    }

    pub(super) fn wrong(&self) -> Option<&String> {
        match self {
            Self::Server(server) => server.wrong.as_ref(),
            Self::Client(client) => client.wrong.as_ref(),
        }
    }

    pub(super) fn tally(&self) -> Tally {
        match self {
            Self::Server(server) => server.tally,
            Self::Client(client) => client.tally,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        match self {
            Self::Server(_) => true,
            Self::Client(client) => client.is_done && client.client.is_none(),
        }
    }

    pub(super) fn connections(&self) -> usize {
        match self {
            Self::Server(server) => server.server.stats().connections,
            Self::Client(_) => 0,
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::Server(server) => format!("server {:?}", server.server.stats()),
            Self::Client(client) => {
                let session = &client.session;
                let connection = client.client.as_ref().and_then(ClientMachine::connection);
                format!(
                    "client {} in session {}: {} of {} blocks, {} of {} messages, state {:?}, ended {:?}",
                    client.number,
                    client.sessions,
                    session.blocks,
                    session.back.blocks.len(),
                    session.messages,
                    session.back.messages,
                    connection.map(Connection::state),
                    client.ended,
                )
            }
        }
    }
}

impl Host for SoakHost {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        match self {
            Self::Server(end) => {
                let head = datagram[..datagram.len().min(32)].to_vec();
                let taken = end.server.handle_datagram(now, from, datagram).is_ok();
                end.meter.on_received(from, &head, datagram.len(), taken);
                end.turn(now);
            }
            Self::Client(end) => {
                if let Some(client) = &mut end.client
                    && from == client.server()
                {
                    let _counted = client.handle_datagram(now, client.server(), datagram);
                }
                end.turn(now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Server(end) => {
                end.server.handle_timeout(now);
                end.turn(now);
            }
            Self::Client(end) => {
                if let Some(client) = &mut end.client {
                    client.handle_timeout(now);
                }
                end.turn(now);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        match self {
            Self::Server(end) => {
                let to = end.server.poll_datagram(now, datagram)?.remote;
                end.meter.on_sent(to, datagram.len());
                Some(to)
            }
            Self::Client(end) => {
                let client = end.client.as_mut()?;
                client.poll_datagram(now, datagram).map(|to| to.remote)
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Server(end) => earliest(end.server.poll_timeout(), end.next_packet),
            Self::Client(end) => match &end.client {
                Some(client) => {
                    let is_open = client.connection().is_some_and(|c| c.state().is_open());
                    let frame = Some(end.session.next_packet).filter(|_| is_open);
                    // Closed and heard: one more turn lets it go.
                    let gone = client.is_closed().then_some(Instant::ZERO);
                    earliest(client.poll_timeout(), earliest(frame, gone))
                }
                None => Some(end.begins).filter(|_| !end.is_done),
            },
        }
    }

    fn check_invariants(&self) {
        match self {
            Self::Server(end) => {
                end.meter.check();
                end.server.check_invariants();
            }
            Self::Client(end) => end.client.iter().for_each(ClientMachine::check_invariants),
        }
    }
}
