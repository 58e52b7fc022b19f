//! One peer on one socket, in the caller's thread.
//!
//! Pacing is by elapsed time: a turn that comes late sends what the time is worth, so the granularity of
//! the system's timer (a millisecond) costs no rate.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::{ArticlePeer, MAX_PACKET_BYTES};
use mio::{Events, Interest, Poll, Token};

use crate::{Clock, Received, Sent, Socket};

/// Datagrams that one turn receives at most, so that a flood cannot keep it from sending: as many as fit
/// a buffer of 4 MiB.
const RECEIVED_PER_TURN: usize = 4096;

const SOCKET: Token = Token(0);

/// Drives a peer. It speaks with one remote: that of a connected socket, or else the first that sends a
/// packet of this protocol.
#[derive(Debug)]
pub struct Driver {
    /// The peer, for the application to speak to between turns.
    pub peer: ArticlePeer,
    socket: Socket,
    clock: Clock,
    poll: Poll,
    events: Events,
    remote: Option<SocketAddr>,
    /// Datagrams from others than the remote.
    strangers: u64,
    /// A datagram that the system had no room for.
    pending: bool,
    /// More datagrams wait than one turn may receive; the system will not wake us for them.
    more: bool,
    outgoing: Vec<u8>,
    incoming: Box<[u8]>,
}

impl Driver {
    /// A driver of `peer` on `socket`.
    ///
    /// # Errors
    /// When the system cannot watch the socket.
    pub fn new(mut socket: Socket, peer: ArticlePeer) -> io::Result<Self> {
        let poll = Poll::new()?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(socket.source(), SOCKET, interest)?;
        Ok(Self {
            peer,
            remote: socket.remote(),
            socket,
            clock: Clock::start(),
            poll,
            events: Events::with_capacity(4),
            strangers: 0,
            pending: false,
            more: false,
            outgoing: Vec::with_capacity(MAX_PACKET_BYTES),
            // One byte more than the longest packet, so that a longer one is seen to be too long.
            incoming: vec![0; MAX_PACKET_BYTES + 1].into(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Whom it speaks with, once it knows.
    #[must_use]
    pub const fn remote(&self) -> Option<SocketAddr> {
        self.remote
    }

    /// Datagrams that came from others than the remote.
    #[must_use]
    pub const fn strangers(&self) -> u64 {
        self.strangers
    }

    /// The socket, to look at.
    #[must_use]
    pub const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The clock that the peer's time is counted by.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Puts another peer in the place of this one, which speaks with whoever sends first. Not for a
    /// connected socket.
    pub fn replace_peer(&mut self, peer: ArticlePeer) -> ArticlePeer {
        self.remote = self.socket.remote();
        self.pending = false;
        std::mem::replace(&mut self.peer, peer)
    }

    /// Receives what is there, acts on what is due and sends what there is to send; then, if nothing is
    /// left to do, waits for the next datagram or deadline, but no longer than `most`. Look at the peer
    /// after each turn.
    ///
    /// # Errors
    /// Those of the socket that will not pass. Never for one packet, full buffers, or an ICMP error.
    pub fn turn(&mut self, most: Duration) -> io::Result<()> {
        self.receive()?;
        self.act();
        self.transmit()?;
        self.wait(most)?;
        self.receive()?;
        self.act();
        self.transmit()
    }

    /// Acts on passed deadlines. A remote whose half chunk is abandoned, and that never brought a whole
    /// one, was a stranger or is gone: let the next one speak. Otherwise one forged slice would lock the
    /// honest sender out for good.
    fn act(&mut self) {
        let abandoned = self.peer.receiver().stats().chunks_abandoned;
        self.peer.handle_timeout(self.clock.now());
        let stats = self.peer.receiver().stats();
        if stats.chunks_abandoned > abandoned && stats.chunks_received == 0 {
            self.remote = self.socket.remote();
            self.pending = false;
        }
    }

    fn receive(&mut self) -> io::Result<()> {
        for _ in 0..RECEIVED_PER_TURN {
            let Received::Datagram(bytes, from) = self.socket.receive(&mut self.incoming)? else {
                self.more = false;
                return Ok(());
            };
            if self.remote.is_some_and(|remote| remote != from) {
                self.strangers += 1;
                continue;
            }
            let outcome = self.peer.handle_datagram(self.clock.now(), &self.incoming[..bytes]);
            if outcome.is_ok() {
                self.remote = Some(from);
            }
        }
        self.more = true;
        Ok(())
    }

    fn transmit(&mut self) -> io::Result<()> {
        let Some(remote) = self.remote else { return Ok(()) };
        loop {
            if !self.pending && !self.peer.poll_transmit(self.clock.now(), &mut self.outgoing) {
                return Ok(());
            }
            self.pending = self.socket.send(&self.outgoing, remote)? == Sent::Blocked;
            if self.pending {
                return Ok(());
            }
        }
    }

    /// Sleeps until there is something to do.
    fn wait(&mut self, most: Duration) -> io::Result<()> {
        let mut wait = if self.more { Duration::ZERO } else { most };
        // While a datagram waits for room, deadlines cannot be met; only the socket can wake us.
        if !self.pending
            && let (Some(at), Some(_)) = (self.peer.poll_timeout(), self.remote)
        {
            wait = wait.min(self.clock.until(at));
        }
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            polled => polled,
        }
    }
}
