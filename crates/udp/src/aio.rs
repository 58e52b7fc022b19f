//! The drivers again, over tokio's socket: awaited instead of polled.
//!
//! Nothing is spawned: a driver works while one of its futures is awaited, and each can be dropped at any
//! await without losing a datagram or an event, because all state is in the driver.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::bulk::repair;
use haulier_proto::client::{ClientConfig, ClientMachine};
use haulier_proto::server::{ServerConfig, ServerMachine};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::machine::prepare;
use crate::offload::{Offload, is_refusal};
use crate::outbox::{BatchSent, DatagramSender};
use crate::server::unix_time;
use crate::socket::{Meaning, any_local, open, sort};
use crate::turn::{Carrier, Machine, Rounds};
use crate::{Clock, Inbox, Received, Sent, platform};

/// A wait that nothing ends but a datagram or a deadline.
const LONG: Duration = Duration::from_secs(3600);

/// A socket of tokio's with its errors sorted.
#[derive(Debug)]
struct Socket {
    inner: UdpSocket,
    offload: Offload,
    /// Whom it is connected with.
    remote: Option<SocketAddr>,
    /// Whether its own buffer is what had no room for the last send: then it tells when there is some.
    awaits_room: bool,
}

impl Socket {
    fn bind(local: SocketAddr) -> io::Result<Self> {
        Self::new(open(local)?, None)
    }

    /// Does not wait: connecting a UDP socket sends nothing.
    fn connect(remote: SocketAddr) -> io::Result<Self> {
        let socket = open(any_local(remote))?;
        socket.connect(&remote.into())?;
        Self::new(socket, Some(remote))
    }

    fn new(socket: socket2::Socket, remote: Option<SocketAddr>) -> io::Result<Self> {
        let offload = Offload::new((&socket).into())?;
        Ok(Self { inner: UdpSocket::from_std(socket.into())?, offload, remote, awaits_room: false })
    }

    fn judge<T>(&mut self, sent: io::Result<T>) -> io::Result<Sent> {
        let Err(error) = sent else {
            self.awaits_room = false;
            return Ok(Sent::Taken);
        };
        match sort(&error) {
            Meaning::NotNow => {
                self.awaits_room = error.kind() == ErrorKind::WouldBlock;
                Ok(Sent::Blocked)
            }
            Meaning::PassesOver => Ok(Sent::Lost),
            Meaning::Fatal => Err(error),
        }
    }
}

impl Carrier for Socket {
    fn receive(&mut self, inbox: &mut Inbox) -> io::Result<Received> {
        loop {
            // tokio hears of an empty socket only if it is asked through it.
            let received = self
                .inner
                .try_io(Interest::READABLE, || self.offload.receive((&self.inner).into(), inbox));
            match received {
                Ok(0) => return Ok(Received::Nothing),
                Ok(datagrams) => return Ok(Received::Datagrams(datagrams)),
                Err(error) => match sort(&error) {
                    Meaning::NotNow => return Ok(Received::Nothing),
                    Meaning::PassesOver => {}
                    Meaning::Fatal => return Err(error),
                },
            }
        }
    }
}

impl DatagramSender for Socket {
    fn max_segments(&self) -> usize {
        self.offload.max_segments()
    }

    fn send(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<Sent> {
        let sent = match self.remote {
            Some(_) => self.inner.try_send(datagram),
            None => self.inner.try_send_to(datagram, to),
        };
        self.judge(sent)
    }

    fn send_segments(
        &mut self,
        datagrams: &[u8],
        segment: usize,
        to: SocketAddr,
    ) -> io::Result<BatchSent> {
        let to = self.remote.unwrap_or(to);
        let sent = self.inner.try_io(Interest::WRITABLE, || {
            self.offload.send((&self.inner).into(), datagrams, segment, to)
        });
        match sent {
            Err(error) if is_refusal(&error) => Ok(BatchSent::Refused),
            sent => self.judge(sent).map(BatchSent::As),
        }
    }

    fn stop_segments(&mut self) {
        self.offload.limit_segments(1);
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
        let interest = match self.rounds.is_blocked() && self.socket.awaits_room {
            true => Interest::READABLE | Interest::WRITABLE,
            false => Interest::READABLE,
        };
        match tokio::time::timeout(pause, self.socket.inner.ready(interest)).await {
            Ok(Err(error)) if error.kind() != ErrorKind::Interrupted => Err(error),
            _ => Ok(()),
        }
    }
}

/// Drives a [`ClientMachine`] in the task that awaits it.
#[derive(Debug)]
pub struct ClientDriver {
    /// The client, for the application to speak to between turns.
    pub client: ClientMachine,
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
        let client = ClientMachine::new(clock.now(), config, platform()?)
            .map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
        Ok(Self { client, turns: Turns::new(socket, clock) })
    }

    /// The clock that the machine's time is counted by.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        self.turns.rounds.clock()
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.turns.socket.inner.local_addr()
    }

    /// Receives what is there, acts on what is due, sends what there is to send. Never waits. Ask
    /// [`ClientMachine::poll_event`] afterwards.
    ///
    /// # Errors
    /// Those of the socket that will not pass.
    pub fn round(&mut self) -> io::Result<()> {
        self.turns.round(&mut self.client)?;
        // Now that the request is on its way: the spaces between its copies tell the server the rate.
        prepare();
        Ok(())
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

/// Drives a [`ServerMachine`] and all its clients in the task that awaits it.
#[derive(Debug)]
pub struct ServerDriver {
    /// The server, for the application to speak to between turns.
    pub server: ServerMachine,
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
        repair::prepare();
        let (socket, clock) = (Socket::bind(local)?, Clock::start());
        let server = ServerMachine::new(clock.now(), unix_time(), config, platform()?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Self { server, turns: Turns::new(socket, clock) })
    }

    /// The clock that the machine's time is counted by.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        self.turns.rounds.clock()
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.turns.socket.inner.local_addr()
    }

    /// Receives what is there, acts on what is due, sends what there is to send. Never waits. Ask
    /// [`ServerMachine::poll_event`] afterwards.
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
