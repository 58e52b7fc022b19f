//! One machine on one socket, in the caller's thread: what the drivers of clients and servers share.
//!
//! [`Rounds`] knows nothing of waiting, so that a reactor of another kind can do it; [`Turns`] waits with
//! `mio`.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::wire::MAX_DATAGRAM_BYTES;
use mio::{Events, Interest, Poll, Token};

use crate::{Clock, Received, Sent, Socket};

/// Datagrams that one round receives at most, so that a flood cannot keep it from sending.
const RECEIVED_PER_ROUND: usize = 1024;

/// Datagrams that one round sends at most, so that a thousand joiners cannot keep it from hearing acks.
const SENT_PER_ROUND: usize = 1024;

/// How long a datagram that found no room waits at most before it is offered again.
const BLOCKED: Duration = Duration::from_millis(5);

const SOCKET: Token = Token(0);

const INTEREST: Interest = Interest::READABLE.add(Interest::WRITABLE);

/// What a driver drives.
pub(crate) trait Machine {
    /// A datagram came from there. Whether it was of use is the machine's business.
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]);
    fn handle_timeout(&mut self, now: Instant);
    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr>;
    fn poll_timeout(&self) -> Option<Instant>;
}

/// A socket that never blocks, and has sorted its errors: any kind of.
pub(crate) trait Carrier {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Received>;
    fn send(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<Sent>;
}

/// What passes between a machine and a socket, whatever waits for the socket.
#[derive(Debug)]
pub(crate) struct Rounds {
    clock: Clock,
    /// Whom the datagram in `outgoing` is for, while the system has no room for it.
    pending: Option<SocketAddr>,
    /// More waits than one round may do; the system will not wake us for it.
    more: bool,
    outgoing: Vec<u8>,
    incoming: Box<[u8]>,
}

impl Rounds {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            pending: None,
            more: false,
            outgoing: Vec::with_capacity(MAX_DATAGRAM_BYTES),
            // One byte more than the longest, so that a longer one is seen to be too long.
            incoming: vec![0; MAX_DATAGRAM_BYTES + 1].into(),
        }
    }

    pub(crate) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Receives what is there, acts on what is due, sends what there is to send.
    pub(crate) fn round(
        &mut self,
        carrier: &mut impl Carrier,
        machine: &mut impl Machine,
    ) -> io::Result<()> {
        self.more = self.receive(carrier, machine)?;
        machine.handle_timeout(self.clock.now());
        self.more |= self.transmit(carrier, machine)?;
        Ok(())
    }

    /// Sends what there is to send, and does nothing else.
    pub(crate) fn flush(
        &mut self,
        carrier: &mut impl Carrier,
        machine: &mut impl Machine,
    ) -> io::Result<()> {
        self.more |= self.transmit(carrier, machine)?;
        Ok(())
    }

    /// How long there is nothing to do unless the socket says so, but no longer than `most`.
    pub(crate) fn pause(&self, machine: &impl Machine, most: Duration) -> Duration {
        if self.more {
            return Duration::ZERO;
        }
        // While a datagram waits for room, deadlines cannot be met. The socket wakes us when there is some,
        // but where a full queue of the interface (`ENOBUFS`) is the reason nobody does.
        if self.pending.is_some() {
            return most.min(BLOCKED);
        }
        machine.poll_timeout().map_or(most, |at| most.min(self.clock.until(at)))
    }

    /// Whether a datagram waits for the socket to be writable.
    #[cfg(feature = "tokio")]
    pub(crate) const fn is_blocked(&self) -> bool {
        self.pending.is_some()
    }

    fn receive(
        &mut self,
        carrier: &mut impl Carrier,
        machine: &mut impl Machine,
    ) -> io::Result<bool> {
        for _ in 0..RECEIVED_PER_ROUND {
            let Received::Datagram(bytes, from) = carrier.receive(&mut self.incoming)? else {
                return Ok(false);
            };
            let now = self.clock.now();
            machine.handle_datagram(now, from, &mut self.incoming[..bytes]);
        }
        Ok(true)
    }

    fn transmit(
        &mut self,
        carrier: &mut impl Carrier,
        machine: &mut impl Machine,
    ) -> io::Result<bool> {
        for _ in 0..SENT_PER_ROUND {
            let next = self
                .pending
                .take()
                .or_else(|| machine.poll_transmit(self.clock.now(), &mut self.outgoing));
            let Some(to) = next else { return Ok(false) };
            if carrier.send(&self.outgoing, to)? == Sent::Blocked {
                self.pending = Some(to);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Rounds on a [`Socket`], and the wait between them.
#[derive(Debug)]
pub(crate) struct Turns {
    socket: Socket,
    rounds: Rounds,
    poll: Poll,
    events: Events,
}

impl Turns {
    pub(crate) fn new(mut socket: Socket, clock: Clock) -> io::Result<Self> {
        let poll = Poll::new()?;
        poll.registry().register(socket.source(), SOCKET, INTEREST)?;
        let events = Events::with_capacity(4);
        Ok(Self { socket, rounds: Rounds::new(clock), poll, events })
    }

    pub(crate) const fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) const fn clock(&self) -> &Clock {
        self.rounds.clock()
    }

    /// Goes on with another socket. What waited in the old one is lost, like anything on the way.
    pub(crate) fn replace_socket(&mut self, mut socket: Socket) -> io::Result<Socket> {
        self.poll.registry().register(socket.source(), SOCKET, INTEREST)?;
        let mut old = std::mem::replace(&mut self.socket, socket);
        // The new one is watched already; of the old one nothing is wanted any more.
        let _gone = self.poll.registry().deregister(old.source());
        Ok(old)
    }

    pub(crate) fn round(&mut self, machine: &mut impl Machine) -> io::Result<()> {
        self.rounds.round(&mut self.socket, machine)
    }

    pub(crate) fn flush(&mut self, machine: &mut impl Machine) -> io::Result<()> {
        self.rounds.flush(&mut self.socket, machine)
    }

    /// Sleeps until there is something to do, but no longer than `most`.
    pub(crate) fn wait(&mut self, machine: &impl Machine, most: Duration) -> io::Result<()> {
        let pause = self.rounds.pause(machine, most);
        match self.poll.poll(&mut self.events, Some(pause)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            polled => polled,
        }
    }
}

impl Carrier for Socket {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        Self::receive(self, buffer)
    }

    fn send(&mut self, datagram: &[u8], to: SocketAddr) -> io::Result<Sent> {
        Self::send(self, datagram, to)
    }
}
