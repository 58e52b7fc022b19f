//! The server's end: many clients on one socket, each with a [`Connection`] of its own.
//!
//! A [`ServerMachine`] turns datagrams and their source addresses into events and datagrams to send. It
//! checks requests of strangers in the order of cost (`admission.rs`, STANDARD-1 3.1) and keeps no state for
//! them. A client that violates a rule ends only its own connection.
//!
//! # The run loop
//!
//! 1. Pass in each datagram with its source: [`handle_datagram`](ServerMachine::handle_datagram).
//! 2. Act on passed deadlines: [`handle_timeout`](ServerMachine::handle_timeout).
//! 3. Read the events: [`poll_event`](ServerMachine::poll_event) until `None`. The first one of a new client
//!    is [`ServerEvent::Connecting`] with its request: an application that answers it at once, for example
//!    with a block, answers in the first round trip.
//! 4. Send what is due: [`poll_transmit`](ServerMachine::poll_transmit) until a batch is not full, then sleep
//!    until [`poll_timeout`](ServerMachine::poll_timeout) or the next datagram.

mod admission;
mod config;
mod connections;
mod event;
mod handshakes;
mod late;
mod lingering;
mod memory;
mod paths;
mod shares;
mod slots;
mod stats;
mod unix_clock;
mod uplink;

pub use config::{EarlierTokens, ServerConfig, ServerCredentials, ServerLimits, TokenAudience};
pub use event::ServerEvent;
pub use stats::ServerStats;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;
use slotmap::{DefaultKey, Key as _};

use crate::connection::{CloseCode, ConfigError, Connection, ConnectionConfig};
use crate::credentials::TokenClaims;
use crate::crypto::{CookieKey, Entropy, RequestKeys, ResetKey, Suites};
use crate::debug_as;
use crate::fragment::FragmentPool;
use crate::time::earliest;
use crate::wire::request::REQUEST_BYTES;
use crate::wire::{DataHeader, Kind, Role, WireId};
use crate::work::Work;
use crate::{
    Batch, DropCounts, DropReason, Ecn, FourTuple, Instant, Machine, Platform, SendBudget,
};
use admission::Prefix;
use lingering::Lingering;
use memory::{Memory, RequestName};
use paths::Paths;
use shares::Share;
use slots::Slots;
use unix_clock::UnixClock;
use uplink::Uplink;

/// Answers to strangers that may wait to be sent: as many as one batch of datagrams can cause.
const MAX_ANSWERS: usize = 64;

/// Names a connection of a server, and is never used for another one. It prints as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(DefaultKey);

impl core::fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.data().as_ffi().fmt(f)
    }
}

/// A server and its connections.
pub struct ServerMachine {
    config: ServerConfig,
    /// Shared by all connections.
    connection_config: Arc<ConnectionConfig>,
    suites: Suites,
    /// In a box, because the machine is moved about when it is made, which leaves copies that nothing wipes.
    request_keys: Option<Box<RequestKeys>>,
    entropy: Entropy,
    cookie_key: CookieKey,
    reset_key: ResetKey,
    slots: Slots,
    uplink: Uplink,
    by_id: BTreeMap<WireId, ConnectionId>,
    by_request: BTreeMap<RequestName, ConnectionId>,
    prefixes: BTreeMap<Prefix, Share>,
    handshakes: usize,
    /// Handshakes in the order of their start. Finished ones stay in it for a while.
    started: VecDeque<(Instant, ConnectionId)>,
    memory: Memory,
    lingering: Lingering,
    paths: Paths,
    answers: VecDeque<(FourTuple, Vec<u8>)>,
    answer_budget: SendBudget,
    /// Requests that the application has not read.
    requests: VecDeque<(ConnectionId, Bytes, Option<TokenClaims>)>,
    pool: FragmentPool,
    drops: DropCounts,
    stats: ServerStats,
    /// For strangers, and of connections that were removed.
    work: Work,
    unix_clock: UnixClock,
    shutting_down: bool,
}

debug_as! { ServerMachine: |server| stats = server.stats(), drops = server.drops }

impl ServerMachine {
    /// A server without connections. The seed in `platform` must be fit for keys; the same seed gives the
    /// same server. `unix_time` is the time of day at `now`, in seconds since 1970, for the expiry of tokens.
    ///
    /// # Errors
    /// [`ConfigError`] for a setting that cannot work.
    pub fn new(
        now: Instant,
        unix_time: u64,
        config: ServerConfig,
        platform: impl Into<Platform>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        if config.credentials.shares_reset_secret() {
            return Err(ConfigError::SharedResetSecret);
        }
        let platform = platform.into();
        let mut entropy = Entropy::new(platform.seed);
        let credentials = &config.credentials;
        // Never from the secret of tickets, the token keys or the identity: clients and other servers have
        // those, and could end connections of this one.
        let reset_key = match &credentials.reset_secret {
            Some(secret) => ResetKey::derived(secret),
            None => ResetKey::random(entropy.next_secret()),
        };
        let secret = credentials.secret.as_ref();
        let mut answer_budget = SendBudget::new(answer_rate(&config), now);
        answer_budget.fill(u64::from(config.limits.answers_per_second));
        Ok(Self {
            suites: Suites::available(platform.has_aes),
            request_keys: secret
                .map(|secret| Box::new(RequestKeys::new(secret, config.protocol_id))),
            cookie_key: CookieKey::new(entropy.next_secret()),
            reset_key,
            entropy,
            slots: Slots::default(),
            uplink: Uplink::new(config.max_uplink_bps),
            by_id: BTreeMap::new(),
            by_request: BTreeMap::new(),
            prefixes: BTreeMap::new(),
            handshakes: 0,
            started: VecDeque::new(),
            memory: Memory::new(config.limits.remembered),
            paths: Paths::new(config.connection.min_rate_bps),
            lingering: Lingering::new(config.limits.connections),
            answers: VecDeque::new(),
            answer_budget,
            requests: VecDeque::new(),
            pool: FragmentPool::default(),
            drops: DropCounts::new(),
            stats: ServerStats::default(),
            work: Work::default(),
            unix_clock: UnixClock::new(now, unix_time),
            shutting_down: false,
            connection_config: Arc::new(config.connection),
            config,
        })
    }

    /// Its configuration.
    #[doc(hidden)]
    #[must_use]
    pub const fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Its counters.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        let mut stats = self.stats;
        stats.connections = self.slots.len();
        stats.handshakes = self.handshakes;
        stats.lingering = self.lingering.len();
        stats.memory_bytes = self.memory_bytes() + self.pool.held_bytes();
        stats.remembered = self.memory.len();
        stats
    }

    /// Datagrams that were dropped, by reason, from clients and strangers.
    #[must_use]
    pub const fn drops(&self) -> &DropCounts {
        &self.drops
    }

    /// Corrects the time of day, for the expiry of tokens. Set back, it stands still for as long, so that no
    /// token becomes valid again.
    pub fn set_unix_time(&mut self, now: Instant, unix_time: u64) {
        self.unix_clock.set(now, unix_time);
    }

    /// The time of day is not known: every token is refused as expired, until
    /// [`set_unix_time`](Self::set_unix_time). For a clock that cannot be read or was never set.
    pub const fn forget_unix_time(&mut self) {
        self.unix_clock.forget();
    }

    /// A connection, to look at; `None` if it has been removed.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.slots.get(id).map(|slot| &*slot.connection)
    }

    /// A connection, to act on; `None` if it has been removed.
    #[must_use]
    pub fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        // After any change it may have something to send.
        self.slots.refresh(id);
        self.slots.connection_mut(id)
    }

    /// All connections, including handshakes in progress.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.slots.ids()
    }

    /// Closes all connections and refuses new ones. Continue the loop until there are no connections.
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

    /// Whether a datagram has the form of a request, which makes a server draw keys if it is valid.
    #[doc(hidden)]
    #[must_use]
    pub fn is_request(datagram: &[u8]) -> bool {
        datagram.len() == REQUEST_BYTES && Kind::of(datagram) == Ok(Kind::Request)
    }

    /// Handles a datagram from this address. It is decrypted in place.
    ///
    /// # Errors
    /// Why it was dropped, which is ordinary and already counted in [`drops`](Self::drops).
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        path: impl Into<FourTuple>,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        self.handle_marked_datagram(now, path, Ecn::NotEct, datagram)
    }

    /// The same, from a transport that knows the ECN field of the IP header.
    ///
    /// # Errors
    /// As [`handle_datagram`](Self::handle_datagram).
    pub fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: impl Into<FourTuple>,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        self.stats.datagrams_received += 1;
        self.stats.bytes_received += datagram.len() as u64;
        let outcome = self.handle(now, path.into(), ecn, datagram);
        outcome.inspect_err(|&reason| self.drops.count(reason))
    }

    fn handle(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        match Kind::of(datagram)? {
            Kind::Data { from: Role::Client, .. } => self.handle_data(now, path, ecn, datagram),
            Kind::Request => self.handle_request(now, path, datagram),
            _ => Err(DropReason::WrongRole),
        }
    }

    fn handle_data(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        let header = DataHeader::read(datagram)?;
        let id = self.by_id.get(&header.to).copied();
        let Some(id) = id.filter(|&id| self.slots.get(id).is_some_and(|slot| !slot.lingers)) else {
            return Err(self.on_stray(now, header.to, path, datagram.len()));
        };
        let Some(connection) = self.slots.connection_mut(id) else {
            return Err(DropReason::UnknownConnection);
        };
        let outcome = connection.handle_data(now, path, &header, datagram, &mut self.pool);
        if outcome.is_ok() {
            connection.on_mark(ecn);
        }
        self.refresh(id);
        self.linger(now, id);
        self.enforce_memory_limit(now);
        outcome
    }

    fn memory_bytes(&self) -> usize {
        self.slots.memory_bytes() + self.lingering.memory_bytes()
    }

    /// The next event, and its connection. Call it until it returns `None`. A connection that has ended can
    /// be looked at until the call after its [`Event::Closed`](crate::connection::Event::Closed).
    #[must_use]
    pub fn poll_event(&mut self, now: Instant) -> Option<(ConnectionId, ServerEvent)> {
        while let Some((id, request, token)) = self.requests.pop_front() {
            if self.slots.get(id).is_some() {
                return Some((id, ServerEvent::Connecting { request, token }));
            }
        }
        while let Some(id) = self.slots.next_with_events() {
            let connection = self.slots.connection_mut(id);
            if let Some(event) = connection.and_then(|connection| connection.poll_event(now)) {
                // Reading may have made room, which the peer has to be sent.
                self.slots.refresh(id);
                return Some((id, ServerEvent::Connection(event)));
            }
            self.slots.on_events_read();
            self.remove_if_over(id);
        }
        None
    }

    /// The connection that is asked next: one that may have something to send, or whose turn on the uplink
    /// begins.
    fn next_to_send(&mut self, now: Instant) -> Option<ConnectionId> {
        if let Some(id) = self.slots.next_ready() {
            return Some(id);
        }
        let id = self.uplink.begin_turn(now)?;
        self.slots.refresh(id);
        self.slots.next_ready()
    }

    const fn count_sent(&mut self, bytes: usize) {
        self.stats.datagrams_sent += 1;
        self.stats.bytes_sent += bytes as u64;
    }

    fn answer(&mut self, to: FourTuple, bytes: Vec<u8>) {
        if self.answers.len() < MAX_ANSWERS {
            self.answers.push_back((to, bytes));
        }
    }

    /// Whether one more refusal or reset may be sent; if so, counts it.
    fn may_answer(&mut self, now: Instant) -> bool {
        self.answer_budget.refill(now, u64::from(self.config.limits.answers_per_second));
        self.answers.len() < MAX_ANSWERS && self.answer_budget.try_spend(1)
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.slots.check_invariants();
        self.uplink.check_invariants();
        self.lingering.check_invariants();
        assert_eq!(self.slots.len(), self.by_id.len());
        assert_eq!(self.slots.len(), self.by_request.len());
        let counted: usize = self.prefixes.values().map(|share| share.connections).sum();
        assert_eq!(counted, self.slots.len());
        let counted: usize = self.prefixes.values().map(|share| share.handshakes).sum();
        assert_eq!(counted, self.handshakes);
        let counted: usize = self.prefixes.values().map(|share| share.credited).sum();
        assert_eq!(counted, self.slots.credited());
    }
}

impl Machine for ServerMachine {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        let _counted = Self::handle_datagram(self, now, path, datagram);
    }

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        let _counted = Self::handle_marked_datagram(self, now, path, ecn, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.pool.handle_timeout(now);
        self.lingering.forget_old(now);
        while let Some(id) = self.slots.next_due(now) {
            if let Some(connection) = self.slots.connection_mut(id) {
                connection.handle_timeout(now);
            }
            self.refresh(id);
            self.linger(now, id);
        }
    }

    /// Clients take turns of up to 16 datagrams, and shorter ones where they share a limited uplink.
    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        while !batch.is_full()
            && let Some((to, answer)) = self.answers.pop_front()
        {
            batch.push(to, &answer);
            self.count_sent(answer.len());
        }
        while !batch.is_full()
            && let Some(id) = self.next_to_send(now)
        {
            let is_open = self.uplink.is_open_to(now, id);
            let connection = self.slots.connection_mut(id);
            let sent = connection.and_then(|connection| {
                connection.set_uplink_open(now, is_open);
                batch.compose(|out| connection.poll_transmit(now, out))
            });
            if let Some(bytes) = sent {
                self.slots.on_sent();
                self.uplink.on_sent(now, id, bytes);
                self.count_sent(bytes);
            } else {
                let left = self.slots.get(id).and_then(|slot| slot.connection.awaits_uplink());
                self.uplink.on_nothing_to_send(id, left);
                self.slots.on_nothing_to_send();
                self.linger(now, id);
                self.remove_if_over(id);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if self.slots.is_any_ready() || !self.answers.is_empty() {
            return Some(Instant::ZERO);
        }
        let turn = self.uplink.poll_timeout();
        earliest(earliest(self.slots.first_deadline(), turn), self.pool.poll_timeout())
    }

    fn wants_entropy(&self, datagram: &[u8]) -> bool {
        Self::is_request(datagram)
    }

    fn mix_entropy(&mut self, fresh: &[u8; 32]) {
        self.entropy.mix(fresh);
        // A snapshot that servers are started from has no connections; after it each has a key of its own.
        if self.slots.len() == 0 && self.config.credentials.reset_secret.is_none() {
            self.reset_key = ResetKey::random(self.entropy.next_secret());
        }
    }
}

/// A send budget fills at a rate in bit/s. Here one byte stands for one answer.
fn answer_rate(config: &ServerConfig) -> u64 {
    u64::from(config.limits.answers_per_second).saturating_mul(8)
}
