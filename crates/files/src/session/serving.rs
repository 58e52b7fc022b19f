//! The files of a library for all clients of a server, and an inbox for what they send, beside whatever else
//! the server does.
//!
//! The invariant: a client whose request is not one for files is left to the program.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haulier::{ConnectionId, Event, Server, ServerEvent};

use super::{BUSY_TURN, Giving, Inbox, Library, ServerLink, Upload};
use crate::giver::{GiverConfig, Start};
use crate::messages::Request;
use crate::offer::Root;
use crate::pool::{DEFAULT_THREADS, DiskPool, Wake};
use crate::progress::Progress;
use crate::reason::{Fault, NO_SUCH_FILE};
use crate::taker::TakerEvent;

/// How long to wait for an event while the disk has nothing to do.
const IDLE_TURN: Duration = Duration::from_millis(100);

/// What became of files that a client sends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InboxEvent {
    /// A file has its name.
    Stored {
        /// The client that has sent it.
        client: ConnectionId,
        /// Its name, with slashes between directories.
        name: String,
        /// Where it is.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// Its BLAKE3.
        root: Root,
        /// Whether it was here before, the same.
        was_here: bool,
    },
    /// A file could not be had or stored.
    Failed {
        /// The client that has sent it.
        client: ConnectionId,
        /// Its name.
        name: String,
        /// Why.
        fault: Fault,
    },
    /// A client has nothing more to send, and is gone: all its files except those that failed are here.
    Done {
        /// Which one.
        client: ConnectionId,
        /// How many of its files failed.
        failed: u32,
        /// What came of them, and what was here: its sender does not know that.
        progress: Progress,
    },
}

/// Serves a library, takes files into an inbox, or both: it is given the events of a server, and sends files
/// to those clients that ask for some.
///
/// `examples/mods.rs` is a program around it.
#[derive(Debug)]
pub struct Serving {
    library: Option<Arc<Library>>,
    /// All clients share what it takes.
    inbox: Option<Inbox<()>>,
    pool: DiskPool,
    clients: HashMap<ConnectionId, Giving>,
    uploads: HashMap<ConnectionId, Upload<()>>,
    /// Clients that have sent all, and how many of their files failed.
    done: HashMap<ConnectionId, (u32, Progress)>,
    /// Uploads whose connection has ended, until their unfinished files on the disk are counted.
    settling: Vec<(ConnectionId, Upload<()>)>,
    events: VecDeque<InboxEvent>,
    is_busy: bool,
    turned: Instant,
}

impl Serving {
    /// Serves these files, with a few threads for the disk.
    ///
    /// # Errors
    /// There are no threads.
    pub fn new(library: impl Into<Arc<Library>>) -> io::Result<Self> {
        Self::with(Some(library.into()), None)
    }

    /// Takes files into this inbox, and has none to give.
    ///
    /// # Errors
    /// There are no threads.
    pub fn taking(inbox: Inbox<()>) -> io::Result<Self> {
        Self::with(None, Some(inbox))
    }

    /// Takes files into this inbox, too. Of several clients that send the same name at once one is taken.
    #[must_use]
    pub fn with_inbox(mut self, inbox: Inbox<()>) -> Self {
        self.inbox = Some(inbox);
        self
    }

    fn with(library: Option<Arc<Library>>, inbox: Option<Inbox<()>>) -> io::Result<Self> {
        Ok(Self {
            library,
            inbox,
            pool: DiskPool::new(DEFAULT_THREADS, Wake::default())?,
            clients: HashMap::new(),
            uploads: HashMap::new(),
            done: HashMap::new(),
            settling: Vec::new(),
            events: VecDeque::new(),
            is_busy: false,
            turned: Instant::now(),
        })
    }

    /// How long [`Server::wait`] may wait: the disk's answers are awaited by asking.
    #[must_use]
    pub const fn max_wait(&self) -> Duration {
        if self.is_busy { BUSY_TURN } else { IDLE_TURN }
    }

    /// Whether the disk has enough to do with what came: until it has not, events stay where they are, and
    /// only [`turn`](Self::turn) is called.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.uploads.values().any(Upload::is_full)
    }

    /// What became of files that were sent here.
    pub fn poll_event(&mut self) -> Option<InboxEvent> {
        self.events.pop_front()
    }

    /// Takes in an event of the server. Whether it was one of a client that gets or sends files; others are
    /// the program's own.
    pub fn handle_event(&mut self, server: &Server, id: ConnectionId, event: &ServerEvent) -> bool {
        match event {
            ServerEvent::Connecting { request, .. } => match Request::read(request) {
                Ok(Request::Get { name, .. }) => self.give(server, id, Start::AtOnce, &name),
                Ok(Request::Open { name, .. }) => self.give(server, id, Start::Offer, &name),
                Ok(Request::Put) => self.take(server, id),
                Err(_) => false,
            },
            ServerEvent::Connection(event) => {
                self.hand_to_giving(server, id, event) || self.hand_to_upload(server, id, event)
            }
            _ => false,
        }
    }

    /// Continues with the answers of the disk: call it after each wait for an event, with or without one.
    pub fn turn(&mut self, server: &Server) {
        // All clients are looked at, so not at each of many events.
        if self.turned.elapsed() < BUSY_TURN {
            return;
        }
        self.turned = Instant::now();
        self.is_busy = false;
        for (id, giving) in &mut self.clients {
            giving.turn(&ServerLink(server, *id));
            self.is_busy |= giving.is_busy();
        }
        let Some(inbox) = &mut self.inbox else { return };
        for (id, upload) in &mut self.uploads {
            upload.turn(inbox, &ServerLink(server, *id));
            if upload.wants_admission() {
                upload.admit(inbox);
            }
            self.is_busy |= upload.is_busy();
            collect(&mut self.events, &mut self.done, *id, upload);
        }
        for (id, upload) in &mut self.settling {
            upload.turn(inbox, &ServerLink(server, *id));
        }
        self.settling.retain(|(_, upload)| !upload.is_over());
    }

    fn give(&mut self, server: &Server, id: ConnectionId, start: Start, name: &str) -> bool {
        let config = GiverConfig::new(start);
        let library = self.library.as_ref();
        match library.and_then(|it| Giving::new(it, self.pool.handle(), config, name)) {
            Some(mut giving) => {
                giving.turn(&ServerLink(server, id));
                self.is_busy |= giving.is_busy();
                self.clients.insert(id, giving);
            }
            None => server.close(id, NO_SUCH_FILE, "there is nothing of this name"),
        }
        true
    }

    fn take(&mut self, server: &Server, id: ConnectionId) -> bool {
        let Some(inbox) = &mut self.inbox else { return false };
        let mut upload = Upload::new(inbox, self.pool.handle(), ());
        upload.turn(inbox, &ServerLink(server, id));
        self.uploads.insert(id, upload);
        true
    }

    fn hand_to_giving(&mut self, server: &Server, id: ConnectionId, event: &Event) -> bool {
        let Some(giving) = self.clients.get_mut(&id) else { return false };
        giving.handle_event(&ServerLink(server, id), event);
        self.is_busy |= giving.is_busy();
        if let Event::Closed(_) = event {
            self.clients.remove(&id);
        }
        true
    }

    fn hand_to_upload(&mut self, server: &Server, id: ConnectionId, event: &Event) -> bool {
        let (Some(upload), Some(inbox)) = (self.uploads.get_mut(&id), &mut self.inbox) else {
            return false;
        };
        upload.handle_event(inbox, &ServerLink(server, id), event.clone());
        self.is_busy |= upload.is_busy();
        collect(&mut self.events, &mut self.done, id, upload);
        if let Event::Closed(_) = event {
            // Not before: a program that then ends the server would keep its client from hearing of it.
            let done = self.done.remove(&id);
            self.events.extend(done.map(|(failed, progress)| InboxEvent::Done {
                client: id,
                failed,
                progress,
            }));
            let upload = self.uploads.remove(&id).map(|upload| (id, upload));
            self.settling.extend(upload.filter(|(_, upload)| !upload.is_over()));
        }
        true
    }
}

/// What became of the files of a client.
fn collect(
    events: &mut VecDeque<InboxEvent>,
    done: &mut HashMap<ConnectionId, (u32, Progress)>,
    client: ConnectionId,
    upload: &mut Upload<()>,
) {
    while let Some(event) = upload.poll_event() {
        let taking = upload.taking();
        let name_of = |file| {
            let entry = taking.offer().entry(file);
            entry.map(|it| it.path.to_string()).unwrap_or_default()
        };
        events.push_back(match event {
            TakerEvent::Stored { file } | TakerEvent::Here { file } => {
                let (bytes, root) = taking.root_of(file).unwrap_or_default();
                let path = taking.path_of(file).unwrap_or_default();
                let was_here = matches!(event, TakerEvent::Here { .. });
                InboxEvent::Stored { client, name: name_of(file), path, bytes, root, was_here }
            }
            TakerEvent::Failed { file, fault } => {
                InboxEvent::Failed { client, name: name_of(file), fault }
            }
            TakerEvent::Done { failed } => {
                done.insert(client, (failed, upload.progress()));
                continue;
            }
            _ => continue,
        });
    }
}
