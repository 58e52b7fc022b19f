//! `haulier.serve` and `haulier.recv`: files for whoever has the ticket, and an inbox for what they send, in
//! a thread of its own.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haulier::{ConnectionConfig, Delivery, Listen, ServerConfig};
use haulier_files::InboxQuota;
use haulier_files::reason::NOT_ADMITTED;
use haulier_files::session::{Inbox, InboxEvent, Place, Serving};
use haulier_files::writer::{Replace, check_folder};
use pyo3::prelude::*;

use crate::bytes::Data;
use crate::classes;
use crate::client::LAST_WORDS;
use crate::credentials::{Ticket, TokenKey, resolve};
use crate::failure::{Failure, Outcome};
use crate::files::{Paths, load};
use crate::server::{Access, keys, ticket};
use crate::waiting::{Limit, wait_in_slices};

/// The protocol id of `haulier serve`, so that either end may be the program.
const FILES_PROTOCOL_ID: u64 = 0x6861_756c_6669_6c65;

/// The silence after which a client counts as gone, unless it asks for less: that of `haulier serve`.
const MAX_SILENCE: Duration = Duration::from_secs(120);

/// The largest block that is accepted: the largest that the protocol allows.
const MAX_BLOCK_BYTES: u64 = (1 << 50) - (256 << 10);

/// The wait while the disk's queue is full.
const BUSY_TURN: Duration = Duration::from_millis(1);

/// The maximum number of unread events of an inbox. Beyond it the oldest are forgotten.
const MAX_UNREAD: usize = 1 << 16;

/// Files that are served by a thread, and those that clients send, until it is closed; a `with` closes it.
///
/// What becomes of files that are sent here is what it iterates over, or `wait` gives: `Received.File` and
/// others.
#[pyclass(module = "haulier", frozen)]
pub(crate) struct FileServer {
    server: haulier::Server,
    ticket: Option<Py<Ticket>>,
    skipped: Vec<PathBuf>,
    is_closing: Arc<AtomicBool>,
    news: Arc<News>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The events of files that were sent here, from the thread that serves to the callers that wait for them.
#[derive(Default)]
struct News {
    /// The unread events, and whether the thread has ended.
    state: Mutex<(VecDeque<InboxEvent>, bool)>,
    changed: Condvar,
}

impl News {
    fn lock(&self) -> MutexGuard<'_, (VecDeque<InboxEvent>, bool)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, event: InboxEvent) {
        let mut state = self.lock();
        if state.0.len() == MAX_UNREAD {
            state.0.pop_front();
        }
        state.0.push_back(event);
        self.changed.notify_one();
    }

    fn end(&self) {
        self.lock().1 = true;
        self.changed.notify_all();
    }

    fn is_over(&self) -> bool {
        self.lock().1
    }

    fn wait(&self, max: Duration) -> Option<InboxEvent> {
        let is_nothing = |state: &mut (VecDeque<InboxEvent>, bool)| state.0.is_empty() && !state.1;
        let waited = self.changed.wait_timeout_while(self.lock(), max, is_nothing);
        waited.unwrap_or_else(PoisonError::into_inner).0.0.pop_front()
    }
}

/// The address to listen at, and the access of clients.
struct Host<'a> {
    bind: &'a str,
    addresses: Option<Vec<String>>,
    access: Access,
    has_ticket: bool,
    max_rate_bps: Option<u64>,
}

impl Host<'_> {
    fn start(
        self,
        py: Python<'_>,
        paths: Vec<PathBuf>,
        inbox: Option<Inbox<()>>,
    ) -> PyResult<FileServer> {
        let Self { bind, addresses, access, has_ticket, max_rate_bps } = self;
        let connection = ConnectionConfig::default()
            .with_max_rate_bps(max_rate_bps.unwrap_or(u64::MAX))
            .with_idle_timeout(MAX_SILENCE)
            .with_delivery(Delivery::Chunks)
            // Without an inbox clients ask, and send nothing.
            .with_max_block_bytes(inbox.as_ref().map_or(0, |_| MAX_BLOCK_BYTES))
            .with_max_unread_packet_bytes(4096);
        let mut config =
            ServerConfig::new(FILES_PROTOCOL_ID, access.credentials()?).with_connection(connection);
        if let Some(addresses) = &addresses {
            config.addresses = crate::credentials::addresses(addresses)?;
        }
        let (server, serving, skipped) = py.detach(|| {
            let library = if paths.is_empty() { None } else { Some(load(&paths)?) };
            let skipped = library.as_ref().map_or_else(Vec::new, |it| it.skipped().to_vec());
            let serving = match (library, inbox) {
                (Some(library), None) => Serving::new(library)?,
                (Some(library), Some(inbox)) => Serving::new(library)?.with_inbox(inbox),
                (None, Some(inbox)) => Serving::taking(inbox)?,
                (None, None) => return Err(Failure::usage("there is nothing to serve")),
            };
            let locals = resolve(bind)?;
            let listen = Listen::bind(locals.as_slice())
                .map_err(|error| Failure::io(format!("cannot listen at {bind}: {error}")))?;
            Ok::<_, Failure>((listen.start(config)?, serving, skipped))
        })?;
        let ticket = match has_ticket {
            true => Some(Py::new(py, ticket(&server, addresses)?)?),
            false => None,
        };
        let (is_closing, news) = (Arc::<AtomicBool>::default(), Arc::<News>::default());
        let driver = Driver { server: server.clone(), serving, news: Arc::clone(&news) };
        let thread = driver.spawn(Arc::clone(&is_closing)).map_err(Failure::from)?;
        Ok(FileServer {
            server,
            ticket,
            skipped,
            is_closing,
            news,
            thread: Mutex::new(Some(thread)),
        })
    }
}

/// Serves files and directories, one path or several, each under the last part of its path, in a thread of
/// its own.
///
/// Only this machine reaches it unless `bind` is another address, such as "0.0.0.0:4016"; then `addresses`
/// are those for the ticket. Clients are let in by the rules of `Server.bind`. With an `inbox` clients may
/// send files into that directory, too, as with `recv`.
#[pyfunction]
#[pyo3(signature = (paths, bind="127.0.0.1:0", *, addresses=None, secret=None, open=false,
    token_keys=Vec::new(), identity=None, max_rate_bps=None, inbox=None, replace=false,
    max_inbox_bytes=None))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn serve(
    py: Python<'_>,
    paths: Paths,
    bind: &str,
    addresses: Option<Vec<String>>,
    secret: Option<Data>,
    open: bool,
    token_keys: Vec<PyRef<'_, TokenKey>>,
    identity: Option<Data>,
    max_rate_bps: Option<u64>,
    inbox: Option<PathBuf>,
    replace: bool,
    max_inbox_bytes: Option<u64>,
) -> PyResult<FileServer> {
    let has_ticket = secret.is_some() || open || token_keys.is_empty();
    let access = Access { secret, open, token_keys: keys(token_keys), identity };
    let make = |into| py.detach(|| inbox_at(into, replace, max_inbox_bytes));
    let inbox = inbox.map(make).transpose()?;
    Host { bind, addresses, access, has_ticket, max_rate_bps }.start(py, paths.0, inbox)
}

/// Takes files that clients send, with `send` or `haulier send`, and stores them in a directory, verified.
///
/// It is what it iterates over that says what came. A file that has a name already is not touched, unless
/// `replace` says so, and of all that is there and may come there are at most `max_bytes`. The rest is as
/// with `serve`.
#[pyfunction]
#[pyo3(signature = (into, bind="127.0.0.1:0", *, addresses=None, secret=None, open=false,
    token_keys=Vec::new(), identity=None, replace=false, max_bytes=None))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn recv(
    py: Python<'_>,
    into: PathBuf,
    bind: &str,
    addresses: Option<Vec<String>>,
    secret: Option<Data>,
    open: bool,
    token_keys: Vec<PyRef<'_, TokenKey>>,
    identity: Option<Data>,
    replace: bool,
    max_bytes: Option<u64>,
) -> PyResult<FileServer> {
    let has_ticket = secret.is_some() || open || token_keys.is_empty();
    let access = Access { secret, open, token_keys: keys(token_keys), identity };
    let inbox = py.detach(|| inbox_at(into, replace, max_bytes))?;
    Host { bind, addresses, access, has_ticket, max_rate_bps: None }.start(py, vec![], Some(inbox))
}

fn inbox_at(folder: PathBuf, replace: bool, max_bytes: Option<u64>) -> Outcome<Inbox<()>> {
    if !folder.is_dir() {
        return Err(Failure::io(format!("there is no directory {}", folder.display())));
    }
    check_folder(&folder, 0).map_err(Failure::io)?;
    let replace = if replace { Replace::File } else { Replace::Never };
    let most = max_bytes.unwrap_or(u64::MAX);
    Ok(Inbox::new(Place::Folder(folder), replace, InboxQuota::new(most, most)))
}

/// What the thread does.
struct Driver {
    server: haulier::Server,
    serving: Serving,
    news: Arc<News>,
}

impl Driver {
    fn spawn(mut self, is_closing: Arc<AtomicBool>) -> io::Result<JoinHandle<()>> {
        thread::Builder::new().name("haulier-files".into()).spawn(move || {
            while !self.server.is_shut_down() && !is_closing.load(Ordering::Acquire) {
                if !self.go_on() {
                    break;
                }
            }
            let _late = self.server.finish(LAST_WORDS);
            self.news.end();
        })
    }

    /// Takes in an event, and what the disk has done. Whether there is a network.
    fn go_on(&mut self) -> bool {
        let Self { server, serving, news } = self;
        if serving.is_full() {
            thread::sleep(BUSY_TURN);
        } else {
            match server.wait(serving.max_wait()) {
                Ok(Some((id, event))) => {
                    let is_request = matches!(event, haulier::ServerEvent::Connecting { .. });
                    if !serving.handle_event(server, id, &event) && is_request {
                        server.close(id, NOT_ADMITTED, "this is not given or taken here");
                    }
                }
                Ok(None) => {}
                Err(_) => return false,
            }
        }
        serving.turn(server);
        while let Some(event) = serving.poll_event() {
            news.add(event);
        }
        true
    }
}

#[pymethods]
impl FileServer {
    /// What lets a client in; `UsageError` if it accepts only tokens.
    #[getter]
    fn ticket(&self, py: Python<'_>) -> Outcome<Py<Ticket>> {
        let ticket = self.ticket.as_ref().map(|ticket| ticket.clone_ref(py));
        ticket.ok_or_else(|| Failure::usage("it has no ticket: it accepts only tokens"))
    }

    /// The address it listens at.
    #[getter]
    fn local_addr(&self) -> String {
        self.server.local_addr().to_string()
    }

    /// What is in the directories and is not served: links, pipes, and names that not every system has.
    #[getter]
    fn skipped(&self) -> Vec<String> {
        self.skipped.iter().map(|path| path.display().to_string()).collect()
    }

    /// What became of the next file that was sent here; None if nothing did in that time, and after the end.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Option<Py<PyAny>>> {
        let news = &self.news;
        let limit = Limit::new(timeout_s)?;
        let event = wait_in_slices(py, limit, || news.is_over(), |slice| Ok(news.wait(slice)))?;
        event.map(|event| classes::received(py, event)).transpose()
    }

    /// What becomes of files that are sent here, waited for, until it is closed.
    const fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.wait(py, None)
    }

    /// The number of connected clients.
    #[getter]
    fn clients(&self) -> usize {
        self.server.connections().len()
    }

    /// Closes the server and its connections. Clients keep the files that they have.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.stop());
    }

    /// Itself.
    const fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Closes it.
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<Py<PyAny>>,
        _error: Option<Py<PyAny>>,
        _traceback: Option<Py<PyAny>>,
    ) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<FileServer at {}>", self.server.local_addr())
    }
}

impl FileServer {
    fn stop(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.server.waker().wake();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // The message of a panic was printed already.
            let _panicked = thread.join();
        }
    }
}

impl Drop for FileServer {
    /// Does not wait if the program has forgotten to close it: the thread ends by itself.
    fn drop(&mut self) {
        self.is_closing.store(true, Ordering::Release);
        self.server.waker().wake();
    }
}
