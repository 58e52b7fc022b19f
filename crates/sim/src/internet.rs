//! Many hosts with addresses, in virtual time: where a server meets its clients, and strangers.
//!
//! A [`World`](crate::World) has nodes that know each other. Here a datagram says where it comes from
//! and where it goes, and the first of the two may be a lie: a host can send from an address that is not
//! its own, as on the real one. Each host has an access link up and one down, its own or shared with
//! others of the same home; what is between them costs nothing. A NAT is a host's address that changes,
//! and somebody on the path sees, and may copy, whatever passes. Events are in a heap, so thousands of
//! hosts are cheap.

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

impl<H: Host + ?Sized> Host for Box<H> {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &mut [u8]) {
        (**self).handle_datagram(now, from, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        (**self).handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
        (**self).poll_transmit(now, datagram)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }

    fn spoofed_source(&self) -> Option<SocketAddr> {
        (**self).spoofed_source()
    }

    fn meddle(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, datagram: &mut Vec<u8>) {
        (**self).meddle(now, from, to, datagram);
    }

    fn check_invariants(&self) {
        (**self).check_invariants();
    }
}

/// Names a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(usize);

/// Names an access that hosts share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentId(usize);

/// How a host is connected, or a home of several.
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
    segment: usize,
    /// The deadline that lies in the heap.
    planned: Option<Instant>,
}

/// Links to the rest of the world, of one host or of several.
#[derive(Debug)]
struct Segment {
    up: Link,
    down: Link,
    /// The deadlines that lie in the heap for the two.
    planned: [Option<Instant>; 2],
}

/// What an event in the heap is of: a host by its number, or a direction of a segment by its own.
const HOST: usize = 0;
const UP: usize = 1;
const DOWN: usize = 2;

/// Hosts and what is between them.
#[derive(Debug)]
pub struct Internet<H> {
    now: Instant,
    seed: u64,
    hosts: Vec<Entry<H>>,
    segments: Vec<Segment>,
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
            segments: Vec::new(),
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

    /// Adds a host with an address and a connection of its own. It is asked at once what it wants.
    pub fn add(&mut self, host: H, address: SocketAddr, access: &Access) -> HostId {
        let segment = self.add_segment(access);
        self.add_behind(host, address, segment)
    }

    /// Adds an access for several hosts, as of a home: they share its links in both directions.
    pub fn add_segment(&mut self, access: &Access) -> SegmentId {
        let id = self.segments.len();
        let link = |config: &LinkConfig, direction: u64| {
            let seed = Rng::stream(self.seed, 1000 + id as u64 * 2 + direction).next_u64();
            Link::new(config.clone(), seed)
        };
        let (up, down) = (link(&access.up, 0), link(&access.down, 1));
        self.segments.push(Segment { up, down, planned: [None; 2] });
        SegmentId(id)
    }

    /// Adds a host with an address behind a shared access. It is asked at once what it wants. Two behind the
    /// same one speak to each other over its links too.
    pub fn add_behind(&mut self, host: H, address: SocketAddr, segment: SegmentId) -> HostId {
        let id = self.hosts.len();
        self.hosts.push(Entry { host, address, segment: segment.0, planned: None });
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

    /// The links of a host: up and down. Others may use them too.
    #[must_use]
    pub fn links(&self, id: HostId) -> (&Link, &Link) {
        self.segment_links(self.segment_of(id))
    }

    /// Lets the peaks of all queues be those of what comes from now on.
    pub fn forget_peaks(&mut self) {
        for segment in &mut self.segments {
            segment.up.forget_peak();
            segment.down.forget_peak();
        }
    }

    /// The links of an access: up and down.
    #[must_use]
    pub fn segment_links(&self, id: SegmentId) -> (&Link, &Link) {
        (&self.segments[id.0].up, &self.segments[id.0].down)
    }

    /// Changes how a host is connected, and whoever is behind the same access. What is under way is not
    /// touched.
    pub fn set_access(&mut self, id: HostId, access: &Access) {
        let segment = self.segment_of(id);
        self.set_segment_access(segment, access);
    }

    /// The same, by the access itself.
    pub fn set_segment_access(&mut self, id: SegmentId, access: &Access) {
        self.segments[id.0].up.set_config(access.up.clone());
        self.segments[id.0].down.set_config(access.down.clone());
    }

    /// The access a host is behind.
    #[must_use]
    pub fn segment_of(&self, id: HostId) -> SegmentId {
        SegmentId(self.hosts[id.0].segment)
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
            let planned = self.planned_mut(id, what);
            if *planned != Some(at) {
                continue; // It was put off, or brought forward.
            }
            *planned = None;
            self.steps_at_this_moment =
                if at > self.now { 0 } else { self.steps_at_this_moment + 1 };
            let count = self.steps_at_this_moment;
            assert!(count < EVENTS_AT_ONE_MOMENT, "time stands still at {:?}", self.now);
            self.now = self.now.max(at);
            self.steps += 1;
            match what {
                HOST => {
                    self.hosts[id].host.handle_timeout(self.now);
                    self.wake(id);
                }
                UP => self.cross(id),
                _ => self.deliver(id),
            }
            return true;
        }
    }

    /// Packets that have left an access go to that of their destination.
    fn cross(&mut self, segment: usize) {
        let mut datagram = std::mem::take(&mut self.scratch);
        while let Some(label) = self.segments[segment].up.poll_labelled(self.now, &mut datagram) {
            let (source, to) = self.addresses_of(label);
            for at in 0..self.observers.len() {
                let observer = self.observers[at];
                if self.hosts[observer].segment != segment {
                    self.hosts[observer].host.meddle(self.now, source, to, &mut datagram);
                    self.wake(observer);
                }
            }
            if datagram.is_empty() {
                continue;
            }
            let Some(&id) = self.by_address.get(&to) else { continue };
            let down = self.hosts[id].segment;
            let fate = self.segments[down].down.offer_labelled(self.now, &datagram, label);
            self.record(self.now, 3 | (fate as u64) << 8, id as u64, &datagram);
            self.plan(down, DOWN);
        }
        self.scratch = datagram;
        self.plan(segment, UP);
    }

    fn record(&mut self, at: Instant, kind: u64, place: u64, bytes: &[u8]) {
        if self.is_traced {
            self.trace.record(at, kind, place, bytes);
        }
    }

    fn deliver(&mut self, segment: usize) {
        let mut datagram = std::mem::take(&mut self.scratch);
        let mut heard = Vec::new();
        while let Some(label) = self.segments[segment].down.poll_labelled(self.now, &mut datagram) {
            let (source, to) = self.addresses_of(label);
            let Some(&id) = self.by_address.get(&to) else { continue };
            if self.hosts[id].segment == segment {
                self.record(self.now, 4, id as u64, &datagram);
                self.hosts[id].host.handle_datagram(self.now, source, &mut datagram);
                if !heard.contains(&id) {
                    heard.push(id);
                }
            }
        }
        self.scratch = datagram;
        self.plan(segment, DOWN);
        heard.into_iter().for_each(|id| self.wake(id));
    }

    /// Takes what a host wants to send, and plans its next events.
    fn wake(&mut self, id: usize) {
        let mut datagram = std::mem::take(&mut self.scratch);
        let segment = self.hosts[id].segment;
        while let Some(to) = self.hosts[id].host.poll_transmit(self.now, &mut datagram) {
            let own = self.hosts[id].address;
            let source = self.hosts[id].host.spoofed_source().unwrap_or(own);
            let label = u64::from(self.number_of(source)) << 32 | u64::from(self.number_of(to));
            let fate = self.segments[segment].up.offer_labelled(self.now, &datagram, label);
            self.record(self.now, 1 | (fate as u64) << 8, id as u64, &datagram);
        }
        self.scratch = datagram;
        self.hosts[id].host.check_invariants();
        self.plan(id, HOST);
        self.plan(segment, UP);
    }

    fn plan(&mut self, id: usize, what: usize) {
        let at = match what {
            HOST => self.hosts[id].host.poll_timeout(),
            UP => self.segments[id].up.poll_timeout(),
            _ => self.segments[id].down.poll_timeout(),
        };
        let at = at.map(|at| at.max(self.now));
        let planned = self.planned_mut(id, what);
        if at != *planned {
            *planned = at;
            self.heap.extend(at.map(|at| Reverse((at, id, what))));
        }
    }

    fn planned_mut(&mut self, id: usize, what: usize) -> &mut Option<Instant> {
        match what {
            HOST => &mut self.hosts[id].planned,
            UP => &mut self.segments[id].planned[0],
            _ => &mut self.segments[id].planned[1],
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::address;
    use std::time::Duration;

    /// Sends what it is given at once, and notes what it hears.
    #[derive(Default)]
    struct Scripted {
        to_send: Vec<(SocketAddr, Vec<u8>)>,
        heard: Vec<(Instant, SocketAddr)>,
    }

    impl Host for Scripted {
        fn handle_datagram(&mut self, now: Instant, from: SocketAddr, _datagram: &mut [u8]) {
            self.heard.push((now, from));
        }

        fn handle_timeout(&mut self, _now: Instant) {}

        fn poll_transmit(&mut self, _now: Instant, datagram: &mut Vec<u8>) -> Option<SocketAddr> {
            let (to, bytes) = self.to_send.pop()?;
            *datagram = bytes;
            Some(to)
        }

        fn poll_timeout(&self) -> Option<Instant> {
            None
        }
    }

    /// What this file is trusted for by every test of fairness: one queue, one serializer for a home.
    #[test]
    fn hosts_behind_one_access_wait_for_each_other_and_hear_only_their_own() {
        let mut internet = Internet::new(1);
        let server = internet.add(Scripted::default(), address(1), &Access::default());
        // 1000 bytes at IP level are a millisecond.
        let link = LinkConfig { rate_bps: Some(8_000_000), ..LinkConfig::default() };
        let home = internet.add_segment(&Access { up: link.clone(), down: link });
        let hosts = [2, 3].map(|n| internet.add_behind(Scripted::default(), address(n), home));
        internet.act(server, |host, _| {
            host.to_send = [2, 3, 2, 3].map(|n| (address(n), vec![0; 972])).to_vec();
        });
        internet.run_to(Instant::from_millis(10));
        let heard = |internet: &Internet<Scripted>, id| -> Vec<u64> {
            internet.host(id).heard.iter().map(|(at, _)| at.as_nanos() / 1_000_000).collect()
        };
        assert_eq!(hosts.map(|id| heard(&internet, id)), [vec![2, 4], vec![1, 3]]);
        for id in hosts {
            internet.act(id, |host, _| host.to_send.push((address(1), vec![0; 972])));
        }
        internet.run_to(Instant::from_millis(20));
        assert_eq!(heard(&internet, server), [11, 12]);
        let (up, down) = internet.segment_links(home);
        assert_eq!((up.stats().delivered, down.stats().delivered), (2, 4));
        up.check_conservation();
        down.check_conservation();

        let slow = LinkConfig { delay: Duration::from_millis(5), ..LinkConfig::default() };
        internet.set_access(hosts[0], &Access { up: slow.clone(), down: slow });
        internet.act(hosts[0], |host, _| host.to_send.push((address(3), vec![0; 972])));
        internet.run_to(Instant::from_millis(40));
        let last = internet.host(hosts[1]).heard.last();
        assert_eq!(last, Some(&(Instant::from_millis(30), address(2))), "up and down again");
    }
}
