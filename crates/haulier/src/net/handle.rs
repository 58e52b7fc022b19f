//! The common part of `Client` and `Server`: polling, waiting and awaiting, with any driver.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant as StdInstant};

use haulier_core::Instant;
use haulier_udp::{Clock, Socket, WakeUp, wait};

use super::driver::{Driver, Next};
use super::error::NetworkError;
use super::shared::{End, Shared, State};
use super::{LONG, NOWHERE};

/// How long dropping the last handle waits for the network thread, which has a round to finish at most.
const STOP: Duration = Duration::from_secs(1);

/// The way in which the driver is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Drive {
    #[default]
    Thread,
    Inline,
    #[cfg(feature = "tokio")]
    Tokio,
}

/// Why the driver did not start.
pub(crate) enum StartError {
    Io(std::io::Error),
    #[cfg(feature = "tokio")]
    NoRuntime,
}

/// Stops the driver when it is dropped.
pub(crate) struct Handle<E: End> {
    pub(crate) shared: Arc<Shared<E>>,
    inline: Option<(Mutex<Driver<E>>, Arc<WakeUp>)>,
    drive: Drive,
}

impl<E: End> Handle<E> {
    /// Starts a driver of `end`, on this socket and those that the end opens.
    pub(crate) fn start(
        end: E,
        clock: Clock,
        socket: Option<Socket>,
        drive: Drive,
    ) -> Result<Self, StartError> {
        let wake_up = Arc::new(WakeUp::new().map_err(StartError::Io)?);
        let shared = Arc::new(Shared::new(end, clock, Waker::from(Arc::clone(&wake_up))));
        let mut driver = Driver::new(Arc::clone(&shared));
        match socket {
            Some(socket) => driver.adopt(0, socket),
            // The first socket is opened here, so that a missing route is reported at once.
            None => drop(driver.begin()),
        }
        let mut inline = None;
        match drive {
            Drive::Thread => super::thread::spawn(driver, wake_up).map_err(StartError::Io)?,
            Drive::Inline => inline = Some((Mutex::new(driver), wake_up)),
            #[cfg(feature = "tokio")]
            Drive::Tokio if super::on_tokio::spawn(driver) => {}
            #[cfg(feature = "tokio")]
            Drive::Tokio => return Err(StartError::NoRuntime),
        }
        Ok(Self { shared, inline, drive })
    }

    /// The next event, without waiting. Inline, the first of a sequence of calls runs a round, and the call
    /// that finds no event sends what was queued in between.
    pub(crate) fn poll(&self) -> Result<Option<E::Event>, NetworkError> {
        if self.inline.is_some() && !self.shared.lock().is_draining {
            self.drive_inline(Driver::round);
        }
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        let event = state.take_event(now);
        let end = state.end();
        state.is_draining = event.is_some();
        self.shared.release(state, now);
        if event.is_some() {
            return Ok(event);
        }
        self.drive_inline(Driver::transmit);
        end.map_or(Ok(None), |end| end.map(|()| None))
    }

    /// The next event; waits for it up to `max`, or until the application's waker is used.
    pub(crate) fn wait(&self, max: Duration) -> Result<Option<E::Event>, NetworkError> {
        let shared = &self.shared;
        // The wake first: under a load of events its turn would never come.
        let found = self.wait_for(max, |state, now| match shared.take_call() {
            true => Some(None),
            false => state.take_event(now).map(Some),
        })?;
        Ok(found.flatten())
    }

    /// Ends a `wait`.
    pub(crate) fn waker(&self) -> Waker {
        let wake_up = self.inline.as_ref().map(|(_, wake_up)| Arc::clone(wake_up));
        Waker::from(Arc::new(Call { shared: Arc::downgrade(&self.shared), wake_up }))
    }

    /// Waits until `check` returns a value, up to `max` or until the end.
    pub(crate) fn wait_for<T>(
        &self,
        max: Duration,
        mut check: impl FnMut(&mut State<E>, Instant) -> Option<T>,
    ) -> Result<Option<T>, NetworkError> {
        let until = StdInstant::now().checked_add(max);
        self.drive_inline(Driver::round);
        loop {
            let now = self.shared.clock.now();
            let mut state = self.shared.lock();
            let found = check(&mut state, now);
            let end = state.end();
            let left = until.map_or(LONG, |at| at.saturating_duration_since(StdInstant::now()));
            if found.is_some() || end.is_some() || left.is_zero() {
                self.shared.release(state, now);
                self.drive_inline(Driver::transmit);
                return match (found, end) {
                    (None, Some(Err(failure))) => Err(failure),
                    (found, _) => Ok(found),
                };
            }
            // `check` may have changed the machine's deadline.
            if let Some(driver) = state.call_driver() {
                drop(state);
                driver.wake();
                continue;
            }
            self.sleep(state, left.min(LONG));
        }
    }

    /// As [`wait_for`](Self::wait_for), awaited. Dropping the future loses nothing.
    pub(crate) async fn when<T>(
        &self,
        mut check: impl FnMut(&mut State<E>, Instant) -> Option<T>,
    ) -> Result<Option<T>, NetworkError> {
        if self.inline.is_some() {
            return Err(NetworkError::Inline);
        }
        poll_fn(|context| self.poll_when(context.waker(), &mut check)).await
    }

    /// One look of [`when`](Self::when): if there is nothing yet, `waker` is used when there may be.
    pub(crate) fn poll_when<T>(
        &self,
        waker: &Waker,
        check: &mut impl FnMut(&mut State<E>, Instant) -> Option<T>,
    ) -> Poll<Result<Option<T>, NetworkError>> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        let found = check(&mut state, now);
        let end = state.end();
        let is_pending = found.is_none() && end.is_none();
        self.shared.release_and_wait(state, now, is_pending.then_some(waker));
        match (found, end) {
            (None, None) => Poll::Pending,
            (None, Some(Err(failure))) => Poll::Ready(Err(failure)),
            (found, _) => Poll::Ready(Ok(found)),
        }
    }

    /// Closes all connections, and lets the driver stop: what dropping it begins with.
    pub(crate) fn begin_stop(&self) {
        self.shared.order(|state| {
            state.end.leave(self.shared.clock.now());
            state.is_stopping = true;
        });
    }

    /// The local address of its socket; of the newest if it has several.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        let State { end, locals, .. } = &mut *self.shared.lock();
        let used = locals.iter().rev().find(|(key, _)| end.machine(*key).is_some());
        used.or(locals.last()).map_or(NOWHERE, |(_, local)| *local)
    }

    /// Moves to a new socket.
    pub(crate) fn rebind(&self, socket: Socket) {
        self.shared.order(|state| {
            state.locals.iter_mut().for_each(|(_, local)| *local = socket.local_addr());
            state.new_socket = Some(socket);
        });
        self.drive_inline(Driver::round);
    }

    /// Sleeps until something may have changed, up to `max`.
    fn sleep(&self, state: MutexGuard<'_, State<E>>, max: Duration) {
        if let Some((driver, wake_up)) = &self.inline
            && let Ok(mut driver) = driver.try_lock()
        {
            drop(state);
            let pause = driver.pause().min(max);
            let waited = wait(&driver.interests(), Some(wake_up), pause);
            if let Err(error) = waited {
                self.shared.lock().fail(NetworkError::Socket(error.into()));
            }
            driver.round();
            drop(driver);
            // Another thread may wait for its turn to drive.
            return self.shared.notify();
        }
        drop(self.shared.sleep(state, max));
    }

    /// Inline: calls the driver, unless another thread is driving.
    fn drive_inline(&self, call: impl FnOnce(&mut Driver<E>) -> Next) {
        let Some((driver, _)) = &self.inline else { return };
        match driver.try_lock() {
            Ok(mut driver) => drop(call(&mut driver)),
            Err(TryLockError::Poisoned(_)) => self.shared.lock().fail(NetworkError::Panicked),
            Err(TryLockError::WouldBlock) => {}
        }
    }
}

/// Ends a `wait` of the application, from any thread.
struct Call<E: End> {
    shared: Weak<Shared<E>>,
    /// Inline, the thread that waits sleeps for the sockets.
    wake_up: Option<Arc<WakeUp>>,
}

impl<E: End> Wake for Call<E> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.shared.upgrade().is_some_and(|shared| shared.call())
            && let Some(wake_up) = &self.wake_up
        {
            wake_up.notify();
        }
    }
}

impl<E: End> Drop for Handle<E> {
    fn drop(&mut self) {
        self.begin_stop();
        self.drive_inline(Driver::round);
        let until = StdInstant::now() + STOP;
        let mut state = self.shared.lock();
        // A task on this thread could not stop while it waits here, and the network thread cannot wait for
        // itself: a waker may drop the last handle.
        let is_own = state.driver_thread == Some(thread::current().id());
        while self.drive == Drive::Thread && !is_own && !state.is_stopped() {
            let left = until.saturating_duration_since(StdInstant::now());
            if left.is_zero() {
                return;
            }
            state = self.shared.sleep(state, left);
        }
    }
}

#[cfg(test)]
mod tests;
