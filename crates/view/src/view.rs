//! A view: a thread that looks four times a second, and a web server in it for those who look on.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use tokio::time::Instant;

use crate::facade;
use crate::names::Names;
use crate::openmetrics::OPENMETRICS_TYPE;
use crate::snapshot::Snapshot;
use crate::subject::Subject;
use crate::watch::Watch;
use crate::web::{Answers, Body, Door, Events, Guard, Site, Viewers, accept, full};

/// How often it looks: as often as a person can read a number.
const INTERVAL: Duration = Duration::from_millis(250);

/// The page.
const PAGE: Site = Site::new(&[
    ("index.html", include_bytes!("../page/index.html")),
    ("live.css", include_bytes!("../page/live.css")),
    ("live.js", include_bytes!("../page/live.js")),
    ("table.js", include_bytes!("../page/table.js")),
    ("text.js", include_bytes!("../page/text.js")),
    ("theme.css", include_bytes!("../page/theme.css")),
    ("paint.js", include_bytes!("../page/paint.js")),
]);

/// A view of a server or a client, for browsers: `/` is the page, `/events` four snapshots a second as
/// server-sent events, `/snapshot.json` one, `/metrics` the numbers as OpenMetrics.
///
/// It has a thread of its own, and ends when it is dropped. It holds what it watches open until then. Up to
/// 32 viewers are served; each gets the newest snapshot, and skips some if it reads slowly.
pub struct View {
    at: SocketAddr,
    names: Names,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("at", &self.at).finish_non_exhaustive()
    }
}

impl View {
    /// Starts a view at this address; with port 0 the system chooses one. Whoever reaches the address sees
    /// the connections: see [`warning`](Self::warning).
    ///
    /// # Errors
    /// The system's error, for example when the address is in use.
    pub fn start(at: SocketAddr, subject: impl Into<Subject>) -> io::Result<Self> {
        Self::start_with_names(at, subject, Names::new())
    }

    /// Starts a view with names that are known already, or shared with another [`Watch`].
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with_names(
        at: SocketAddr,
        subject: impl Into<Subject>,
        names: Names,
    ) -> io::Result<Self> {
        Self::start_known_as(at, &[], subject, names)
    }

    /// Starts a view with names of this host. A browser sends the name that it asked for, and any other name
    /// is refused: otherwise a foreign page could read the view through a name of its own that points here.
    /// Numbers are always accepted, and so is `localhost` for loopback.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_known_as(
        at: SocketAddr,
        hosts: &[String],
        subject: impl Into<Subject>,
        names: Names,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let at = listener.local_addr()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let watch = Watch::new(subject).with_names(names.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (ended, guard) = (Arc::clone(&is_over), Guard::new(at, hosts));
        let thread = thread::Builder::new().name("haulier-view".into()).spawn(move || {
            // It ends early only if the system takes its socket away: then there is nothing to look at.
            let _gone = runtime.block_on(serve(listener, guard, watch, &ended));
        })?;
        Ok(Self { at, names, is_over, thread: Some(thread) })
    }

    /// Where it is.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.at
    }

    /// The address for a browser.
    #[must_use]
    pub fn url(&self) -> String {
        let mut at = self.at;
        if at.ip().is_unspecified() {
            at.set_ip(match at.is_ipv4() {
                true => Ipv4Addr::LOCALHOST.into(),
                false => Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{at}/")
    }

    /// A warning for the user, if others than this machine's users reach it.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let is_open = !self.at.ip().is_loopback();
        is_open.then(|| {
            format!(
                "whoever reaches {} sees who is there: use a loopback address, such as 127.0.0.1",
                self.at
            )
        })
    }

    /// The names that the application gives to its clients.
    #[must_use]
    pub const fn names(&self) -> &Names {
        &self.names
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It has reported its panic, if there was one.
            let _ended = thread.join();
        }
    }
}

/// The newest snapshot.
type Newest = Arc<Mutex<Arc<Snapshot>>>;

async fn serve(
    listener: TcpListener,
    guard: Guard,
    mut watch: Watch,
    is_over: &AtomicBool,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let (door, events) = (Door::new(), Events::new());
    let newest: Newest = Arc::new(Mutex::new(Arc::new(watch.snapshot())));
    let live = Live { guard, newest: Arc::clone(&newest), viewers: events.viewers() };
    let mut next = Instant::now() + INTERVAL;
    while !is_over.load(Ordering::Acquire) {
        let left = next.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            if let Some((stream, _)) = accept(&listener, left).await {
                door.serve(stream, live.clone());
            }
            continue;
        }
        next = Instant::now() + INTERVAL;
        let snapshot = Arc::new(watch.snapshot());
        facade::publish(&snapshot);
        if events.has_viewers() {
            events.send(&snapshot.to_json().to_string());
        }
        *newest.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
    Ok(())
}

/// What is at which path.
#[derive(Clone)]
struct Live {
    guard: Guard,
    newest: Newest,
    viewers: Viewers,
}

impl Live {
    fn newest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.newest.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Answers for Live {
    fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        if let Some(refusal) = self.guard.refusal(request.method(), request.headers()) {
            return refusal;
        }
        let json = || self.newest().to_json().to_string();
        match request.uri().path() {
            "/events" => self.viewers.answer(&json()),
            "/snapshot.json" => full(StatusCode::OK, "application/json", Bytes::from(json())),
            "/metrics" => {
                let text = self.newest().to_openmetrics();
                full(StatusCode::OK, OPENMETRICS_TYPE, Bytes::from(text))
            }
            path => PAGE.answer(path),
        }
    }
}
