//! Files and directories: fetched from a server, or served to whoever has the ticket.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haulier::file::plain_name;
use haulier::{CloseCode, Connect, ConnectionConfig, Delivery, Listen, ServerConfig};
use haulier_files::session::{Fetch, FetchError, Library, Place, Serving};
use haulier_files::tree_cache::TreeCache;
use haulier_files::writer::Replace;
use haulier_files::{Only, Progress};
use pyo3::prelude::*;

use crate::bytes::Data;
use crate::classes::{self, fields};
use crate::client::LAST_WORDS;
use crate::credentials::{ConnectToken, Ticket, TokenKey, resolve};
use crate::failure::{Failure, Outcome};
use crate::server::{Access, keys, ticket};
use crate::waiting::SLICE;

/// That of `haulier serve`, so that either end may be the program.
const FILES_PROTOCOL_ID: u64 = 0x6861_756c_6669_6c65;

/// After so long a silence a client is taken for gone, unless it says less: as `haulier serve` does.
const MAX_SILENCE: Duration = Duration::from_secs(120);

/// Where files are fetched from.
#[derive(FromPyObject)]
pub(crate) enum From<'py> {
    Text(String),
    Ticket(PyRef<'py, Ticket>),
    Token(PyRef<'py, ConnectToken>),
}

impl From<'_> {
    fn connect(&self) -> Outcome<Connect> {
        Ok(match self {
            Self::Text(text) => Connect::try_from(text)?,
            Self::Ticket(ticket) => Connect::from(&ticket.0),
            Self::Token(token) => Connect::from(&token.0),
        })
    }
}

/// Fetches files, verified, and comes back when the last has its name.
///
/// `into` is a directory, or the name for the only file. `name` is what is wanted of all that is served, and
/// `only` patterns of files in it, such as "**/*.map". What is here is kept, what came before an interruption
/// is gone on from, and with `replace` only what is new of an older file comes. `on_progress` is told ten
/// times a second; what it raises ends the fetch, as Ctrl-C does.
#[pyfunction]
#[pyo3(signature = (ticket, into, *, name="", only=None, replace=false, on_progress=None))]
pub(crate) fn fetch(
    py: Python<'_>,
    ticket: From<'_>,
    into: PathBuf,
    name: &str,
    only: Option<Vec<String>>,
    replace: bool,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let connect = ticket.connect()?;
    let only = only.map_or_else(
        || Ok(Only::everything()),
        |patterns| Only::new(patterns.iter().map(String::as_str)).map_err(Failure::usage),
    )?;
    let place = if into.is_dir() { Place::Folder(into) } else { Place::File(into) };
    let replace = if replace { Replace::File } else { Replace::Never };
    let fetch = Fetch::new(name, place).with_only(only).with_replace(replace);
    let mut looked = Instant::now();
    let mut stop = None;
    let fetched = py.detach(|| {
        fetch.run_while(connect, |progress| {
            if looked.elapsed() < SLICE {
                return true;
            }
            looked = Instant::now();
            let told = Python::attach(|py| {
                py.check_signals()?;
                let Some(on_progress) = &on_progress else { return Ok(()) };
                on_progress.call1(py, (progress_of(py, progress)?,)).map(drop)
            });
            stop = told.err();
            stop.is_none()
        })
    });
    match (fetched, stop) {
        (Err(FetchError::Stopped), Some(error)) => Err(error),
        (fetched, _) => progress_of(py, &fetched.map_err(Failure::from)?),
    }
}

fn progress_of(py: Python<'_>, progress: &Progress) -> PyResult<Py<PyAny>> {
    let fields = fields! { py, progress;
        files_done files wanted_bytes verified_bytes wire_bytes resumed_bytes copied_bytes packed_bytes
        saved_bytes here_bytes bytes_per_second;
        "remaining_s" = progress.remaining.map(|it| it.as_secs_f64()),
    };
    Ok(classes::files_progress(py)?.call((), Some(&fields))?.unbind())
}

/// Files that are served by a thread, until it is closed; a `with` closes it.
#[pyclass(module = "haulier", frozen)]
pub(crate) struct FileServer {
    server: haulier::Server,
    ticket: Option<Py<Ticket>>,
    skipped: Vec<PathBuf>,
    is_closing: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Serves files and directories, each under the last part of its path, in a thread of its own.
///
/// Only this machine reaches it unless `bind` is another address, such as "0.0.0.0:4016"; then `addresses`
/// are those for the ticket. Who is let in is as with `Server.bind`.
#[pyfunction]
#[pyo3(signature = (paths, bind="127.0.0.1:0", *, addresses=None, secret=None, open=false,
    token_keys=Vec::new(), identity=None, max_rate_bps=None))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn serve(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    bind: &str,
    addresses: Option<Vec<String>>,
    secret: Option<Data>,
    open: bool,
    token_keys: Vec<PyRef<'_, TokenKey>>,
    identity: Option<Data>,
    max_rate_bps: Option<u64>,
) -> PyResult<FileServer> {
    let has_ticket = secret.is_some() || open || token_keys.is_empty();
    let access = Access { secret, open, token_keys: keys(token_keys), identity };
    let connection = ConnectionConfig::default()
        .with_max_rate_bps(max_rate_bps.unwrap_or(u64::MAX))
        .with_idle_timeout(MAX_SILENCE)
        .with_delivery(Delivery::Chunks)
        // Clients ask, and send nothing.
        .with_max_block_bytes(0)
        .with_max_unread_packet_bytes(4096);
    let mut config =
        ServerConfig::new(FILES_PROTOCOL_ID, access.credentials()?).with_connection(connection);
    if let Some(addresses) = &addresses {
        config.addresses = crate::credentials::addresses(addresses)?;
    }
    let (server, serving, skipped) = py.detach(|| {
        let library = load(&paths)?;
        let skipped = library.skipped().to_vec();
        let locals = resolve(bind)?;
        let listen = Listen::bind(locals.as_slice())
            .map_err(|error| Failure::io(format!("cannot listen at {bind}: {error}")))?;
        Ok::<_, Failure>((listen.start(config)?, Serving::new(library)?, skipped))
    })?;
    let ticket = match has_ticket {
        true => Some(Py::new(py, ticket(&server, addresses)?)?),
        false => None,
    };
    let is_closing = Arc::new(AtomicBool::new(false));
    let thread = spawn(server.clone(), serving, Arc::clone(&is_closing)).map_err(Failure::from)?;
    Ok(FileServer { server, ticket, skipped, is_closing, thread: Mutex::new(Some(thread)) })
}

/// What is served, each under the last part of its path.
fn load(paths: &[PathBuf]) -> Outcome<Library> {
    let mut names = HashSet::new();
    let mut named = Vec::new();
    for path in paths {
        let name = name_of(path)?;
        if !names.insert(name.clone()) {
            let what =
                format!("two of the files are called {name}: a client could ask for one only");
            return Err(Failure::usage(what));
        }
        named.push((name, path.clone()));
    }
    let cache = TreeCache::user_folder().map_or_else(TreeCache::beside, TreeCache::with_fallback);
    let library = Library::load(&named, cache).map_err(Failure::io)?;
    if library.offer().is_empty() {
        return Err(Failure::usage("nothing in there can be served"));
    }
    Ok(library)
}

fn name_of(path: &Path) -> Outcome<String> {
    // `.` and `maps/..` have names, too.
    let io = |error| Failure::io(format!("{}: {error}", path.display()));
    let full = path.canonicalize().map_err(io)?;
    let given = path.file_name().or(full.file_name()).and_then(|name| name.to_str());
    given.and_then(plain_name).map(|name| name.into_owned()).ok_or_else(|| {
        let what = "has no name that a client could ask for: UTF-8, and plain on every system";
        Failure::usage(format!("{} {what}", path.display()))
    })
}

fn spawn(
    server: haulier::Server,
    mut serving: Serving,
    is_closing: Arc<AtomicBool>,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("haulier-files".into()).spawn(move || {
        while !server.is_shut_down() && !is_closing.load(Ordering::Acquire) {
            match server.wait(serving.max_wait()) {
                Ok(Some((id, event))) => {
                    let is_request = matches!(event, haulier::ServerEvent::Connecting { .. });
                    if !serving.handle_event(&server, id, &event) && is_request {
                        server.close(id, CloseCode::NOT_ACCEPTED, "only files are served here");
                    }
                }
                Ok(None) => {}
                Err(_) => return,
            }
            serving.turn(&server);
        }
        let _late = server.finish(LAST_WORDS);
    })
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

    /// How many are connected.
    #[getter]
    fn clients(&self) -> usize {
        self.server.connections().len()
    }

    /// Ends it: clients are told, and keep what they have.
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
            // What it panicked with was printed.
            let _panicked = thread.join();
        }
    }
}

impl Drop for FileServer {
    /// Whoever has forgotten to close it is not waited for: the thread ends by itself.
    fn drop(&mut self) {
        self.is_closing.store(true, Ordering::Release);
        self.server.waker().wake();
    }
}
