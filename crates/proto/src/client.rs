//! The client's end: a handshake, then its [`Connection`].
//!
//! A [`ClientMachine`] requests a connection with its first datagram, which also carries the application's
//! request: the first data arrives one round trip later (STANDARD-1, section 3). Until a response is verified
//! it sends only requests, and keeps nothing of what arrives but retries and refusals.

mod handshake;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use crate::connection::trace::{TraceEvent, Traced};
use crate::connection::{
    CloseCode, CloseReason, ConfigError, Connection, ConnectionConfig, ConnectionTrigger, Event,
    Trace,
};
use crate::credentials::{ConnectToken, Ticket, TicketAccess};
use crate::crypto::{Secret, equal};
use crate::debug_as;
use crate::fragment::FragmentPool;
use crate::settings;
use crate::wire::hello::MAX_REQUEST_BYTES;
use crate::wire::{DataHeader, Kind, answer};
use crate::work::Work;
use crate::{Batch, DropCounts, DropReason, Ecn, FourTuple, Instant, Machine, Platform};
use handshake::{Handshake, Progress};

/// What a client proves to the server.
///
/// # Examples
/// ```
/// use haulier_proto::client::Credentials;
/// use haulier_proto::credentials::{Secret, Ticket, TicketAccess};
///
/// let ticket = Ticket::new(vec!["192.0.2.7:4016".parse()?], 7, TicketAccess::Open)?;
/// assert!(matches!(Credentials::from(&ticket), Credentials::Open));
/// // Without a ticket: the same 32 bytes at both ends.
/// let by_hand = Credentials::Secret { secret: Secret::from_bytes([7; 32]), identity: None };
/// # let _ = by_hand;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Credentials {
    /// Nothing: no encryption, and no protection from attackers on the path. For a LAN and for tests.
    Open,
    /// That it has a secret, which the server has too.
    Secret {
        /// The secret.
        secret: Secret,
        /// The public key that the server must have.
        identity: Option<[u8; 32]>,
    },
    /// A connect token from a matchmaker.
    Token(ConnectToken),
}

/// What a ticket lets in.
impl From<&Ticket> for Credentials {
    fn from(ticket: &Ticket) -> Self {
        match ticket.access() {
            TicketAccess::Open => Self::Open,
            TicketAccess::Secret(secret) => {
                Self::Secret { secret: secret.clone(), identity: ticket.identity().copied() }
            }
        }
    }
}

settings! {
    /// The settings of a client.
    #[derive(Clone)]
    pub struct ClientConfig new(
        /// The server's address.
        server: SocketAddr,
        /// The number of the application's protocol, never sent; both ends must have the same.
        protocol_id: u64,
        /// What it proves to the server.
        credentials: Credentials,
    ) {
        /// The application's request, up to 400 bytes. It can be replayed, and anyone with the secret can
        /// read it: it has to be harmless when repeated, and to contain no secret.
        request: Vec<u8> = Vec::new(), with_request;
        /// Copies of the request sent at once, 1 to 10. Each one allows the server to answer with 3 datagrams
        /// before the client's address is validated, and their spacing on arrival shows it the rate to start
        /// with. Default 4.
        copies: u8 = 4, with_copies;
        /// How long it waits in line while the server has no seat for it; with zero it ends at once, as
        /// refused by a full server. Default 10 minutes.
        max_time_in_line: Duration = Duration::from_secs(600), with_max_time_in_line;
        /// The settings of its connection.
        connection: ConnectionConfig = ConnectionConfig::default(), with_connection;
    }
}

debug_as! {
    ClientConfig: |config|
    server = config.server,
    credentials = config.credentials,
    request_bytes = config.request.len(),
    copies = config.copies,
    connection = config.connection,
}

/// Why a client could not be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A setting of the connection that cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The request has more than 400 bytes.
    #[error("`request` may have at most {MAX_REQUEST_BYTES} bytes")]
    RequestTooLong,
    /// The library for the handshake failed.
    #[error("the handshake could not be started")]
    Handshake,
}

#[derive(Debug)]
enum Phase {
    Handshaking(Box<Handshake>),
    Connected(Box<Connection>),
    /// The handshake failed; its reason until it is read.
    Ended(Option<CloseReason>),
}

/// A client and its one connection.
pub struct ClientMachine {
    server: SocketAddr,
    phase: Phase,
    pool: FragmentPool,
    drops: DropCounts,
    wire_bytes: WireBytes,
    /// Of a handshake that failed.
    trace: Option<Box<Trace>>,
}

debug_as! {
    ClientMachine: |client|
    server = client.server,
    connection = client.connection(),
    drops = client.drops,
    wire_bytes = client.wire_bytes,
}

/// Bytes of all datagrams of a client, including the handshake, without UDP and IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireBytes {
    /// Received, including dropped ones.
    pub received: u64,
    /// Sent.
    pub sent: u64,
}

impl ClientMachine {
    /// Starts a handshake. The seed in `platform` must be fit for keys; the same seed gives the same client.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn new(
        now: Instant,
        config: ClientConfig,
        platform: impl Into<Platform>,
    ) -> Result<Self, ClientError> {
        if config.request.len() > MAX_REQUEST_BYTES {
            return Err(ClientError::RequestTooLong);
        }
        config.connection.check()?;
        let server = config.server;
        let handshake = Handshake::new(now, config, platform.into())?;
        Ok(Self {
            server,
            phase: Phase::Handshaking(Box::new(handshake)),
            pool: FragmentPool::default(),
            drops: DropCounts::new(),
            wire_bytes: WireBytes::default(),
            trace: None,
        })
    }

    /// The server's address.
    #[must_use]
    pub const fn server(&self) -> SocketAddr {
        self.server
    }

    /// The connection, once the server's welcome is verified.
    #[must_use]
    pub fn connection(&self) -> Option<&Connection> {
        match &self.phase {
            Phase::Connected(connection) => Some(connection),
            _ => None,
        }
    }

    /// The connection, to send on.
    #[must_use]
    pub fn connection_mut(&mut self) -> Option<&mut Connection> {
        match &mut self.phase {
            Phase::Connected(connection) => Some(connection),
            _ => None,
        }
    }

    /// Whether it has ended: the handshake failed, or the connection is closed and its last close was sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match &self.phase {
            Phase::Handshaking(_) => false,
            Phase::Connected(connection) => connection.is_closed(),
            Phase::Ended(_) => true,
        }
    }

    /// Datagrams that were dropped, by reason.
    #[must_use]
    pub const fn drops(&self) -> &DropCounts {
        &self.drops
    }

    /// The work that its connection has done since its start.
    #[doc(hidden)]
    #[must_use]
    pub fn work(&self) -> Work {
        self.connection().map(Connection::work).unwrap_or_default()
    }

    /// Memory that the server makes it hold, in bytes: data that is incomplete or not read.
    #[doc(hidden)]
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.connection().map_or(0, Connection::memory_bytes) + self.pool.held_bytes()
    }

    /// Bytes of all its datagrams, sent and received.
    #[must_use]
    pub const fn wire_bytes(&self) -> WireBytes {
        self.wire_bytes
    }

    /// Closes the connection, or abandons the handshake, of which the server then gets no report.
    pub fn close(&mut self, now: Instant, code: CloseCode, reason: &str) {
        match &mut self.phase {
            Phase::Handshaking(_) => self.fail(now, CloseReason::Here(code)),
            Phase::Connected(connection) => connection.close(now, code, reason),
            Phase::Ended(_) => {}
        }
    }

    /// Handles a datagram from this address, which is dropped unless it is the server's. It is decrypted in
    /// place.
    ///
    /// # Errors
    /// Why it was dropped, which is ordinary and already counted in [`drops`](Self::drops).
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        path: impl Into<FourTuple>,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        self.wire_bytes.received += datagram.len() as u64;
        self.handle(now, path.into(), datagram).inspect_err(|&reason| self.drops.count(reason))
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
        self.handle_datagram(now, path, datagram)?;
        if let Some(connection) = self.connection_mut() {
            connection.on_mark(ecn);
        }
        Ok(())
    }

    fn handle(
        &mut self,
        now: Instant,
        path: FourTuple,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        if !path.has_remote(self.server) {
            return Err(DropReason::NotFromServer);
        }
        match Kind::of(datagram)? {
            Kind::Request => Err(DropReason::WrongRole),
            Kind::Response => self.on_response(now, path, datagram),
            Kind::Data { .. } => {
                let header = DataHeader::read(datagram)?;
                let Phase::Connected(connection) = &mut self.phase else {
                    return Err(DropReason::NotNow);
                };
                if header.to != connection.local_id() {
                    return Err(DropReason::UnknownConnection);
                }
                connection.handle_data(now, path, &header, datagram, &mut self.pool)
            }
            Kind::Retry => {
                let retry = answer::Retry::read(datagram)?;
                self.handshaking()?.on_retry(now, &retry)
            }
            Kind::Refusal => {
                let handshake = self.handshaking()?;
                let progress = if answer::InLine::is(datagram) {
                    handshake.on_in_line(now, datagram)?
                } else {
                    handshake.on_refusal(now, &answer::Refusal::read(datagram)?)?
                };
                if let Progress::Failed(reason) = progress {
                    self.fail(now, reason);
                }
                Ok(())
            }
            Kind::Reset => self.on_reset(datagram),
        }
    }

    fn handshaking(&mut self) -> Result<&mut Handshake, DropReason> {
        match &mut self.phase {
            Phase::Handshaking(handshake) => Ok(handshake),
            _ => Err(DropReason::NotNow),
        }
    }

    fn on_response(
        &mut self,
        now: Instant,
        path: FourTuple,
        datagram: &mut [u8],
    ) -> Result<(), DropReason> {
        match &mut self.phase {
            Phase::Handshaking(handshake) => {
                let mut connection = handshake.on_response(now, datagram)?;
                let is_authenticated = handshake.is_authenticated();
                let outcome = connection.handle_response(now, path, datagram, &mut self.pool);
                // An encrypted welcome is verified, and can be read only once: damage in the frames after it
                // loses a datagram and must not end the handshake. In mode `open` only the checksum counts.
                if is_authenticated || outcome.is_ok() {
                    self.phase = Phase::Connected(Box::new(connection));
                } else {
                    handshake.trace = connection.take_trace();
                }
                outcome
            }
            Phase::Connected(connection) => {
                connection.handle_response(now, path, datagram, &mut self.pool)
            }
            Phase::Ended(_) => Err(DropReason::NotNow),
        }
    }

    fn on_reset(&mut self, datagram: &[u8]) -> Result<(), DropReason> {
        let token = answer::read_reset(datagram)?;
        let Phase::Connected(connection) = &mut self.phase else {
            return Err(DropReason::NotNow);
        };
        if !connection.peer_reset_token().is_some_and(|ours| equal(ours, &token)) {
            return Err(DropReason::BadTag);
        }
        connection.end(ConnectionTrigger::Reset, CloseReason::ConnectionUnknown);
        Ok(())
    }

    /// The next event. Call it until it returns `None`.
    #[must_use]
    pub fn poll_event(&mut self, now: Instant) -> Option<Event> {
        match &mut self.phase {
            Phase::Handshaking(handshake) => {
                let (place, estimate) = handshake.poll_place()?;
                Some(Event::Queued { place, estimate })
            }
            Phase::Connected(connection) => connection.poll_event(now),
            Phase::Ended(reason) => reason.take().map(Event::Closed),
        }
    }

    /// The next event of its trace, if its settings ask for one
    /// ([`ConnectionConfig::trace`](crate::connection::ConnectionConfig::trace)).
    #[must_use]
    pub fn poll_trace(&mut self) -> Option<Traced> {
        match &mut self.phase {
            Phase::Handshaking(handshake) => handshake.trace.as_mut()?.pop(),
            Phase::Connected(connection) => connection.poll_trace(),
            Phase::Ended(_) => self.trace.as_mut()?.pop(),
        }
    }

    /// The handshake has failed.
    fn fail(&mut self, now: Instant, reason: CloseReason) {
        if let Phase::Handshaking(handshake) = &mut self.phase {
            self.trace = handshake.trace.take();
        }
        if let Some(trace) = &mut self.trace {
            trace.push(now, TraceEvent::Closed(reason.clone()));
        }
        self.phase = Phase::Ended(Some(reason));
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        if let Phase::Connected(connection) = &self.phase {
            connection.check_invariants();
        }
    }
}

impl Machine for ClientMachine {
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
        match &mut self.phase {
            Phase::Handshaking(handshake) => {
                if let Progress::Failed(reason) = handshake.handle_timeout(now) {
                    self.fail(now, reason);
                }
            }
            Phase::Connected(connection) => connection.handle_timeout(now),
            Phase::Ended(_) => {}
        }
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        let Self { phase, server, wire_bytes, .. } = self;
        let mut is_run = false;
        while let Some(bytes) = batch.compose(|datagram| match phase {
            Phase::Handshaking(handshake) => {
                handshake.poll_transmit(now, datagram).then(|| FourTuple::new(*server))
            }
            Phase::Connected(connection) => connection.poll_transmit(now, datagram, &mut is_run),
            Phase::Ended(_) => None,
        }) {
            wire_bytes.sent += bytes as u64;
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Handshaking(handshake) => Some(handshake.poll_timeout()),
            Phase::Connected(connection) => connection.poll_timeout(),
            Phase::Ended(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
