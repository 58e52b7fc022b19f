//! Many hosts with addresses, in virtual time: where a server meets its clients, and strangers.
//!
//! A [`World`](crate::World) has nodes that know each other. Here a datagram says where it comes from and
//! where it goes, and the first of the two may be a lie: a host can send from an address that is not its
//! own, as on the real one. Each host has an access link up and one down; what is between them costs
//! nothing. A NAT is a host's address that changes, and somebody on the path sees, and may copy, whatever
//! passes. Events are in a heap, so thousands of hosts are cheap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;

use haulier_proto::Instant;

use crate::{Link, LinkConfig, Rng, Trace};

/// A host: a machine, usually with an application round it.
pub trait Host {
    /// A datagram has arrived. It may be changed in place.
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]);
    /// The deadline of [`poll_timeout`](Self::poll_timeout) has passed.
    fn handle_timeout(&mut self, now: Instant);
    /// Fills `datagram` with the next one to send and says where to; `None` when there is none now.
    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr>;
    /// When to wake this host, if nothing arrives before.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Where the datagram just handed out claims to come from; `None` is the truth.
    fn spoofed_source(&self) -> Option<SocketAddr> {
        None
    }
    /// A datagram passes that is not for this host, which sits on everybody's path. Only asked of hosts
    /// that were made [observers](Internet::observe).
    fn overhear(&mut self, _now: Instant, _from: SocketAddr, _to: SocketAddr, _datagram: &[u8]) {}
    /// The same, for a host that does not only listen: the datagram goes on as this leaves it, and not at
    /// all if it is empty then.
    fn meddle(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, datagram: &mut Vec<u8>) {
        self.overhear(now, from, to, datagram);
    }
    /// Panics if something is inconsistent.
    fn check_invariants(&self) {}
}

/// Names a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(usize);

/// How a host is connected.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// From the host.
    pub up: LinkConfig,
    /// To the host.
    pub down: LinkConfig,
}

#[derive(Debug)]
struct Entry<H> {
    host: H,
    address: SocketAddr,
    up: Link,
    down: Link,
    /// The deadlines that lie in the heap for the host and its links.
    planned: [Option<Instant>; 3],
}

const HOST: usize = 0;
const UP: usize = 1;
const DOWN: usize = 2;

/// Hosts and what is between them.
#[derive(Debug)]
pub struct Internet<H> {
    now: Instant,
    seed: u64,
    hosts: Vec<Entry<H>>,
    by_address: HashMap<SocketAddr, usize>,
    observers: Vec<usize>,
    /// Addresses seen, so that a label of 64 bits names two of them.
    addresses: Vec<SocketAddr>,
    numbers: HashMap<SocketAddr, u32>,
    heap: BinaryHeap<Reverse<(Instant, usize, usize)>>,
    trace: Trace,
    is_traced: bool,
    scratch: Vec<u8>,
    steps: u64,
    steps_at_this_moment: u64,
}

/// Events at one moment after which it gives up: a host that always wants to be woken at once would stop
/// time for ever.
const EVENTS_AT_ONE_MOMENT: u64 = 1_000_000;

impl<H: Host> Internet<H> {
    /// Nobody, at time zero.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            seed,
            hosts: Vec::new(),
            by_address: HashMap::new(),
            observers: Vec::new(),
            addresses: Vec::new(),
            numbers: HashMap::new(),
            heap: BinaryHeap::new(),
            trace: Trace::new(),
            is_traced: true,
            scratch: Vec::new(),
            steps: 0,
            steps_at_this_moment: 0,
        }
    }

    /// The same without a trace, for benches: hashing every byte three times is two fifths of the time of a
    /// run that encrypts nothing.
    #[must_use]
    pub const fn without_trace(mut self) -> Self {
        self.is_traced = false;
        self
    }

    /// Adds a host with an address and a connection. It is asked at once what it wants.
    pub fn add(&mut self, host: H, address: SocketAddr, access: &Access) -> HostId {
        let id = self.hosts.len();
        let link = |config: &LinkConfig, direction: u64| {
            let seed = Rng::stream(self.seed, 1000 + id as u64 * 2 + direction).next_u64();
            Link::new(config.clone(), seed)
        };
        let (up, down) = (link(&access.up, 0), link(&access.down, 1));
        self.hosts.push(Entry { host, address, up, down, planned: [None; 3] });
        self.by_address.insert(address, id);
        self.wake(id);
        HostId(id)
    }

    /// Lets a host overhear everything that passes between others.
    pub fn observe(&mut self, id: HostId) {
        self.observers.push(id.0);
    }

    /// Gives a host another address: its NAT has forgotten it. What is under way to the old one is lost.
    pub fn rebind(&mut self, id: HostId, address: SocketAddr) {
        let old = std::mem::replace(&mut self.hosts[id.0].address, address);
        self.by_address.remove(&old);
        self.by_address.insert(address, id.0);
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

    /// Events so far.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// A host, to look at.
    #[must_use]
    pub fn host(&self, id: HostId) -> &H {
        &self.hosts[id.0].host
    }

    /// A host, to act on. It is asked afterwards what it wants.
    pub fn act<R>(&mut self, id: HostId, act: impl FnOnce(&mut H, Instant) -> R) -> R {
        let outcome = act(&mut self.hosts[id.0].host, self.now);
        self.wake(id.0);
        outcome
    }

    /// Where a host is.
    #[must_use]
    pub fn address(&self, id: HostId) -> SocketAddr {
        self.hosts[id.0].address
    }

    /// The links of a host: up and down.
    #[must_use]
    pub fn links(&self, id: HostId) -> (&Link, &Link) {
        (&self.hosts[id.0].up, &self.hosts[id.0].down)
    }

    /// Lets the peaks of all queues be those of what comes from now on.
    pub fn forget_peaks(&mut self) {
        for entry in &mut self.hosts {
            entry.up.forget_peak();
            entry.down.forget_peak();
        }
    }

    /// Changes how a host is connected. What is under way is not touched.
    pub fn set_access(&mut self, id: HostId, access: &Access) {
        self.hosts[id.0].up.set_config(access.up.clone());
        self.hosts[id.0].down.set_config(access.down.clone());
    }

    /// All hosts.
    pub fn hosts(&self) -> impl Iterator<Item = (HostId, &H)> {
        self.hosts.iter().enumerate().map(|(id, entry)| (HostId(id), &entry.host))
    }

    /// Runs until `done` says so or `end` has come; returns whether it was the first.
    pub fn run_until(&mut self, end: Instant, mut done: impl FnMut(&Self) -> bool) -> bool {
        loop {
            if done(self) {
                return true;
            }
            if !self.step(end) {
                self.now = self.now.max(end);
                return done(self);
            }
        }
    }

    /// Runs to `end`.
    pub fn run_to(&mut self, end: Instant) {
        while self.step(end) {}
        self.now = self.now.max(end);
    }

    /// One event, if there is one by `end`.
    pub fn step(&mut self, end: Instant) -> bool {
        loop {
            let Some(&Reverse((at, id, what))) = self.heap.peek() else { return false };
            if at > end {
                return false;
            }
            self.heap.pop();
            if self.hosts[id].planned[what] != Some(at) {
                continue; // It was put off, or brought forward.
            }
            self.hosts[id].planned[what] = None;
            self.steps_at_this_moment =
                if at > self.now { 0 } else { self.steps_at_this_moment + 1 };
            let count = self.steps_at_this_moment;
            assert!(count < EVENTS_AT_ONE_MOMENT, "time stands still at {:?}", self.now);
            self.now = self.now.max(at);
            self.steps += 1;
            match what {
                HOST => self.hosts[id].host.handle_timeout(self.now),
                UP => self.cross(id),
                _ => self.deliver(id),
            }
            self.wake(id);
            return true;
        }
    }

    /// Packets that have left a host's own link go to that of their destination.
    fn cross(&mut self, from: usize) {
        let mut datagram = std::mem::take(&mut self.scratch);
        while let Some(label) = self.hosts[from].up.poll_labelled(self.now, &mut datagram) {
            let (source, to) = self.addresses_of(label);
            for at in 0..self.observers.len() {
                let observer = self.observers[at];
                if observer != from {
                    self.hosts[observer].host.meddle(self.now, source, to, &mut datagram);
                    self.wake(observer);
                }
            }
            if datagram.is_empty() {
                continue;
            }
            let Some(&id) = self.by_address.get(&to) else { continue };
            let fate = self.hosts[id].down.offer_labelled(self.now, &datagram, label);
            self.record(self.now, 3 | (fate as u64) << 8, id as u64, &datagram);
            self.plan(id, DOWN);
        }
        self.scratch = datagram;
    }

    fn record(&mut self, at: Instant, kind: u64, place: u64, bytes: &[u8]) {
        if self.is_traced {
            self.trace.record(at, kind, place, bytes);
        }
    }

    fn deliver(&mut self, id: usize) {
        let mut datagram = std::mem::take(&mut self.scratch);
        while let Some(label) = self.hosts[id].down.poll_labelled(self.now, &mut datagram) {
            let (source, to) = self.addresses_of(label);
            if self.hosts[id].address == to {
                self.record(self.now, 4, id as u64, &datagram);
                self.hosts[id].host.handle_datagram(self.now, source, &mut datagram);
            }
        }
        self.scratch = datagram;
    }

    /// Takes what a host wants to send, and plans its next events.
    fn wake(&mut self, id: usize) {
        let mut datagram = std::mem::take(&mut self.scratch);
        while let Some(to) = self.hosts[id].host.poll_transmit(self.now, &mut datagram) {
            let own = self.hosts[id].address;
            let source = self.hosts[id].host.spoofed_source().unwrap_or(own);
            let label = u64::from(self.number_of(source)) << 32 | u64::from(self.number_of(to));
            let fate = self.hosts[id].up.offer_labelled(self.now, &datagram, label);
            self.record(self.now, 1 | (fate as u64) << 8, id as u64, &datagram);
        }
        self.scratch = datagram;
        self.hosts[id].host.check_invariants();
        (HOST..=DOWN).for_each(|what| self.plan(id, what));
    }

    fn plan(&mut self, id: usize, what: usize) {
        let entry = &self.hosts[id];
        let at = match what {
            HOST => entry.host.poll_timeout(),
            UP => entry.up.poll_timeout(),
            _ => entry.down.poll_timeout(),
        };
        let at = at.map(|at| at.max(self.now));
        if at != entry.planned[what] {
            self.hosts[id].planned[what] = at;
            self.heap.extend(at.map(|at| Reverse((at, id, what))));
        }
    }

    fn number_of(&mut self, address: SocketAddr) -> u32 {
        *self.numbers.entry(address).or_insert_with(|| {
            self.addresses.push(address);
            u32::try_from(self.addresses.len() - 1).expect("fewer than 2^32 addresses")
        })
    }

    fn addresses_of(&self, label: u64) -> (SocketAddr, SocketAddr) {
        let at = |number: u64| self.addresses[usize::try_from(number).expect("32 bits")];
        (at(label >> 32), at(label & u64::from(u32::MAX)))
    }
}
