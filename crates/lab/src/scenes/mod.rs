//! Scenes of the playground: a block that several senders carry over the same link, and everything that can
//! be seen of it (VIEWS, "The playground").
//!
//! A [`Scene`] is one line of text. Each of its senders has a lane: a world of its own with the same link and
//! seed, so that all lose the same packets by their order. [`Scene::play`] runs each lane to its end, and
//! returns a [`Take`] for it. Nothing here draws.
//!
//! The invariant: a take depends on the scene alone, so that a page, a test and a friend with the link see
//! the same.

mod article;
mod fault;
mod fragments;
mod lane;
mod lesson;
mod reading;
mod tables;
mod take;
mod text;

use std::time::Duration;

use haulier_proto::connection::trace::TraceSecret;
use haulier_sim::hosts::Keyed;
use haulier_sim::profile::join_limit;
use haulier_sim::{LinkConfig, Loss, Probability};

pub use fault::Fault;
pub use lesson::{LESSONS, Lesson};
pub use tables::{Budget, Tables, tables};
pub use take::{Kind, Outcome, Row, Take};
pub use text::SceneError;

/// A sender of a scene.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sender {
    /// haulier/1 by ticket.
    Haulier,
    /// The article's sender: a burst of each chunk, then 1 Mbit/s.
    Article,
    /// The article's sender without the burst.
    ArticlePaced,
    /// The block as fragments of large packets; one that misses a fragment is sent again as a whole.
    Fragments,
    /// TCP with CUBIC, as a model: a slow start.
    SlowStart,
}

impl Sender {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Haulier, Self::Article, Self::ArticlePaced, Self::Fragments, Self::SlowStart];

    /// Its name in the text of a scene.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Haulier => "haulier",
            Self::Article => "article",
            Self::ArticlePaced => "article-paced",
            Self::Fragments => "fragments",
            Self::SlowStart => "slow-start",
        }
    }
}

/// What was seen at the client of a sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// The datagrams, in the order of their times.
    pub datagrams: Vec<Captured>,
    /// The secrets of the connection, if it was sealed.
    pub secrets: Vec<TraceSecret>,
}

/// A datagram in a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When, from the beginning of the run on.
    pub at: Duration,
    /// Whether it goes from the server to the client.
    pub is_down: bool,
    /// Its bytes.
    pub datagram: Vec<u8>,
}

/// Everything that a run depends on. Its text is a query: [`parse`](Self::parse), and `to_string` back.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// The senders, each alone on the link: one to four.
    pub senders: Vec<Sender>,
    /// Bits per second of the link, both ways, from 100,000 to 1,000,000,000.
    pub rate_bps: u64,
    /// Round trip without queueing, in ms, from 0 to 2,000.
    pub rtt_ms: u64,
    /// Lost packets in ten thousand, each way, from 0 to 9,000.
    pub loss: u64,
    /// Mean length of runs of lost packets, from 1 (each by itself) to 50.
    pub burst: u32,
    /// Bytes of the queue, each way, from 2,048 to 16 MiB.
    pub queue_bytes: u64,
    /// Extra delay, uniform from 0 up to this, in ms, from 0 to 500. It reorders.
    pub jitter_ms: u64,
    /// Bytes of the block, from 1 to 1 MiB.
    pub bytes: u64,
    /// Of all that is random.
    pub seed: u64,
    /// Bits per second that the article's sender may send once its burst is over, from 16,000 to
    /// 1,000,000,000; `None` is 1,000,000, and nine tenths of the link without a burst.
    pub budget_bps: Option<u64>,
    /// What an end has forgotten.
    pub without: Option<Fault>,
    /// How long at most, in ms of the link, from 100 to 60,000: some lanes have no end.
    pub lasts_ms: u64,
}

impl Default for Scene {
    /// 256 KiB over 10 Mbit/s, 100 ms and 5 % of loss: `mobile` of the profiles.
    fn default() -> Self {
        Self {
            senders: vec![Sender::Haulier, Sender::Article, Sender::SlowStart],
            rate_bps: 10_000_000,
            rtt_ms: 100,
            loss: 500,
            burst: 1,
            queue_bytes: 256 << 10,
            jitter_ms: 0,
            bytes: 256 << 10,
            seed: 1,
            budget_bps: None,
            without: None,
            lasts_ms: 20_000,
        }
    }
}

impl Scene {
    /// A take for each sender, in their order.
    pub fn play(&self) -> Vec<Take> {
        self.senders.iter().map(|&sender| lane::play(self, sender)).collect()
    }

    /// What a capture at the client of this sender has, in its order: all that the client sends, and all that
    /// reaches it. haulier/1 is in mode `open`, or `secret` if it is `sealed`. The model of TCP sends nothing
    /// that can be captured.
    pub fn capture(&self, sender: Sender, sealed: bool) -> Capture {
        if sender == Sender::SlowStart {
            return Capture::default();
        }
        lane::capture(self, sender, if sealed { Keyed::Secret } else { Keyed::Open })
    }

    /// The physical limit of a join that gets the block: a request, and the bytes at the link's rate, lost
    /// ones again.
    pub fn limit(&self) -> Duration {
        join_limit(&self.link(), self.bytes)
    }

    /// One direction of the link.
    fn link(&self) -> LinkConfig {
        let mean = Probability::ratio(self.loss, 10_000);
        LinkConfig {
            rate_bps: Some(self.rate_bps),
            queue_bytes: Some(self.queue_bytes),
            delay: Duration::from_micros(self.rtt_ms * 500),
            jitter: Duration::from_millis(self.jitter_ms),
            reorder: self.jitter_ms > 0,
            loss: match (self.loss, self.burst) {
                (0, _) => Loss::None,
                (_, 0..=1) => Loss::Independent(mean),
                (_, length) => Loss::Bursts { mean, length },
            },
            ..LinkConfig::default()
        }
    }

    fn lasts(&self) -> Duration {
        Duration::from_millis(self.lasts_ms)
    }
}

#[cfg(test)]
mod tests;
