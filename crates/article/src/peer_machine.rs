//! A peer on a socket: the peer, and the one remote that it speaks with.
//!
//! The wire has no connections and no addresses, so somebody must decide whom to believe. The remote is
//! fixed, or it is the first that sends a packet of this protocol; nobody else is heard while it is there.

use core::net::SocketAddr;

use haulier_core::{Batch, FourTuple, Instant, Machine};

use crate::ArticlePeer;

/// An [`ArticlePeer`] with a remote: what a runner drives.
///
/// ```
/// use haulier_article::{ArticleConfig, ArticlePeer, Batch, FourTuple, Instant, Machine, PeerMachine};
///
/// let (at, home) = (FourTuple::new("192.0.2.1:4000".parse()?), "192.0.2.2:5000".parse()?);
/// let mut server = PeerMachine::new(ArticlePeer::new(ArticleConfig::default()));
/// let mut client = PeerMachine::connected(ArticlePeer::new(ArticleConfig::default()), at.remote);
/// client.peer.send_chunk(vec![7; 5_000])?;
///
/// let mut batch = Batch::new(32);
/// client.poll_transmit(Instant::ZERO, &mut batch);
/// for (to, datagram) in batch.iter_mut() {
///     assert_eq!(to, at);
///     server.handle_datagram(Instant::ZERO, FourTuple::new(home), datagram);
/// }
/// assert_eq!(server.peer.pop_chunk().ok_or("not whole")?, vec![7; 5_000]);
/// assert_eq!(server.remote(), Some(home));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PeerMachine {
    /// The peer, for the application to speak to.
    pub peer: ArticlePeer,
    /// The path of the newest packet that was used, so that answers leave from the address that was asked.
    path: Option<FourTuple>,
    /// That of a remote that never changes.
    fixed: Option<FourTuple>,
    /// Datagrams from others than the remote.
    strangers: u64,
}

impl PeerMachine {
    /// A peer that speaks with the first remote that sends a packet of this protocol.
    #[must_use]
    pub const fn new(peer: ArticlePeer) -> Self {
        Self { peer, path: None, fixed: None, strangers: 0 }
    }

    /// A peer that speaks with `remote` and nobody else.
    #[must_use]
    pub const fn connected(peer: ArticlePeer, remote: SocketAddr) -> Self {
        let path = Some(FourTuple::new(remote));
        Self { peer, path, fixed: path, strangers: 0 }
    }

    /// Whom it speaks with, once it knows.
    #[must_use]
    pub fn remote(&self) -> Option<SocketAddr> {
        self.path.map(|path| path.remote)
    }

    /// Datagrams that came from others than the remote.
    #[must_use]
    pub const fn strangers(&self) -> u64 {
        self.strangers
    }

    /// Puts another peer in the place of this one. Unless the remote is fixed, it speaks with whoever sends
    /// first.
    pub const fn replace_peer(&mut self, peer: ArticlePeer) -> ArticlePeer {
        self.path = self.fixed;
        core::mem::replace(&mut self.peer, peer)
    }
}

impl Machine for PeerMachine {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        if self.path.is_some_and(|known| !known.has_remote(path.remote)) {
            self.strangers += 1;
            return;
        }
        if self.peer.handle_datagram(now, datagram).is_ok() {
            self.path = Some(path);
        }
    }

    /// A remote whose half chunk is abandoned, and that never brought a whole one, was a stranger or is gone:
    /// let the next one speak. Otherwise one forged slice would lock the honest sender out for good.
    fn handle_timeout(&mut self, now: Instant) {
        let abandoned = self.peer.receiver().stats().chunks_abandoned;
        self.peer.handle_timeout(now);
        let stats = self.peer.receiver().stats();
        if stats.chunks_abandoned > abandoned && stats.chunks_received == 0 {
            self.path = self.fixed;
        }
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        if let Some(path) = self.path {
            self.peer.poll_transmit(now, path, batch);
        }
    }

    /// Without a remote there is nobody to send to.
    fn poll_timeout(&self) -> Option<Instant> {
        self.path.and_then(|_| self.peer.poll_timeout())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::chunk::ChunkSenderEvent;
    use crate::{ArticleConfig, PeerEvent};

    fn at(port: u16) -> FourTuple {
        FourTuple::new(SocketAddr::from(([192, 0, 2, 1], port)))
    }

    fn machine() -> PeerMachine {
        PeerMachine::new(ArticlePeer::new(ArticleConfig::default()))
    }

    /// A peer that sends `bytes` bytes to `to`.
    fn sender(bytes: usize, to: FourTuple) -> PeerMachine {
        let mut sender =
            PeerMachine::connected(ArticlePeer::new(ArticleConfig::default()), to.remote);
        sender.peer.send_chunk(vec![7; bytes]).unwrap();
        sender
    }

    /// Carries what `from`, which is at `path`, has to send now, up to `max` datagrams of it.
    fn carry(
        now: Instant,
        from: &mut PeerMachine,
        path: FourTuple,
        to: &mut PeerMachine,
        max: usize,
    ) {
        let mut batch = Batch::new(max);
        from.poll_transmit(now, &mut batch);
        batch.iter_mut().for_each(|(_, datagram)| to.handle_datagram(now, path, datagram));
    }

    /// One forged slice names the first chunk and a count that no other slice of it has. While it lay there,
    /// and the remote stayed the forger's, the honest sender was a stranger for good.
    #[test]
    fn one_forged_slice_does_not_lock_the_honest_sender_out() {
        let mut receiver = machine();
        let mut forger = sender(200_000, at(9));
        carry(Instant::ZERO, &mut forger, at(1), &mut receiver, 1);
        assert_eq!(receiver.remote(), Some(at(1).remote));

        let mut honest = sender(5_000, at(9));
        for millis in 1..12_000 {
            let now = Instant::from_millis(millis);
            receiver.handle_timeout(now);
            honest.handle_timeout(now);
            carry(now, &mut honest, at(2), &mut receiver, 32);
            if receiver.remote() == Some(at(2).remote) {
                carry(now, &mut receiver, at(9), &mut honest, 32);
            }
        }
        assert!(receiver.strangers() > 0, "the forger was believed for a while");
        assert_eq!(receiver.peer.pop_chunk().unwrap(), vec![7; 5_000]);
        let event = honest.peer.poll_event();
        assert!(
            matches!(event, Some(PeerEvent::Sender(ChunkSenderEvent::Sent { .. }))),
            "{event:?}"
        );
    }

    /// A sender that already brought a chunk stays the remote when it leaves the next one half sent: it may
    /// be back, and a stranger must not take its place.
    #[test]
    fn a_remote_that_brought_a_chunk_keeps_its_place() {
        let mut receiver = machine();
        let mut first = sender(5_000, at(9));
        carry(Instant::ZERO, &mut first, at(1), &mut receiver, 32);
        carry(Instant::ZERO, &mut receiver, at(9), &mut first, 32);
        assert!(receiver.peer.pop_chunk().is_some());

        first.peer.send_chunk(vec![8; 5_000]).unwrap();
        carry(Instant::from_millis(1), &mut first, at(1), &mut receiver, 1);
        receiver.handle_timeout(Instant::from_millis(60_000));
        assert_eq!(receiver.peer.receiver().stats().chunks_abandoned, 1);
        assert_eq!(receiver.remote(), Some(at(1).remote));
    }

    #[test]
    fn a_fixed_remote_stays() {
        let mut receiver =
            PeerMachine::connected(ArticlePeer::new(ArticleConfig::default()), at(2).remote);
        carry(Instant::ZERO, &mut sender(5_000, at(9)), at(1), &mut receiver, 32);
        assert_eq!((receiver.strangers(), receiver.remote()), (5, Some(at(2).remote)));
    }
}
