//! The rounds of a client or server: whoever calls it, a thread, a task or the application.
//!
//! There is a runner for each socket: one, but for a client that asks several addresses of its server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use haulier_core::Instant;
use haulier_udp::{Interest, Runner, Socket};

use super::LONG;
use super::error::NetworkError;
use super::race::Key;
use super::shared::{End, Part, Shared, Trouble};

/// Rounds after the last handle is gone, if the goodbyes of a large server fill several.
const LAST_ROUNDS: usize = 20;

/// Whether there will be another round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goes {
    On,
    /// Nobody needs it any more, or it failed.
    Over,
}

pub(crate) struct Driver<E: End> {
    pub(crate) shared: Arc<Shared<E>>,
    runners: Vec<(Key, Runner<Part<E>>)>,
}

impl<E: End> Driver<E> {
    /// A driver whose sockets will be opened as the end wants them.
    pub(crate) const fn new(shared: Arc<Shared<E>>) -> Self {
        Self { shared, runners: Vec::new() }
    }

    /// Goes on with this socket, in the place of the one of that key or as a new one.
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

    /// Receives, acts and sends, on all sockets. Never waits. A failure is for the handles to report.
    pub(crate) fn round(&mut self) -> Goes {
        let rounds = match self.begin() {
            Ok(true) => LAST_ROUNDS,
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
        let now = self.shared.clock.now();
        self.shared.release(self.shared.lock(), now);
        if rounds == 1 { Goes::On } else { Goes::Over }
    }

    /// Sends what the application has said since the last round.
    pub(crate) fn transmit(&mut self) -> Goes {
        for (_, runner) in &mut self.runners {
            if let Err(error) = runner.transmit() {
                return self.fail(NetworkError::Socket(error.into()));
            }
        }
        Goes::On
    }

    /// How long there is nothing to do unless a socket or a handle says so.
    pub(crate) fn pause(&self) -> Duration {
        let until = self.shared.lock().begin_sleep();
        let clock = &self.shared.clock;
        let pause = until.map_or(LONG, |until| clock.until(until).min(LONG));
        self.runners.iter().fold(pause, |pause, (_, runner)| runner.pause(pause))
    }

    /// What to wait for meanwhile.
    pub(crate) fn interests(&self) -> Vec<Interest<'_>> {
        self.runners.iter().map(|(_, runner)| runner.interest()).collect()
    }

    /// Follows what was asked of it. Returns whether to stop.
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

    /// Opens these sockets, and those that are wanted in the place of one that cannot be.
    fn open(&mut self, now: Instant, mut opens: Vec<(Key, SocketAddr)>) -> io::Result<()> {
        while !opens.is_empty() {
            for (key, server) in opens {
                match Socket::connect(server) {
                    Ok(socket) => self.adopt(key, socket),
                    Err(error) => self.trouble(now, key, Trouble::NotOpened(error))?,
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
            let trouble = match runner.round() {
                Err(error) => Trouble::Broken(error),
                Ok(()) if runner.stats().refused > before => Trouble::Refused,
                Ok(()) => continue,
            };
            self.trouble(self.shared.clock.now(), key, trouble)?;
        }
        // What has come may decide which of them goes on.
        let now = self.shared.clock.now();
        let opens = self.shared.lock().end.step(now);
        self.open(now, opens)
    }

    fn trouble(&self, now: Instant, key: Key, trouble: Trouble) -> io::Result<()> {
        self.shared.lock().end.on_trouble(now, key, trouble)
    }

    fn fail(&self, failure: NetworkError) -> Goes {
        let mut state = self.shared.lock();
        state.fail(failure);
        self.shared.release(state, self.shared.clock.now());
        Goes::Over
    }
}

/// Whatever ends a driver, also a panic or the end of a runtime, the handles hear of it: see
/// [`Shared::stopped`].
pub(crate) struct Stops<E: End>(pub(crate) Driver<E>);

impl<E: End> Drop for Stops<E> {
    fn drop(&mut self) {
        // The sockets first: whoever waits for this may want their ports.
        self.0.runners.clear();
        let is_panic = std::thread::panicking();
        let failure = if is_panic { NetworkError::Panicked } else { NetworkError::Runtime };
        self.0.shared.stopped(failure);
    }
}
