//! The drivers again, over tokio's socket: awaited instead of polled.
//!
//! Nothing is spawned: a driver works while one of its futures is awaited, and each can be dropped at any
//! await without losing a datagram or an event, because all state is in the driver.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::client::{Client, ClientConfig};
use haulier_proto::server::{Server, ServerConfig};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::server::unix_time;
use crate::socket::{Meaning, any_local, open, sort};
use crate::turn::{Carrier, Machine, Rounds};
use crate::{Clock, Received, Sent, has_aes, seed};

/// A wait that nothing ends but a datagram or a deadline.
const LONG: Duration = Duration::from_secs(3600);

/// A socket of tokio's with its errors sorted.
#[derive(Debug)]
struct Socket {
    inner: UdpSocket,
    is_connected: bool,
}

impl Socket {
    fn bind(local: SocketAddr) -> io::Result<Self> {
        let inner = UdpSocket::from_std(open(local)?.into())?;
        Ok(Self { inner, is_connected: false })
    }

    /// Does not wait: connecting a UDP socket sends nothing.
    fn connect(remote: SocketAddr) -> io::Result<Self> {
        let socket = open(any_local(remote))?;
        socket.connect(&remote.into())?;
        Ok(Self { inner: UdpSocket::from_std(socket.into())?, is_connected: true })
    }
}

impl Carrier for Socket {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        loop {
            match self.inner.try_recv_from(buffer) {
                Ok((bytes, from)) => return Ok(Received::Datagram(bytes, from)),
                Err(error) => match sort(&error) {
                    Meaning::NotNow => return Ok(Received::Nothing),
                    Meaning::PassesOver => {}
                    Meaning::Fatal => return Err(error),
                },
            }
        }
    }

    fn send(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<Sent> {
        let sent = match self.is_connected {
            true => self.inner.try_send(datagram),
            false => self.inner.try_send_to(datagram, to),
        };
        match sent {
            Ok(_) => Ok(Sent::Taken),
            Err(error) => match sort(&error) {
                Meaning::NotNow => Ok(Sent::Blocked),
                Meaning::PassesOver => Ok(Sent::Lost),
                Meaning::Fatal => Err(error),
            },
        }
    }
}

/// Rounds on tokio's socket, and the wait between them.
#[derive(Debug)]
struct Turns {
    socket: Socket,
    rounds: Rounds,
}

impl Turns {
    fn new(socket: Socket, clock: Clock) -> Self {
        Self { socket, rounds: Rounds::new(clock) }
    }

    fn round(&mut self, machine: &mut impl Machine) -> io::Result<()> {
        self.rounds.round(&mut self.socket, machine)
    }

    async fn wait(&self, machine: &impl Machine) -> io::Result<()> {
        let pause = self.rounds.pause(machine, LONG);
        let interest = match self.rounds.is_blocked() {
            true => Interest::READABLE | Interest::WRITABLE,
            false => Interest::READABLE,
        };
        match tokio::time::timeout(pause, self.socket.inner.ready(interest)).await {
            Ok(Err(error)) if error.kind() != ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }
}

/// Drives a [`Client`] in the task that awaits it.
#[derive(Debug)]
pub struct ClientDriver {
    /// The client, for the application to speak to between turns.
    pub client: Client,
    turns: Turns,
}

impl ClientDriver {
    /// Opens a socket to the configured server, and begins to ask with the first
    /// [`round`](Self::round).
    ///
    /// # Errors
    /// As the system says; [`io::ErrorKind::InvalidInput`] for a configuration that makes no client.
    ///
    /// # Panics
    /// Outside of a tokio runtime with its IO and time enabled.
    pub fn connect(config: ClientConfig) -> io::Result<Self> {
        let (socket, clock) = (Socket::connect(config.server)?, Clock::start());
        let config = ClientConfig { aes_hardware: has_aes(), ..config };
        let client = Client::new(clock.now(), config, seed()?)
            .map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
        Ok(Self { client, turns: Turns::new(socket, clock) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.turns.socket.inner.local_addr()
    }

    /// Receives what is there, acts on what is due, sends what there is to send. Never waits. Ask
    /// [`Client::poll_event`] afterwards.
    ///
    /// # Errors
    /// Those of the socket that will not pass.
    pub fn round(&mut self) -> io::Result<()> {
        self.turns.round(&mut self.client)
    }

    /// Sends what the application has said since the last round, and does nothing else.
    ///
    /// # Errors
    /// As [`round`](Self::round).
    pub fn flush(&mut self) -> io::Result<()> {
        self.turns.rounds.flush(&mut self.turns.socket, &mut self.client)
    }

    /// Waits until there is something for [`round`](Self::round) to do. Nothing is lost if it is dropped.
    ///
    /// # Errors
    /// As [`round`](Self::round).
    pub async fn wait(&self) -> io::Result<()> {
        self.turns.wait(&self.client).await
    }

    /// Goes on from a new socket, after the network under it has changed.
    ///
    /// # Errors
    /// As the system says; then the old socket is still there.
    ///
    /// # Panics
    /// As [`connect`](Self::connect).
    pub fn rebind(&mut self) -> io::Result<()> {
        self.turns.socket = Socket::connect(self.client.server())?;
        if let Some(connection) = self.client.connection_mut() {
            connection.ping();
        }
        Ok(())
    }
}

/// Drives a [`Server`] and all its clients in the task that awaits it.
#[derive(Debug)]
pub struct ServerDriver {
    /// The server, for the application to speak to between turns.
    pub server: Server,
    turns: Turns,
}

impl ServerDriver {
    /// Listens at `local`; port 0 lets the system choose one.
    ///
    /// # Errors
    /// As the system says, for example when the address is in use.
    ///
    /// # Panics
    /// Outside of a tokio runtime with its IO and time enabled.
    pub fn bind(local: SocketAddr, config: ServerConfig) -> io::Result<Self> {
        let (socket, clock) = (Socket::bind(local)?, Clock::start());
        let config = ServerConfig { aes_hardware: has_aes(), ..config };
        let server = Server::new(clock.now(), unix_time(), config, seed()?);
        Ok(Self { server, turns: Turns::new(socket, clock) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.turns.socket.inner.local_addr()
    }

    /// Receives what is there, acts on what is due, sends what there is to send. Never waits. Ask
    /// [`Server::poll_event`] afterwards.
    ///
    /// # Errors
    /// Those of the socket that will not pass.
    pub fn round(&mut self) -> io::Result<()> {
        self.server.set_unix_time(self.turns.rounds.clock().now(), unix_time());
        self.turns.round(&mut self.server)
    }

    /// Sends what the application has said since the last round, and does nothing else.
    ///
    /// # Errors
    /// As [`round`](Self::round).
    pub fn flush(&mut self) -> io::Result<()> {
        self.turns.rounds.flush(&mut self.turns.socket, &mut self.server)
    }

    /// Waits until there is something for [`round`](Self::round) to do. Nothing is lost if it is dropped.
    ///
    /// # Errors
    /// As [`round`](Self::round).
    pub async fn wait(&self) -> io::Result<()> {
        self.turns.wait(&self.server).await
    }
}
