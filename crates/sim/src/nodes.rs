//! Ready-made nodes: a bare peer, and one that only acts on the frames of a game.

use std::time::Duration;

use haulier_article::{ArticlePeer, Instant};

use crate::{Node, NodeId};

/// A peer of the article's wire that acts at once. It speaks to the node it was linked with last.
#[derive(Clone, Debug)]
pub struct PeerNode {
    /// The peer, for the application to speak to between steps.
    pub peer: ArticlePeer,
    remote: Option<NodeId>,
}

impl PeerNode {
    /// A node round a peer.
    #[must_use]
    pub const fn new(peer: ArticlePeer) -> Self {
        Self { peer, remote: None }
    }
}

impl Node for PeerNode {
    fn handle_link(&mut self, to: NodeId) {
        self.remote = Some(to);
    }

    fn handle_datagram(&mut self, now: Instant, _from: NodeId, datagram: &[u8]) {
        let _counted = self.peer.handle_datagram(now, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.peer.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<NodeId> {
        if self.peer.poll_datagram(now, datagram) { self.remote } else { None }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.peer.poll_timeout()
    }

    fn check_invariants(&self) {
        self.peer.check_invariants();
    }
}

/// A node that sees and does everything on frames, as a game does: what arrives waits for the next
/// frame, and so does what there is to send.
#[derive(Clone, Debug)]
pub struct FrameNode<N> {
    /// The node inside.
    pub inner: N,
    frame: Duration,
    next_frame: Instant,
    /// The frame being worked on.
    open: Option<Instant>,
    waiting: Vec<(NodeId, Vec<u8>)>,
}

impl<N: Node> FrameNode<N> {
    /// Frames of this length, the first at `first_frame`.
    #[must_use]
    pub const fn new(inner: N, frame: Duration, first_frame: Instant) -> Self {
        Self { inner, frame, next_frame: first_frame, open: None, waiting: Vec::new() }
    }
}

impl<N: Node> Node for FrameNode<N> {
    fn handle_link(&mut self, to: NodeId) {
        self.inner.handle_link(to);
    }

    fn handle_datagram(&mut self, _now: Instant, from: NodeId, datagram: &[u8]) {
        self.waiting.push((from, datagram.to_vec()));
    }

    fn handle_timeout(&mut self, now: Instant) {
        for (from, datagram) in self.waiting.drain(..) {
            self.inner.handle_datagram(now, from, &datagram);
        }
        if self.inner.poll_timeout().is_some_and(|at| at <= now) {
            self.inner.handle_timeout(now);
        }
        self.open = Some(now);
        self.next_frame = self.next_frame + self.frame;
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<NodeId> {
        if self.open != Some(now) {
            return None;
        }
        let to = self.inner.poll_transmit(now, datagram);
        if to.is_none() {
            self.open = None;
        }
        to
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next_frame)
    }

    fn check_invariants(&self) {
        self.inner.check_invariants();
    }
}
