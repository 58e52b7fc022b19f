//! A machine shared by a driver and any number of handles: the lock, and the wake-ups between them.
//!
//! No thread blocks, waits or calls the system while it holds the lock. The driver takes it for one call of
//! the machine at a time ([`Part`]), a handle for one operation ([`Shared::act`]). The invariant: a change
//! that another thread or task waits for wakes it, after the lock is released.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::ThreadId;
use std::time::Duration;
use std::{io, mem};

use haulier_core::time::earliest;
use haulier_core::{Batch, Ecn, FourTuple, Instant, Machine};
use haulier_proto::connection::trace::Traced;
use haulier_proto::server::ConnectionId;
use haulier_udp::{BufferSizes, Clock, Socket};

use super::error::NetworkError;
use super::gateway::Carriage;
use super::race::Key;
use super::sinks::Sinks;

/// A client or a server: used by a driver and its handles.
pub(crate) trait End: Send + 'static {
    /// The machine on one socket.
    type Machine: Machine;
    type Event: Send;

    /// The name of its network thread, up to 15 bytes.
    const THREAD: &'static str;

    /// The machine on the socket of that key; `None` if it has ended.
    fn machine(&mut self, key: Key) -> Option<&mut Self::Machine>;

    /// Handles the results of the machines. Returns the sockets to open: keys and remote addresses.
    fn step(&mut self, now: Instant) -> Vec<(Key, SocketAddr)>;

    /// A socket has a fault. An error ends the driver.
    fn on_socket_fault(&mut self, now: Instant, key: Key, trouble: SocketFault) -> io::Result<()>;

    /// When [`step`](Self::step) is due.
    fn step_timeout(&self) -> Option<Instant>;

    /// The earliest deadline of the machines.
    fn machine_timeout(&self) -> Option<Instant>;

    fn poll_event(&mut self, now: Instant) -> Option<Self::Event>;

    /// The next event of a trace, and of which connection of a server.
    fn poll_trace(&mut self) -> Option<(Option<ConnectionId>, Traced)> {
        None
    }

    /// Where traces go.
    fn sinks(&self) -> Sinks {
        Sinks::default()
    }

    /// The peers that something else than the sockets carries.
    fn carriage(&self) -> Option<Arc<Carriage>> {
        None
    }

    /// Whether there will be no more events, once those queued are read.
    fn is_over(&self) -> bool;

    /// The machine moved to another socket.
    fn on_rebound(&mut self);

    /// The last handle was dropped: closes the connections.
    fn leave(&mut self, now: Instant);

    /// Called after each round where a thread may be started: prepares on one what will be needed soon.
    fn prepare(&self) {}

    /// Whether this datagram may make a machine draw keys.
    fn wants_entropy(_datagram: &[u8]) -> bool {
        false
    }
}

/// A fault of a socket, as the driver found it.
#[derive(Debug)]
pub(crate) enum SocketFault {
    /// The remote port is closed (ICMP).
    Refused,
    /// It could not be opened.
    NotOpened(io::Error),
    /// It no longer works.
    Broken(io::Error),
}

pub(crate) struct Shared<E: End> {
    state: Mutex<State<E>>,
    changed: Condvar,
    /// The application's waker was used, and no wait has ended by it yet.
    is_called: AtomicBool,
    pub(crate) clock: Clock,
    sinks: Sinks,
    pub(crate) carriage: Option<Arc<Carriage>>,
}

pub(crate) struct State<E: End> {
    pub(crate) end: E,
    /// An event taken from the machine for a waiting thread or task.
    next_event: Option<E::Event>,
    /// The number of threads that wait for a change, and the waiting tasks.
    sleepers: usize,
    wakers: Vec<Waker>,
    /// A caller waits for more than events: every round counts as a change.
    is_finishing: bool,
    /// This time counts as a change.
    alarm: Option<Instant>,
    /// Ends the driver's sleep.
    driver: Waker,
    plan: Plan,
    /// Requests to the driver: to use this socket, and to stop.
    pub(crate) new_socket: Option<Socket>,
    pub(crate) is_stopping: bool,
    /// The driver has ended, and its sockets are closed.
    is_stopped: bool,
    pub(crate) driver_thread: Option<ThreadId>,
    failure: Option<NetworkError>,
    /// Inline: the application is reading the events of the last round.
    pub(crate) is_draining: bool,
    /// The local addresses of the sockets.
    pub(crate) locals: Vec<(Key, SocketAddr)>,
    /// The buffer sizes of the newest of them.
    pub(crate) buffers: Option<BufferSizes>,
}

/// What the driver will do next.
#[derive(Clone, Copy, PartialEq)]
enum Plan {
    /// Run a round before it sleeps.
    Look,
    /// Sleep until then, unless it is woken.
    Sleep(Option<Instant>),
}

impl<E: End> Shared<E> {
    pub(crate) fn new(end: E, clock: Clock, driver: Waker) -> Self {
        let (sinks, carriage) = (end.sinks(), end.carriage());
        let state = State {
            end,
            next_event: None,
            sleepers: 0,
            wakers: Vec::new(),
            is_finishing: false,
            alarm: None,
            driver,
            plan: Plan::Look,
            new_socket: None,
            is_stopping: false,
            is_stopped: false,
            driver_thread: None,
            failure: None,
            is_draining: false,
            locals: Vec::new(),
            buffers: None,
        };
        let is_called = AtomicBool::new(false);
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Self { state, changed, is_called, clock, sinks, carriage }
    }

    /// Locks the state. If a thread panicked while holding the lock, the state is not reliable: the driver
    /// fails.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            state.failure.get_or_insert(NetworkError::Panicked);
            state
        })
    }

    /// Changes the machine, and wakes whatever the change concerns. `None` if the driver has ended.
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut E, Instant) -> R) -> Option<R> {
        let now = self.clock.now();
        let mut state = self.lock();
        let result = state.failure.is_none().then(|| act(&mut state.end, now));
        self.release(state, now);
        result
    }

    /// Hands what the machines have written down to the sinks, if there are any.
    pub(crate) fn write_traces(&self) {
        if !self.sinks.is_empty() {
            let mut state = self.lock();
            let taken: Vec<_> = std::iter::from_fn(|| state.end.poll_trace()).collect();
            drop(state);
            self.sinks.write(&taken);
        }
    }

    /// The next event of a trace for the application. `None` if sinks are set: the events that the driver has
    /// not yet handed to them are theirs.
    pub(crate) fn poll_trace(&self) -> Option<(Option<ConnectionId>, Traced)> {
        let mut state = self.sinks.is_empty().then(|| self.lock())?;
        state.end.poll_trace()
    }

    /// Reads the machine.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&E) -> R) -> R {
        look(&self.lock().end)
    }

    /// Releases the lock, and wakes the threads and tasks concerned by the change.
    pub(crate) fn release(&self, state: MutexGuard<'_, State<E>>, now: Instant) {
        self.release_and_wait(state, now, None);
    }

    /// Releases the lock as [`release`](Self::release) does, and registers `waiting` for the next change.
    pub(crate) fn release_and_wait(
        &self,
        mut state: MutexGuard<'_, State<E>>,
        now: Instant,
        waiting: Option<&Waker>,
    ) {
        let driver = state.call_driver();
        let (sleepers, wakers) = state.settle(now);
        if let Some(waker) = waiting
            && !state.wakers.iter().any(|known| known.will_wake(waker))
        {
            state.wakers.push(waker.clone());
        }
        drop(state);
        driver.iter().for_each(Waker::wake_by_ref);
        wakers.into_iter().for_each(Waker::wake);
        if sleepers {
            self.changed.notify_all();
        }
    }

    /// Requests something of the driver, and always wakes it.
    pub(crate) fn order(&self, order: impl FnOnce(&mut State<E>)) {
        let mut state = self.lock();
        order(&mut state);
        state.plan = Plan::Look;
        let driver = state.driver.clone();
        drop(state);
        driver.wake();
    }

    /// Sleeps until a change, up to `max`.
    pub(crate) fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, State<E>>,
        max: Duration,
    ) -> MutexGuard<'a, State<E>> {
        state.sleepers += 1;
        // The next `lock` reports a poisoned lock.
        let slept = self.changed.wait_timeout(state, max);
        let (mut state, _) = slept.unwrap_or_else(PoisonError::into_inner);
        state.sleepers -= 1;
        state
    }

    /// Wakes the threads that sleep.
    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// The application wants a wait to end. Returns whether this is the first such call since a wait was
    /// ended.
    pub(crate) fn call(&self) -> bool {
        if self.is_called.swap(true, Ordering::AcqRel) {
            return false;
        }
        // A thread that has looked before this call, and does not sleep yet, holds the lock.
        drop(self.lock());
        self.changed.notify_all();
        true
    }

    /// Whether a wait is to end for the application. It ends only one.
    pub(crate) fn take_call(&self) -> bool {
        self.is_called.swap(false, Ordering::AcqRel)
    }

    /// The driver has ended: with this failure, unless there was another one, or it was asked to stop.
    pub(crate) fn stopped(&self, failure: NetworkError) {
        let mut state = self.lock();
        state.is_stopped = true;
        if !state.is_stopping {
            state.failure.get_or_insert(failure);
        }
        let wakers = mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        self.changed.notify_all();
    }
}

impl<E: End> State<E> {
    /// The next event.
    pub(crate) fn take_event(&mut self, now: Instant) -> Option<E::Event> {
        self.next_event.take().or_else(|| self.end.poll_event(now))
    }

    /// Whether it ended, with or without a failure. Only valid once all events are read.
    pub(crate) fn end(&self) -> Option<Result<(), NetworkError>> {
        match &self.failure {
            Some(failure) => Some(Err(failure.clone())),
            None => self.end.is_over().then_some(Ok(())),
        }
    }

    pub(crate) const fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    pub(crate) fn fail(&mut self, failure: NetworkError) {
        self.failure.get_or_insert(failure);
    }

    /// From now on every round counts as a change, and so does the time `until`.
    pub(crate) fn watch(&mut self, until: Instant) {
        self.is_finishing = true;
        self.alarm = earliest(self.alarm, Some(until));
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn set_driver(&mut self, waker: &Waker) {
        self.driver.clone_from(waker);
    }

    /// What ends the driver's sleep.
    pub(crate) fn driver(&self) -> Waker {
        self.driver.clone()
    }

    /// The driver begins a round.
    pub(crate) const fn begin_round(&mut self) {
        self.plan = Plan::Look;
    }

    /// The driver is about to sleep. Returns the latest time to wake; the deadlines of the machines, which
    /// the runners return, apply in addition.
    pub(crate) fn begin_sleep(&mut self) -> Option<Instant> {
        if self.is_stopping || self.new_socket.is_some() {
            return Some(Instant::ZERO);
        }
        let due = earliest(self.alarm, self.end.step_timeout());
        self.plan = Plan::Sleep(earliest(due, self.end.machine_timeout()));
        due
    }

    /// Whether the driver was woken since it began to sleep.
    #[cfg(feature = "tokio")]
    pub(crate) fn is_called(&self) -> bool {
        self.plan == Plan::Look
    }

    /// The driver's waker, if it would sleep too long.
    pub(crate) fn call_driver(&mut self) -> Option<Waker> {
        let Plan::Sleep(until) = self.plan else { return None };
        let due = earliest(self.end.step_timeout(), self.end.machine_timeout())?;
        if until.is_some_and(|until| until <= due) {
            return None;
        }
        self.plan = Plan::Look;
        Some(self.driver.clone())
    }

    /// What to wake after a change: whether threads, and which tasks.
    fn settle(&mut self, now: Instant) -> (bool, Vec<Waker>) {
        let is_due = self.alarm.take_if(|at| *at <= now).is_some();
        if self.sleepers == 0 && self.wakers.is_empty() {
            return (false, Vec::new());
        }
        if self.next_event.is_none() {
            self.next_event = self.end.poll_event(now);
        }
        let is_any = self.next_event.is_some() || self.is_finishing || is_due;
        if !is_any && self.end().is_none() {
            return (false, Vec::new());
        }
        (self.sleepers > 0, mem::take(&mut self.wakers))
    }
}

/// Batches that one call fills while all of their datagrams are for carried peers: as many as a round sends.
const MAX_CARRIED_BATCHES: usize = 20;

/// One machine of an end, as a runner drives it.
pub(crate) struct Part<E: End> {
    pub(crate) shared: Arc<Shared<E>>,
    pub(crate) key: Key,
}

impl<E: End> Part<E> {
    fn with<R: Default>(&self, call: impl FnOnce(&mut E::Machine) -> R) -> R {
        self.shared.lock().end.machine(self.key).map_or_else(R::default, call)
    }
}

impl<E: End> Machine for Part<E> {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        self.with(|machine| machine.handle_datagram(now, path, datagram));
    }

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        self.with(|machine| machine.handle_marked_datagram(now, path, ecn, datagram));
    }

    /// With the lock taken once: 64 KiB at most, some 20 us.
    fn handle_joined_datagrams(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        bytes: usize,
        datagrams: &mut [u8],
    ) {
        self.with(|machine| machine.handle_joined_datagrams(now, path, ecn, bytes, datagrams));
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.with(|machine| machine.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        for _ in 0..MAX_CARRIED_BATCHES {
            self.with(|machine| machine.poll_transmit(now, batch));
            let was_full = batch.is_full();
            // Without the lock, for it wakes tasks.
            let carriage = self.shared.carriage.as_ref();
            let is_any_carried = carriage.is_some_and(|carriage| carriage.take_from(batch));
            if !(was_full && is_any_carried) {
                break;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.with(|machine| machine.poll_timeout())
    }

    /// Without the lock, for every datagram is asked about.
    fn wants_entropy(&self, datagram: &[u8]) -> bool {
        E::wants_entropy(datagram)
    }

    fn mix_entropy(&mut self, fresh: &[u8; 32]) {
        self.with(|machine| machine.mix_entropy(fresh));
    }
}
