//! A game's client: asked once a frame, or waited for.

use std::io;
use std::time::{Duration, Instant};

use haulier_proto::connection::{CloseCode, CloseReason, Event};
use haulier_udp::ClientDriver;

use super::connect::{Attempts, Connect, ConnectError};

const LONG: Duration = Duration::from_secs(3600);

/// What a client that is polled and one that is awaited have in common.
macro_rules! client_face {
    ($(#[$about:meta])* $driver:ident) => {
        $(#[$about])*
        #[derive(Debug)]
        pub struct Client {
            driver: $driver,
            attempts: Attempts,
            /// Events are being handed out that one round has brought.
            is_draining: bool,
        }

        impl Client {
            fn open(connect: Connect) -> Result<Self, ConnectError> {
                let mut attempts = Attempts::of(connect);
                match attempts.next($driver::connect) {
                    Some(driver) => Ok(Self { driver: driver?, attempts, is_draining: false }),
                    None => Err(ConnectError::NoServer),
                }
            }

            /// The next thing to hear, without waiting. Ask in a loop until `None`, once a frame: the first
            /// call receives and sends, and the one that says `None` sends what you have said meanwhile.
            ///
            /// # Errors
            /// Those of the socket that will not pass. Never for one packet, full buffers, or an ICMP error.
            pub fn poll(&mut self) -> io::Result<Option<Event>> {
                if !self.is_draining {
                    self.driver.round()?;
                    self.is_draining = true;
                }
                while let Some(event) = self.driver.client.poll_event(self.driver.clock().now()) {
                    if let Event::Closed(reason) = &event
                        && Attempts::may_go_on(reason)
                        && let Some(Ok(next)) = self.attempts.next($driver::connect)
                    {
                        self.driver = next;
                        continue;
                    }
                    return Ok(Some(event));
                }
                self.is_draining = false;
                self.driver.flush()?;
                Ok(None)
            }

            /// Sends what was said since the last [`poll`](Self::poll), at once and not with the next frame.
            ///
            /// # Errors
            /// As [`poll`](Self::poll).
            pub fn flush(&mut self) -> io::Result<()> {
                self.driver.flush()
            }

            /// The connection, once the server's welcome is verified: its round trip, progress, statistics,
            /// state.
            #[must_use]
            pub fn connection(&self) -> Option<&Connection> {
                self.driver.client.connection()
            }

            /// The connection, to change its rate for example.
            #[must_use]
            pub fn connection_mut(&mut self) -> Option<&mut Connection> {
                self.driver.client.connection_mut()
            }

            /// Sends a block of any size, which arrives whole. Its bytes are not copied.
            ///
            /// # Errors
            /// [`SendError`]: wait for [`Event::Connected`] before the first.
            pub fn send_block(&mut self, block: &Block) -> Result<BlockHandle, SendError> {
                let now = self.driver.clock().now();
                self.connection_mut().ok_or(SendError::NotOpen)?.send_block(now, block)
            }

            /// Sends a packet of up to 256 KiB, once: time-critical, and told to be acked or lost.
            ///
            /// # Errors
            /// [`SendError`]: wait for [`Event::Connected`] before the first.
            pub fn send_packet(&mut self, data: impl Into<Bytes>) -> Result<Sequence, SendError> {
                self.connection_mut().ok_or(SendError::NotOpen)?.send_packet(data)
            }

            /// Sends a message of up to 1024 bytes: it arrives, once, in order.
            ///
            /// # Errors
            /// [`SendError`]: wait for [`Event::Connected`] before the first.
            pub fn send_message(&mut self, data: impl Into<Bytes>) -> Result<(), SendError> {
                self.connection_mut().ok_or(SendError::NotOpen)?.send_message(data)
            }

            /// Whether every block and message that was sent is acknowledged.
            #[must_use]
            pub fn all_acked(&self) -> bool {
                self.connection().is_none_or(Connection::all_acked)
            }

            /// Closes, with up to 200 bytes for the server to show. Go on until
            /// [`is_closed`](Self::is_closed), so that the server hears of it.
            pub fn close(&mut self, code: CloseCode, reason: &str) {
                let now = self.driver.clock().now();
                self.driver.client.close(now, code, reason);
            }

            /// Whether it is over, and was said so: nothing will be heard or sent any more.
            #[must_use]
            pub fn is_closed(&self) -> bool {
                self.driver.client.is_closed()
            }

            /// Where the server is; one of several while it is being found.
            #[must_use]
            pub fn server(&self) -> SocketAddr {
                self.driver.client.server()
            }

            /// The address of its own socket.
            ///
            /// # Errors
            /// As the system says.
            pub fn local_addr(&self) -> io::Result<SocketAddr> {
                self.driver.local_addr()
            }

            /// Goes on from a new socket: call it when the network under the game has changed, from Wi-Fi to
            /// mobile, say. The connection lives on.
            ///
            /// # Errors
            /// As the system says; then the old socket is still there.
            pub fn rebind(&mut self) -> io::Result<()> {
                self.driver.rebind()
            }

            /// Begins to close when all is acked, or when it must. Returns how it ended, as far as it has.
            fn finishing(&mut self, is_late: bool) -> io::Result<Option<CloseReason>> {
                let mut ended = None;
                while let Some(event) = self.poll()? {
                    if let Event::Closed(reason) = event {
                        ended = Some(reason);
                    }
                }
                if is_late || self.all_acked() {
                    self.close(CloseCode::DONE, "");
                }
                Ok(ended)
            }
        }
    };
}
#[cfg(feature = "tokio")]
pub(crate) use client_face;

/// Everything the macro names.
pub(crate) mod names {
    pub(crate) use std::net::SocketAddr;

    pub(crate) use bytes::Bytes;
    pub(crate) use haulier_proto::Sequence;
    pub(crate) use haulier_proto::connection::{Block, BlockHandle, Connection, SendError};
}
use names::*;

client_face! {
    /// A client of a game, and its connection to a server, in the caller's thread.
    ///
    /// Two lines: `Client::connect(ticket)?`, and once a frame `while let Some(event) = client.poll()? {}`.
    /// A dropped client says nothing to its server, which notices after the idle time-out: call
    /// [`finish`](Self::finish), or [`close`](Self::close) and poll on.
    ///
    /// ```no_run
    /// use haulier::{Client, Event};
    ///
    /// let mut client = Client::connect("haulier1:...the line the server has printed...")?;
    /// loop {
    ///     while let Some(event) = client.poll()? {
    ///         match event {
    ///             Event::Connected => client.send_message("hello")?,
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
    ClientDriver
}

impl Client {
    /// Opens a socket and begins to ask. Returns at once: [`Event::Connected`] or [`Event::Closed`] says
    /// how it went. `to` is the text of a ticket or connect token, either of these read, a
    /// [`ClientConfig`](haulier_proto::client::ClientConfig), or a [`Connect`].
    ///
    /// # Errors
    /// [`ConnectError`]: for a text that is neither, a token without addresses, or no socket.
    pub fn connect(
        to: impl TryInto<Connect, Error: Into<ConnectError>>,
    ) -> Result<Self, ConnectError> {
        Self::open(to.try_into().map_err(Into::into)?)
    }

    /// The next thing to hear; waits for it, but no longer than `most`. `None` when that is over, or when
    /// the client is closed and nothing will ever come.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn wait(&mut self, most: Duration) -> io::Result<Option<Event>> {
        let until = Instant::now().checked_add(most);
        loop {
            if let Some(event) = self.poll()? {
                return Ok(Some(event));
            }
            let left = time_left(until);
            if self.is_closed() || left.is_zero() {
                return Ok(None);
            }
            self.driver.wait(left)?;
        }
    }

    /// Leaves well: waits until all blocks and messages sent are acknowledged, closes with `done`, and waits
    /// until that is said, all within `most`. What still comes meanwhile is lost. Returns how it ended.
    ///
    /// # Errors
    /// As [`poll`](Self::poll); [`io::ErrorKind::TimedOut`] if not everything was acknowledged: the
    /// connection is closed all the same.
    pub fn finish(mut self, most: Duration) -> io::Result<CloseReason> {
        let until = Instant::now().checked_add(most);
        let (mut ended, mut was_acked) = (None, true);
        loop {
            let is_late = time_left(until).is_zero();
            was_acked &= !is_late || self.all_acked();
            ended = ended.or(self.finishing(is_late)?);
            if self.is_closed() || is_late {
                break;
            }
            self.driver.wait(time_left(until))?;
        }
        self.flush()?;
        match was_acked {
            true => Ok(ended.unwrap_or(CloseReason::Here(CloseCode::DONE))),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// The time until then, or an hour where there is more: the system's own waits count milliseconds in 31 bits.
pub(crate) fn time_left(until: Option<Instant>) -> Duration {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    left.unwrap_or(LONG).min(LONG)
}
