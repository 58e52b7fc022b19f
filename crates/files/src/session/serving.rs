//! The files of a library for all clients of a server, beside whatever else the server does.
//!
//! The invariant: a client whose request is not one for files is left to the program.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haulier::{ConnectionId, Event, Server, ServerEvent};

use super::{BUSY_TURN, Giving, Library, ServerLink};
use crate::giver::{GiverConfig, Start};
use crate::messages::Request;
use crate::pool::{DEFAULT_THREADS, DiskPool, Wake};
use crate::reason::NO_SUCH_FILE;

/// How long to wait for an event while the disk has nothing to do.
const IDLE_TURN: Duration = Duration::from_millis(100);

/// Serves a library: it is given the events of a server, and sends files to those clients that ask for some.
///
/// `examples/mods.rs` is a program around it.
#[derive(Debug)]
pub struct Serving {
    library: Arc<Library>,
    pool: DiskPool,
    clients: HashMap<ConnectionId, Giving>,
    is_busy: bool,
    turned: Instant,
}

impl Serving {
    /// Serves these files, with a few threads for the disk.
    ///
    /// # Errors
    /// There are no threads.
    pub fn new(library: impl Into<Arc<Library>>) -> io::Result<Self> {
        let (library, clients) = (library.into(), HashMap::new());
        let pool = DiskPool::new(DEFAULT_THREADS, Wake::default())?;
        Ok(Self { library, pool, clients, is_busy: false, turned: Instant::now() })
    }

    /// How long [`Server::wait`] may wait: the disk's answers are awaited by asking.
    #[must_use]
    pub const fn max_wait(&self) -> Duration {
        if self.is_busy { BUSY_TURN } else { IDLE_TURN }
    }

    /// Takes in an event of the server. Whether it was one of a client that gets files; others are the
    /// program's own.
    pub fn handle_event(&mut self, server: &Server, id: ConnectionId, event: &ServerEvent) -> bool {
        match event {
            ServerEvent::Connecting { request, .. } => {
                let (start, name) = match Request::read(request) {
                    Ok(Request::Get { name, .. }) => (Start::AtOnce, name),
                    Ok(Request::Open { name, .. }) => (Start::Offer, name),
                    _ => return false,
                };
                let config = GiverConfig::new(start);
                match Giving::new(&self.library, self.pool.handle(), config, &name) {
                    Some(mut giving) => {
                        giving.turn(&ServerLink(server, id));
                        self.is_busy |= giving.is_busy();
                        self.clients.insert(id, giving);
                    }
                    None => server.close(id, NO_SUCH_FILE, "there is nothing of this name"),
                }
                true
            }
            ServerEvent::Connection(event) => {
                let Some(giving) = self.clients.get_mut(&id) else { return false };
                giving.handle_event(&ServerLink(server, id), event);
                self.is_busy |= giving.is_busy();
                if let Event::Closed(_) = event {
                    self.clients.remove(&id);
                }
                true
            }
            _ => false,
        }
    }
    /// Goes on, with what the disk has answered: after each wait for an event, whether there was one or not.
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
    }
}
