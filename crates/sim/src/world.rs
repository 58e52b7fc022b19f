//! The world: nodes, the links between them, and one clock that jumps from event to event.
//!
//! The invariant: a run depends on the seed and on what the nodes do, on nothing else. Within one moment
//! the order is fixed too: deliveries by link, then deadlines by node, then sending by node.

use haulier_proto::Instant;
use haulier_proto::time::earliest;

use crate::{Link, LinkConfig, Rng, Trace};

/// Names a node of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(usize);

/// Something that receives and sends datagrams: a machine, usually with an application round it.
pub trait Node {
    /// A datagram has arrived.
    fn handle_datagram(&mut self, now: Instant, from: NodeId, datagram: &[u8]);
    /// The deadline of [`poll_timeout`](Self::poll_timeout) has passed.
    fn handle_timeout(&mut self, now: Instant);
    /// Fills `datagram` with the next one to send and says whom to; `None` when there is none now.
    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<NodeId>;
    /// When to wake this node, if nothing arrives before.
    fn poll_timeout(&self) -> Option<Instant>;
    /// There is a link to this node now. Who has only one neighbour learns here whom to send to.
    fn handle_link(&mut self, _to: NodeId) {}
    /// Panics if something is inconsistent. Called after every step.
    fn check_invariants(&self) {}
}

/// Nodes and links in virtual time.
#[derive(Clone, Debug)]
pub struct World<N> {
    now: Instant,
    seed: u64,
    nodes: Vec<N>,
    links: Vec<(NodeId, NodeId, Link)>,
    trace: Trace,
    scratch: Vec<u8>,
}

/// Rounds at one moment after which a world gives up: a node that always wants to be woken at once, or
/// two that answer each other without delay, would stop time for ever.
const ROUNDS_AT_ONE_MOMENT: u32 = 100_000;

const SENT: u64 = 1;
const DELIVERED: u64 = 2;

impl<N: Node> World<N> {
    /// An empty world at time zero.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            seed,
            nodes: Vec::new(),
            links: Vec::new(),
            trace: Trace::new(),
            scratch: Vec::new(),
        }
    }

    /// Adds a node.
    pub fn add(&mut self, node: N) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() - 1)
    }

    /// Connects two nodes with a link of the same kind in both directions.
    pub fn connect(&mut self, a: NodeId, b: NodeId, link: &LinkConfig) {
        self.connect_one_way(a, b, link.clone());
        self.connect_one_way(b, a, link.clone());
    }

    /// Connects two nodes in one direction.
    pub fn connect_one_way(&mut self, from: NodeId, to: NodeId, link: LinkConfig) {
        let seed = Rng::stream(self.seed, 100 + self.links.len() as u64).next_u64();
        self.links.push((from, to, Link::new(link, seed)));
        self.nodes[from.0].handle_link(to);
    }

    /// The present moment.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// What happened so far.
    #[must_use]
    pub const fn trace(&self) -> &Trace {
        &self.trace
    }

    /// A node, to look at.
    ///
    /// # Panics
    /// If it is of another world.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &N {
        &self.nodes[id.0]
    }

    /// A node, to act on.
    ///
    /// # Panics
    /// If it is of another world.
    #[must_use]
    pub fn node_mut(&mut self, id: NodeId) -> &mut N {
        &mut self.nodes[id.0]
    }

    /// The link in this direction, if there is one.
    #[must_use]
    pub fn link(&self, from: NodeId, to: NodeId) -> Option<&Link> {
        self.links.iter().find(|(f, t, _)| (*f, *t) == (from, to)).map(|(_, _, link)| link)
    }

    /// The link in this direction, to change.
    #[must_use]
    pub fn link_mut(&mut self, from: NodeId, to: NodeId) -> Option<&mut Link> {
        self.links.iter_mut().find(|(f, t, _)| (*f, *t) == (from, to)).map(|(_, _, link)| link)
    }

    /// Runs until `done` says so; returns `false` if nothing is left that could happen.
    pub fn run_until(&mut self, mut done: impl FnMut(&Self) -> bool) -> bool {
        loop {
            if done(self) {
                return true;
            }
            if !self.step() {
                return false;
            }
        }
    }

    /// Runs until `end`; the clock stands there afterwards, whatever happened before.
    pub fn run_to(&mut self, end: Instant) {
        self.settle();
        while self.next_event().is_some_and(|at| at <= end) {
            self.step();
        }
        self.now = self.now.max(end);
    }

    /// Jumps to the next event and lets everything happen that is due then. Returns `false` if there is
    /// none.
    pub fn step(&mut self) -> bool {
        self.settle();
        let Some(next) = self.next_event() else { return false };
        self.now = self.now.max(next);
        self.settle();
        self.nodes.iter().for_each(N::check_invariants);
        self.links.iter().for_each(|(_, _, link)| link.check_conservation());
        true
    }

    fn next_event(&self) -> Option<Instant> {
        let links = self.links.iter().map(|(_, _, link)| link.poll_timeout());
        let nodes = self.nodes.iter().map(N::poll_timeout);
        links.chain(nodes).fold(None, earliest)
    }

    /// Lets everything happen that is due now, until nothing is.
    fn settle(&mut self) {
        for _ in 0..ROUNDS_AT_ONE_MOMENT {
            self.deliver();
            for node in &mut self.nodes {
                if node.poll_timeout().is_some_and(|at| at <= self.now) {
                    node.handle_timeout(self.now);
                }
            }
            self.transmit();
            if self.next_event().is_none_or(|next| next > self.now) {
                return;
            }
        }
        panic!("time stands still at {:?}: a node asks to be woken again and again", self.now);
    }

    fn deliver(&mut self) {
        for (place, (from, to, link)) in self.links.iter_mut().enumerate() {
            while link.poll_delivery(self.now, &mut self.scratch) {
                self.trace.record(self.now, DELIVERED, place as u64, &self.scratch);
                self.nodes[to.0].handle_datagram(self.now, *from, &self.scratch);
            }
        }
    }

    fn transmit(&mut self) {
        for from in 0..self.nodes.len() {
            while let Some(to) = self.nodes[from].poll_transmit(self.now, &mut self.scratch) {
                let way = self.links.iter_mut().position(|(f, t, _)| (f.0, *t) == (from, to));
                let Some(place) = way else { continue };
                let fate = self.links[place].2.offer(self.now, &self.scratch);
                let kind = SENT | (fate as u64) << 8;
                self.trace.record(self.now, kind, place as u64, &self.scratch);
            }
        }
    }
}
