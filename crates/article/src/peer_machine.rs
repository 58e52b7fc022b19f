//! A peer on a socket: the peer, and its one remote.
//!
//! The wire has neither connections nor addresses, so this decides which datagrams to accept. The remote is
//! fixed, or it is the first address that sends a valid packet; datagrams from others are dropped.

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
    /// The peer, for the application.
    pub peer: ArticlePeer,
    /// The path of the newest accepted packet, so that answers leave from the address that was asked.
    path: Option<FourTuple>,
    /// The path of a remote that never changes.
    fixed: Option<FourTuple>,
    /// Datagrams from other addresses than the remote.
    strangers: u64,
}

impl PeerMachine {
    /// A peer whose remote is the first address that sends a valid packet.
    #[must_use]
    pub const fn new(peer: ArticlePeer) -> Self {
        Self { peer, path: None, fixed: None, strangers: 0 }
    }

    /// A peer that accepts only datagrams from `remote`.
    #[must_use]
    pub const fn connected(peer: ArticlePeer, remote: SocketAddr) -> Self {
        let path = Some(FourTuple::new(remote));
        Self { peer, path, fixed: path, strangers: 0 }
    }

    /// The remote, once it is known.
    #[must_use]
    pub fn remote(&self) -> Option<SocketAddr> {
        self.path.map(|path| path.remote)
    }

    /// Dropped datagrams that came from other addresses than the remote.
    #[must_use]
    pub const fn strangers(&self) -> u64 {
        self.strangers
    }

    /// Replaces the peer with another one and returns the old one. Unless the remote is fixed, it is again
    /// the first address that sends a valid packet.
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

    /// A remote whose chunk is abandoned, and that never sent a complete one, was a forger or is gone: the
    /// next one may take its place. Otherwise one forged slice would lock the honest sender out for good.
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

    /// Without a remote there is nowhere to send to.
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

    /// A forged slice names the first chunk, and another count than the honest sender's slices. As long as
    /// the forger stayed the remote, the honest sender was dropped as a stranger.
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
        assert!(receiver.strangers() > 0, "the forger was the remote for a while");
        assert_eq!(receiver.peer.pop_chunk().unwrap(), vec![7; 5_000]);
        let event = honest.peer.poll_event();
        assert!(
            matches!(event, Some(PeerEvent::Sender(ChunkSenderEvent::Sent { .. }))),
            "{event:?}"
        );
    }

    /// A remote that has sent a complete chunk stays the remote when it pauses in the middle of the next
    /// one: a stranger must not take its place.
    #[test]
    fn a_remote_that_has_sent_a_chunk_stays() {
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
