//! One end of a soak scenario: a peer with chunks to send, a reader with its habits, and a memory of what
//! the other end promised.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use haulier_article::chunk::{ChunkSenderEvent, SendFailure};
use haulier_article::time::earliest;
use haulier_article::{ArticleConfig, ArticlePeer, Instant, PeerEvent, ProtocolId};

use crate::game::{GamePackets, dispatch};
use crate::{Node, NodeId};

/// How an application reads finished chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// At once.
    Prompt,
    /// One at a time, this far apart.
    Slow(Duration),
    /// Not at all until then.
    StoppedUntil(Instant),
    /// Each chunk only when its sender knows that it is there. It is what finds a receiver that does not
    /// ack while a finished chunk waits: any other reader reads at last, and that heals it.
    WhenTold,
}

#[derive(Clone, Debug)]
pub(super) struct SoakNode {
    pub(super) peer: ArticlePeer,
    /// A game beside the chunks; its packets go first.
    pub(super) packets: Option<GamePackets>,
    config: ArticleConfig,
    remote: Option<NodeId>,
    reader: Reader,
    last_read: Option<Instant>,
    /// Chunks not yet known to be sent, the one in flight first.
    to_send: VecDeque<Bytes>,
    /// How many of them the peer has taken.
    offered: usize,
    /// Chunks that the other end will send, in order, as far as not received yet.
    expected: VecDeque<Bytes>,
    /// Chunks that the peer of this session reported as sent.
    pub(super) sent_in_session: u64,
    /// Chunks that the other end knows to be sent: what [`Reader::WhenTold`] may read.
    pub(super) told: u64,
    read_in_session: u64,
    pub(super) received: u64,
    pub(super) wrong: Option<String>,
    /// The run ended early; both ends must be given a new session.
    pub(super) broken: Option<SendFailure>,
}

impl SoakNode {
    pub(super) fn new(
        config: ArticleConfig,
        reader: Reader,
        to_send: Vec<Bytes>,
        expected: Vec<Bytes>,
    ) -> Self {
        let mut node = Self {
            peer: ArticlePeer::new(config.clone()),
            packets: None,
            config,
            remote: None,
            reader,
            last_read: None,
            to_send: to_send.into(),
            offered: 0,
            expected: expected.into(),
            sent_in_session: 0,
            told: 0,
            read_in_session: 0,
            received: 0,
            wrong: None,
            broken: None,
        };
        node.offer();
        node
    }

    /// Nothing left to send or to receive.
    pub(super) fn is_done(&self) -> bool {
        self.to_send.is_empty() && self.expected.is_empty()
    }

    /// Chunks completed here in this session.
    pub(super) fn completed_in_session(&self) -> u64 {
        self.peer.receiver().stats().chunks_received
    }

    /// Starts over with a new peer. As two programs that connect again would, both ends use another
    /// protocol id from now on, so that what is still under way of the old session means nothing.
    /// `received_by_other` chunks of ours arrived there before the break; they are not sent again.
    pub(super) fn restart(&mut self, protocol_id: ProtocolId, received_by_other: usize) {
        assert_eq!(self.peer.receiver().unread(), 0, "what was acked must be read, or it is lost");
        self.config.protocol_id = protocol_id;
        self.peer = ArticlePeer::new(self.config.clone());
        self.to_send.drain(..received_by_other.min(self.to_send.len()));
        self.offered = 0;
        self.sent_in_session = 0;
        self.told = 0;
        self.read_in_session = 0;
        self.broken = None;
        self.offer();
    }

    /// Chunks of ours that are not known to be sent.
    pub(super) fn unsent(&self) -> usize {
        self.to_send.len()
    }

    /// Chunks of the other end that are not read.
    pub(super) fn unreceived(&self) -> usize {
        self.expected.len()
    }

    /// Reads what the reader's habit allows by now.
    fn read(&mut self, now: Instant) {
        while self.read_at().is_some_and(|at| at <= now) {
            self.last_read = Some(now);
            self.read_one();
        }
    }

    /// Reads all that waits, whatever the habit: what was acked must not be lost with the session.
    pub(super) fn read_rest(&mut self) {
        while self.peer.receiver().unread() > 0 {
            self.read_one();
        }
    }

    fn read_one(&mut self) {
        let (Some(chunk), expected) = (self.peer.pop_chunk(), self.expected.pop_front()) else {
            return;
        };
        if Some(&chunk) != expected.as_ref() {
            let sizes = (chunk.len(), expected.map(|chunk| chunk.len()));
            self.wrong = Some(format!("chunk {} is wrong: {sizes:?} bytes", self.received));
        }
        self.received += 1;
        self.read_in_session += 1;
    }

    /// When the reader looks next, if something is there.
    fn read_at(&self) -> Option<Instant> {
        if self.peer.receiver().unread() == 0 {
            return None;
        }
        Some(match self.reader {
            Reader::Prompt => Instant::ZERO,
            Reader::Slow(every) => self.last_read.map_or(Instant::ZERO, |last| last + every),
            Reader::StoppedUntil(at) => at,
            Reader::WhenTold if self.told > self.read_in_session => Instant::ZERO,
            Reader::WhenTold => return None,
        })
    }

    fn offer(&mut self) {
        while let Some(chunk) = self.to_send.get(self.offered) {
            if self.peer.send_chunk(chunk.clone()).is_err() {
                return;
            }
            self.offered += 1;
        }
    }

    fn listen(&mut self) {
        while let Some(event) = self.peer.poll_event() {
            match event {
                PeerEvent::Sender(ChunkSenderEvent::Sent { .. }) => {
                    self.to_send.pop_front();
                    self.offered -= 1;
                    self.sent_in_session += 1;
                }
                PeerEvent::Sender(ChunkSenderEvent::Failed { reason, .. }) => {
                    self.broken = self.broken.or(Some(reason));
                }
                PeerEvent::Receiver(_) => {}
            }
        }
        if self.broken.is_none() {
            self.offer();
        }
    }
}

impl Node for SoakNode {
    fn handle_link(&mut self, to: NodeId) {
        self.remote = Some(to);
    }

    fn handle_datagram(&mut self, now: Instant, _from: NodeId, datagram: &[u8]) {
        dispatch(now, datagram, self.packets.as_mut(), &mut self.peer);
        self.listen();
        self.read(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(packets) = &mut self.packets {
            packets.handle_timeout(now);
        }
        self.peer.handle_timeout(now);
        self.listen();
        self.read(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<NodeId> {
        let packets = self.packets.as_mut();
        let is_any = packets.is_some_and(|packets| packets.poll_datagram(now, datagram))
            || self.peer.poll_datagram(now, datagram);
        if is_any { self.remote } else { None }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let packets = self.packets.as_ref().and_then(GamePackets::poll_timeout);
        earliest(packets, earliest(self.peer.poll_timeout(), self.read_at()))
    }

    fn check_invariants(&self) {
        self.peer.check_invariants();
        self.packets.iter().for_each(GamePackets::check_invariants);
    }
}
