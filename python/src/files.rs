//! Files and directories: fetched from a server, or sent to one. Those that this end serves are in
//! `file_server`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use haulier::Connect;
use haulier::file::plain_name;
use haulier_files::session::{Fetch, FetchError, Library, Put};
use haulier_files::tree_cache::TreeCache;
use haulier_files::writer::Replace;
use haulier_files::{Only, Progress};
use pyo3::Borrowed;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::classes::files_progress_of;
use crate::credentials::{ConnectToken, Ticket};
use crate::failure::{Failure, Outcome};
use crate::fetch_failure::{failure, place};
use crate::waiting::SLICE;

/// Where files are fetched from, or sent to.
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
/// `into` is a directory, which is made if several files come, or the name for the only file. `name` is what
/// is wanted of all that is served, and `only` patterns of files in it, such as "**/*.map". Several files go
/// where no others are: in a directory that has others, into one of their own. Files that an earlier fetch
/// has stored do not come again, and one that was interrupted goes on. Other files are kept; they are
/// compared only with `replace`: then the parts of them that differ come, and the server hears which files
/// are here. `on_progress` is called ten times a second; its exception ends the fetch, as Ctrl-C does.
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
    let place = place(into)?;
    let replace = if replace { Replace::File } else { Replace::Never };
    let fetch = Fetch::new(name, place).with_only(only).with_replace(replace);
    let mut told = Told::new(on_progress);
    let fetched = py.detach(|| fetch.run_while(connect, |progress| told.go_on(progress)));
    told.outcome(py, fetched, |error| failure(error, name))
}

/// Sends files and directories, one path or several, each under the last part of its path, to a `haulier
/// recv`, a `haulier serve --inbox` or `recv`, and comes back when all are stored there.
///
/// Files that are already there are not sent again, and an interrupted transfer is resumed. `on_progress` is
/// called ten times a second; its exception ends the transfer, as Ctrl-C does.
#[pyfunction]
#[pyo3(signature = (paths, ticket, *, max_rate_bps=None, on_progress=None))]
pub(crate) fn send(
    py: Python<'_>,
    paths: Paths,
    ticket: From<'_>,
    max_rate_bps: Option<u64>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<Py<PyAny>> {
    let mut connect = ticket.connect()?;
    connect.connection.max_rate_bps = max_rate_bps.unwrap_or(u64::MAX);
    let library = py.detach(|| load(&paths.0))?;
    let mut told = Told::new(on_progress);
    let sent = py.detach(|| Put::new(library).run_while(connect, |progress| told.go_on(progress)));
    told.outcome(py, sent, Failure::from)
}

/// Reports progress to a Python function, which may end the transfer by an exception.
struct Told {
    on_progress: Option<Py<PyAny>>,
    looked: Instant,
    stop: Option<PyErr>,
}

impl Told {
    fn new(on_progress: Option<Py<PyAny>>) -> Self {
        Self { on_progress, looked: Instant::now(), stop: None }
    }

    /// Calls the function, ten times a second. False ends the transfer.
    fn go_on(&mut self, progress: &Progress) -> bool {
        if self.looked.elapsed() < SLICE {
            return true;
        }
        self.looked = Instant::now();
        let told = Python::attach(|py| {
            py.check_signals()?;
            let Some(on_progress) = &self.on_progress else { return Ok(()) };
            on_progress.call1(py, (files_progress_of(py, progress)?,)).map(drop)
        });
        self.stop = told.err();
        self.stop.is_none()
    }

    fn outcome(
        self,
        py: Python<'_>,
        of: Result<Progress, FetchError>,
        failure: impl FnOnce(FetchError) -> Failure,
    ) -> PyResult<Py<PyAny>> {
        match (of, self.stop) {
            (Err(FetchError::Stopped), Some(error)) => Err(error),
            (of, _) => files_progress_of(py, &of.map_err(failure)?),
        }
    }
}

/// One path, or several.
pub(crate) struct Paths(pub(crate) Vec<PathBuf>);

impl<'a, 'py> FromPyObject<'a, 'py> for Paths {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(path) = object.extract::<PathBuf>() {
            return Ok(Self(vec![path]));
        }
        object.extract().map(Self).map_err(|_| {
            let what = object.get_type().name().map_or_else(|_| "?".into(), |it| it.to_string());
            PyTypeError::new_err(format!("a path is needed, or a list of paths, not {what}"))
        })
    }
}

/// The files to serve or send, each path under its last part.
pub(crate) fn load(paths: &[PathBuf]) -> Outcome<Library> {
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
