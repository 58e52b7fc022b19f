//! The rounds of a client or server, called by a thread, a task or the application.
//!
//! There is a runner for each socket: one, except for a client that tries several addresses of its server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use haulier_core::Instant;
use haulier_udp::{Interest, Runner, Socket};

use super::LONG;
use super::error::NetworkError;
use super::gateway::Carries;
use super::race::Key;
use super::shared::{End, Part, Shared, SocketFault};

/// The maximum number of rounds after the last handle is dropped: the closes of a large server may take
/// several.
const MAX_LAST_ROUNDS: usize = 20;

/// Whether there will be another round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Continue,
    /// The last handle was dropped, or the driver failed.
    Stop,
}

pub(crate) struct Driver<E: End> {
    pub(crate) shared: Arc<Shared<E>>,
    runners: Vec<(Key, Runner<Part<E>>)>,
    /// Reports its end to the peers that something else carries.
    _carries: Option<Carries>,
}

impl<E: End> Driver<E> {
    /// A driver without sockets; they are opened as the end requests them.
    pub(crate) fn new(shared: Arc<Shared<E>>) -> Self {
        let carries = shared.carriage.as_ref().map(Carries::new);
        Self { shared, runners: Vec::new(), _carries: carries }
    }

    /// Uses this socket, in place of the one with that key, or as a new one.
    pub(crate) fn adopt(&mut self, key: Key, socket: Socket) {
        let (local, buffers) = (socket.local_addr(), socket.buffers());
        match self.runners.iter_mut().find(|(known, _)| *known == key) {
            Some((_, runner)) => drop(runner.replace_carrier(socket)),
            None => {
                let part = Part { shared: Arc::clone(&self.shared), key };
                self.runners.push((key, Runner::new(part, socket, self.shared.clock)));
            }
        }
        let mut state = self.shared.lock();
        state.locals.retain(|(known, _)| *known != key);
        state.locals.push((key, local));
        state.buffers = Some(buffers);
    }

    /// Receives, acts and sends on all sockets, without waiting. The handles report a failure.
    pub(crate) fn round(&mut self) -> Next {
        let rounds = match self.begin() {
            Ok(true) => MAX_LAST_ROUNDS,
            Ok(false) => 1,
            Err(failure) => return self.fail(failure),
        };
        for _ in 0..rounds {
            if let Err(error) = self.all_round() {
                return self.fail(NetworkError::Socket(error.into()));
            }
            if self.runners.iter().all(|(_, runner)| !runner.pause(LONG).is_zero()) {
                break;
            }
        }
        self.shared.write_traces();
        let now = self.shared.clock.now();
        self.shared.release(self.shared.lock(), now);
        if rounds == 1 { Next::Continue } else { Next::Stop }
    }

    /// Sends what the application queued since the last round.
    pub(crate) fn transmit(&mut self) -> Next {
        for (_, runner) in &mut self.runners {
            if let Err(error) = runner.transmit() {
                return self.fail(NetworkError::Socket(error.into()));
            }
        }
        Next::Continue
    }

    /// Makes memory ready that the first answer needs, while that is on its way.
    pub(crate) fn make_ready(&mut self) {
        self.runners.iter_mut().for_each(|(_, runner)| runner.make_ready());
    }

    /// Lets another thread prepare what will be needed soon.
    pub(crate) fn prepare(&self) {
        self.shared.lock().end.prepare();
    }

    /// How long to sleep, unless a socket or a handle wakes the driver.
    pub(crate) fn pause(&self) -> Duration {
        let until = self.shared.lock().begin_sleep();
        let clock = &self.shared.clock;
        let pause = until.map_or(LONG, |until| clock.until(until).min(LONG));
        self.runners.iter().fold(pause, |pause, (_, runner)| runner.pause(pause))
    }

    /// What to wait for in that time.
    pub(crate) fn interests(&self) -> Vec<Interest<'_>> {
        self.runners.iter().map(|(_, runner)| runner.interest()).collect()
    }

    /// Carries out the requests of the handles. Returns whether to stop.
    pub(crate) fn begin(&mut self) -> Result<bool, NetworkError> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        state.begin_round();
        if let Some(Err(failure)) = state.end() {
            return Err(failure);
        }
        let opens = state.end.step(now);
        self.runners.retain(|(key, _)| state.end.machine(*key).is_some());
        let (is_stopping, socket) = (state.is_stopping, state.new_socket.take());
        drop(state);
        let opened = self.open(now, opens);
        opened.map_err(|error| NetworkError::Socket(error.into()))?;
        if let (Some(socket), Some((key, _))) = (socket, self.runners.first()) {
            self.adopt(*key, socket);
            self.shared.lock().end.on_rebound();
        }
        Ok(is_stopping)
    }

    /// Opens these sockets, and further ones that the end requests in place of any that cannot be opened.
    fn open(&mut self, now: Instant, mut opens: Vec<(Key, SocketAddr)>) -> io::Result<()> {
        while !opens.is_empty() {
            for (key, server) in opens {
                match Socket::connect(server) {
                    Ok(socket) => self.adopt(key, socket),
                    Err(error) => self.fault(now, key, SocketFault::NotOpened(error))?,
                }
            }
            opens = self.shared.lock().end.step(now);
        }
        Ok(())
    }

    fn all_round(&mut self) -> io::Result<()> {
        for at in 0..self.runners.len() {
            let (key, runner) = &mut self.runners[at];
            let (key, before) = (*key, runner.stats().refused);
            let fault = match runner.round() {
                Err(error) => SocketFault::Broken(error),
                Ok(()) if runner.stats().refused > before => SocketFault::Refused,
                Ok(()) => continue,
            };
            self.fault(self.shared.clock.now(), key, fault)?;
        }
        // What was received may decide the race between addresses.
        let now = self.shared.clock.now();
        let opens = self.shared.lock().end.step(now);
        self.open(now, opens)
    }

    fn fault(&self, now: Instant, key: Key, fault: SocketFault) -> io::Result<()> {
        self.shared.lock().end.on_socket_fault(now, key, fault)
    }

    fn fail(&self, failure: NetworkError) -> Next {
        self.shared.write_traces();
        let mut state = self.shared.lock();
        state.fail(failure);
        self.shared.release(state, self.shared.clock.now());
        Next::Stop
    }
}

/// Reports to the handles that the driver ended, also by a panic or the end of a runtime: see
/// [`Shared::stopped`].
pub(crate) struct Stops<E: End>(pub(crate) Driver<E>);

impl<E: End> Drop for Stops<E> {
    fn drop(&mut self) {
        // The sockets first: a caller that waits for this may need their ports.
        self.0.runners.clear();
        let is_panic = std::thread::panicking();
        let failure = if is_panic { NetworkError::Panicked } else { NetworkError::Runtime };
        self.0.shared.stopped(failure);
    }
}
