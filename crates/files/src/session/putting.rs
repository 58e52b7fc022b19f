//! Files that are sent from beginning to end, to a server that takes some: what a [`Fetch`](super::Fetch) is
//! for the other direction.
//!
//! The invariant: it comes back with `Ok` only if the server has said of each file that it is stored there.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haulier::{Client, CloseReason, Connect, ConnectError, Event, NetworkError};

use super::fetching::{FetchError, IDLE_TURN, MAX_GOODBYE};
use super::{BUSY_TURN, ClientLink, Giving, Library};
use crate::giver::{GiverConfig, GiverEvent, Start};
use crate::messages::Request;
use crate::pool::{DEFAULT_THREADS, DiskPool, Wake};
use crate::progress::Progress;
use crate::reason::{INTERRUPTED, NO_SUCH_FILE};

/// After this time without an event, this end checks whether this machine has another address now.
const LOOK_FOR_NETWORK: Duration = Duration::from_millis(500);

/// Files to be sent: bytes that the other end has already are not sent again.
#[derive(Clone, Debug)]
pub struct Put {
    library: Arc<Library>,
}

impl Put {
    /// All of these.
    #[must_use]
    pub fn new(library: impl Into<Arc<Library>>) -> Self {
        Self { library: library.into() }
    }

    /// Sends them, and returns when the last is stored there. `to` is what [`Client::connect`] takes; the
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

    /// Sends them as [`run`](Self::run) does, until `on_progress` returns `false`: so a user can stop it.
    ///
    /// # Errors
    /// [`FetchError`]; then it is [`FetchError::Stopped`].
    pub fn run_while(
        self,
        to: impl TryInto<Connect, Error: Into<ConnectError>>,
        mut on_progress: impl FnMut(&Progress) -> bool,
    ) -> Result<Progress, FetchError> {
        let mut connect: Connect = to.try_into().map_err(Into::into)?;
        connect.request = Request::Put.to_bytes();
        // A client that sends files receives no blocks.
        connect.connection = connect.connection.with_max_block_bytes(0);
        let client = Client::connect(connect)?;
        let waker = client.waker();
        let pool = DiskPool::new(DEFAULT_THREADS, Wake::new(move || waker.wake_by_ref()))
            .map_err(FetchError::Threads)?;
        let config = GiverConfig::new(Start::WhenAsked);
        let Some(mut giving) = Giving::new(&self.library, pool.handle(), config, "") else {
            let reason = "there is nothing to send".to_owned();
            return Err(FetchError::Ended { code: NO_SUCH_FILE, reason });
        };
        let mut quiet_since = Instant::now();
        let mut first_failure = None;
        let outcome = loop {
            match turn(&client, &mut giving)? {
                // This end may have closed it, of a transfer that is over.
                Turn::Closed(reason) => match outcome_of(&mut giving, &mut first_failure) {
                    Some(outcome) => break outcome,
                    None => return Err(FetchError::Closed(reason)),
                },
                Turn::Event => quiet_since = Instant::now(),
                Turn::Quiet if quiet_since.elapsed() > LOOK_FOR_NETWORK => {
                    quiet_since = Instant::now();
                    // Without a network the old socket is kept.
                    let _moved = client.rebind_if_moved();
                }
                Turn::Quiet => {}
            }
            if !on_progress(&giving.progress(&ClientLink(&client))) {
                giving.close(&ClientLink(&client), INTERRUPTED, "");
                return Err(FetchError::Stopped);
            }
            if let Some(outcome) = outcome_of(&mut giving, &mut first_failure) {
                break outcome;
            }
        };
        say_goodbye(&client, &mut giving);
        outcome.map(|()| giving.progress(&ClientLink(&client)))
    }
}

enum Turn {
    Event,
    Quiet,
    Closed(CloseReason),
}

/// Takes in an event of the connection, or what the disk has done.
fn turn(client: &Client, giving: &mut Giving) -> Result<Turn, NetworkError> {
    let link = ClientLink(client);
    let Some(event) = client.wait(if giving.is_busy() { BUSY_TURN } else { IDLE_TURN })? else {
        giving.turn(&link);
        return Ok(Turn::Quiet);
    };
    giving.handle_event(&link, &event);
    Ok(match event {
        Event::Closed(reason) => Turn::Closed(reason),
        _ => Turn::Event,
    })
}

/// What became of all files, once that is known.
fn outcome_of(
    giving: &mut Giving,
    first_failure: &mut Option<FetchError>,
) -> Option<Result<(), FetchError>> {
    while let Some(event) = giving.poll_event() {
        match event {
            GiverEvent::Refused { file, fault } | GiverEvent::Failed { file, fault } => {
                let entry = giving.offer().entry(file);
                let path = entry.map(|it| PathBuf::from(it.path.as_str())).unwrap_or_default();
                first_failure.get_or_insert(FetchError::File { path, fault });
            }
            GiverEvent::Done => return Some(first_failure.take().map_or(Ok(()), Err)),
            GiverEvent::Ended { code, reason } => {
                return Some(Err(FetchError::Ended { code, reason }));
            }
            GiverEvent::Stored { .. } => {}
        }
    }
    None
}

/// Reports the end to the server. All files are stored there already, so a failure to report it is ignored.
fn say_goodbye(client: &Client, giving: &mut Giving) {
    let started = Instant::now();
    while !client.is_closed() && started.elapsed() < MAX_GOODBYE {
        if turn(client, giving).is_err() {
            return;
        }
    }
}
