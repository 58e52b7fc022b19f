//! The thread that takes sessions of browsers.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haulier::{ErrorKind, Gateway, Server};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use wtransport::endpoint::endpoint_side;
use wtransport::{Endpoint, Identity, ServerConfig, VarInt};

use crate::certificate::{Certificate, CertificateError};
use crate::limits::{NoPlace, Sources, WebLimits};
use crate::session::{self, Counts};
use crate::transport;

/// When a certificate is made anew: less than half of the time that it is valid.
const RENEWED_AFTER: Duration = Duration::from_secs(6 * 24 * 3600);

/// The maximum time for the closes of sessions at the end.
const CLOSING: Duration = Duration::from_millis(500);

/// Why there is no server for browsers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebError {
    /// The system's error, for example when the address is in use.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// There is no certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

impl WebError {
    /// What sort of error it is.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Io(_) => ErrorKind::Io,
            Self::Certificate(error) => error.kind(),
        }
    }
}

/// What a [`WebServer`] has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebStats {
    /// Sessions that there are now, and handshakes.
    pub sessions: usize,
    /// Sessions that were opened.
    pub accepted: u64,
    /// Sessions that were refused: there were too many, of all or of one source, or the origin of their page
    /// is not allowed.
    pub refused: u64,
    /// Browsers that had to prove their address first.
    pub retried: u64,
    /// Handshakes that came to nothing.
    pub failed: u64,
    /// Datagrams that QUIC did not take.
    pub lost: u64,
}

/// Whether pages of this origin are let in, as their browsers say it.
pub(crate) type Origins = Arc<dyn Fn(Option<&str>) -> bool + Send + Sync>;

/// The state that the thread and the handle of a [`WebServer`] share.
struct Common {
    certificate: Certificate,
    /// The hashes of the present certificate.
    hashes: Mutex<Vec<[u8; 32]>>,
    limits: WebLimits,
    origins: Origins,
    sources: Arc<Sources>,
    counts: Arc<Counts>,
    renew: Notify,
    stop: Notify,
}

/// Lets browsers in to a server: at an address of its own, beside that of the server for UDP.
///
/// A thread does the work, until this is dropped. It does not keep the server open; when that has stopped,
/// the sessions are closed, and new ones too.
pub struct WebServer {
    common: Arc<Common>,
    local: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for WebServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebServer").field("local", &self.local).finish_non_exhaustive()
    }
}

impl WebServer {
    /// Starts, with the usual limits. With port 0 the system chooses one. The port is one of UDP.
    ///
    /// # Errors
    /// [`WebError`].
    pub fn start(
        at: impl ToSocketAddrs,
        certificate: Certificate,
        server: &Server,
    ) -> Result<Self, WebError> {
        Self::start_with(at, certificate, server, WebLimits::default())
    }

    /// Starts, with these limits.
    ///
    /// # Errors
    /// [`WebError`].
    pub fn start_with(
        at: impl ToSocketAddrs,
        certificate: Certificate,
        server: &Server,
        limits: WebLimits,
    ) -> Result<Self, WebError> {
        Self::start_for(at, certificate, server, limits, |_| true)
    }

    /// Starts, for pages of some origins alone: `admits` is called with the origin that the browser names
    /// (`https://game.example.org`), `None` if it names none, and must not wait. Browsers do not lie about
    /// it, so that no other site plays in the name of its visitors; programs may, so it proves nothing.
    ///
    /// # Errors
    /// [`WebError`].
    pub fn start_for(
        at: impl ToSocketAddrs,
        certificate: Certificate,
        server: &Server,
        limits: WebLimits,
        admits: impl Fn(Option<&str>) -> bool + Send + Sync + 'static,
    ) -> Result<Self, WebError> {
        let nowhere = || io::Error::new(io::ErrorKind::InvalidInput, "no address to bind");
        let at = at.to_socket_addrs()?.next().ok_or_else(nowhere)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let identity = runtime.block_on(certificate.identity())?;
        let common = Arc::new(Common {
            hashes: Mutex::new(hashes_of(&certificate, &identity)),
            certificate,
            limits,
            origins: Arc::new(admits),
            sources: Arc::default(),
            counts: Arc::default(),
            renew: Notify::new(),
            stop: Notify::new(),
        });
        let (started, starts) = mpsc::channel();
        let (gateway, of_thread) = (server.gateway(), Arc::clone(&common));
        let run = move || serve(&runtime, at, identity, &gateway, &of_thread, &started);
        let thread = thread::Builder::new().name("haulier-web".into()).spawn(run)?;
        let ended = || io::Error::other("the thread for browsers ended at once");
        let local = starts.recv().map_err(|_| ended())??;
        Ok(Self { common, local, thread: Some(thread) })
    }

    /// The address it listens at.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The SHA-256 of the certificate that it uses now, for `serverCertificateHashes`; none for the
    /// certificate of a site. They change every few days: ask for them whenever a page is about to join.
    #[must_use]
    pub fn certificate_hashes(&self) -> Vec<[u8; 32]> {
        self.common.hashes().clone()
    }

    /// Makes a new certificate, or reads it again, as is done every 6 days. Sessions that are open go on. It
    /// is in use a moment later; if that fails, the one before it is kept.
    pub fn renew_certificate(&self) {
        self.common.renew.notify_one();
    }

    /// Counters.
    #[must_use]
    pub fn stats(&self) -> WebStats {
        let Common { counts, sources, .. } = &*self.common;
        WebStats {
            sessions: sources.count(),
            accepted: counts.accepted.load(Ordering::Relaxed),
            refused: counts.refused.load(Ordering::Relaxed),
            retried: counts.retried.load(Ordering::Relaxed),
            failed: counts.failed.load(Ordering::Relaxed),
            lost: counts.lost.load(Ordering::Relaxed),
        }
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.common.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl Common {
    fn hashes(&self) -> std::sync::MutexGuard<'_, Vec<[u8; 32]>> {
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hashes_of(certificate: &Certificate, identity: &Identity) -> Vec<[u8; 32]> {
    let first = identity.certificate_chain().as_slice().first();
    let hash = first.filter(|_| certificate.is_self_signed()).map(|it| *it.hash().as_ref());
    hash.into_iter().collect()
}

fn config(at: SocketAddr, identity: Identity, limits: &WebLimits) -> ServerConfig {
    let builder = ServerConfig::builder().with_bind_address(at);
    let transport = transport::config(limits.has_quic_congestion_control);
    builder.with_custom_transport(identity, transport).build()
}

/// The thread's life.
fn serve(
    runtime: &Runtime,
    at: SocketAddr,
    identity: Identity,
    gateway: &Gateway,
    common: &Common,
    started: &mpsc::Sender<io::Result<SocketAddr>>,
) {
    runtime.block_on(async {
        let opened = Endpoint::server(config(at, identity, &common.limits));
        let opened = opened.and_then(|endpoint| Ok((endpoint.local_addr()?, endpoint)));
        let (local, endpoint) = match opened {
            Ok((local, endpoint)) => (Ok(local), endpoint),
            Err(error) => return drop(started.send(Err(error))),
        };
        let _started = started.send(local);
        let first = tokio::time::Instant::now() + RENEWED_AFTER;
        let mut renewal = tokio::time::interval_at(first, RENEWED_AFTER);
        loop {
            tokio::select! {
                () = common.stop.notified() => break,
                () = common.renew.notified() => renew(&endpoint, at, common).await,
                _at = renewal.tick() => renew(&endpoint, at, common).await,
                incoming = endpoint.accept() => admit(incoming, gateway, common),
            }
        }
        endpoint.close(VarInt::from_u32(1), b"the server has stopped");
        let _in_time = tokio::time::timeout(CLOSING, endpoint.wait_idle()).await;
    });
}

fn admit(incoming: wtransport::endpoint::IncomingSession, gateway: &Gateway, common: &Common) {
    let (from, is_proven) = (incoming.remote_address().ip(), incoming.remote_address_validated());
    let place = match common.sources.take(from, is_proven, &common.limits) {
        Ok(place) => place,
        Err(NoPlace::Unproven) => {
            common.counts.retried.fetch_add(1, Ordering::Relaxed);
            return incoming.retry();
        }
        Err(NoPlace::Full) => {
            common.counts.refused.fetch_add(1, Ordering::Relaxed);
            return incoming.refuse();
        }
    };
    let (gateway, counts) = (gateway.clone(), Arc::clone(&common.counts));
    let origins = Arc::clone(&common.origins);
    tokio::spawn(session::run(incoming, gateway, common.limits, origins, counts, place));
}

async fn renew(endpoint: &Endpoint<endpoint_side::Server>, at: SocketAddr, common: &Common) {
    // The next time will do: the one before it is valid for another week.
    let Ok(identity) = common.certificate.identity().await else { return };
    let hashes = hashes_of(&common.certificate, &identity);
    if endpoint.reload_config(config(at, identity, &common.limits), false).is_ok() {
        *common.hashes() = hashes;
    }
}
