//! A game's server.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haulier_core::{Instant, debug_as};
use haulier_proto::connection::{
    Block, BlockHandle, BlockProgress, CloseCode, Connection, ConnectionState, ConnectionStats,
    SendError, Urgency,
};
use haulier_proto::credentials::{Ticket, TicketError};
use haulier_proto::server::{ConnectionId, ServerConfig, ServerEvent, ServerMachine, ServerStats};
use haulier_proto::{DropCounts, Platform, Sequence};
use haulier_udp::{Clock, Socket};

use super::error::{FinishError, ListenError, NetworkError};
use super::handle::{Drive, Handle, StartError};
use super::serving::{Serving, unix_time};
use super::shared::State;
use super::{aes, secrets};

/// A place where a server will listen: for whoever must know its address before the server starts, or wants
/// no network thread.
///
/// ```
/// use haulier::{Listen, ServerConfig, ServerCredentials};
///
/// let listen = Listen::bind("127.0.0.1:0")?.inline();
/// let credentials = ServerCredentials::default().with_open_access();
/// let mut config = ServerConfig::new(7, credentials);
/// config.addresses = vec![listen.local_addr()];
/// let server = listen.start(config)?;
/// assert!(server.poll()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Listen {
    socket: Socket,
    drive: Drive,
}

impl Listen {
    /// Listens at the first of `local` that can be had; port 0 lets the system choose one. At `0.0.0.0` or
    /// `[::]` it answers each client from the address that the client has asked.
    ///
    /// # Errors
    /// As the system says, for example when the address is in use.
    pub fn bind(local: impl ToSocketAddrs) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no address to bind");
        for local in local.to_socket_addrs()? {
            match Socket::bind(local) {
                Ok(socket) => return Ok(Self { socket, drive: Drive::default() }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// A sentence for the user if the system grants too little memory for what arrives, with what to do.
    #[must_use]
    pub fn buffer_warning(&self) -> Option<String> {
        self.socket.buffers().warning()
    }

    /// Without a network thread: the server works only while [`Server::poll`] or [`Server::wait`] runs. For
    /// consoles and tests.
    #[must_use]
    pub const fn inline(mut self) -> Self {
        self.drive = Drive::Inline;
        self
    }

    /// Driven by a task of the tokio runtime in which it starts, without a thread of its own. Its waits are
    /// those of tokio's timers, which count milliseconds.
    #[cfg(feature = "tokio")]
    #[must_use]
    pub const fn on_tokio(mut self) -> Self {
        self.drive = Drive::Tokio;
        self
    }

    /// Starts the server.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn start(self, config: ServerConfig) -> Result<Server, ListenError> {
        haulier_proto::prepare();
        let (clock, local) = (Clock::start(), self.socket.local_addr());
        let platform = Platform::new(haulier_udp::seed()?, aes());
        let machine = ServerMachine::new(clock.now(), unix_time(), config, platform)?;
        let serving = Serving { machine, is_shutting_down: false };
        let handle = Handle::start(serving, clock, Some(self.socket), self.drive);
        let handle = handle.map_err(|error| match error {
            StartError::Io(error) => ListenError::Io(error),
            #[cfg(feature = "tokio")]
            StartError::NoRuntime => ListenError::NoRuntime,
        })?;
        Ok(Server { handle: Arc::new(handle), local })
    }
}

/// A server of a game and all its clients, on one socket.
///
/// It is a handle: a network thread does the work, at its own pace. Clone it to send from one thread or task
/// while another waits for events; each event goes to one of them. When the last is dropped all connections
/// are closed with [`CloseCode::SHUTTING_DOWN`]: [`finish`](Self::finish) makes sure that they hear of it.
/// See [`Listen`] for a server without a thread.
///
/// ```no_run
/// use haulier::{Block, CloseCode, Server, ServerConfig, ServerCredentials, ServerEvent};
/// use haulier::random_secret;
///
/// let credentials = ServerCredentials::default().with_secret(random_secret()?);
/// let server = Server::bind("0.0.0.0:4016", ServerConfig::new(7, credentials))?;
/// let world = Block::new(1, vec![0; 5_000_000]);
/// loop {
///     while let Some((id, event)) = server.poll()? {
///         if let ServerEvent::Connecting { .. } = event {
///             if server.send_block(id, &world).is_err() {
///                 server.close(id, CloseCode::NOT_ACCEPTED, "your limit is below our world");
///             }
///         }
///     }
///     // ... the rest of the frame ...
/// }
/// # #[allow(unreachable_code, reason = "a game's loop")]
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Server {
    handle: Arc<Handle<Serving>>,
    local: SocketAddr,
}

debug_as! { Server: |server| local = server.local }

impl Server {
    /// Listens at the first of `local` that can be had, and starts; port 0 lets the system choose one.
    ///
    /// # Errors
    /// [`ListenError`], for example when the address is in use.
    pub fn bind(local: impl ToSocketAddrs, config: ServerConfig) -> Result<Self, ListenError> {
        Listen::bind(local)?.start(config)
    }

    /// The next event, and of which client, without waiting. Ask in a loop until `None`, once a frame. A
    /// connection that has closed can be looked at until the next event is asked for.
    ///
    /// # Errors
    /// [`NetworkError`], once all events are taken.
    pub fn poll(&self) -> Result<Option<(ConnectionId, ServerEvent)>, NetworkError> {
        self.handle.poll()
    }

    /// The next event, and of which client; waits for it, but no longer than `max`. `None` when that is over,
    /// or when the server is shut down.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn wait(&self, max: Duration) -> Result<Option<(ConnectionId, ServerEvent)>, NetworkError> {
        self.handle.wait(max)
    }

    /// The next event, and of which client; `None` once the server is shut down. It may be dropped at any
    /// time, and loses no event. Any executor will do.
    ///
    /// # Errors
    /// As [`poll`](Self::poll); [`NetworkError::Inline`].
    pub async fn next_event(&self) -> Result<Option<(ConnectionId, ServerEvent)>, NetworkError> {
        self.handle.when(State::take_event).await
    }

    /// Sends a block of any size, which arrives whole. Make the [`Block`] once for all clients: it is
    /// hashed then, and its bytes are never copied.
    ///
    /// # Errors
    /// [`SendError`]; `NotOpen` also for a connection that is gone, and if nothing drives the server any
    /// more: [`poll`](Self::poll) says why.
    pub fn send_block(&self, id: ConnectionId, block: &Block) -> Result<BlockHandle, SendError> {
        let sent = self.change(id, |connection, now| connection.send_block(now, block));
        sent.ok_or(SendError::NotOpen)?
    }

    /// Sends a packet of up to 256 KiB, once: time-critical. An event says whether it arrived.
    ///
    /// # Errors
    /// [`SendError`]; `NotOpen` also for a connection that is gone.
    pub fn send_packet(
        &self,
        id: ConnectionId,
        data: impl Into<Bytes>,
    ) -> Result<Sequence, SendError> {
        let sent = self.change(id, |connection, _| connection.send_packet(data));
        sent.ok_or(SendError::NotOpen)?
    }

    /// Sends a message of up to 1024 bytes: it arrives, once, in order.
    ///
    /// # Errors
    /// [`SendError`]; `NotOpen` also for a connection that is gone.
    pub fn send_message(&self, id: ConnectionId, data: impl Into<Bytes>) -> Result<(), SendError> {
        let sent = self.change(id, |connection, _| connection.send_message(data));
        sent.ok_or(SendError::NotOpen)?
    }

    /// Closes a connection, with up to 200 bytes for the client to show. To turn a client away, do it
    /// at [`ServerEvent::Connecting`], with [`CloseCode::NOT_ACCEPTED`]. Nothing happens if it is gone.
    pub fn close(&self, id: ConnectionId, code: CloseCode, reason: &str) {
        self.change(id, |connection, now| connection.close(now, code, reason));
    }

    /// Begins to go away: closes all connections, and takes no more. Go on until
    /// [`is_shut_down`](Self::is_shut_down), so that the clients hear of it.
    pub fn shut_down(&self) {
        self.handle.shared.act(Serving::shut_down);
    }

    /// Whether it was shut down, and no connection is left.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.handle.shared.lock().end().is_some()
    }

    /// Goes away well: [`shut_down`](Self::shut_down), and waits until every client was told, but no longer
    /// than `max`. Events that come meanwhile are dropped.
    ///
    /// # Errors
    /// [`FinishError`].
    pub fn finish(self, max: Duration) -> Result<(), FinishError> {
        let until = self.finishing(max);
        let finished = self.handle.wait_for(max, |state, now| finished(state, now, until))?;
        finished.unwrap_or(Err(FinishError::TimedOut))
    }

    /// The same, awaited.
    ///
    /// # Errors
    /// [`FinishError`].
    pub async fn finish_async(self, max: Duration) -> Result<(), FinishError> {
        let until = self.finishing(max);
        let finished = self.handle.when(|state, now| finished(state, now, until)).await?;
        finished.unwrap_or(Err(FinishError::TimedOut))
    }

    fn finishing(&self, max: Duration) -> Instant {
        let now = self.handle.shared.clock.now();
        self.handle.shared.order(|state| {
            state.end.shut_down(now);
            state.watch(now + max);
        });
        now + max
    }

    /// The connections there are, those in their handshake included.
    #[must_use]
    pub fn connections(&self) -> Vec<ConnectionId> {
        self.handle.shared.look(|end| end.machine.connections().collect())
    }

    /// Looks at a connection: its round trip, progress, statistics, state. `None` when it is gone. The
    /// network thread waits meanwhile, so only look.
    pub fn with_connection<R>(
        &self,
        id: ConnectionId,
        look: impl FnOnce(&Connection) -> R,
    ) -> Option<R> {
        self.handle.shared.look(|end| end.machine.connection(id).map(look))
    }

    /// What a connection has counted.
    #[must_use]
    pub fn connection_stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        self.with_connection(id, Connection::stats)
    }

    /// How far the block being sent is.
    #[must_use]
    pub fn sending(&self, id: ConnectionId) -> Option<BlockProgress> {
        self.with_connection(id, Connection::sending)?
    }

    /// How far the block being received is.
    #[must_use]
    pub fn receiving(&self, id: ConnectionId) -> Option<BlockProgress> {
        self.with_connection(id, Connection::receiving)?
    }

    /// What a connection is doing.
    #[must_use]
    pub fn state(&self, id: ConnectionId) -> Option<ConnectionState> {
        self.with_connection(id, Connection::state)
    }

    /// Limits what the blocks of a connection may use of the link, in bits per second; less than 4000 counts
    /// as 4000. A token may hold a limit, which stays.
    pub fn set_max_rate_bps(&self, id: ConnectionId, rate_bps: u64) {
        self.change(id, |connection, _| connection.set_max_rate_bps(rate_bps));
    }

    /// Changes how much the blocks of a connection may take of the link, from the next slice on.
    pub fn set_urgency(&self, id: ConnectionId, urgency: Urgency) {
        self.change(id, |connection, _| connection.set_urgency(urgency));
    }

    /// What the server has counted.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        self.handle.shared.look(|end| end.machine.stats())
    }

    /// Datagrams that were not used, by reason.
    #[must_use]
    pub fn drops(&self) -> DropCounts {
        self.handle.shared.look(|end| *end.machine.drops())
    }

    /// Where it listens.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// A ticket to this server, which its clients reach at these addresses, the likeliest first: its
    /// secret, or mode `open`, and the identity if it has one. `None` if the server takes nothing but tokens.
    ///
    /// # Errors
    /// [`TicketError`]: for none or more than 8 addresses, or one that leads nowhere.
    pub fn ticket(&self, addresses: &[SocketAddr]) -> Result<Option<Ticket>, TicketError> {
        self.handle.shared.look(|end| secrets::ticket(end.machine.config(), addresses))
    }

    fn change<R>(
        &self,
        id: ConnectionId,
        change: impl FnOnce(&mut Connection, Instant) -> R,
    ) -> Option<R> {
        self.handle.shared.act(|end, now| Some(change(end.machine.connection_mut(id)?, now)))?
    }
}

/// Drops events until no connection is left.
fn finished(
    state: &mut State<Serving>,
    now: Instant,
    until: Instant,
) -> Option<Result<(), FinishError>> {
    while state.take_event(now).is_some() {}
    match state.end() {
        Some(end) => Some(end.map_err(FinishError::Network)),
        None => (now >= until).then_some(Err(FinishError::TimedOut)),
    }
}
