//! The article's peer, asked for a chunk by a datagram of its own.

use std::net::SocketAddr;
use std::time::Duration;

use haulier_article::time::earliest;
use haulier_article::{ArticleConfig, ArticlePeer, Instant};

use super::{BLOCK_BYTES, Party};
use haulier_sim::Host;

/// What asks for the first chunk; no packet of the article's.
const REQUEST: &[u8] = b"a chunk, please";

/// How often it asks until something comes.
const ASKS_EVERY: Duration = Duration::from_millis(100);

/// The library's own settings of the article's sender: burst, 1 Mbit/s, resends by the round trip.
fn peer() -> ArticlePeer {
    ArticlePeer::new(ArticleConfig::default())
}

/// Sends a chunk when it is asked, and when it is told to.
pub(super) struct ArticleServer {
    peer: ArticlePeer,
    client: SocketAddr,
    was_asked: bool,
}

impl ArticleServer {
    pub(super) fn new(client: SocketAddr) -> Self {
        Self { peer: peer(), client, was_asked: false }
    }
}

impl Host for ArticleServer {
    fn handle_datagram(&mut self, now: Instant, _from: SocketAddr, datagram: &mut [u8]) {
        if datagram != REQUEST {
            let _counted = self.peer.handle_datagram(now, datagram);
        } else if !self.was_asked {
            self.was_asked = true;
            self.send_block(now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.peer.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        self.peer.poll_datagram(now, datagram).then_some(self.client)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.peer.poll_timeout()
    }

    fn check_invariants(&self) {
        self.peer.check_invariants();
    }
}

impl Party for ArticleServer {
    fn send_block(&mut self, _now: Instant) {
        // Refused only after a chunk that hung, which is counted there.
        let _refused = self.peer.send_chunk(vec![7; BLOCK_BYTES]);
    }
}

/// Asks for a chunk and takes in what comes.
pub(super) struct ArticleClient {
    peer: ArticlePeer,
    server: SocketAddr,
    /// When it asks next; `None` once something came.
    asks_at: Option<Instant>,
    chunks: usize,
}

impl ArticleClient {
    pub(super) fn new(server: SocketAddr) -> Self {
        Self { peer: peer(), server, asks_at: Some(Instant::ZERO), chunks: 0 }
    }
}

impl Host for ArticleClient {
    fn handle_datagram(&mut self, now: Instant, _from: SocketAddr, datagram: &mut [u8]) {
        let _counted = self.peer.handle_datagram(now, datagram);
        self.asks_at = None;
        while self.peer.pop_chunk().is_some() {
            self.chunks += 1;
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.peer.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        if self.asks_at.is_some_and(|at| at <= now) {
            self.asks_at = Some(now + ASKS_EVERY);
            datagram.clear();
            datagram.extend_from_slice(REQUEST);
            return Some(self.server);
        }
        self.peer.poll_datagram(now, datagram).then_some(self.server)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.peer.poll_timeout(), self.asks_at)
    }

    fn check_invariants(&self) {
        self.peer.check_invariants();
    }
}

impl Party for ArticleClient {
    fn blocks(&self) -> usize {
        self.chunks
    }
}
