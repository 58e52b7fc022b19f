//! An article peer on a socket: it speaks with one remote at a time, which may have to be found first.

use haulier_core::{Batch, FourTuple, Instant, Machine};
use haulier_proto::ArticlePeer;

/// A peer, and the one it speaks with: a fixed remote, or else the first that sends a packet of this
/// protocol.
#[derive(Debug)]
pub struct ArticleMachine {
    /// The peer, for the application to speak to.
    pub peer: ArticlePeer,
    remote: Option<FourTuple>,
    fixed: Option<FourTuple>,
    strangers: u64,
}

impl ArticleMachine {
    /// `peer`, towards `remote` alone, or whoever sends first.
    #[must_use]
    pub fn new(peer: ArticlePeer, remote: Option<FourTuple>) -> Self {
        Self { peer, remote, fixed: remote, strangers: 0 }
    }

    /// Whom it speaks with, once it knows.
    #[must_use]
    pub const fn remote(&self) -> Option<FourTuple> {
        self.remote
    }

    /// Datagrams that came from others than the remote.
    #[must_use]
    pub const fn strangers(&self) -> u64 {
        self.strangers
    }

    /// Puts another peer in the place of this one. Without a fixed remote it speaks with whoever sends next.
    pub fn replace_peer(&mut self, peer: ArticlePeer) -> ArticlePeer {
        self.remote = self.fixed;
        std::mem::replace(&mut self.peer, peer)
    }
}

impl Machine for ArticleMachine {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        if self.remote.is_some_and(|remote| !remote.has_remote(path.remote)) {
            self.strangers += 1;
            return;
        }
        if self.peer.handle_datagram(now, datagram).is_ok() {
            self.remote = Some(path);
        }
    }

    /// A remote whose half chunk is abandoned, and that never brought a whole one, was a stranger or is gone:
    /// let the next one speak. Otherwise one forged slice would lock the honest sender out for good.
    fn handle_timeout(&mut self, now: Instant) {
        let abandoned = self.peer.receiver().stats().chunks_abandoned;
        self.peer.handle_timeout(now);
        let stats = self.peer.receiver().stats();
        if stats.chunks_abandoned > abandoned && stats.chunks_received == 0 {
            self.remote = self.fixed;
        }
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        let Some(remote) = self.remote else { return };
        let mut datagram = Vec::new();
        while !batch.is_full() && self.peer.poll_transmit(now, &mut datagram) {
            batch.push(remote, &datagram);
        }
    }

    /// Without a remote there is nobody to send to.
    fn poll_timeout(&self) -> Option<Instant> {
        self.remote.and_then(|_| self.peer.poll_timeout())
    }
}
