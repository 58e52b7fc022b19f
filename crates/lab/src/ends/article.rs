//! The article's machine at both ends. It has no handshake: a client may request the first chunk with a
//! separate datagram.

use std::time::Duration;

use haulier_article::{ArticleConfig, ArticlePeer, Instant};
use haulier_proto::connection::Block;
use haulier_sim::hosts::{ArticleApp, ArticleHost};
use haulier_sim::{Framed, HostId, World};

use super::{Ends, Homes, Reading, addresses};

/// The request for the first chunk, which is not a packet of the article's wire.
const REQUEST: &[u8] = b"a chunk, please";

/// The interval between requests until the first answer.
const ASKS_EVERY: Duration = Duration::from_millis(100);

/// The application of either end.
struct Exchange {
    /// What a server sends on a request.
    answer: Option<Block>,
    /// When a client repeats the request; `None` once a chunk arrives.
    asks_at: Option<Instant>,
    /// Whether chunks are read, so that the next can arrive.
    reads: bool,
    /// The number of complete chunks, and when the last one was complete.
    received: (usize, Instant),
}

impl ArticleApp for Exchange {
    fn turn(&mut self, now: Instant, peer: &mut ArticlePeer) {
        let received = peer.receiver().stats().chunks_received as usize;
        if received > self.received.0 {
            self.received = (received, now);
        }
        while self.reads && peer.pop_chunk().is_some() {}
    }

    fn wakes_at(&self, _peer: &ArticlePeer) -> Option<Instant> {
        self.asks_at
    }

    fn take(&mut self, datagram: &[u8], peer: &mut ArticlePeer) -> bool {
        self.asks_at = None;
        if datagram != REQUEST {
            return false;
        }
        if let Some(block) = self.answer.take() {
            send(peer, &block);
        }
        true
    }

    fn poll_datagram(&mut self, now: Instant) -> Option<&'static [u8]> {
        self.asks_at.filter(|&at| at <= now)?;
        self.asks_at = Some(now + ASKS_EVERY);
        Some(REQUEST)
    }
}

/// Refused only after a chunk that hung, which is counted there.
fn send(peer: &mut ArticlePeer, block: &Block) {
    let _refused = peer.send_chunk(block.data().clone());
}

/// What starts the first chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// It is sent at once, and stays unread.
    AtOnce,
    /// The client requests it, and reads what arrives.
    Asked,
}

/// A peer that sends chunks and one that receives them.
pub(crate) struct Article {
    server: HostId<ArticleHost<Exchange>>,
    client: HostId<Framed<ArticleHost<Exchange>>>,
}

impl Article {
    pub(crate) fn new(
        world: &mut World,
        homes: Homes,
        config: &ArticleConfig,
        (first, block): (First, &Block),
        (reading, seed): (Reading, u64),
    ) -> Self {
        let (at_server, at_client) = addresses();
        let is_asked = first == First::Asked;
        let end = |remote, answer, asks_at| {
            let received = (0, Instant::ZERO);
            let app = Exchange { answer, asks_at, reads: is_asked, received };
            ArticleHost::new(config.clone(), remote, app)
        };
        let mut server = end(at_client, is_asked.then(|| block.clone()), None);
        if !is_asked {
            send(&mut server.machine.peer, block);
        }
        let server = world.add_behind(server, at_server, homes.server);
        let client = end(at_server, None, is_asked.then_some(Instant::ZERO));
        let client = world.add_behind(reading.socket(client, seed), at_client, homes.client);
        Self { server, client }
    }
}

impl Ends for Article {
    fn received(&self, world: &World) -> (usize, Instant) {
        world.host(self.client).inner.app.received
    }

    fn slices_sent(&self, world: &World) -> u64 {
        world.host(self.server).peer().sender().stats().slices_sent
    }

    fn is_done(&self, world: &World) -> bool {
        world.host(self.server).peer().sender().stats().chunks_sent > 0
    }

    fn send(&self, world: &mut World, block: &Block) {
        world.act(self.server, |host, _| send(&mut host.machine.peer, block));
    }

    fn dropped_bytes(&self, world: &World) -> u64 {
        world.host(self.client).dropped_bytes
    }
}
