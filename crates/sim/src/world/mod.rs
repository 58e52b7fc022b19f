//! The world: hosts with addresses, the links between them, and one clock that jumps from event to event.
//!
//! Each host has an access, an up link and a down link, its own or shared with others of the same home;
//! between accesses there is no delay and no loss. A datagram has a source and a destination, and the source
//! may be forged. An expired NAT mapping is a change of a host's address. A host on the path sees all
//! datagrams, and may change them. Two hosts with only a link between them are a [`pair`](World::pair).
//!
//! The invariant: a run depends only on the seed and on what the hosts do. Events are in a heap, so
//! thousands of hosts are cheap. Simultaneous events are in the order of hosts and accesses; between a pair
//! all datagrams arrive before deadlines are handled. Recorded seeds depend on both. What an event does is in
//! `events`.

mod events;
mod watch;

pub use watch::{Sight, Stage};

use std::any::Any;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::marker::PhantomData;
use std::net::{Ipv4Addr, SocketAddr};

use haulier_core::{Batch, Instant};

use crate::{Host, Link, LinkConfig, Rng, Trace};

/// Identifies a host, and its type.
#[derive(Debug)]
pub struct HostId<H>(usize, PhantomData<fn() -> H>);

impl<H> Clone for HostId<H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for HostId<H> {}

/// Identifies an access that hosts share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentId(usize);

/// The links of a host, or of a home with several.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// From the host.
    pub up: LinkConfig,
    /// To the host.
    pub down: LinkConfig,
}

/// An access with this link in both directions.
impl From<LinkConfig> for Access {
    fn from(link: LinkConfig) -> Self {
        Self { up: link.clone(), down: link }
    }
}

/// The address of the `n`th host of a simulation: 10.x.y.z, port 4000.
#[must_use]
pub fn address(n: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from_bits(10 << 24 | (n & 0xff_ffff)), 4000))
}

struct Entry {
    host: Box<dyn Host>,
    address: SocketAddr,
    segment: usize,
    /// The deadline that lies in the heap.
    planned: Option<Instant>,
}

/// Links to the rest of the world, of one host or of several.
struct Segment {
    up: Link,
    down: Link,
    /// The deadlines that lie in the heap for the two.
    planned: [Option<Instant>; 2],
}

/// Streams of randomness: of the accesses, two each, and of the link between a pair.
const ACCESS_STREAMS: u64 = 1000;
const PAIR_STREAMS: u64 = 100;

/// Datagrams requested from a host per call. The number of calls is not limited.
const BATCH: usize = 32;

/// Hosts and what is between them, in virtual time.
pub struct World {
    now: Instant,
    seed: u64,
    hosts: Vec<Entry>,
    segments: Vec<Segment>,
    by_address: HashMap<SocketAddr, usize>,
    observers: Vec<usize>,
    /// Addresses seen, so that a label of 64 bits names two of them.
    addresses: Vec<SocketAddr>,
    numbers: HashMap<SocketAddr, u32>,
    /// Time, source and kind of each event.
    heap: BinaryHeap<Reverse<(Instant, usize, usize)>>,
    /// Added to the numbers of hosts in the heap.
    hosts_after: usize,
    trace: Trace,
    only_measures: bool,
    /// What was seen, if the world is watched.
    sights: Option<Vec<Sight>>,
    scratch: Vec<u8>,
    batch: Batch,
    steps: u64,
    steps_at_this_moment: u64,
}

impl World {
    /// No hosts, at time zero.
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
            hosts_after: 0,
            trace: Trace::new(),
            only_measures: false,
            sights: None,
            scratch: Vec::new(),
            batch: Batch::new(BATCH),
            steps: 0,
            steps_at_this_moment: 0,
        }
    }

    /// As [`new`](Self::new), without a trace and without checks of invariants, for benches: hashing every
    /// byte three times takes two fifths of the time of a run without encryption.
    #[must_use]
    pub const fn for_measuring(mut self) -> Self {
        self.only_measures = true;
        self
    }

    /// Adds a host with its own address and access. It is polled at once.
    pub fn add<H: Host>(&mut self, host: H, address: SocketAddr, access: &Access) -> HostId<H> {
        let segment = self.add_segment(access);
        self.add_behind(host, address, segment)
    }

    /// Two hosts, at the first two [addresses](address), and a link from one to the other and back.
    pub fn pair<A: Host, B: Host>(
        &mut self,
        first: A,
        second: B,
        there: LinkConfig,
        back: LinkConfig,
    ) -> (HostId<A>, HostId<B>) {
        self.hosts_after = 2;
        let segment = self.add_links(PAIR_STREAMS, there, back);
        let first = self.add_behind(first, address(1), segment);
        (first, self.add(second, address(2), &Access::default()))
    }

    /// Adds an access for several hosts, like that of a home: they share its links in both directions.
    pub fn add_segment(&mut self, access: &Access) -> SegmentId {
        let streams = ACCESS_STREAMS + self.segments.len() as u64 * 2;
        self.add_links(streams, access.up.clone(), access.down.clone())
    }

    fn add_links(&mut self, streams: u64, up: LinkConfig, down: LinkConfig) -> SegmentId {
        let link = |config, stream| Link::new(config, Rng::stream(self.seed, stream).next_u64());
        let (up, down) = (link(up, streams), link(down, streams + 1));
        self.segments.push(Segment { up, down, planned: [None; 2] });
        SegmentId(self.segments.len() - 1)
    }

    /// Adds a host with its own address behind a shared access. It is polled at once. Two hosts behind the
    /// same access also reach each other over its links.
    pub fn add_behind<H: Host>(
        &mut self,
        host: H,
        address: SocketAddr,
        segment: SegmentId,
    ) -> HostId<H> {
        let id = self.hosts.len();
        self.hosts.push(Entry { host: Box::new(host), address, segment: segment.0, planned: None });
        self.by_address.insert(address, id);
        self.wake(id);
        HostId(id, PhantomData)
    }

    /// Lets a host see everything that passes between others.
    pub fn observe<H>(&mut self, id: HostId<H>) {
        self.observers.push(id.0);
    }

    /// Changes a host's address, as when its NAT mapping expired. Datagrams in flight to the old one are
    /// lost.
    pub fn rebind<H>(&mut self, id: HostId<H>, address: SocketAddr) {
        let old = std::mem::replace(&mut self.hosts[id.0].address, address);
        self.by_address.remove(&old);
        self.by_address.insert(address, id.0);
    }

    /// The current time.
    #[must_use]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The trace so far.
    #[must_use]
    pub const fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The number of events so far.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// A host, to read.
    ///
    /// # Panics
    /// If it is of another world.
    #[must_use]
    pub fn host<H: Host>(&self, id: HostId<H>) -> &H {
        let host: &dyn Any = &*self.hosts[id.0].host;
        host.downcast_ref().expect("a host of this world")
    }

    /// Calls `act` with a host, and polls the host afterwards.
    ///
    /// # Panics
    /// If it is of another world.
    pub fn act<H: Host, R>(&mut self, id: HostId<H>, act: impl FnOnce(&mut H, Instant) -> R) -> R {
        let host: &mut dyn Any = &mut *self.hosts[id.0].host;
        let outcome = act(host.downcast_mut().expect("a host of this world"), self.now);
        self.wake(id.0);
        outcome
    }

    /// The address of a host.
    #[must_use]
    pub fn address<H>(&self, id: HostId<H>) -> SocketAddr {
        self.hosts[id.0].address
    }

    /// The access a host is behind.
    #[must_use]
    pub fn segment_of<H>(&self, id: HostId<H>) -> SegmentId {
        SegmentId(self.hosts[id.0].segment)
    }

    /// The links of an access: up and down.
    #[must_use]
    pub fn links(&self, id: SegmentId) -> (&Link, &Link) {
        (&self.segments[id.0].up, &self.segments[id.0].down)
    }

    /// The links of an access, up and down, to change. Packets in flight are not affected.
    pub fn links_mut(&mut self, id: SegmentId) -> [&mut Link; 2] {
        let segment = &mut self.segments[id.0];
        [&mut segment.up, &mut segment.down]
    }

    /// Runs until `done` returns true or until `end`; returns whether it was `done`.
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
    use std::time::Duration;

    use haulier_core::{FourTuple, Machine};

    use super::*;

    /// Sends what it is given at once, and records what it receives.
    #[derive(Default)]
    struct Scripted {
        to_send: Vec<SocketAddr>,
        heard: Vec<(u64, SocketAddr)>,
    }

    impl Host for Scripted {}

    impl Machine for Scripted {
        fn handle_datagram(&mut self, now: Instant, path: FourTuple, _datagram: &mut [u8]) {
            self.heard.push((now.as_nanos() / 1_000_000, path.remote));
        }

        fn handle_timeout(&mut self, _now: Instant) {}

        fn poll_transmit(&mut self, _now: Instant, batch: &mut Batch) {
            while let Some(to) = self.to_send.pop() {
                assert!(batch.push(to.into(), &[0; 972]));
            }
        }

        fn poll_timeout(&self) -> Option<Instant> {
            None
        }
    }

    /// Every test of fairness relies on this: a home has one queue and one serializer.
    #[test]
    fn hosts_behind_one_access_share_its_queue() {
        let mut world = World::new(1);
        let server = world.add(Scripted::default(), address(1), &Access::default());
        // 1000 bytes at IP level are a millisecond.
        let home = world.add_segment(&LinkConfig::new(8_000_000, Duration::ZERO).into());
        let hosts = [2, 3].map(|n| world.add_behind(Scripted::default(), address(n), home));
        world.act(server, |host, _| host.to_send = [2, 3, 2, 3].map(address).to_vec());
        world.run_to(Instant::from_millis(10));
        let heard = |world: &World, id: HostId<Scripted>| -> Vec<u64> {
            world.host(id).heard.iter().map(|(at, _)| *at).collect()
        };
        assert_eq!(hosts.map(|id| heard(&world, id)), [vec![2, 4], vec![1, 3]]);
        for id in hosts {
            world.act(id, |host, _| host.to_send.push(address(1)));
        }
        world.run_to(Instant::from_millis(20));
        assert_eq!(heard(&world, server), [11, 12]);
        let (up, down) = world.links(home);
        assert_eq!((up.stats().delivered, down.stats().delivered), (2, 4));

        let slow = LinkConfig { delay: Duration::from_millis(5), ..LinkConfig::default() };
        for link in world.links_mut(home) {
            link.set_config(slow.clone());
        }
        world.act(hosts[0], |host, _| host.to_send.push(address(3)));
        world.run_to(Instant::from_millis(40));
        assert_eq!(world.host(hosts[1]).heard.last(), Some(&(30, address(2))), "up and down again");
    }
}
