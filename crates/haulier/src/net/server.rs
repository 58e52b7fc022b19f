//! A game's server.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use haulier_core::{Instant, debug_as};
use haulier_proto::connection::trace::Traced;
use haulier_proto::connection::{
    BlockProgress, CloseCode, Connection, ConnectionState, ConnectionStats, Lane, Order, SendError,
    Source, Urgency,
};
use haulier_proto::credentials::{Ticket, TicketError};
use haulier_proto::server::{ConnectionId, Desk, ServerConfig, ServerEvent, ServerStats, Worker};
use haulier_proto::{DropCounts, Platform, Sequence};
use haulier_udp::{Clock, Socket};

use super::error::{FinishError, ListenError, NetworkError};
use super::gateway::Gateway;
use super::handle::{Drive, StartError};
use super::serving::{Common, Serving, Working, unix_time};
use super::shared::State;
use super::sinks::Sinks;
use super::team::Team;
use super::{aes, over_sockets, secrets};
use crate::trace::TraceSink;

/// A bound address for a server: to know the address before the server starts, or to choose another driver
/// than a network thread.
///
/// ```
/// use haulier::{Listen, ServerConfig, ServerCredentials};
///
/// let listen = Listen::bind("127.0.0.1:0")?.inline();
/// let credentials = ServerCredentials::default().with_open_access();
/// println!("listening at {}", listen.local_addr());
/// let server = listen.start(ServerConfig::new(7, credentials))?;
/// assert!(server.poll()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Listen {
    socket: Socket,
    drive: Drive,
    workers: usize,
    sinks: Sinks,
}

impl Listen {
    /// Binds the first of `local` that is available; with port 0 the system chooses one. At `0.0.0.0` or
    /// `[::]` each client is answered from the address that it sent to.
    ///
    /// # Errors
    /// The system's error, for example when the address is in use.
    pub fn bind(local: impl ToSocketAddrs) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no address to bind");
        for local in local.to_socket_addrs()? {
            match Socket::bind(local) {
                Ok(socket) => {
                    let (drive, sinks) = (Drive::default(), Sinks::default());
                    return Ok(Self { socket, drive, workers: 1, sinks });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The address it listens at.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// A warning for the user if the system gives its socket too little buffer memory, with what to do.
    #[must_use]
    pub fn buffer_warning(&self) -> Option<String> {
        self.socket.buffers().warning()
    }

    /// Drives the server without a network thread: it works only while [`Server::poll`] or [`Server::wait`]
    /// runs. For consoles and tests.
    #[must_use]
    pub const fn inline(mut self) -> Self {
        self.drive = Drive::Inline;
        self
    }

    /// Drives the server by a task of the tokio runtime in which it starts, without a thread of its own. Its
    /// waits have the precision of tokio's timers, a millisecond.
    #[cfg(feature = "tokio")]
    #[must_use]
    pub const fn on_tokio(mut self) -> Self {
        self.drive = Drive::Tokio;
        self
    }

    /// Drives the server by this number of threads, up to 256, each with its own socket at the same address
    /// and its part of the connections. Use at most as many as there are cores. For the application it is one
    /// server with one stream of events; [`Server::worker`] has the events of one worker. Systems other than
    /// Linux and Android do not divide a port, so there the server has one worker, whatever this says
    /// ([`Server::workers`]). Default 1.
    ///
    /// Not together with [`inline`](Self::inline) and `on_tokio`; the events can nevertheless be awaited.
    #[must_use]
    pub const fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Hands the traces of all connections to this sink, in place of [`Server::poll_trace`]. Several may be
    /// set. What is in a trace is a setting of connections ([`ConnectionConfig::trace`]): by default nothing.
    ///
    /// [`ConnectionConfig::trace`]: haulier_proto::connection::ConnectionConfig::trace
    #[must_use]
    pub fn with_trace_sink(mut self, sink: impl TraceSink + 'static) -> Self {
        self.sinks.push(sink);
        self
    }

    /// Starts the server. The address it listens at counts as one of
    /// [`ServerConfig::addresses`](ServerConfig::addresses), with which tokens are compared; the addresses of
    /// a router in front of it are to be added there.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn start(
        #[cfg_attr(
            not(feature = "tracing"),
            expect(unused_mut, reason = "its sinks do not change")
        )]
        mut self,
        mut config: ServerConfig,
    ) -> Result<Server, ListenError> {
        #[cfg(feature = "tracing")]
        self.sinks.add_spans(&mut config.connection);
        haulier_proto::prepare();
        config.connection = over_sockets(config.connection);
        let accepted = &config.credentials;
        if accepted.secret.is_none() && accepted.token_keys.is_empty() && !accepted.open {
            return Err(ListenError::NobodyAccepted);
        }
        let (clock, local) = (Clock::start(), self.socket.local_addr());
        config.addresses.push(local);
        let workers = if haulier_udp::divides_ports() { self.workers } else { self.workers.min(1) };
        if workers > 1 && self.drive != Drive::Thread {
            return Err(ListenError::WorkersWithoutThreads);
        }
        // One by one, for a vector of seeds would leave them behind.
        let mut failed = None;
        let platforms = (0..workers).map_while(|_| match haulier_udp::seed() {
            Ok(seed) => Some(Platform::new(seed, aes())),
            Err(error) => {
                failed = Some(error);
                None
            }
        });
        let unix_time = unix_time();
        if unix_time.is_none() && !config.credentials.token_keys.is_empty() {
            return Err(ListenError::NoTimeOfDay);
        }
        let opened = Desk::open(clock.now(), unix_time.unwrap_or(0), config, platforms);
        if let Some(error) = failed {
            return Err(error.into());
        }
        let (desk, machines) = opened?;
        let common = Arc::new(Common::new(desk, workers));
        let serving = |(number, mut worker): (usize, Worker)| {
            if unix_time.is_none() {
                worker.forget_unix_time();
            }
            let machine = Working::new(worker, Arc::clone(&common), number);
            Serving { machine, is_shutting_down: false, sinks: self.sinks.clone() }
        };
        let servings = machines.into_iter().enumerate().map(serving).collect();
        let beside = (1..workers).map(|_| self.socket.bind_beside());
        let mut sockets = beside.collect::<io::Result<Vec<_>>>()?;
        sockets.push(self.socket);
        let team = Team::start(servings, common, clock, sockets, self.drive);
        let team = team.map_err(|error| match error {
            StartError::Io(error) => ListenError::Io(error),
            #[cfg(feature = "tokio")]
            StartError::NoRuntime => ListenError::NoRuntime,
        })?;
        Ok(Server { team: Arc::new(team), only: None, local })
    }
}

/// The error, with the addresses that it is about: the system's alone does not say which of a program's
/// sockets it was.
fn named(locals: &[SocketAddr], error: io::Error) -> io::Error {
    let names: Vec<_> = locals.iter().map(ToString::to_string).collect();
    if names.is_empty() {
        return error;
    }
    io::Error::new(error.kind(), format!("{}: {error}", names.join(", ")))
}

/// A server of a game and all its clients, at one address.
///
/// It is a handle: a network thread does the work. Clone it to send from one thread or task
/// while another waits for events; each event goes to one of them. When the last clone is dropped all
/// connections are closed with [`CloseCode::SHUTTING_DOWN`]: [`finish`](Self::finish) waits until that is
/// sent. See [`Listen`] for a server without a thread.
///
/// A world that is the same for all clients is sent up to a frame sooner as
/// [`ServerConfig::first_block`](ServerConfig::first_block); this example is for a world of each client's
/// own:
///
/// ```no_run
/// use haulier::{Block, CloseCode, Server, ServerConfig, ServerCredentials, ServerEvent};
/// use haulier::random_secret;
///
/// let credentials = ServerCredentials::default().with_secret(random_secret()?);
/// let server = Server::bind("0.0.0.0:4016", ServerConfig::new(7, credentials))?;
/// loop {
///     while let Some((id, event)) = server.poll()? {
///         if let ServerEvent::Connecting { request, .. } = event {
///             let world = Block::new(1, vec![request.len() as u8; 5_000_000]);
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
    pub(super) team: Arc<Team>,
    /// Its events are those of this worker.
    only: Option<usize>,
    local: SocketAddr,
}

debug_as! { Server: |server| local = server.local }

impl Server {
    /// Binds the first of `local` that is available, and starts; with port 0 the system chooses one.
    ///
    /// # Errors
    /// [`ListenError`], for example when the address is in use, which it names, or when the credentials
    /// accept no client.
    pub fn bind(local: impl ToSocketAddrs, config: ServerConfig) -> Result<Self, ListenError> {
        let locals: Vec<_> = local.to_socket_addrs()?.collect();
        Listen::bind(&*locals).map_err(|error| named(&locals, error))?.start(config)
    }

    /// The next event and the client that it is of, without waiting. Call it in a loop until `None`, once a
    /// frame. A closed connection can be read until the next event is requested.
    ///
    /// # Errors
    /// [`NetworkError`], once all events are taken.
    pub fn poll(&self) -> Result<Option<(ConnectionId, ServerEvent)>, NetworkError> {
        self.team.poll(self.only)
    }

    /// The next event and the client that it is of; waits for it up to `max`. `None` after that, after a
    /// [wake](Self::waker), or when the server is shut down.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn wait(&self, max: Duration) -> Result<Option<(ConnectionId, ServerEvent)>, NetworkError> {
        self.team.wait(self.only, max)
    }

    /// Ends a [`wait`](Self::wait) without an event: the current one, or else the next. For threads of the
    /// application whose results its network loop takes up, such as one that reads a disk. Several wakes
    /// before a wait has ended count as one, and each wake ends one wait. It may be used from any thread,
    /// does not wait for the network, and does not keep the server open. A task that awaits `next_event`
    /// awaits the result beside it instead.
    ///
    /// ```
    /// # fn run(server: &haulier::Server) -> Result<(), haulier::NetworkError> {
    /// let (done, results) = std::sync::mpsc::channel();
    /// let waker = server.waker();
    /// std::thread::spawn(move || {
    ///     let _ = done.send(std::fs::read("world"));
    ///     waker.wake();
    /// });
    /// loop {
    ///     match server.wait(std::time::Duration::from_secs(1))? {
    ///         Some(event) => println!("{event:?}"),
    ///         None => results.try_iter().for_each(|read| println!("{}", read.is_ok())),
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.team.waker(self.only)
    }

    /// The next event and the client that it is of; `None` once the server is shut down. The future may be
    /// dropped at any time without losing an event. It works with any executor.
    ///
    /// # Errors
    /// As [`poll`](Self::poll); [`NetworkError::Inline`].
    pub async fn next_event(&self) -> Result<Option<(ConnectionId, ServerEvent)>, NetworkError> {
        self.team.next_event(self.only).await
    }

    /// Sends a time-critical packet of up to 256 KiB, once. An event reports whether it was acknowledged.
    /// Its `data` is a `Vec<u8>`, a `String`, [`Bytes`](crate::Bytes) or a literal; of a slice that is
    /// borrowed, send its `to_vec()`.
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

    /// Sends a message of up to 64 KiB on channel 0: it arrives, once, in order.
    /// Its `data` is a `Vec<u8>`, a `String`, [`Bytes`](crate::Bytes) or a literal; of a slice that is
    /// borrowed, send its `to_vec()`.
    ///
    /// # Errors
    /// [`SendError`]; `NotOpen` also for a connection that is gone.
    pub fn send_message(&self, id: ConnectionId, data: impl Into<Bytes>) -> Result<(), SendError> {
        self.send_message_on(id, 0, Order::Ordered, data).map(|_number| ())
    }

    /// Sends a message of up to 64 KiB on a channel: it arrives, once. Returns its number on the channel,
    /// for [`Event::MessageAcked`]. What is missing on one channel delays no other, and an unordered message
    /// waits for none. Its `data` is not copied: one message may be sent to a thousand clients.
    ///
    /// # Errors
    /// [`SendError`]; `NotOpen` also for a connection that is gone.
    ///
    /// [`Event::MessageAcked`]: haulier_proto::connection::Event::MessageAcked
    pub fn send_message_on(
        &self,
        id: ConnectionId,
        channel: u8,
        order: Order,
        data: impl Into<Bytes>,
    ) -> Result<u64, SendError> {
        let sent =
            self.change(id, |connection, _| connection.send_message_on(channel, order, data));
        sent.ok_or(SendError::NotOpen)?
    }

    /// Moves the data that a source sends to a client to another lane. The lanes set the order of sending.
    pub fn set_lane(&self, id: ConnectionId, source: Source, lane: Lane) {
        self.change(id, |connection, _| connection.set_lane(source, lane));
    }

    /// Closes a connection, with a reason of up to 255 bytes for the client. To refuse a client, close at
    /// [`ServerEvent::Connecting`] with [`CloseCode::NOT_ACCEPTED`] or a code of the application: the client
    /// receives the code and the reason. No effect if the connection no longer exists.
    pub fn close(&self, id: ConnectionId, code: CloseCode, reason: &str) {
        self.change(id, |connection, now| connection.close(now, code, reason));
    }

    /// Starts to shut down: closes all connections with [`CloseCode::SHUTTING_DOWN`], except those that the
    /// application has closed with a code and a reason of its own, and accepts no more. Keep the server
    /// running until [`is_shut_down`](Self::is_shut_down), so that the closes are sent.
    pub fn shut_down(&self) {
        for handle in self.team.handles() {
            let _over = handle.shared.act(Serving::shut_down);
        }
    }

    /// Whether it was shut down, and no connection is left.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.team.handles().iter().all(|handle| handle.shared.lock().end().is_some())
    }

    /// Shuts down gracefully: [`shut_down`](Self::shut_down), and waits up to `max` until every close is
    /// sent. Events in that time are dropped.
    ///
    /// # Errors
    /// [`FinishError`].
    pub fn finish(self, max: Duration) -> Result<(), FinishError> {
        let until = self.finishing(max);
        for handle in self.team.handles() {
            let max = handle.shared.clock.until(until);
            let finished = handle.wait_for(max, |state, now| finished(state, now, until))?;
            finished.unwrap_or(Err(FinishError::TimedOut))?;
        }
        Ok(())
    }

    /// Shuts down gracefully as [`finish`](Self::finish) does; to be awaited.
    ///
    /// # Errors
    /// [`FinishError`].
    pub async fn finish_async(self, max: Duration) -> Result<(), FinishError> {
        let until = self.finishing(max);
        for handle in self.team.handles() {
            let finished = handle.when(|state, now| finished(state, now, until)).await?;
            finished.unwrap_or(Err(FinishError::TimedOut))?;
        }
        Ok(())
    }

    fn finishing(&self, max: Duration) -> Instant {
        let mut until = Instant::ZERO;
        for handle in self.team.handles() {
            let now = handle.shared.clock.now();
            until = now + max;
            handle.shared.order(|state| {
                state.end.shut_down(now);
                state.watch(until);
            });
        }
        until
    }

    /// All connections, including those in their handshake.
    #[must_use]
    pub fn connections(&self) -> Vec<ConnectionId> {
        let all = self.team.handles().iter().map(|handle| {
            handle.shared.look(|end| end.machine.worker.connections().collect::<Vec<_>>())
        });
        all.flatten().collect()
    }

    /// Reads a connection: its RTT, progress, statistics, state. `None` if it no longer exists. The network
    /// thread waits until `look` returns, so keep it short.
    pub fn with_connection<R>(
        &self,
        id: ConnectionId,
        look: impl FnOnce(&Connection) -> R,
    ) -> Option<R> {
        self.team.of(id)?.shared.look(|end| end.machine.worker.connection(id).map(look))
    }

    /// The counters of a connection.
    #[must_use]
    pub fn connection_stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        self.with_connection(id, Connection::stats)
    }

    /// The next event of the trace of any connection, if the settings of connections ask for one
    /// ([`ConnectionConfig::trace`](haulier_proto::connection::ConnectionConfig::trace)) and no
    /// [sink](Listen::with_trace_sink) takes it. Those of a connection are in order.
    #[must_use]
    pub fn poll_trace(&self) -> Option<(ConnectionId, Traced)> {
        let mut handles = self.team.handles().iter();
        let (id, traced) = handles.find_map(|handle| handle.shared.poll_trace())?;
        Some((id?, traced))
    }

    /// The progress of the block being sent.
    #[must_use]
    pub fn sending(&self, id: ConnectionId) -> Option<BlockProgress> {
        self.with_connection(id, Connection::sending)?
    }

    /// The progress of the block being received.
    #[must_use]
    pub fn receiving(&self, id: ConnectionId) -> Option<BlockProgress> {
        self.with_connection(id, Connection::receiving)?
    }

    /// The state of a connection.
    #[must_use]
    pub fn state(&self, id: ConnectionId) -> Option<ConnectionState> {
        self.with_connection(id, Connection::state)
    }

    /// Limits the rate of a connection's blocks, in bits per second; less than 4000 counts as 4000. A limit
    /// in the client's token still applies.
    pub fn set_max_rate_bps(&self, id: ConnectionId, rate_bps: u64) {
        self.change(id, |connection, _| connection.set_max_rate_bps(rate_bps));
    }

    /// Memory that the program holds for this client, in bytes; it replaces the number of the call before.
    /// It counts to the limit of memory of the server: [`ServerLimits::memory_bytes`].
    ///
    /// [`ServerLimits::memory_bytes`]: crate::ServerLimits::memory_bytes
    pub fn set_application_bytes(&self, id: ConnectionId, bytes: usize) {
        self.change(id, |connection, _| connection.set_application_bytes(bytes));
    }

    /// Changes how much the blocks of a connection may take of the link, from the next slice on.
    pub fn set_urgency(&self, id: ConnectionId, urgency: Urgency) {
        self.change(id, |connection, _| connection.set_urgency(urgency));
    }

    /// The number of workers: threads, each with its part of the connections.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.team.handles().len()
    }

    /// A clone of this server whose events are those of one worker only, counted from 0: for an application
    /// that has a thread for each worker. In everything else it is like any other clone, for all connections.
    /// `None` if no worker has this number. Each event goes to one handle only, so an application uses either
    /// such clones or one handle for all workers.
    #[must_use]
    pub fn worker(&self, number: usize) -> Option<Self> {
        (number < self.workers()).then(|| Self { only: Some(number), ..self.clone() })
    }

    /// The way in for peers that something else than its socket carries: WebTransport, a relay, a queue.
    #[must_use]
    pub fn gateway(&self) -> Gateway {
        let workers = self.team.handles().iter().map(|handle| Arc::downgrade(&handle.shared));
        Gateway::new(workers, Arc::clone(&self.team.common.carriage))
    }

    /// The counters of the server.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        let mut all = ServerStats::default();
        let handles = self.team.handles().iter();
        handles.for_each(|handle| all += handle.shared.look(|end| end.machine.worker.stats()));
        self.team.common.desk().complete(all)
    }

    /// Datagrams that were not used, by reason.
    #[must_use]
    pub fn drops(&self) -> DropCounts {
        let mut all = DropCounts::default();
        let handles = self.team.handles().iter();
        handles.for_each(|handle| all += handle.shared.look(|end| *end.machine.worker.drops()));
        all
    }

    /// The address it listens at.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// A ticket to this server, which its clients reach at these addresses, the likeliest first: its
    /// secret, or mode `open`, and the identity if it has one. `None` if the server accepts only tokens.
    ///
    /// # Errors
    /// [`TicketError`]: for none or more than 8 addresses, or one that clients cannot reach.
    pub fn ticket(&self, addresses: &[SocketAddr]) -> Result<Option<Ticket>, TicketError> {
        let Some(handle) = self.team.handles().first() else { return Ok(None) };
        handle.shared.look(|end| secrets::ticket(end.machine.worker.config(), addresses))
    }

    /// A ticket for clients with [`ServerCredentials::other_secret`](crate::ServerCredentials::other_secret);
    /// `None` without such a secret.
    ///
    /// # Errors
    /// As [`ticket`](Self::ticket).
    pub fn other_ticket(&self, addresses: &[SocketAddr]) -> Result<Option<Ticket>, TicketError> {
        let Some(handle) = self.team.handles().first() else { return Ok(None) };
        handle.shared.look(|end| secrets::other_ticket(end.machine.worker.config(), addresses))
    }

    pub(super) fn change<R>(
        &self,
        id: ConnectionId,
        change: impl FnOnce(&mut Connection, Instant) -> R,
    ) -> Option<R> {
        let handle = self.team.of(id)?;
        handle.shared.act(|end, now| Some(change(end.machine.worker.connection_mut(id)?, now)))?
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
