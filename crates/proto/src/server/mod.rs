//! The server's end: many clients on one socket, each with a [`Connection`] of its own.
//!
//! A [`ServerMachine`] turns datagrams and their source addresses into events and datagrams to send. It
//! checks requests of strangers in the order of cost (`requests.rs`, STANDARD-1 3.1) and keeps no state for
//! them. A client that violates a rule ends only its own connection.
//!
//! It consists of a [`Desk`], which decides which clients are accepted, and one [`Worker`], which has the
//! connections. A server of several threads has one desk and several workers ([`Desk::ask`](AtDesk::ask)).
//!
//! # The run loop
//!
//! 1. Pass in each datagram with its source: [`handle_datagram`](ServerMachine::handle_datagram).
//! 2. Act on passed deadlines: [`handle_timeout`](ServerMachine::handle_timeout).
//! 3. Read the events: [`poll_event`](ServerMachine::poll_event) until `None`. The first one of a new client
//!    is [`ServerEvent::Connecting`] with its request: an application that answers it at once, for example
//!    with a block, answers in the first round trip.
//! 4. Send the datagrams: [`poll_transmit`](ServerMachine::poll_transmit) until a batch is not full, then
//!    sleep until [`poll_timeout`](ServerMachine::poll_timeout) or the next datagram.

mod admission;
mod board;
mod config;
mod connection_id;
mod connections;
mod crowd;
mod desk;
mod ended;
mod ensemble;
mod ensembles;
mod event;
mod flights;
mod handshakes;
mod late;
mod line;
mod lingering;
mod longer;
mod memory;
mod old_traces;
mod paths;
mod requests;
mod rules;
mod shares;
mod slots;
mod stats;
mod strays;
mod turns;
mod unix_clock;
mod uplink;
mod waiting;
mod window;
mod worker;

pub use config::{
    EarlierTokens, ServerConfig, ServerCredentials, ServerLimits, TokenAudience, UnknownUplink,
};
pub use connection_id::ConnectionId;
pub use desk::{AtDesk, Desk};
pub use event::ServerEvent;
pub use stats::ServerStats;
pub use strays::{MAX_STRAYS, Stray, Strays};
pub use worker::{Handled, Worker};

use core::iter;

use crate::connection::trace::Traced;
use crate::connection::{ConfigError, Connection};
use crate::debug_as;
use crate::wire::Kind;
use crate::wire::request::REQUEST_BYTES;
use crate::work::Work;
use crate::{Batch, DropCounts, DropReason, Ecn, FourTuple, Instant, Machine, Platform};

/// A server and its connections.
pub struct ServerMachine {
    desk: Desk,
    worker: Worker,
}

debug_as! { ServerMachine: |server| stats = server.stats(), drops = server.drops() }

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
        let (desk, mut workers) = Desk::open(now, unix_time, config, iter::once(platform))?;
        let worker = workers.pop().ok_or(ConfigError::Workers)?;
        Ok(Self { desk, worker })
    }

    /// Its configuration.
    #[doc(hidden)]
    #[must_use]
    pub fn config(&self) -> &ServerConfig {
        self.worker.config()
    }

    /// Its counters.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        self.desk.complete(self.worker.stats())
    }

    /// Datagrams that were dropped, by reason, from clients and strangers.
    #[must_use]
    pub const fn drops(&self) -> &DropCounts {
        self.worker.drops()
    }

    /// The work that it has done since its start, for clients and strangers.
    #[doc(hidden)]
    #[must_use]
    pub fn work(&self) -> Work {
        self.worker.work()
    }

    /// Corrects the time of day, for the expiry of tokens. Set back, it stands still for as long, so that no
    /// token becomes valid again.
    pub fn set_unix_time(&mut self, now: Instant, unix_time: u64) {
        self.worker.set_unix_time(now, unix_time);
    }

    /// The time of day is not known: every token is refused as expired, until
    /// [`set_unix_time`](Self::set_unix_time). For a clock that cannot be read or was never set.
    pub const fn forget_unix_time(&mut self) {
        self.worker.forget_unix_time();
    }

    /// A connection, to look at; `None` if it has been removed.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.worker.connection(id)
    }

    /// A connection, to act on; `None` if it has been removed.
    #[must_use]
    pub fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.worker.connection_mut(id)
    }

    /// All connections, including handshakes in progress.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.worker.connections()
    }

    /// Closes all connections and refuses new ones. Continue the loop until there are no connections.
    pub fn shut_down(&mut self, now: Instant) {
        self.worker.shut_down(now, &mut self.desk);
        self.worker.report(now, &mut self.desk);
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
        let Self { desk, worker } = self;
        let outcome = worker.handle_datagram(now, desk, path.into(), ecn, datagram);
        worker.report(now, desk);
        outcome.map(drop)
    }

    /// The next event, and its connection. Call it until it returns `None`. A connection that has ended can
    /// be looked at until the call after its [`Event::Closed`](crate::connection::Event::Closed).
    #[must_use]
    pub fn poll_event(&mut self, now: Instant) -> Option<(ConnectionId, ServerEvent)> {
        let event = self.worker.poll_event(now);
        self.worker.report(now, &mut self.desk);
        event
    }

    /// The next event of the trace of any connection, if the settings of connections ask for one
    /// ([`ConnectionConfig::trace`](crate::connection::ConnectionConfig::trace)). Those of a connection are
    /// in order; of one that was removed they come first.
    #[must_use]
    pub fn poll_trace(&mut self) -> Option<(ConnectionId, Traced)> {
        self.worker.poll_trace()
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.desk.check_invariants([&self.worker]);
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
        self.worker.handle_timeout(now);
        self.worker.report(now, &mut self.desk);
    }

    /// Clients take turns of up to 16 datagrams, and shorter ones where they share a limited uplink.
    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        self.worker.poll_transmit(now, batch);
        self.worker.report(now, &mut self.desk);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.worker.poll_timeout()
    }

    fn wants_entropy(&self, datagram: &[u8]) -> bool {
        Self::is_request(datagram)
    }

    fn mix_entropy(&mut self, fresh: &[u8; 32]) {
        self.worker.mix_entropy(&mut self.desk, fresh);
    }
}
