//! A fetch from beginning to end, for programs that have nothing else to do meanwhile: on a thread of its own
//! in a game.
//!
//! The invariant: it comes back with `Ok` only if each file that was wanted has its name.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use haulier::{
    Client, CloseCode, CloseReason, Connect, ConnectError, Delivery, ErrorKind, Event, NetworkError,
};

use super::{BUSY_TURN, ClientLink, Place, Taking};
use crate::chunks::CHUNK_BYTES;
use crate::only::Only;
use crate::pool::{DEFAULT_THREADS, DiskPool, Wake};
use crate::progress::Progress;
use crate::reason::{DONE, Fault, INTERRUPTED, NOT_STORED};
use crate::tag::MAX_FILE_BYTES;
use crate::taker::{Ask, TakerConfig, TakerEvent};
use crate::writer::Replace;

/// The interval between two reports of the progress while nothing happens.
pub(super) const IDLE_TURN: Duration = Duration::from_millis(100);

/// How long saying goodbye may take: three times a second apart, and some of it for a busy machine.
pub(super) const MAX_GOODBYE: Duration = Duration::from_secs(5);

/// Why files could not be fetched, or sent. What came is kept for the next time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// There are no threads for the disk.
    #[error("no threads for the disk: {0}")]
    Threads(std::io::Error),
    /// It cannot be connected.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The network failed.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The connection ended before all was here.
    #[error("the connection ended: {0}")]
    Closed(CloseReason),
    /// The other end broke the rules, or has no such file; or nothing is there to be sent.
    #[error("ended with code {}: {reason}", code.0)]
    Ended {
        /// Why, as a number: [`reason`](crate::reason).
        code: CloseCode,
        /// Why, in words.
        reason: String,
    },
    /// No file that is offered is one of those that are wanted: see [`Fetch::with_only`].
    #[error("no file there is called what is wanted")]
    NothingWanted,
    /// Several files, or a directory, have to go into a directory: a file has its name, or it cannot be made.
    #[error("{} is no directory for the files, and none can be made: {source}", path.display())]
    NoFolder {
        /// The place.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file could not be had or stored; others may be here.
    #[error("{}: {fault}", path.display())]
    File {
        /// Where it was to go; of one that was sent, its name there.
        path: PathBuf,
        /// Why.
        fault: Fault,
    },
    /// The program wants no more of it.
    #[error("stopped: what came is kept for the next time")]
    Stopped,
}

impl FetchError {
    /// What sort of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Threads(_) | Self::NoFolder { .. } | Self::File { .. } => ErrorKind::Io,
            Self::Connect(error) => error.kind(),
            Self::Network(error) => error.kind(),
            Self::Closed(reason) => reason.kind(),
            Self::NothingWanted => ErrorKind::Usage,
            Self::Ended { .. } | Self::Stopped => ErrorKind::Closed,
        }
    }
}

/// Files to be fetched: files that are here are kept, older versions are updated, and only the rest is sent.
///
/// `examples/mods.rs` is a program around it.
#[derive(Clone, Debug)]
pub struct Fetch {
    config: TakerConfig,
    place: Place,
    replace: Replace,
}

impl Fetch {
    /// What the server has under this path, all of it for an empty one. A place that is a file's name becomes
    /// a directory if several files are wanted; one that is not there is made.
    #[must_use]
    pub fn new(path: &str, place: Place) -> Self {
        // As a list of files shows a directory.
        let config = TakerConfig::new(Ask::Open).with_name(path.trim_end_matches('/'));
        Self { config, place, replace: Replace::Never }
    }

    /// Only these files of it.
    #[must_use]
    pub fn with_only(mut self, only: Only) -> Self {
        self.config = self.config.with_only(only);
        self
    }

    /// What happens to a file that has the name already and is another one.
    #[must_use]
    pub const fn with_replace(mut self, replace: Replace) -> Self {
        self.replace = replace;
        self
    }

    /// Fetches them, and returns when the last has its name. `to` is what [`Client::connect`] takes; the
    /// connection is for this transfer alone. `on_progress` is called ten times a second or more.
    ///
    /// # Errors
    /// [`FetchError`].
    pub fn run(
        self,
        to: impl TryInto<Connect, Error: Into<ConnectError>>,
        mut on_progress: impl FnMut(&Progress),
    ) -> Result<Progress, FetchError> {
        self.run_while(to, |progress| {
            on_progress(progress);
            true
        })
    }

    /// Fetches them as [`run`](Self::run) does, until `on_progress` returns `false`: so a user can stop it.
    ///
    /// # Errors
    /// [`FetchError`]; then it is [`FetchError::Stopped`].
    pub fn run_while(
        self,
        to: impl TryInto<Connect, Error: Into<ConnectError>>,
        mut on_progress: impl FnMut(&Progress) -> bool,
    ) -> Result<Progress, FetchError> {
        let mut connect: Connect = to.try_into().map_err(Into::into)?;
        connect.request = self.config.request().map_or_else(Vec::new, |it| it.to_bytes());
        connect.connection = connect
            .connection
            .with_delivery(Delivery::Chunks)
            .with_max_block_bytes(MAX_FILE_BYTES - CHUNK_BYTES as u64);
        let caller = thread::current();
        let pool = DiskPool::new(DEFAULT_THREADS, Wake::new(move || caller.unpark()))
            .map_err(FetchError::Threads)?;
        let client = Client::connect(connect)?;
        let (Place::File(path) | Place::Folder(path)) = self.place.clone();
        let mut taking = Taking::new(pool.handle(), self.config, self.place, self.replace);
        let mut first_failure = None;
        let outcome = loop {
            let closed = turn(&client, &mut taking)?;
            // Before the close: that may be this end's own, of a transfer that is over.
            if let Some(outcome) = outcome_of(&mut taking, &mut first_failure) {
                break outcome;
            }
            if let Some(closed) = closed {
                return Err(FetchError::Closed(closed));
            }
            if taking.wants_admission() && taking.wanted().next().is_none() {
                taking.close(&ClientLink(&client), DONE, "");
                break Err(FetchError::NothingWanted);
            }
            if taking.wants_admission() {
                match taking.make_place() {
                    Ok(place) => taking.admit(&ClientLink(&client), Some(place), MAX_FILE_BYTES),
                    Err(source) => {
                        taking.close(&ClientLink(&client), NOT_STORED, "");
                        break Err(FetchError::NoFolder { path, source });
                    }
                }
            }
            if !on_progress(&taking.progress()) {
                // Whoever stops it does not wait for a goodbye: dropping the client says it once.
                taking.close(&ClientLink(&client), INTERRUPTED, "");
                return Err(FetchError::Stopped);
            }
        };
        say_goodbye(&client, &mut taking);
        outcome
    }
}

/// How the transfer ended, if it has.
fn outcome_of(
    taking: &mut Taking,
    first_failure: &mut Option<FetchError>,
) -> Option<Result<Progress, FetchError>> {
    loop {
        match taking.poll_event()? {
            TakerEvent::Failed { file, fault } => {
                let path = taking.path_of(file).unwrap_or_default();
                first_failure.get_or_insert(FetchError::File { path, fault });
            }
            TakerEvent::Ended { code, reason } => {
                return Some(Err(FetchError::Ended { code, reason }));
            }
            TakerEvent::Done { .. } => {
                return Some(first_failure.take().map_or_else(|| Ok(taking.progress()), Err));
            }
            _ => {}
        }
    }
}

/// Takes in an event of the connection, or what the disk has done; how the connection ended, if it has.
fn turn(client: &Client, taking: &mut Taking) -> Result<Option<CloseReason>, NetworkError> {
    let link = ClientLink(client);
    if taking.is_full() {
        thread::park_timeout(BUSY_TURN);
        taking.turn(&link);
        return Ok(None);
    }
    match client.wait(if taking.is_busy() { BUSY_TURN } else { IDLE_TURN })? {
        Some(event) => {
            let closed = match &event {
                Event::Closed(reason) => Some(reason.clone()),
                _ => None,
            };
            taking.handle_event(&link, event);
            Ok(closed)
        }
        None => {
            taking.turn(&link);
            Ok(None)
        }
    }
}

/// Reports the end to the server. All files are here already, so a failure to report it is ignored.
fn say_goodbye(client: &Client, taking: &mut Taking) {
    let started = Instant::now();
    while !client.is_closed() && started.elapsed() < MAX_GOODBYE {
        if turn(client, taking).is_err() {
            return;
        }
    }
}
