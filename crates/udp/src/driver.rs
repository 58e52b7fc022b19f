//! One peer on one socket, in the caller's thread.
//!
//! Pacing is by elapsed time: a turn that comes late sends what the time is worth, so the granularity of
//! the system's timer costs no rate.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use haulier_article::{ArticlePeer, Instant};

use crate::turn::{Machine, Turns};
use crate::{Clock, Socket};

/// Drives a peer. It speaks with one remote: that of a connected socket, or else the first that sends a
/// packet of this protocol.
#[derive(Debug)]
pub struct Driver {
    /// The peer, for the application to speak to between turns.
    pub peer: ArticlePeer,
    turns: Turns,
    line: Line,
}

/// With whom the peer speaks.
#[derive(Debug)]
struct Line {
    remote: Option<SocketAddr>,
    /// That of a connected socket, which never changes.
    fixed: Option<SocketAddr>,
    /// Datagrams from others than the remote.
    strangers: u64,
}

impl Driver {
    /// A driver of `peer` on `socket`.
    ///
    /// # Errors
    /// None at present.
    pub fn new(socket: Socket, peer: ArticlePeer) -> io::Result<Self> {
        let fixed = socket.remote();
        let line = Line { remote: fixed, fixed, strangers: 0 };
        Ok(Self { peer, turns: Turns::new(socket, Clock::start()), line })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.turns.socket().local_addr()
    }

    /// Whom it speaks with, once it knows.
    #[must_use]
    pub const fn remote(&self) -> Option<SocketAddr> {
        self.line.remote
    }

    /// Datagrams that came from others than the remote.
    #[must_use]
    pub const fn strangers(&self) -> u64 {
        self.line.strangers
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
        self.line.remote = self.line.fixed;
        self.turns.clear();
        std::mem::replace(&mut self.peer, peer)
    }

    /// Receives what is there, acts on what is due and sends what there is to send; then, if nothing is
    /// left to do, waits for the next datagram or deadline, but no longer than `most`. Look at the peer
    /// after each turn.
    ///
    /// # Errors
    /// Those of the socket that will not pass. Never for one packet, full buffers, or an ICMP error.
    pub fn turn(&mut self, most: Duration) -> io::Result<()> {
        let mut talk = Talk { peer: &mut self.peer, line: &mut self.line };
        self.turns.round(&mut talk)?;
        self.turns.wait(&talk, most)?;
        self.turns.round(&mut talk)
    }
}

/// A peer and the one it speaks with.
struct Talk<'a> {
    peer: &'a mut ArticlePeer,
    line: &'a mut Line,
}

impl Machine for Talk<'_> {
    fn handle_datagram(&mut self, arrived: Instant, from: SocketAddr, datagram: &mut [u8]) {
        if self.line.remote.is_some_and(|remote| remote != from) {
            self.line.strangers += 1;
            return;
        }
        if self.peer.handle_datagram(arrived, datagram).is_ok() {
            self.line.remote = Some(from);
        }
    }

    /// A remote whose half chunk is abandoned, and that never brought a whole one, was a stranger or is gone:
    /// let the next one speak. Otherwise one forged slice would lock the honest sender out for good.
    fn handle_timeout(&mut self, now: Instant) {
        let abandoned = self.peer.receiver().stats().chunks_abandoned;
        self.peer.handle_timeout(now);
        let stats = self.peer.receiver().stats();
        if stats.chunks_abandoned > abandoned && stats.chunks_received == 0 {
            self.line.remote = self.line.fixed;
        }
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        let remote = self.line.remote?;
        self.peer.poll_transmit(now, datagram).then_some(remote)
    }

    /// Without a remote there is nobody to send to.
    fn poll_timeout(&self) -> Option<Instant> {
        self.line.remote.and_then(|_| self.peer.poll_timeout())
    }
}
