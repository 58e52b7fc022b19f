//! The article's machine at both ends, with a client that asks and a server that answers with the block, a
//! chunk after the other.

use std::time::Duration;

use haulier_article::chunk::ChunkSenderConfig;
use haulier_article::{ArticleConfig, ArticlePeer, Instant};
use haulier_core::chunk::MAX_CHUNK_BYTES;
use haulier_sim::hosts::{ArticleApp, ArticleHost};
use haulier_sim::{HostId, World};

use super::fault::Filter;
use super::{Fault, Scene, Sender};
use crate::ends::{Homes, addresses};

/// The request, which is no packet of the article's wire.
pub(super) const REQUEST: &[u8] = b"a chunk, please";

/// The interval between requests until the first answer.
pub(super) const ASKS_EVERY: Duration = Duration::from_millis(100);

/// The application of either end.
pub(super) struct End {
    /// What a server answers with.
    answer: Option<Vec<u8>>,
    /// When a client asks next; `None` once something arrived.
    asks_at: Option<Instant>,
    /// Whether chunks are read. A player whose level still loads does not.
    reads: bool,
    filter: Filter,
    /// When each chunk was complete.
    chunks: Vec<Instant>,
}

impl ArticleApp for End {
    fn turn(&mut self, now: Instant, peer: &mut ArticlePeer) {
        let received = peer.receiver().stats().chunks_received as usize;
        self.chunks.resize(received.max(self.chunks.len()), now);
        while self.reads && peer.pop_chunk().is_some() {}
    }

    fn wakes_at(&self, _peer: &ArticlePeer) -> Option<Instant> {
        self.asks_at
    }

    fn take(&mut self, datagram: &[u8], peer: &mut ArticlePeer) -> bool {
        self.asks_at = None;
        if datagram != REQUEST {
            return self.filter.drops(datagram);
        }
        for chunk in self.answer.take().unwrap_or_default().chunks(MAX_CHUNK_BYTES) {
            peer.send_chunk(chunk.to_vec()).expect("four chunks at most, of at most 256 KiB");
        }
        true
    }

    fn poll_datagram(&mut self, now: Instant) -> Option<&'static [u8]> {
        self.asks_at.filter(|&at| at <= now)?;
        self.asks_at = Some(now + ASKS_EVERY);
        Some(REQUEST)
    }
}

/// Both ends.
pub(super) struct Article {
    server: HostId<ArticleHost<End>>,
    client: HostId<ArticleHost<End>>,
    chunks: usize,
}

impl Article {
    pub(super) fn new(
        world: &mut World,
        homes: Homes,
        scene: &Scene,
        sender: Sender,
        block: &[u8],
    ) -> Self {
        let (at_server, at_client) = addresses();
        let bursts = sender == Sender::Article;
        let usual = if bursts { AFTER_BURST } else { scene.rate_bps / 10 * 9 };
        let rate_bps = scene.budget_bps.unwrap_or(usual);
        let sender = ChunkSenderConfig::default().with_burst(bursts).with_rate_bps(rate_bps);
        let config = ArticleConfig::default().with_sender(sender);
        let end = |answer, asks_at, reads, filter| End {
            answer,
            asks_at,
            reads,
            filter,
            chunks: Vec::new(),
        };
        let server = end(Some(block.to_vec()), None, true, Filter::default());
        let server = ArticleHost::new(config.clone(), at_client, server);
        let reads = scene.without != Some(Fault::Unread);
        let client = end(None, Some(Instant::ZERO), reads, Filter::new(scene.without));
        let client = ArticleHost::new(config, at_server, client);
        Self {
            server: world.add_behind(server, at_server, homes.server),
            client: world.add_behind(client, at_client, homes.client),
            chunks: block.len().div_ceil(MAX_CHUNK_BYTES),
        }
    }

    /// When the block was whole at the client, if it is.
    pub(super) fn whole(&self, world: &World) -> Option<Instant> {
        world.host(self.client).app.chunks.get(self.chunks - 1).copied()
    }

    /// Whether the sender knows that.
    pub(super) fn is_over(&self, world: &World) -> bool {
        world.host(self.server).peer().sender().stats().chunks_sent as usize == self.chunks
    }
}

/// The article's aggressive budget, for what the burst leaves over.
const AFTER_BURST: u64 = 1_000_000;
