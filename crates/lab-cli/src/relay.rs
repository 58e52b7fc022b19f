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

use haulier::proto::{Batch, FourTuple, Instant, Machine};
use haulier::udp::{Clock, Runner, Socket, wait};
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
        let near_addr = near.local_addr();
        let receiver = Arc::new(Mutex::new(None));
        let stop = Arc::new(AtomicBool::new(false));
        let under_way = Arc::new(AtomicU64::new(0));
        let wires = Wires {
            there: Link::new(link.clone(), seed),
            back: Link::new(link.clone(), seed ^ 1),
            sender: None,
            receiver: Arc::clone(&receiver),
        };
        let (wires, clock) = (Arc::new(Mutex::new(wires)), Clock::start());
        let mut sides = [(near, true), (far, false)].map(|(socket, is_near)| {
            Runner::new(Side { wires: Arc::clone(&wires), is_near, clock }, socket, clock)
        });
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&under_way));
        let thread = thread::spawn(move || {
            // A socket that breaks down ends the relay; the transfer then times out and says so.
            let _broken = run(&mut sides, &stopped, &counted);
            let counts = |wires: &mut Wires| LinkCounts {
                there: *wires.there.stats(),
                back: *wires.back.stats(),
            };
            sides[0].machine.with(counts)
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

/// Both directions, and the addresses at their ends.
struct Wires {
    there: Link,
    back: Link,
    /// The sender's address: the source of the last datagram at the near socket.
    sender: Option<SocketAddr>,
    receiver: Arc<Mutex<Option<SocketAddr>>>,
}

/// One of the two sockets: what it receives goes onto one link, what it sends comes from the other.
struct Side {
    wires: Arc<Mutex<Wires>>,
    is_near: bool,
    clock: Clock,
}

impl Side {
    fn with<R: Default>(&self, act: impl FnOnce(&mut Wires) -> R) -> R {
        self.wires.lock().map_or_else(|_| R::default(), |mut wires| act(&mut wires))
    }
}

impl Machine for Side {
    fn handle_datagram(&mut self, _: Instant, path: FourTuple, datagram: &mut [u8]) {
        let now = self.clock.now();
        self.with(|wires| {
            if self.is_near {
                wires.sender = Some(path.remote);
            }
            let link = if self.is_near { &mut wires.there } else { &mut wires.back };
            link.offer(now, datagram);
        });
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        self.with(|wires| {
            let to = match self.is_near {
                true => wires.sender,
                false => wires.receiver.lock().map(|slot| *slot).unwrap_or_default(),
            };
            let link = if self.is_near { &mut wires.back } else { &mut wires.there };
            let mut datagram = Vec::with_capacity(BUFFER);
            while !batch.is_full() && link.poll_delivery(now, &mut datagram) {
                if let Some(to) = to {
                    batch.push(to.into(), &datagram);
                }
            }
        });
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.with(|wires| match self.is_near {
            true => wires.back.poll_timeout(),
            false => wires.there.poll_timeout(),
        })
    }
}

/// Carries datagrams until it shall stop.
fn run(
    [near, far]: &mut [Runner<Side>; 2],
    stop: &AtomicBool,
    under_way: &AtomicU64,
) -> io::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        near.round()?;
        far.round()?;
        let flying = near.machine.with(|wires| wires.there.in_flight() + wires.back.in_flight());
        under_way.store(flying as u64, Ordering::Relaxed);
        wait(&[near.interest(), far.interest()], None, near.pause(far.pause(MOST)))?;
    }
    Ok(())
}
