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
        let Some(path) = self.path else { return };
        let peer = &mut self.peer;
        while batch.compose(|datagram| peer.compose(now, datagram).then_some(path)).is_some() {}
    }

    /// Without a remote there is nobody to send to.
    fn poll_timeout(&self) -> Option<Instant> {
        self.path.and_then(|_| self.peer.poll_timeout())
    }
}
