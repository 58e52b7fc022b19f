//! One machine on one socket, in the caller's thread: what the drivers of clients and servers share.

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

const SOCKET: Token = Token(0);

/// What a driver drives.
pub(crate) trait Machine {
    /// A datagram came from there. Whether it was of use is the machine's business.
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]);
    fn handle_timeout(&mut self, now: Instant);
    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr>;
    fn poll_timeout(&self) -> Option<Instant>;
}

/// A socket, a clock and the wait for both.
#[derive(Debug)]
pub(crate) struct Turns {
    socket: Socket,
    clock: Clock,
    poll: Poll,
    events: Events,
    /// Whom the datagram in `outgoing` is for, while the system has no room for it.
    pending: Option<SocketAddr>,
    /// More waits than one round may do; the system will not wake us for it.
    more: bool,
    outgoing: Vec<u8>,
    incoming: Box<[u8]>,
}

impl Turns {
    pub(crate) fn new(mut socket: Socket, clock: Clock) -> io::Result<Self> {
        let poll = Poll::new()?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(socket.source(), SOCKET, interest)?;
        Ok(Self {
            socket,
            clock,
            poll,
            events: Events::with_capacity(4),
            pending: None,
            more: false,
            outgoing: Vec::with_capacity(MAX_DATAGRAM_BYTES),
            // One byte more than the longest, so that a longer one is seen to be too long.
            incoming: vec![0; MAX_DATAGRAM_BYTES + 1].into(),
        })
    }

    pub(crate) const fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Receives what is there, acts on what is due, sends what there is to send.
    pub(crate) fn round(&mut self, machine: &mut impl Machine) -> io::Result<()> {
        self.more = self.receive(machine)?;
        machine.handle_timeout(self.clock.now());
        self.more |= self.transmit(machine)?;
        Ok(())
    }

    /// Sleeps until there is something to do, but no longer than `most`.
    pub(crate) fn wait(&mut self, machine: &impl Machine, most: Duration) -> io::Result<()> {
        let mut wait = if self.more { Duration::ZERO } else { most };
        // While a datagram waits for room, deadlines cannot be met; only the socket can wake us.
        if self.pending.is_none()
            && let Some(at) = machine.poll_timeout()
        {
            wait = wait.min(self.clock.until(at));
        }
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            polled => polled,
        }
    }

    fn receive(&mut self, machine: &mut impl Machine) -> io::Result<bool> {
        for _ in 0..RECEIVED_PER_ROUND {
            let Received::Datagram(bytes, from) = self.socket.receive(&mut self.incoming)? else {
                return Ok(false);
            };
            let now = self.clock.now();
            machine.handle_datagram(now, from, &mut self.incoming[..bytes]);
        }
        Ok(true)
    }

    fn transmit(&mut self, machine: &mut impl Machine) -> io::Result<bool> {
        for _ in 0..SENT_PER_ROUND {
            let next = self
                .pending
                .take()
                .or_else(|| machine.poll_transmit(self.clock.now(), &mut self.outgoing));
            let Some(to) = next else { return Ok(false) };
            if self.socket.send(&self.outgoing, to)? == Sent::Blocked {
                self.pending = Some(to);
                return Ok(false);
            }
        }
        Ok(true)
    }
}
