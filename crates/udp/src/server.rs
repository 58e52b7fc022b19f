//! A server on a real socket.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haulier_proto::bulk::repair;
use haulier_proto::server::{ServerConfig, ServerMachine};
use haulier_proto::{Instant, Machine as _};

use crate::machine::platform;
use crate::turn::{Machine, Turns};
use crate::{Clock, Socket};

/// Drives a [`ServerMachine`] and all its clients in the caller's thread.
#[derive(Debug)]
pub struct ServerDriver {
    /// The server, for the application to speak to between turns.
    pub server: ServerMachine,
    turns: Turns,
}

impl ServerDriver {
    /// Listens at `local`; port 0 lets the system choose one. Whether this machine has AES is found out here.
    ///
    /// # Errors
    /// As the system says, for example when the address is in use.
    pub fn bind(local: SocketAddr, config: ServerConfig) -> io::Result<Self> {
        Self::with_socket(Socket::bind(local)?, config)
    }

    /// The same on a socket of one's own, which must not be connected.
    ///
    /// # Errors
    /// As the system says.
    pub fn with_socket(socket: Socket, config: ServerConfig) -> io::Result<Self> {
        repair::prepare();
        let clock = Clock::start();
        let server = ServerMachine::new(clock.now(), unix_time(), config, platform()?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Self { server, turns: Turns::new(socket, clock) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.turns.socket().local_addr()
    }

    /// The socket, to look at.
    #[must_use]
    pub const fn socket(&self) -> &Socket {
        self.turns.socket()
    }

    /// The clock that the server's time is counted by.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        self.turns.clock()
    }

    /// Receives, acts and sends; then waits for the next datagram or deadline, but no longer than `most`, and
    /// receives and acts again. Zero never waits: for once a frame. Ask [`Server::poll_event`] after each
    /// turn; what it brings about is sent by the next.
    ///
    /// # Errors
    /// Those of the socket that will not pass. Never for one packet, one client, full buffers, or an ICMP
    /// error.
    pub fn turn(&mut self, most: Duration) -> io::Result<()> {
        self.round()?;
        if most.is_zero() {
            return Ok(());
        }
        self.turns.wait(&self.server, most)?;
        self.turns.round(&mut self.server)
    }

    /// One turn without the wait: receives what is there, acts on what is due, sends what there is to send.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn round(&mut self) -> io::Result<()> {
        // Tokens expire by the time of day, which others may set.
        self.server.set_unix_time(self.turns.clock().now(), unix_time());
        self.turns.round(&mut self.server)
    }

    /// Waits until a turn would have something to do, but no longer than `most`.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn wait(&mut self, most: Duration) -> io::Result<()> {
        self.turns.wait(&self.server, most)
    }

    /// Sends what the application has said since the last turn, and does nothing else: for whoever
    /// answers an event and will not wait for the next frame.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn flush(&mut self) -> io::Result<()> {
        self.turns.flush(&mut self.server)
    }
}

/// Seconds since 1970; zero on a machine that thinks it is earlier.
pub(crate) fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Machine for ServerMachine {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        // A refusal is an ordinary outcome, already counted.
        let _counted = Self::handle_datagram(self, now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        Self::handle_timeout(self, now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        self.poll_datagram(now, datagram).map(|to| to.remote)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Self::poll_timeout(self)
    }
}
