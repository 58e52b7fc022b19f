//! One peer on one socket, in the caller's thread.
//!
//! Pacing is by elapsed time: a turn that comes late sends what the time is worth, so the granularity of
//! the system's timer costs no rate.

use std::io;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use haulier_article::{ArticlePeer, FourTuple, Instant, PeerMachine};

use crate::turn::{Machine, Turns};
use crate::{Clock, Socket};

/// Drives a [`PeerMachine`], which it derefs to: the peer is `driver.peer`.
#[derive(Debug)]
pub struct Driver {
    machine: PeerMachine,
    turns: Turns,
}

impl Driver {
    /// A driver of `peer` on `socket`. It speaks with one remote: that of a connected socket, or else the
    /// first that sends a packet of this protocol.
    ///
    /// # Errors
    /// None at present.
    pub fn new(socket: Socket, peer: ArticlePeer) -> io::Result<Self> {
        let machine = match socket.remote() {
            Some(remote) => PeerMachine::connected(peer, remote),
            None => PeerMachine::new(peer),
        };
        Ok(Self { machine, turns: Turns::new(socket, Clock::start()) })
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

    /// The clock that the peer's time is counted by.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        self.turns.clock()
    }

    /// Puts another peer in the place of this one, which speaks with whoever sends first. Not for a
    /// connected socket.
    pub fn replace_peer(&mut self, peer: ArticlePeer) -> ArticlePeer {
        self.turns.clear();
        self.machine.replace_peer(peer)
    }

    /// Receives what is there, acts on what is due and sends what there is to send; then, if nothing is
    /// left to do, waits for the next datagram or deadline, but no longer than `most`. Look at the peer
    /// after each turn.
    ///
    /// # Errors
    /// Those of the socket that will not pass. Never for one packet, full buffers, or an ICMP error.
    pub fn turn(&mut self, most: Duration) -> io::Result<()> {
        self.turns.round(&mut self.machine)?;
        self.turns.wait(&self.machine, most)?;
        self.turns.round(&mut self.machine)
    }
}

impl Deref for Driver {
    type Target = PeerMachine;

    fn deref(&self) -> &PeerMachine {
        &self.machine
    }
}

impl DerefMut for Driver {
    fn deref_mut(&mut self) -> &mut PeerMachine {
        &mut self.machine
    }
}

impl Machine for PeerMachine {
    fn handle_datagram(&mut self, arrived: Instant, from: SocketAddr, datagram: &mut [u8]) {
        haulier_article::Machine::handle_datagram(self, arrived, FourTuple::new(from), datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        haulier_article::Machine::handle_timeout(self, now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        let remote = self.remote()?;
        self.peer.poll_datagram(now, datagram).then_some(remote)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        haulier_article::Machine::poll_timeout(self)
    }
}
