//! A client on a real socket.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::client::{ClientConfig, ClientMachine};
use haulier_proto::{Instant, Machine as _};

use crate::machine::{platform, prepare};
use crate::turn::{Machine, Turns};
use crate::{Clock, Socket};

/// Drives a [`ClientMachine`] in the caller's thread.
#[derive(Debug)]
pub struct ClientDriver {
    /// The client, for the application to speak to between turns.
    pub client: ClientMachine,
    turns: Turns,
}

impl ClientDriver {
    /// Opens a socket to the configured server, and begins to ask. Whether this machine has AES is found
    /// out here.
    ///
    /// # Errors
    /// As the system says; [`io::ErrorKind::InvalidInput`] for a configuration that makes no client.
    pub fn connect(config: ClientConfig) -> io::Result<Self> {
        Self::with_socket(Socket::connect(config.server)?, config)
    }

    /// The same on a socket of one's own, connected or not.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn with_socket(socket: Socket, config: ClientConfig) -> io::Result<Self> {
        let clock = Clock::start();
        let client = ClientMachine::new(clock.now(), config, platform()?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Self { client, turns: Turns::new(socket, clock) })
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

    /// The clock that the client's time is counted by.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        self.turns.clock()
    }

    /// Receives, acts and sends; then waits for the next datagram or deadline, but no longer than `most`, and
    /// does it again. Zero never waits: for once a frame. Ask [`Client::poll_event`] after each turn.
    ///
    /// # Errors
    /// Those of the socket that will not pass. Never for one packet, full buffers, or an ICMP error.
    pub fn turn(&mut self, most: Duration) -> io::Result<()> {
        self.round()?;
        if most.is_zero() {
            return Ok(());
        }
        self.turns.wait(&self.client, most)?;
        self.turns.round(&mut self.client)
    }

    /// One turn without the wait: receives what is there, acts on what is due, sends what there is to send.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn round(&mut self) -> io::Result<()> {
        self.turns.round(&mut self.client)?;
        // Now that the request is on its way: the spaces between its copies tell the server the rate.
        prepare();
        Ok(())
    }

    /// Waits until a turn would have something to do, but no longer than `most`.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn wait(&mut self, most: Duration) -> io::Result<()> {
        self.turns.wait(&self.client, most)
    }

    /// Sends what the application has said since the last turn, and does nothing else: for whoever
    /// answers an event and will not wait for the next frame.
    ///
    /// # Errors
    /// As [`turn`](Self::turn).
    pub fn flush(&mut self) -> io::Result<()> {
        self.turns.flush(&mut self.client)
    }

    /// Goes on from a new socket: after the network under it has changed, from Wi-Fi to mobile, say. The
    /// server hears of it with the next turn, and the connection lives on.
    ///
    /// # Errors
    /// As the system says; then the old socket is still there.
    pub fn rebind(&mut self) -> io::Result<()> {
        self.replace_socket(Socket::connect(self.client.server())?).map(drop)
    }

    /// The same with a socket of one's own. Returns the old one.
    ///
    /// # Errors
    /// As [`rebind`](Self::rebind).
    pub fn replace_socket(&mut self, socket: Socket) -> io::Result<Socket> {
        let old = self.turns.replace_socket(socket);
        if let Some(connection) = self.client.connection_mut() {
            connection.ping();
        }
        Ok(old)
    }
}

impl Machine for ClientMachine {
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
