//! A game's server: asked once a frame, or waited for.

use std::io;
use std::time::{Duration, Instant};

use haulier_proto::server::ServerConfig;
use haulier_udp::ServerDriver;

use super::client::time_left;

/// What a server that is polled and one that is awaited have in common.
macro_rules! server_face {
    ($(#[$about:meta])* $driver:ident) => {
        $(#[$about])*
        #[derive(Debug)]
        pub struct Server {
            driver: $driver,
            /// Events are being handed out that one round has brought.
            is_draining: bool,
            is_shutting_down: bool,
        }

        impl Server {
            fn listen(local: impl ToSocketAddrs, config: ServerConfig) -> io::Result<Self> {
                let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no address to bind");
                for local in local.to_socket_addrs()? {
                    match $driver::bind(local, config.clone()) {
                        Ok(driver) => {
                            let (is_draining, is_shutting_down) = (false, false);
                            return Ok(Self { driver, is_draining, is_shutting_down });
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }

            /// The next thing to hear, and of which client, without waiting. Ask in a loop until `None`, once
            /// a frame: the first call receives and sends, and the one that says `None` sends what you have
            /// said meanwhile.
            ///
            /// # Errors
            /// Those of the socket that will not pass. Never for one packet, one client, full buffers, or an
            /// ICMP error.
            pub fn poll(&mut self) -> io::Result<Option<(ConnectionId, ServerEvent)>> {
                if !self.is_draining {
                    self.driver.round()?;
                    self.is_draining = true;
                }
                if let Some(event) = self.driver.server.poll_event(self.driver.clock().now()) {
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

            /// The connections there are, those in their handshake included.
            #[must_use]
            pub fn connections(&self) -> Vec<ConnectionId> {
                self.driver.server.connections().collect()
            }

            /// A connection, to look at; `None` when it is gone.
            #[must_use]
            pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
                self.driver.server.connection(id)
            }

            /// A connection, to change its rate for example; `None` when it is gone.
            #[must_use]
            pub fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
                self.driver.server.connection_mut(id)
            }

            /// Sends a block of any size, which arrives whole. Make the [`Block`] once for all clients: it is
            /// hashed then, and its bytes are never copied.
            ///
            /// # Errors
            /// [`SendError`]; `NotOpen` also for a connection that is gone.
            pub fn send_block(
                &mut self,
                id: ConnectionId,
                block: &Block,
            ) -> Result<BlockHandle, SendError> {
                let now = self.driver.clock().now();
                self.connection_mut(id).ok_or(SendError::NotOpen)?.send_block(now, block)
            }

            /// Sends a packet of up to 256 KiB, once: time-critical, and told to be acked or lost.
            ///
            /// # Errors
            /// [`SendError`]; `NotOpen` also for a connection that is gone.
            pub fn send_packet(
                &mut self,
                id: ConnectionId,
                data: impl Into<Bytes>,
            ) -> Result<Sequence, SendError> {
                self.connection_mut(id).ok_or(SendError::NotOpen)?.send_packet(data)
            }

            /// Sends a message of up to 1024 bytes: it arrives, once, in order.
            ///
            /// # Errors
            /// [`SendError`]; `NotOpen` also for a connection that is gone.
            pub fn send_message(
                &mut self,
                id: ConnectionId,
                data: impl Into<Bytes>,
            ) -> Result<(), SendError> {
                self.connection_mut(id).ok_or(SendError::NotOpen)?.send_message(data)
            }

            /// Closes a connection, with up to 200 bytes for the client to show. To turn a client away, do it
            /// at [`ServerEvent::Connecting`], with [`CloseCode::NOT_ACCEPTED`]. Nothing happens if it is
            /// gone.
            pub fn close(&mut self, id: ConnectionId, code: CloseCode, reason: &str) {
                let now = self.driver.clock().now();
                if let Some(connection) = self.connection_mut(id) {
                    connection.close(now, code, reason);
                }
            }

            /// Begins to go away: closes all connections, and takes no more. Go on until
            /// [`is_shut_down`](Self::is_shut_down), so that the clients hear of it.
            pub fn shut_down(&mut self) {
                self.is_shutting_down = true;
                self.driver.server.shut_down(self.driver.clock().now());
            }

            /// Whether it was shut down, and no connection is left.
            #[must_use]
            pub fn is_shut_down(&self) -> bool {
                self.is_shutting_down && self.driver.server.stats().connections == 0
            }

            /// What it has counted.
            #[must_use]
            pub fn stats(&self) -> ServerStats {
                self.driver.server.stats()
            }

            /// Datagrams that were not used, by reason.
            #[must_use]
            pub const fn drops(&self) -> &DropCounts {
                self.driver.server.drops()
            }

            /// Where it listens.
            ///
            /// # Errors
            /// As the system says.
            pub fn local_addr(&self) -> io::Result<SocketAddr> {
                self.driver.local_addr()
            }

            /// A ticket to this server, which its clients reach at these addresses, the likeliest first: its
            /// secret, or mode `open`, and the identity if it has one.
            ///
            /// # Errors
            /// [`TicketError`]: for none or more than 8 addresses. `None` inside if the server takes
            /// nothing but tokens.
            pub fn ticket(&self, addresses: &[SocketAddr]) -> Result<Option<Ticket>, TicketError> {
                $crate::face::ticket(self.driver.server.config(), addresses)
            }

            /// Drops what is there to hear.
            fn drain(&mut self) -> io::Result<()> {
                while self.poll()?.is_some() {}
                Ok(())
            }
        }
    };
}
#[cfg(feature = "tokio")]
pub(crate) use server_face;

/// Everything the macro names.
pub(crate) mod names {
    pub(crate) use std::net::{SocketAddr, ToSocketAddrs};

    pub(crate) use bytes::Bytes;
    pub(crate) use haulier_proto::connection::{
        Block, BlockHandle, CloseCode, Connection, SendError,
    };
    pub(crate) use haulier_proto::credentials::{Ticket, TicketError};
    pub(crate) use haulier_proto::server::{ConnectionId, ServerEvent, ServerStats};
    pub(crate) use haulier_proto::{DropCounts, Sequence};
}
use names::*;

server_face! {
    /// A server of a game and all its clients, on one socket, in the caller's thread.
    ///
    /// Two lines: `Server::bind(address, config)?`, and once a frame
    /// `while let Some((id, event)) = server.poll()? {}`. A dropped server says nothing to its clients: call
    /// [`finish`](Self::finish), or [`shut_down`](Self::shut_down) and poll on.
    ///
    /// ```no_run
    /// use haulier::{Block, CloseCode, Server, ServerConfig, ServerCredentials, ServerEvent};
    /// use haulier::random_secret;
    ///
    /// let secret = Some(random_secret()?);
    /// let credentials = ServerCredentials { secret, ..ServerCredentials::default() };
    /// let mut server = Server::bind("0.0.0.0:4016", ServerConfig::new(7, credentials))?;
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
    ServerDriver
}

impl Server {
    /// Listens at the first of `local` that can be had; port 0 lets the system choose one.
    ///
    /// # Errors
    /// As the system says, for example when the address is in use.
    pub fn bind(local: impl ToSocketAddrs, config: ServerConfig) -> io::Result<Self> {
        Self::listen(local, config)
    }

    /// The next thing to hear, and of which client; waits for it, but no longer than `most`. `None` when
    /// that is over, or when the server is shut down.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn wait(&mut self, most: Duration) -> io::Result<Option<(ConnectionId, ServerEvent)>> {
        let until = Instant::now().checked_add(most);
        loop {
            if let Some(event) = self.poll()? {
                return Ok(Some(event));
            }
            let left = time_left(until);
            if self.is_shut_down() || left.is_zero() {
                return Ok(None);
            }
            self.driver.wait(left)?;
        }
    }

    /// Goes away well: [`shut_down`](Self::shut_down), and waits until every client was told, but no longer
    /// than `most`. What still comes meanwhile is lost.
    ///
    /// # Errors
    /// As [`poll`](Self::poll); [`io::ErrorKind::TimedOut`] if there was no time to tell all.
    pub fn finish(mut self, most: Duration) -> io::Result<()> {
        let until = Instant::now().checked_add(most);
        self.shut_down();
        loop {
            self.drain()?;
            let left = time_left(until);
            if self.is_shut_down() {
                return Ok(());
            }
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.driver.wait(left)?;
        }
    }
}
