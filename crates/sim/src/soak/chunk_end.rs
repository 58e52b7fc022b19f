//! One end of a soak of chunks: what it has to send, a reader with its habits, and what must come.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use haulier_article::chunk::{ChunkSenderEvent, SendFailure};
use haulier_article::{ArticleConfig, ArticlePeer, Instant, PeerEvent};

use crate::hosts::{ArticleApp, ArticleHost};

/// How an application reads finished chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Reader {
    /// At once.
    #[default]
    Prompt,
    /// One at a time, this far apart.
    Slow(Duration),
    /// Not at all until then.
    StoppedUntil(Instant),
    /// Each chunk only when its sender knows that it is there. It is what finds a receiver that does not
    /// ack while a finished chunk waits: any other reader reads at last, and that heals it.
    WhenKnown,
}

/// The application of one end.
#[derive(Clone, Debug, Default)]
pub(super) struct ChunkEnd {
    reader: Reader,
    last_read: Option<Instant>,
    /// Chunks not yet known to be sent, the one in flight first.
    pub(super) to_send: VecDeque<Bytes>,
    /// How many of them the peer has taken.
    offered: usize,
    /// Chunks that the other end will send, in order, as far as not received yet.
    pub(super) expected: VecDeque<Bytes>,
    /// Chunks that the peer of this session reported as sent.
    pub(super) sent_in_session: u64,
    /// Chunks that the other end knows to be sent: what [`Reader::WhenKnown`] may read.
    pub(super) known_there: u64,
    read_in_session: u64,
    pub(super) received: u64,
    pub(super) wrong: Option<String>,
    /// The run ended early; both ends must be given a new session.
    pub(super) broken: Option<SendFailure>,
}

impl ChunkEnd {
    pub(super) fn new(reader: Reader, to_send: Vec<Bytes>, expected: Vec<Bytes>) -> Self {
        let (to_send, expected) = (to_send.into(), expected.into());
        Self { reader, to_send, expected, ..Self::default() }
    }

    /// Chunks that are not received, and not known to be sent.
    pub(super) fn unfinished(&self) -> usize {
        self.to_send.len() + self.expected.len()
    }

    fn read_one(&mut self, peer: &mut ArticlePeer) {
        let (Some(chunk), expected) = (peer.pop_chunk(), self.expected.pop_front()) else {
            return;
        };
        if Some(&chunk) != expected.as_ref() {
            let sizes = (chunk.len(), expected.map(|chunk| chunk.len()));
            self.wrong = Some(format!("chunk {} is wrong: {sizes:?} bytes", self.received));
        }
        self.received += 1;
        self.read_in_session += 1;
    }

    fn offer(&mut self, peer: &mut ArticlePeer) {
        while let Some(chunk) = self.to_send.get(self.offered)
            && peer.send_chunk(chunk.clone()).is_ok()
        {
            self.offered += 1;
        }
    }
}

impl ArticleHost<ChunkEnd> {
    /// An end that speaks with `remote`.
    pub(super) fn of_soak(config: ArticleConfig, remote: SocketAddr, end: ChunkEnd) -> Self {
        let mut host = Self::new(config, remote, end);
        host.app.offer(&mut host.machine.peer);
        host
    }

    /// Starts over with a new peer, of another protocol id, so that what is still under way means nothing.
    /// `received_there` chunks arrived before the break; they are not sent again.
    pub(super) fn restart(&mut self, config: ArticleConfig, received_there: usize) {
        let (peer, end) = (&mut self.machine.peer, &mut self.app);
        assert_eq!(peer.receiver().unread(), 0, "what was acked must be read, or it is lost");
        *peer = ArticlePeer::new(config);
        end.to_send.drain(..received_there.min(end.to_send.len()));
        (end.offered, end.sent_in_session, end.known_there, end.read_in_session) = (0, 0, 0, 0);
        end.broken = None;
        end.offer(peer);
    }

    /// Reads all that waits, whatever the habit: what was acked must not be lost with the session.
    pub(super) fn read_rest(&mut self) {
        while self.peer().receiver().unread() > 0 {
            self.app.read_one(&mut self.machine.peer);
        }
    }
}

impl ArticleApp for ChunkEnd {
    fn turn(&mut self, now: Instant, peer: &mut ArticlePeer) {
        while let Some(event) = peer.poll_event() {
            match event {
                PeerEvent::Sender(ChunkSenderEvent::Sent { .. }) => {
                    self.to_send.pop_front();
                    self.offered -= 1;
                    self.sent_in_session += 1;
                }
                PeerEvent::Sender(ChunkSenderEvent::Failed { reason, .. }) => {
                    self.broken = self.broken.or(Some(reason));
                }
                _ => {}
            }
        }
        if self.broken.is_none() {
            self.offer(peer);
        }
        while self.wakes_at(peer).is_some_and(|at| at <= now) {
            self.last_read = Some(now);
            self.read_one(peer);
        }
    }

    /// When the reader looks next, if something is there.
    fn wakes_at(&self, peer: &ArticlePeer) -> Option<Instant> {
        if peer.receiver().unread() == 0 {
            return None;
        }
        Some(match self.reader {
            Reader::Prompt => Instant::ZERO,
            Reader::Slow(every) => self.last_read.map_or(Instant::ZERO, |last| last + every),
            Reader::StoppedUntil(at) => at,
            Reader::WhenKnown if self.known_there > self.read_in_session => Instant::ZERO,
            Reader::WhenKnown => return None,
        })
    }
}
