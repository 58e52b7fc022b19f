//! A peer of the article's wire with its application, and a game's packets beside it.

use std::net::SocketAddr;

use haulier_article::{ArticleConfig, ArticlePeer, PeerMachine, packet};
use haulier_core::time::earliest;
use haulier_core::{Batch, FourTuple, Instant, Machine};

use super::game::GamePackets;
use crate::Host;

/// The application of a peer of the article's wire.
pub trait ArticleApp: 'static {
    /// Called after each call of the peer.
    fn turn(&mut self, _now: Instant, _peer: &mut ArticlePeer) {}

    /// Its next deadline.
    fn wakes_at(&self, _peer: &ArticlePeer) -> Option<Instant> {
        None
    }

    /// A datagram arrived. Returns whether it was for the application, and not for the peer.
    fn take(&mut self, _datagram: &[u8], _peer: &mut ArticlePeer) -> bool {
        false
    }

    /// The application's next datagram.
    fn poll_datagram(&mut self, _now: Instant) -> Option<&'static [u8]> {
        None
    }
}

/// No application: the test calls the peer.
impl ArticleApp for () {}

/// A peer, its application, and a game on the same socket. The game's packets, of another protocol id, are
/// sent first.
#[derive(Clone, Debug)]
pub struct ArticleHost<A = ()> {
    /// The peer, and its remote address.
    pub machine: PeerMachine,
    /// The game.
    pub packets: Option<GamePackets>,
    /// The application.
    pub app: A,
    remote: SocketAddr,
}

impl<A: ArticleApp> ArticleHost<A> {
    /// A peer connected to `remote`.
    #[must_use]
    pub fn new(config: ArticleConfig, remote: SocketAddr, app: A) -> Self {
        let machine = PeerMachine::connected(ArticlePeer::new(config), remote);
        Self { machine, packets: None, app, remote }
    }

    /// This host with a game on its socket.
    #[must_use]
    pub fn with_packets(mut self, packets: GamePackets) -> Self {
        self.packets = Some(packets);
        self
    }

    /// The game.
    ///
    /// # Panics
    /// If the host has no game.
    #[must_use]
    pub const fn game(&self) -> &GamePackets {
        self.packets.as_ref().expect("a host with a game")
    }

    /// The game, to act on.
    ///
    /// # Panics
    /// If the host has no game.
    pub const fn game_mut(&mut self) -> &mut GamePackets {
        self.packets.as_mut().expect("a host with a game")
    }

    /// The peer.
    #[must_use]
    pub const fn peer(&self) -> &ArticlePeer {
        &self.machine.peer
    }
}

impl<A: ArticleApp> Machine for ArticleHost<A> {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        let is_for = |packets: &&mut GamePackets| {
            packet::is_of_protocol(packets.endpoint.config().protocol_id, datagram)
        };
        if let Some(packets) = self.packets.as_mut().filter(is_for) {
            // A dropped datagram is a normal result, and counted by the peer.
            let _counted = packets.handle_datagram(now, datagram);
        } else if !self.app.take(datagram, &mut self.machine.peer) {
            self.machine.handle_datagram(now, path, datagram);
        }
        self.app.turn(now, &mut self.machine.peer);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.packets.iter_mut().for_each(|packets| packets.handle_timeout(now));
        self.machine.handle_timeout(now);
        self.app.turn(now, &mut self.machine.peer);
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        let to = FourTuple::new(self.remote);
        while !batch.is_full()
            && let Some(datagram) = self.app.poll_datagram(now)
        {
            batch.push(to, datagram);
        }
        if let Some(packets) = &mut self.packets {
            packets.endpoint.poll_transmit(now, to, batch);
        }
        self.machine.poll_transmit(now, batch);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let packets = self.packets.as_ref().and_then(GamePackets::poll_timeout);
        let app = self.app.wakes_at(&self.machine.peer);
        earliest(packets, earliest(self.machine.poll_timeout(), app))
    }
}

impl<A: ArticleApp> Host for ArticleHost<A> {
    fn check_invariants(&self) {
        self.machine.peer.check_invariants();
        self.packets.iter().for_each(GamePackets::check_invariants);
    }
}
