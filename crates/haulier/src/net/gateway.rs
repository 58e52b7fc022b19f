//! Peers of a server that something else than its socket carries: a session of WebTransport, a relay.
//!
//! A datagram that comes in is handed to the machine by the thread that brings it, with the lock of a handle
//! ([`Shared::act`]). What the machine sends to such a peer is taken out of the batch before the socket sees
//! it ([`Carriage::take_from`]), and waits in the peer's queue. The invariants: a path with a number never
//! reaches the socket, whether its peer is there or not; a queue is never longer than it may be; and no lock
//! is held while a waker is called.

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use haulier_core::{Batch, Carried, FourTuple, debug_as};

use super::serving::Serving;
use super::shared::{End as _, Shared};

/// A request has this many bytes, and a datagram of a block up to as many.
const MIN_DATAGRAM_BYTES: u16 = 1200;

/// The number of datagrams that a machine sends in some ten turns; 300 KB.
const QUEUE_DATAGRAMS: usize = 256;

/// How a peer is carried that [`Gateway::open`] opens.
///
/// ```
/// use haulier::GatewayPeerConfig;
///
/// # let (remote, our_address): (std::net::SocketAddr, std::net::IpAddr) =
/// #     (([192, 0, 2, 1], 5000).into(), [192, 0, 2, 2].into());
/// // A session of QUIC: its handshake has shown that the peer is where it says.
/// let peer = GatewayPeerConfig::new(remote)
///     .with_proven_address()
///     .with_local(our_address)
///     .with_max_datagram_bytes(1200)
///     .with_queue_datagrams(64);
/// # let _ = peer;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct GatewayPeerConfig {
    path: FourTuple,
    is_proven: bool,
    max_datagram_bytes: u16,
    queue_datagrams: usize,
}

impl GatewayPeerConfig {
    /// A peer at this address: the one that the transport has for it, by which the server counts its clients
    /// and compares the address in a token. A transport without addresses makes one up, for each peer
    /// another prefix (docs/OWN-TRANSPORT.md).
    #[must_use]
    pub const fn new(remote: SocketAddr) -> Self {
        Self {
            path: FourTuple::new(remote),
            is_proven: false,
            max_datagram_bytes: MIN_DATAGRAM_BYTES,
            queue_datagrams: QUEUE_DATAGRAMS,
        }
    }

    /// The address of this machine that the peer uses. A server at `0.0.0.0` or `[::]` needs it to compare
    /// with the addresses in a token, unless it has [`ServerConfig::addresses`] or takes any.
    ///
    /// [`ServerConfig::addresses`]: haulier_proto::server::ServerConfig::addresses
    #[must_use]
    pub const fn with_local(mut self, local: IpAddr) -> Self {
        self.path.local = Some(local);
        self
    }

    /// The transport has received an answer from the peer at its address, as QUIC has after its handshake. So
    /// the server need not prove the address again before it sends more than three times the bytes that it
    /// has received. Set this only if it is true: otherwise an attacker can make the server flood others.
    #[must_use]
    pub const fn with_proven_address(mut self) -> Self {
        self.is_proven = true;
        self
    }

    /// The longest datagram that the transport carries to the peer, in bytes. Default 1200, which is also the
    /// minimum. Longer ones, with which a machine probes the path, are lost.
    #[must_use]
    pub const fn with_max_datagram_bytes(mut self, bytes: u16) -> Self {
        self.max_datagram_bytes = bytes;
        self
    }

    /// The maximum number of datagrams that wait for the transport to take them. A datagram that comes while
    /// this number waits is lost, as in a full socket. Default 256; 0 counts as 1.
    #[must_use]
    pub const fn with_queue_datagrams(mut self, datagrams: usize) -> Self {
        self.queue_datagrams = datagrams;
        self
    }
}

/// Why a peer could not be opened, or takes no more.
///
/// ```
/// use haulier::{Gateway, GatewayError, GatewayPeerConfig};
///
/// fn open(gateway: &Gateway, peer: GatewayPeerConfig) {
///     match gateway.open(peer) {
///         Ok(_peer) => println!("carried"),
///         Err(GatewayError::Closed) => println!("the server has stopped: end the session"),
///         Err(error) => println!("{error}"),
///     }
/// }
/// # let _ = open;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The server was dropped, or has failed.
    #[error("the server has stopped")]
    Closed,
    /// The transport carries no datagram of 1200 bytes.
    #[error("the transport carries {0} bytes in a datagram, and a request has 1200: ask for more")]
    TooSmall(u16),
}

/// The server's result for a datagram that a carried peer sent.
///
/// ```
/// use haulier::{GatewayError, GatewayPeer, Heard};
/// use std::time::Instant;
///
/// /// A session is kept for what is verified: junk is for anybody to send.
/// fn hand_in(peer: &GatewayPeer, datagram: &mut [u8], heard: &mut Instant) -> Result<(), GatewayError> {
///     if peer.handle_datagram(datagram)? == Heard::Verified {
///         *heard = Instant::now();
///     }
///     Ok(())
/// }
/// # let _ = hand_in;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Heard {
    /// It is of a connection, or requests one with valid credentials. Data for another worker of the server
    /// counts, because that worker verifies it later.
    Verified,
    /// It was dropped.
    Dropped,
}

/// What a server's gateway has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayStats {
    /// Peers that are open now.
    pub peers: usize,
    /// Datagrams that came from them.
    pub received: u64,
    /// Datagrams that the transports took.
    pub sent: u64,
    /// Datagrams lost because the queue of their peer was full.
    pub lost_full: u64,
    /// Datagrams lost because they were longer than the transport carries.
    pub lost_long: u64,
    /// Datagrams lost because their peer was gone.
    pub lost_gone: u64,
}

/// A server's entry for peers that something else than its socket carries. They are clients like any others:
/// they share admission, seats, uplink, events and workers with those of the socket.
///
/// Each peer has an address and a number of its own ([`open`](Self::open)). A program that has a session of
/// another transport opens a peer for it, hands in the datagrams that arrive there, and sends those that come
/// out. The gateway does not keep the server open.
///
/// ```
/// use haulier::proto::client::{ClientConfig, ClientMachine};
/// use haulier::proto::{Instant, Machine};
/// use haulier::{Credentials, GatewayPeerConfig, Secret, Server, ServerConfig, ServerCredentials};
/// use std::time::Duration;
///
/// let secret = Secret::from_bytes([7; 32]); // yours: haulier::random_secret()
/// let credentials = ServerCredentials::default().with_secret(secret.clone());
/// let server = Server::bind("127.0.0.1:0", ServerConfig::new(7, credentials))?;
/// let remote = "192.0.2.1:5000".parse()?; // as the other transport says
/// let peer = server.gateway().open(GatewayPeerConfig::new(remote))?;
///
/// // At the other end of that transport. Here it is this thread, and nothing is lost.
/// let credentials = Credentials::Secret { secret, identity: None };
/// let config = ClientConfig::new(server.local_addr(), 7, credentials);
/// let mut client = ClientMachine::new(Instant::ZERO, config, [9; 32])?;
/// let mut datagram = Vec::new();
/// client.poll_datagram(Instant::ZERO, &mut datagram);
///
/// peer.handle_datagram(&mut datagram)?;
/// let request = server.wait(Duration::from_secs(10))?;
/// assert!(request.is_some(), "it is a client as any other");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Gateway {
    workers: Arc<[Weak<Shared<Serving>>]>,
    carriage: Arc<Carriage>,
}

debug_as! { Gateway: |gateway| stats = gateway.stats() }

impl Gateway {
    pub(super) fn new(
        workers: impl Iterator<Item = Weak<Shared<Serving>>>,
        carriage: Arc<Carriage>,
    ) -> Self {
        Self { workers: workers.collect(), carriage }
    }

    /// Opens a peer. Its requests go to one of the server's workers, in turn.
    ///
    /// # Errors
    /// [`GatewayError`].
    pub fn open(&self, peer: GatewayPeerConfig) -> Result<GatewayPeer, GatewayError> {
        if peer.max_datagram_bytes < MIN_DATAGRAM_BYTES {
            return Err(GatewayError::TooSmall(peer.max_datagram_bytes));
        }
        let mailbox = self.carriage.open(&peer).ok_or(GatewayError::Closed)?;
        let workers = NonZeroUsize::new(self.workers.len()).ok_or(GatewayError::Closed)?;
        let shared = self.workers.get(mailbox.number as usize % workers).cloned();
        let carried = Carried { number: mailbox.number, is_proven: peer.is_proven };
        let path = FourTuple { carried: Some(carried), ..peer.path };
        let carriage = Arc::clone(&self.carriage);
        Ok(GatewayPeer { shared: shared.unwrap_or_default(), carriage, mailbox, path })
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> GatewayStats {
        let mut stats = *lock(&self.carriage.counts);
        stats.peers = self.carriage.read().len();
        stats
    }
}

/// A peer that a program carries. When it is dropped, it is gone without notice, like a peer whose cable was
/// pulled: its connection falls silent, or goes on from another address, like that of any client.
pub struct GatewayPeer {
    shared: Weak<Shared<Serving>>,
    carriage: Arc<Carriage>,
    mailbox: Arc<Mailbox>,
    path: FourTuple,
}

debug_as! { GatewayPeer: |peer| remote = peer.path.remote, number = peer.mailbox.number }

impl GatewayPeer {
    /// Its address.
    #[must_use]
    pub const fn remote_addr(&self) -> SocketAddr {
        self.path.remote
    }

    /// Hands in a datagram that arrived from the peer, which is decrypted in place. What the machine cannot
    /// use is counted ([`Server::drops`](crate::Server::drops)). It takes the time of one decryption, and
    /// waits for nothing but the lock of the server's thread. A session is kept for what is
    /// [`Heard::Verified`], and for nothing else: anybody can send junk.
    ///
    /// # Errors
    /// [`GatewayError::Closed`].
    pub fn handle_datagram(&self, datagram: &mut [u8]) -> Result<Heard, GatewayError> {
        let shared = self.shared.upgrade().ok_or(GatewayError::Closed)?;
        // Without it the machine has what it was made with.
        let fresh = Serving::wants_entropy(datagram).then(haulier_udp::seed).and_then(Result::ok);
        lock(&self.carriage.counts).received += 1;
        let path = self.path;
        let handled = shared.act(|end, now| end.machine.handle_carried(now, path, fresh, datagram));
        handled.ok_or(GatewayError::Closed)
    }

    /// The next datagram for the peer, if there is one. `None` also when the server has stopped.
    #[must_use]
    pub fn poll_datagram(&self) -> Option<Bytes> {
        let datagram = lock(&self.mailbox.inner).datagrams.pop_front()?;
        lock(&self.carriage.counts).sent += 1;
        Some(datagram)
    }

    /// The next datagram for the peer; `None` once the server has stopped and all are taken. The future may
    /// be dropped at any time. One task at a time may wait.
    pub async fn next_datagram(&self) -> Option<Bytes> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// Whether the server has stopped. There may still be datagrams to take, which report this to the peer.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        lock(&self.mailbox.inner).is_closed
    }

    fn poll_next(&self, context: &Context<'_>) -> Poll<Option<Bytes>> {
        let mut inner = lock(&self.mailbox.inner);
        let Some(datagram) = inner.datagrams.pop_front() else {
            if inner.is_closed {
                return Poll::Ready(None);
            }
            inner.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        drop(inner);
        lock(&self.carriage.counts).sent += 1;
        Poll::Ready(Some(datagram))
    }
}

impl Drop for GatewayPeer {
    fn drop(&mut self) {
        self.carriage.write().remove(&self.mailbox.number);
    }
}

/// The queue of one peer.
struct Mailbox {
    number: u32,
    max_datagram_bytes: usize,
    max_datagrams: usize,
    inner: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    datagrams: VecDeque<Bytes>,
    waker: Option<Waker>,
    is_closed: bool,
}

/// The peers of a server that are carried, for all of its workers.
#[derive(Default)]
pub(crate) struct Carriage {
    /// Whether any peer was ever opened. A server without such peers checks only this for each batch.
    is_used: AtomicBool,
    peers: RwLock<BTreeMap<u32, Arc<Mailbox>>>,
    next_number: Mutex<u32>,
    counts: Mutex<GatewayStats>,
    /// Workers that still run.
    running: AtomicUsize,
}

impl Carriage {
    fn read(&self) -> impl std::ops::Deref<Target = BTreeMap<u32, Arc<Mailbox>>> + '_ {
        self.peers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> impl std::ops::DerefMut<Target = BTreeMap<u32, Arc<Mailbox>>> + '_ {
        self.peers.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` if the server has stopped.
    fn open(&self, peer: &GatewayPeerConfig) -> Option<Arc<Mailbox>> {
        let mut peers = self.write();
        if self.running.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut next = lock(&self.next_number);
        // Skip the number of a peer that is still open, 4 billion peers later.
        while peers.contains_key(&next) {
            *next = next.wrapping_add(1);
        }
        let mailbox = Arc::new(Mailbox {
            number: *next,
            max_datagram_bytes: peer.max_datagram_bytes.into(),
            max_datagrams: peer.queue_datagrams.max(1),
            inner: Mutex::default(),
        });
        *next = next.wrapping_add(1);
        peers.insert(mailbox.number, Arc::clone(&mailbox));
        self.is_used.store(true, Ordering::Release);
        Some(mailbox)
    }

    /// Takes the datagrams for carried peers out of a batch, and puts them into the queues of these peers.
    /// Returns whether there were any.
    pub(crate) fn take_from(&self, batch: &mut Batch) -> bool {
        if !self.is_used.load(Ordering::Acquire)
            || !batch.iter().any(|(path, _)| path.carried.is_some())
        {
            return false;
        }
        let (peers, mut lost, mut wakers) = (self.read(), GatewayStats::default(), Vec::new());
        batch.take_if(|path, datagram| {
            let Some(carried) = path.carried else { return false };
            match peers.get(&carried.number) {
                Some(mailbox) => wakers.extend(mailbox.push(datagram, &mut lost)),
                None => lost.lost_gone += 1,
            }
            true
        });
        drop(peers);
        if lost != GatewayStats::default() {
            let mut counts = lock(&self.counts);
            counts.lost_full += lost.lost_full;
            counts.lost_long += lost.lost_long;
            counts.lost_gone += lost.lost_gone;
        }
        wakers.into_iter().for_each(Waker::wake);
        true
    }

    /// Reports to all peers that the server has stopped.
    fn close(&self) {
        let peers: Vec<_> = self.read().values().cloned().collect();
        for mailbox in peers {
            let mut inner = lock(&mailbox.inner);
            inner.is_closed = true;
            let waker = inner.waker.take();
            drop(inner);
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

impl Mailbox {
    /// Appends a datagram, or loses it. Returns the waker to call.
    fn push(&self, datagram: &[u8], lost: &mut GatewayStats) -> Option<Waker> {
        if datagram.len() > self.max_datagram_bytes {
            lost.lost_long += 1;
            return None;
        }
        let mut inner = lock(&self.inner);
        if inner.datagrams.len() >= self.max_datagrams {
            lost.lost_full += 1;
            return None;
        }
        inner.datagrams.push_back(Bytes::copy_from_slice(datagram));
        inner.waker.take()
    }
}

/// Held by the driver of each worker: when the last one is dropped, the server has stopped.
pub(crate) struct Carries(Arc<Carriage>);

impl Carries {
    pub(crate) fn new(carriage: &Arc<Carriage>) -> Self {
        carriage.running.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(carriage))
    }
}

impl Drop for Carries {
    fn drop(&mut self) {
        if self.0.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.close();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
