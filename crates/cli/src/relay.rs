//! The emulated link between two real sockets: the simulator's link, driven by the real clock.
//!
//! What the sender sends to the near socket crosses one [`Link`] and leaves by the far socket to the
//! receiver; what the receiver answers crosses the other link back.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haulier::time::earliest;
use haulier::udp::{Clock, Inbox, Received, Socket, wait};
use haulier_sim::{Link, LinkConfig, LinkStats};

/// The longest sleep of the relay: how fast it notices that it should stop.
const MOST: Duration = Duration::from_millis(20);

/// Longer than any packet, so that no buffer grows.
const BUFFER: usize = 2048;

/// What the link did, in each direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkCounts {
    pub(crate) there: LinkStats,
    pub(crate) back: LinkStats,
}

/// A running link.
#[derive(Debug)]
pub(crate) struct Relay {
    near: SocketAddr,
    receiver: Arc<Mutex<Option<SocketAddr>>>,
    stop: Arc<AtomicBool>,
    /// Datagrams on the link right now.
    under_way: Arc<AtomicU64>,
    thread: JoinHandle<LinkCounts>,
}

impl Relay {
    /// Starts a link on two new loopback sockets.
    pub(crate) fn start(link: &LinkConfig, seed: u64) -> io::Result<Self> {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (near, far) = (Socket::bind(loopback)?, Socket::bind(loopback)?);
        let near_addr = near.local_addr()?;
        let receiver = Arc::new(Mutex::new(None));
        let stop = Arc::new(AtomicBool::new(false));
        let under_way = Arc::new(AtomicU64::new(0));
        let mut worker = Worker {
            near,
            far,
            there: Link::new(link.clone(), seed),
            back: Link::new(link.clone(), seed ^ 1),
            sender: None,
            receiver: Arc::clone(&receiver),
            clock: Clock::start(),
            inbox: Inbox::new(),
        };
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&under_way));
        let thread = thread::spawn(move || {
            // A socket that breaks down ends the relay; the transfer then times out and says so.
            let _broken = worker.run(&stopped, &counted);
            LinkCounts { there: *worker.there.stats(), back: *worker.back.stats() }
        });
        Ok(Self { near: near_addr, receiver, stop, under_way, thread })
    }

    /// Where the sender sends to.
    pub(crate) const fn near(&self) -> SocketAddr {
        self.near
    }

    /// Where the far end of the link is.
    pub(crate) fn set_receiver(&self, receiver: SocketAddr) {
        if let Ok(mut slot) = self.receiver.lock() {
            *slot = Some(receiver);
        }
    }

    /// Whether nothing is on the link.
    pub(crate) fn is_quiet(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) == 0
    }

    /// Stops and counts.
    pub(crate) fn stop(self) -> LinkCounts {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

struct Worker {
    near: Socket,
    far: Socket,
    there: Link,
    back: Link,
    /// Where the sender is: whoever spoke to the near socket last.
    sender: Option<SocketAddr>,
    receiver: Arc<Mutex<Option<SocketAddr>>>,
    clock: Clock,
    inbox: Inbox,
}

impl Worker {
    fn run(&mut self, stop: &AtomicBool, under_way: &AtomicU64) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            self.take_in()?;
            self.deliver()?;
            let flying = self.there.in_flight() + self.back.in_flight();
            under_way.store(flying as u64, Ordering::Relaxed);
            let next = earliest(self.there.poll_timeout(), self.back.poll_timeout());
            let most = next.map_or(MOST, |at| self.clock.until(at).min(MOST));
            wait(&[&self.near, &self.far], most)?;
        }
        Ok(())
    }

    /// Puts everything that waits at the sockets on the links.
    fn take_in(&mut self) -> io::Result<()> {
        while self.near.receive(&mut self.inbox)? != Received::Nothing {
            self.inbox.drain(&self.clock, |_, from, datagram| {
                self.sender = Some(from);
                self.there.offer(self.clock.now(), datagram);
            });
        }
        while self.far.receive(&mut self.inbox)? != Received::Nothing {
            self.inbox.drain(&self.clock, |_, _, datagram| {
                self.back.offer(self.clock.now(), datagram);
            });
        }
        Ok(())
    }

    /// Hands on everything that has arrived. A socket without room loses it, like any full queue.
    fn deliver(&mut self) -> io::Result<()> {
        let now = self.clock.now();
        let receiver = self.receiver.lock().map(|slot| *slot).unwrap_or_default();
        let mut datagram = Vec::with_capacity(BUFFER);
        while self.there.poll_delivery(now, &mut datagram) {
            if let Some(receiver) = receiver {
                self.far.send(&datagram, receiver)?;
            }
        }
        while self.back.poll_delivery(now, &mut datagram) {
            if let Some(sender) = self.sender {
                self.near.send(&datagram, sender)?;
            }
        }
        Ok(())
    }
}
