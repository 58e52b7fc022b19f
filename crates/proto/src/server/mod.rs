//! The server's end: many clients on one socket, each a [`Connection`] of its own.
//!
//! A [`ServerMachine`] turns datagrams and their source addresses into events, and says which datagram goes
//! where. It looks at strangers in the order of cost (`admission.rs`, STANDARD-1 3.1), holds nothing for
//! them, and what one client does wrong ends that client's connection alone.
//!
//! # The run loop
//!
//! 1. Hand in what arrived, with its source: [`handle_datagram`](ServerMachine::handle_datagram).
//! 2. Act on passed deadlines: [`handle_timeout`](ServerMachine::handle_timeout).
//! 3. Hear what happened: [`poll_event`](ServerMachine::poll_event) until `None`. A new client's request
//!    comes first, as [`ServerEvent::Connecting`]: whoever answers it at once, with a block say, answers in
//!    the first round trip.
//! 4. Send everything there is: [`poll_transmit`](ServerMachine::poll_transmit) until a batch comes back
//!    that is not full, then sleep until [`poll_timeout`](ServerMachine::poll_timeout) or the next datagram.

mod admission;
mod config;
mod handshakes;
mod memory;
mod paths;
mod slots;
mod stats;

pub use config::{ServerConfig, ServerCredentials, ServerLimits};
pub use stats::ServerStats;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;
use slotmap::{DefaultKey, Key as _};

use crate::connection::{CloseCode, ConfigError, Connection, ConnectionConfig, Event};
use crate::credentials::TokenClaims;
use crate::crypto::{CookieKey, Entropy, Identity, RequestKeys, ResetKey, Suites};
use crate::fragment::FragmentPool;
use crate::time::earliest;
use crate::wire::{DataHeader, Kind, Role, WireId, answer};
use crate::{Batch, DropCounts, DropReason, FourTuple, Instant, Machine, Platform, SendBudget};
use admission::Prefix;
use memory::{Memory, RequestName};
use paths::Paths;
use slots::Slots;

/// Answers to strangers that may wait to be sent: what one batch of datagrams can bring.
const MAX_ANSWERS: usize = 64;

/// The least length of data that is answered with a reset, so that a reset is always shorter.
const LEAST_FOR_RESET: usize = 26;

/// Names a connection of a server. Never used twice. It prints as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(DefaultKey);

impl core::fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.data().as_ffi().fmt(f)
    }
}

/// What a server hears. Its `Debug` prints lengths, never the bytes of an application.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A client asks, and its credentials are right; its address is not proven yet. To refuse it, close the
    /// connection.
    Connecting {
        /// What it asks for.
        request: Bytes,
        /// What its token says, if it has one.
        token: Option<TokenClaims>,
    },
    /// Something of its connection.
    Connection(Event),
}

impl core::fmt::Debug for ServerEvent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Connecting { request, token } => {
                write!(
                    f,
                    "Connecting {{ request: {} bytes, token: {} }}",
                    request.len(),
                    token.is_some()
                )
            }
            Self::Connection(event) => f.debug_tuple("Connection").field(event).finish(),
        }
    }
}

/// What one source prefix has.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    connections: usize,
    handshakes: usize,
}

/// A server and its connections.
#[derive(Debug)]
pub struct ServerMachine {
    config: ServerConfig,
    /// That of every connection, held once.
    connection_config: Arc<ConnectionConfig>,
    suites: Suites,
    request_keys: Option<RequestKeys>,
    entropy: Entropy,
    cookie_key: CookieKey,
    reset_key: ResetKey,
    slots: Slots,
    by_id: BTreeMap<WireId, ConnectionId>,
    by_request: BTreeMap<RequestName, ConnectionId>,
    prefixes: BTreeMap<Prefix, Share>,
    handshakes: usize,
    /// Handshakes in the order of their beginning; those that are over are among them for a while.
    begun: VecDeque<(Instant, ConnectionId)>,
    memory: Memory,
    paths: Paths,
    answers: VecDeque<(FourTuple, Vec<u8>)>,
    answer_budget: SendBudget,
    asking: VecDeque<(ConnectionId, Bytes, Option<TokenClaims>)>,
    pool: FragmentPool,
    drops: DropCounts,
    stats: ServerStats,
    unix_time: (Instant, u64),
    shutting_down: bool,
}

impl ServerMachine {
    /// A server without connections. The seed in `platform` must be fit for keys; the same seed makes the
    /// same server. `unix_time` is the time of day at `now`, in seconds since 1970: tokens expire by it.
    ///
    /// # Errors
    /// [`ConfigError`]: a setting that cannot work.
    pub fn new(
        now: Instant,
        unix_time: u64,
        config: ServerConfig,
        platform: impl Into<Platform>,
    ) -> Result<Self, ConfigError> {
        config.connection.check()?;
        let platform = platform.into();
        let mut entropy = Entropy::new(platform.seed);
        let credentials = &config.credentials;
        // Never from the secret: whoever has the ticket could end the connections of others.
        let token_key = credentials.token_keys.first().map(|token_key| &token_key.key);
        let kept = credentials.identity.as_ref().map(Identity::private).or(token_key);
        let reset_key = match kept {
            Some(kept) => ResetKey::derived(kept),
            None => ResetKey::random(entropy.next_secret()),
        };
        let secret = credentials.secret.as_ref();
        let mut answer_budget = SendBudget::new(answer_rate(&config), now);
        answer_budget.fill(u64::from(config.limits.answers_per_second));
        Ok(Self {
            suites: Suites::available(platform.has_aes),
            request_keys: secret.map(|secret| RequestKeys::new(secret, config.protocol_id)),
            cookie_key: CookieKey::new(entropy.next_secret()),
            reset_key,
            entropy,
            slots: Slots::default(),
            by_id: BTreeMap::new(),
            by_request: BTreeMap::new(),
            prefixes: BTreeMap::new(),
            handshakes: 0,
            begun: VecDeque::new(),
            memory: Memory::new(config.limits.remembered),
            paths: Paths::default(),
            answers: VecDeque::new(),
            answer_budget,
            asking: VecDeque::new(),
            pool: FragmentPool::default(),
            drops: DropCounts::new(),
            stats: ServerStats::default(),
            unix_time: (now, unix_time),
            shutting_down: false,
            connection_config: Arc::new(config.connection),
            config,
        })
    }

    /// How it was configured.
    #[must_use]
    pub const fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// What all of it has counted.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        let mut stats = self.stats;
        stats.connections = self.slots.len();
        stats.handshakes = self.handshakes;
        stats.memory_bytes = self.slots.memory_bytes();
        stats.remembered = self.memory.len();
        stats
    }

    /// Datagrams that were not used, by reason, of all clients and strangers.
    #[must_use]
    pub const fn drops(&self) -> &DropCounts {
        &self.drops
    }

    /// Corrects the time of day, for the expiry of tokens.
    pub const fn set_unix_time(&mut self, now: Instant, unix_time: u64) {
        self.unix_time = (now, unix_time);
    }

    /// A connection, to look at; `None` when it is gone.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(id).map(|slot| &*slot.connection)
    }

    /// A connection, to act on; `None` when it is gone.
    #[must_use]
    pub fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        // Whatever is done to it, it may have something to send afterwards.
        self.slots.refresh(id);
        self.slots.connection_mut(id)
    }

    /// The connections there are, those in their handshake included.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.slots.ids()
    }

    /// Closes every connection and takes no more. Turn the loop until there are no connections.
    pub fn shut_down(&mut self, now: Instant) {
        self.shutting_down = true;
        let ids: Vec<_> = self.slots.ids().collect();
        for id in ids {
            if let Some(connection) = self.connection_mut(id) {
                connection.close(now, CloseCode::SHUTTING_DOWN, "");
            }
            self.refresh(id);
        }
    }

    /// Takes in a datagram, and the address it came from. It is decrypted in place.
    ///
    /// # Errors
    /// Why it was not used, already counted in [`drops`](Self::drops). An ordinary outcome.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        path: impl Into<FourTuple>,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += datagram.len() as u64;
        self.handle(now, path.into(), datagram).inspect_err(|&reason| self.drops.count(reason))
    }

    fn handle(
        &mut self,
        now: Instant,
        path: FourTuple,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        match Kind::of(datagram)? {
            Kind::Data { from: Role::Client, .. } => self.handle_data(now, path, datagram),
            Kind::Request => self.handle_request(now, path, datagram),
            _ => Err(DropReason::WrongRole),
        }
    }

    fn handle_data(
        &mut self,
        now: Instant,
        path: FourTuple,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        let header = DataHeader::read(datagram)?;
        let Some(&id) = self.by_id.get(&header.to) else {
            self.reset(now, path, header.to, datagram.len());
            return Err(DropReason::UnknownConnection);
        };
        let Some(connection) = self.slots.connection_mut(id) else {
            return Err(DropReason::UnknownConnection);
        };
        let outcome = connection.handle_data(now, path, &header, datagram, &mut self.pool);
        self.refresh(id);
        self.keep_memory(now);
        outcome
    }

    /// Clients together hold more than they may: who holds the most goes, and nobody else hears of it.
    fn keep_memory(&mut self, now: Instant) {
        if self.slots.memory_bytes() <= self.config.limits.memory_bytes {
            return;
        }
        let Some(id) = self.slots.largest() else { return };
        if let Some(connection) = self.slots.connection_mut(id) {
            connection.close(now, CloseCode::RESOURCES, "");
            connection.let_go();
        }
        self.refresh(id);
    }

    /// Tells a client of a former life that it is over.
    fn reset(&mut self, now: Instant, to: FourTuple, id: WireId, bytes: usize) {
        if bytes >= LEAST_FOR_RESET && self.reset_key.is_own_id(id.0) && self.may_answer(now) {
            let mut out = Vec::new();
            answer::write_reset(self.reset_key.reset_token(id.0), &mut out);
            self.stats.resets += 1;
            self.answer(to, out);
        }
    }

    /// Acts on deadlines that have passed; harmless at any other time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.pool.handle_timeout(now);
        while let Some(id) = self.slots.next_due(now) {
            if let Some(connection) = self.slots.connection_mut(id) {
                connection.handle_timeout(now);
            }
            self.refresh(id);
        }
    }

    /// The next thing the application should hear, and of which connection. Ask until `None`.
    #[must_use]
    pub fn poll_event(&mut self, now: Instant) -> Option<(ConnectionId, ServerEvent)> {
        while let Some((id, request, token)) = self.asking.pop_front() {
            if self.slots.get(id).is_some() {
                return Some((id, ServerEvent::Connecting { request, token }));
            }
        }
        while let Some(id) = self.slots.next_with_events() {
            let connection = self.slots.connection_mut(id);
            if let Some(event) = connection.and_then(|connection| connection.poll_event(now)) {
                // Reading may have made room, and with it something to say.
                self.slots.refresh(id);
                return Some((id, ServerEvent::Connection(event)));
            }
            self.slots.on_events_read();
            self.remove_if_over(id);
        }
        None
    }

    /// Appends what there is to send, until nothing is left or the batch is full. Clients take turns, of up
    /// to 16 datagrams each.
    pub fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        while !batch.is_full()
            && let Some((to, answer)) = self.answers.pop_front()
        {
            batch.push(to, &answer);
            self.count_sent(answer.len());
        }
        while !batch.is_full()
            && let Some(id) = self.slots.next_ready()
        {
            let connection = self.slots.connection_mut(id);
            let sent = connection
                .and_then(|connection| batch.compose(|out| connection.poll_transmit(now, out)));
            if let Some(bytes) = sent {
                self.slots.on_sent();
                self.count_sent(bytes);
            } else {
                self.slots.on_nothing_to_send();
                self.remove_if_over(id);
            }
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) and [`poll_transmit`](Self::poll_transmit)
    /// next, if nothing else happens; a moment in the past means at once.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.slots.is_any_ready() || !self.answers.is_empty() {
            return Some(Instant::ZERO);
        }
        earliest(self.slots.first_deadline(), self.pool.poll_timeout())
    }

    const fn count_sent(&mut self, bytes: usize) {
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += bytes as u64;
    }

    /// Something happened to a connection.
    fn refresh(&mut self, id: ConnectionId) {
        self.slots.refresh(id);
        if let Some(slot) = self.slots.get_mut(id)
            && slot.is_handshake
            && !slot.connection.is_handshake()
        {
            slot.is_handshake = false;
            self.handshakes -= 1;
            if let Some(share) = self.prefixes.get_mut(&slot.prefix) {
                share.handshakes -= 1;
            }
            self.stats.accepted += u64::from(slot.connection.state().is_open());
        }
    }

    /// Forgets a connection that is over and has said so.
    fn remove_if_over(&mut self, id: ConnectionId) {
        let is_over =
            |slot: &slots::Slot| slot.connection.is_closed() && !slot.connection.has_events();
        if !self.slots.get(id).is_some_and(is_over) {
            return;
        }
        self.refresh(id);
        let Some(mut slot) = self.slots.remove(id) else { return };
        let connection = &slot.connection;
        self.paths.remember(connection.address().ip(), connection.known_path());
        slot.connection.clear(&mut self.pool);
        self.by_id.remove(&slot.connection.local_id());
        self.by_request.remove(&slot.name);
        self.stats.closed += 1;
        if let Some(share) = self.prefixes.get_mut(&slot.prefix) {
            share.connections -= 1;
            if share.connections == 0 {
                self.prefixes.remove(&slot.prefix);
            }
        }
    }

    fn insert(
        &mut self,
        now: Instant,
        mut connection: Connection,
        name: RequestName,
        asked: Bytes,
        token: Option<TokenClaims>,
        bytes: usize,
    ) {
        connection.on_request(now, bytes);
        connection.set_known_path(self.paths.recall(now, connection.address().ip()));
        let prefix = Prefix::of(connection.address());
        let wire_id = connection.local_id();
        let id = self.slots.insert(connection, name, prefix);
        self.by_id.insert(wire_id, id);
        self.by_request.insert(name, id);
        let share = self.prefixes.entry(prefix).or_default();
        share.connections += 1;
        share.handshakes += 1;
        self.handshakes += 1;
        self.begun.push_back((now, id));
        self.stats.requests += 1;
        self.asking.push_back((id, asked, token));
        self.refresh(id);
        self.shorten_line();
    }

    /// An id that no living connection has.
    fn new_id(&mut self) -> WireId {
        loop {
            let id = WireId(self.reset_key.id(self.entropy.bytes()));
            if !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }

    fn answer(&mut self, to: FourTuple, bytes: Vec<u8>) {
        if self.answers.len() < MAX_ANSWERS {
            self.answers.push_back((to, bytes));
        }
    }

    /// Whether one more refusal or reset may go, and counts it.
    fn may_answer(&mut self, now: Instant) -> bool {
        self.answer_budget.refill(now, u64::from(self.config.limits.answers_per_second));
        self.answers.len() < MAX_ANSWERS && self.answer_budget.try_spend(1)
    }

    fn unix_time(&self, now: Instant) -> u64 {
        let (then, unix_time) = self.unix_time;
        unix_time.saturating_add(now.since(then).as_secs())
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        self.slots.check_invariants();
        assert_eq!(self.slots.len(), self.by_id.len());
        assert_eq!(self.slots.len(), self.by_request.len());
        let counted: usize = self.prefixes.values().map(|share| share.connections).sum();
        assert_eq!(counted, self.slots.len());
        let counted: usize = self.prefixes.values().map(|share| share.handshakes).sum();
        assert_eq!(counted, self.handshakes);
    }
}

impl Machine for ServerMachine {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        let _counted = Self::handle_datagram(self, now, path, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        Self::handle_timeout(self, now);
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        Self::poll_transmit(self, now, batch);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }
}

/// The budget counts bytes at bits a second; here one byte is one answer.
fn answer_rate(config: &ServerConfig) -> u64 {
    u64::from(config.limits.answers_per_second).saturating_mul(8)
}
