//! A server's end: its machine, and the time of day, by which tokens expire.

use std::io;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use haulier_core::{Instant, Machine as _};
use haulier_proto::server::{ConnectionId, ServerEvent, ServerMachine};

use super::race::Key;
use super::shared::{End, Trouble};

pub(crate) struct Serving {
    pub(crate) machine: ServerMachine,
    pub(crate) is_shutting_down: bool,
}

impl Serving {
    pub(crate) fn shut_down(&mut self, now: Instant) {
        self.is_shutting_down = true;
        self.machine.shut_down(now);
    }
}

impl End for Serving {
    type Machine = ServerMachine;
    type Event = (ConnectionId, ServerEvent);

    const THREAD: &'static str = "haulier-server";

    fn machine(&mut self, _: Key) -> Option<&mut ServerMachine> {
        Some(&mut self.machine)
    }

    /// Others may set the time of day.
    fn step(&mut self, now: Instant) -> Vec<(Key, SocketAddr)> {
        self.machine.set_unix_time(now, unix_time());
        Vec::new()
    }

    fn on_trouble(&mut self, _: Instant, _: Key, trouble: Trouble) -> io::Result<()> {
        match trouble {
            Trouble::Refused => Ok(()),
            Trouble::NotOpened(error) | Trouble::Broken(error) => Err(error),
        }
    }

    fn step_timeout(&self) -> Option<Instant> {
        None
    }

    fn machine_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn poll_event(&mut self, now: Instant) -> Option<(ConnectionId, ServerEvent)> {
        self.machine.poll_event(now)
    }

    fn is_over(&self) -> bool {
        self.is_shutting_down && self.machine.stats().connections == 0
    }

    fn on_rebound(&mut self) {}

    fn leave(&mut self, now: Instant) {
        self.shut_down(now);
    }

    fn prepare() {}
}

/// Seconds since 1970; zero on a machine that thinks it is earlier.
pub(crate) fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
