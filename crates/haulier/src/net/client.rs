//! A game's client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use haulier_core::{Instant, debug_as};
use haulier_proto::Sequence;
use haulier_proto::client::WireBytes;
use haulier_proto::connection::trace::Traced;
use haulier_proto::connection::{
    BlockProgress, CloseCode, CloseReason, Connection, ConnectionState, ConnectionStats, Event,
    Lane, Order, SendError, Source, Urgency,
};
use haulier_udp::{Clock, Socket};

use super::aes;
use super::asking::Asking;
use super::connect::Connect;
use super::error::{ConnectError, FinishError, NetworkError};
use super::handle::{Handle, StartError};
use super::race::Attempt;
use super::shared::State;

/// A client of a game, and its connection to a server.
///
/// It is a handle: a network thread does the work, also while the game loads a level.
/// Clone it to send from one thread or task while another waits for events; each event goes to one of them.
/// When the last clone is dropped the connection is closed with [`CloseCode::DONE`], and unacknowledged data
/// may be lost: [`finish`](Self::finish) waits for it. See [`Connect`] for a client without a thread.
///
/// ```no_run
/// use haulier::{Client, Event};
///
/// let client = Client::connect("haulier1:...the line the server has printed...")?;
/// loop {
///     while let Some(event) = client.poll()? {
///         match event {
///             // If it is turned away, the send fails, and `Closed` is next.
///             Event::Connected => drop(client.send_message("hello")),
///             Event::BlockProgress { received, length, .. } => println!("{received}/{length}"),
///             Event::Block { data, .. } => println!("the world has {} bytes", data.len()),
///             Event::Closed(reason) => return Ok(println!("{reason}")),
///             _ => {}
///         }
///     }
///     // ... the rest of the frame ...
/// }
/// # #[allow(unreachable_code, reason = "a game's loop")]
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Awaited, with any executor:
///
/// ```
/// use haulier::{Block, Client, CloseCode, Connect, Credentials, Event};
/// use haulier::{Server, ServerConfig, ServerCredentials, ServerEvent};
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let credentials = ServerCredentials::default().with_open_access();
/// let server = Server::bind("127.0.0.1:0", ServerConfig::new(7, credentials))?;
/// let address = server.local_addr();
/// let serve = async {
///     let world = Block::new(1, vec![7; 100_000]);
///     while let Some((id, event)) = server.next_event().await? {
///         match event {
///             ServerEvent::Connecting { .. } => {
///                 if server.send_block(id, &world).is_err() {
///                     server.close(id, CloseCode::NOT_ACCEPTED, "your limit is below our world");
///                 }
///             }
///             ServerEvent::Connection(Event::Closed(_)) => break,
///             _ => {}
///         }
///     }
///     Ok::<_, Box<dyn std::error::Error>>(())
/// };
/// let join = async {
///     let client = Client::connect(Connect::new(address, 7, Credentials::Open))?;
///     client.connected().await?;
///     while let Some(event) = client.next_event().await? {
///         if let Event::Block { data, .. } = event {
///             assert_eq!(data, vec![7; 100_000]);
///             break;
///         }
///     }
///     client.finish_async(Duration::from_secs(5)).await?;
///     Ok::<_, Box<dyn std::error::Error>>(())
/// };
/// tokio::try_join!(serve, join)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle<Asking>>,
}

debug_as! { Client: |client| server = client.server(), state = client.state() }

impl Client {
    /// Starts to connect, and returns at once: [`Event::Connected`] or [`Event::Closed`] reports the result,
    /// or await [`connected`](Self::connected). `to` is the text of a ticket or connect token, either of
    /// these parsed, a [`ClientConfig`](haulier_proto::client::ClientConfig), or a [`Connect`].
    ///
    /// # Errors
    /// [`ConnectError`]: for a text that is neither, no usable address, or no socket.
    pub fn connect(
        to: impl TryInto<Connect, Error: Into<ConnectError>>,
    ) -> Result<Self, ConnectError> {
        let connect = to.try_into().map_err(Into::into)?;
        connect.check()?;
        #[cfg(feature = "tracing")]
        let connect = {
            let mut connect = connect;
            connect.sinks.add_spans(&mut connect.connection);
            connect
        };
        let (clock, drive) = (Clock::start(), connect.drive);
        let asking = Asking::new(clock.now(), connect, haulier_udp::seed()?, aes())?;
        let handle = Handle::start(asking, clock, None, drive).map_err(|error| match error {
            StartError::Io(error) => ConnectError::Io(error),
            #[cfg(feature = "tokio")]
            StartError::NoRuntime => ConnectError::NoRuntime,
        })?;
        let client = Self { handle: Arc::new(handle) };
        let has_route = !client.handle.shared.lock().locals.is_empty();
        if has_route { Ok(client) } else { Err(ConnectError::Failed(client.attempts())) }
    }

    /// Waits until there is a connection. Consumes no event: [`Event::Connected`] is still delivered.
    ///
    /// # Errors
    /// [`ConnectError::Failed`] if all addresses failed; [`ConnectError::Network`] if the driver has ended,
    /// or the client is inline.
    pub async fn connected(&self) -> Result<(), ConnectError> {
        let outcome = self.handle.when(|state, _| state.end.outcome()).await?;
        match outcome {
            Some(true) => Ok(()),
            _ => Err(ConnectError::Failed(self.attempts())),
        }
    }

    /// The next event, without waiting. Call it in a loop until `None`, once a frame.
    ///
    /// # Errors
    /// [`NetworkError`], once all events are taken.
    pub fn poll(&self) -> Result<Option<Event>, NetworkError> {
        self.handle.poll()
    }

    /// The next event; waits for it up to `max`. `None` after that, after a [wake](Self::waker), or when the
    /// client is closed and there are no more events.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn wait(&self, max: Duration) -> Result<Option<Event>, NetworkError> {
        self.handle.wait(max)
    }

    /// Ends a [`wait`](Self::wait) without an event: the current one, or else the next. For threads of the
    /// application whose results its network loop takes up, such as one that reads a disk. Several wakes
    /// before a wait has ended count as one, and each wake ends one wait. It may be used from any thread,
    /// does not wait for the network, and does not keep the connection open. A task that awaits `next_event`
    /// awaits the result beside it instead.
    ///
    /// ```
    /// # fn run(client: &haulier::Client) -> Result<(), haulier::NetworkError> {
    /// let (done, results) = std::sync::mpsc::channel();
    /// let waker = client.waker();
    /// std::thread::spawn(move || {
    ///     let _ = done.send(std::fs::read("world"));
    ///     waker.wake();
    /// });
    /// loop {
    ///     match client.wait(std::time::Duration::from_secs(1))? {
    ///         Some(event) => println!("{event:?}"),
    ///         None => results.try_iter().for_each(|read| println!("{}", read.is_ok())),
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.handle.waker()
    }

    /// The next event; `None` once the client is closed and there are no more. The future may be dropped at
    /// any time without losing an event. It works with any executor.
    ///
    /// # Errors
    /// As [`poll`](Self::poll); [`NetworkError::Inline`].
    pub async fn next_event(&self) -> Result<Option<Event>, NetworkError> {
        self.handle.when(State::take_event).await
    }

    /// Sends a time-critical packet of up to 256 KiB, once. An event reports whether it was acknowledged.
    /// Its `data` is a `Vec<u8>`, a `String`, [`Bytes`](crate::Bytes) or a literal; of a slice that is
    /// borrowed, send its `to_vec()`.
    ///
    /// # Errors
    /// [`SendError`]: wait for [`Event::Connected`] before the first.
    pub fn send_packet(&self, data: impl Into<Bytes>) -> Result<Sequence, SendError> {
        self.change(|connection, _| connection.send_packet(data)).ok_or(SendError::NotOpen)?
    }

    /// Sends a message of up to 64 KiB on channel 0: it arrives, once, in order.
    /// Its `data` is a `Vec<u8>`, a `String`, [`Bytes`](crate::Bytes) or a literal; of a slice that is
    /// borrowed, send its `to_vec()`.
    ///
    /// # Errors
    /// [`SendError`]: wait for [`Event::Connected`] before the first.
    pub fn send_message(&self, data: impl Into<Bytes>) -> Result<(), SendError> {
        self.send_message_on(0, Order::Ordered, data).map(|_number| ())
    }

    /// Sends a message of up to 64 KiB on a channel: it arrives, once. Returns its number on the channel,
    /// for [`Event::MessageAcked`]. What is missing on one channel delays no other, and an unordered message
    /// waits for none.
    ///
    /// # Errors
    /// [`SendError`]: wait for [`Event::Connected`] before the first.
    pub fn send_message_on(
        &self,
        channel: u8,
        order: Order,
        data: impl Into<Bytes>,
    ) -> Result<u64, SendError> {
        self.change(|connection, _| connection.send_message_on(channel, order, data))
            .ok_or(SendError::NotOpen)?
    }

    /// Moves the data that a source of this client sends to another lane. The lanes set the order of sending.
    /// No effect before [`Event::Connected`].
    pub fn set_lane(&self, source: Source, lane: Lane) {
        self.change(|connection, _| connection.set_lane(source, lane));
    }

    /// Whether every block and message that was sent is acknowledged.
    #[must_use]
    pub fn all_acked(&self) -> bool {
        self.with_connection(Connection::all_acked).unwrap_or(true)
    }

    /// Closes the connection, with a reason of up to 255 bytes for the server. Nothing is received after
    /// that.
    pub fn close(&self, code: CloseCode, reason: &str) {
        self.handle.shared.act(|end, now| end.close(now, code, reason));
    }

    /// Whether the connection is closed, and the close was sent: there will be no more events.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        let state = self.handle.shared.lock();
        state.end().is_some()
    }

    /// Closes gracefully: waits until all blocks and messages sent are acknowledged, closes with
    /// [`CloseCode::DONE`], and waits until the close is sent, all within `max`. Events in that time are
    /// dropped. After a [`close`](Self::close) by the application it waits until that close is sent. Returns
    /// how the connection ended.
    ///
    /// # Errors
    /// [`FinishError`]; the connection is closed nevertheless.
    pub fn finish(self, max: Duration) -> Result<CloseReason, FinishError> {
        let mut finish = self.finishing(max);
        let finished = self.handle.wait_for(max, |state, now| finish.check(state, now))?;
        finish.outcome(finished)
    }

    /// Closes gracefully as [`finish`](Self::finish) does; to be awaited.
    ///
    /// # Errors
    /// [`FinishError`]; the connection is closed nevertheless.
    pub async fn finish_async(self, max: Duration) -> Result<CloseReason, FinishError> {
        let mut finish = self.finishing(max);
        let finished = self.handle.when(|state, now| finish.check(state, now)).await?;
        finish.outcome(finished)
    }

    fn finishing(&self, max: Duration) -> Finish {
        let until = self.handle.shared.clock.now() + max;
        self.handle.shared.order(|state| state.watch(until));
        Finish { until, ended: None }
    }

    /// Reads the connection: its RTT, progress, statistics, state. `None` before the server's welcome is
    /// verified. The network thread waits until `look` returns, so keep it short.
    pub fn with_connection<R>(&self, look: impl FnOnce(&Connection) -> R) -> Option<R> {
        self.handle.shared.look(|end| end.connection().map(look))
    }

    /// The counters of the connection.
    #[must_use]
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.with_connection(Connection::stats)
    }

    /// The next event of its trace, if its settings ask for one
    /// ([`ConnectionConfig::trace`](haulier_proto::connection::ConnectionConfig::trace)) and no
    /// [sink](Connect::with_trace_sink) takes it.
    #[must_use]
    pub fn poll_trace(&self) -> Option<Traced> {
        self.handle.shared.poll_trace().map(|(_, traced)| traced)
    }

    /// The progress of the block being sent.
    #[must_use]
    pub fn sending(&self) -> Option<BlockProgress> {
        self.with_connection(Connection::sending)?
    }

    /// The progress of the block being received.
    #[must_use]
    pub fn receiving(&self) -> Option<BlockProgress> {
        self.with_connection(Connection::receiving)?
    }

    /// The state of the connection.
    #[must_use]
    pub fn state(&self) -> Option<ConnectionState> {
        self.with_connection(Connection::state)
    }

    /// Limits the rate of blocks, in bits per second; less than 4000 counts as 4000.
    pub fn set_max_rate_bps(&self, rate_bps: u64) {
        self.change(|connection, _| connection.set_max_rate_bps(rate_bps));
    }

    /// Changes how much blocks may take of the link, from the next slice on.
    pub fn set_urgency(&self, urgency: Urgency) {
        self.change(|connection, _| connection.set_urgency(urgency));
    }

    /// The server's address; one of several while connecting.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.handle.shared.look(Asking::server)
    }

    /// The addresses tried so far, and the results.
    #[must_use]
    pub fn attempts(&self) -> Vec<Attempt> {
        self.handle.shared.look(|end| end.attempts().to_vec())
    }

    /// Bytes of all datagrams, including the handshake and failed attempts.
    #[must_use]
    pub fn wire_bytes(&self) -> WireBytes {
        self.handle.shared.look(Asking::wire_bytes)
    }

    /// The local address of its socket; of the newest one while several addresses are tried.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.handle.local_addr()
    }

    /// A warning for the user if the system gives its socket too little buffer memory, with what to do.
    #[must_use]
    pub fn buffer_warning(&self) -> Option<String> {
        self.handle.shared.lock().buffers?.warning()
    }

    /// Moves to a new socket: call it when the network has changed, for example from Wi-Fi to mobile. The
    /// connection continues. Before there is a connection this has no effect.
    ///
    /// # Errors
    /// The system's error; the old socket is kept then.
    pub fn rebind(&self) -> std::io::Result<()> {
        let Some(server) = self.with_connection(Connection::address) else { return Ok(()) };
        self.handle.rebind(Socket::connect(server)?);
        Ok(())
    }

    /// Moves to a new socket if the system would reach the server from another local address now: its own was
    /// lost, or the network has changed. Returns whether it has moved. It costs a few system calls: a program
    /// that gets no notice of changes may call it whenever nothing has arrived for half a second.
    ///
    /// # Errors
    /// The system's error, such as that no network leads to the server now; the old socket is kept then.
    pub fn rebind_if_moved(&self) -> std::io::Result<bool> {
        let Some(server) = self.with_connection(Connection::address) else { return Ok(false) };
        let socket = Socket::connect(server)?;
        let has_moved = socket.local_addr().ip() != self.local_addr().ip();
        if has_moved {
            self.handle.rebind(socket);
        }
        Ok(has_moved)
    }

    pub(super) fn change<R>(
        &self,
        change: impl FnOnce(&mut Connection, Instant) -> R,
    ) -> Option<R> {
        self.handle.shared.act(|end, now| Some(change(end.connection_mut()?, now)))?
    }
}

/// A client that closes gracefully.
struct Finish {
    until: Instant,
    ended: Option<CloseReason>,
}

impl Finish {
    /// Once it is over, whether everything was acknowledged.
    fn check(&mut self, state: &mut State<Asking>, now: Instant) -> Option<bool> {
        while let Some(event) = state.take_event(now) {
            if let Event::Closed(reason) = event {
                self.ended.get_or_insert(reason);
            }
        }
        let is_late = now >= self.until;
        let all_acked = state.end.connection().is_none_or(Connection::all_acked);
        if is_late || all_acked {
            state.end.close(now, CloseCode::DONE, "");
        }
        let is_over = matches!(state.end(), Some(Ok(())));
        (is_late || is_over).then_some(all_acked || self.ended.is_some())
    }

    fn outcome(self, finished: Option<bool>) -> Result<CloseReason, FinishError> {
        match finished {
            Some(false) => Err(FinishError::TimedOut),
            _ => Ok(self.ended.unwrap_or(CloseReason::Here(CloseCode::DONE))),
        }
    }
}
