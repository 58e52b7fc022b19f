//! A machine that a driver and any number of handles share: the lock, who waits for what, and who wakes whom.
//!
//! Nobody blocks, waits or calls the system while holding the lock. The driver takes it for one call of the
//! machine at a time ([`Part`]); a handle takes it for one operation ([`Shared::act`]). The invariant:
//! whoever changes something that another waits for wakes it, after the lock is released.

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::ThreadId;
use std::time::Duration;
use std::{io, mem};

use haulier_core::time::earliest;
use haulier_core::{Batch, FourTuple, Instant, Machine};
use haulier_udp::{BufferSizes, Clock, Socket};

use super::error::NetworkError;
use super::race::Key;

/// What a driver drives and a handle speaks to: a client or a server.
pub(crate) trait End: Send + 'static {
    /// What goes on one socket.
    type Machine: Machine;
    type Event: Send;

    /// The name of its network thread, up to 15 bytes.
    const THREAD: &'static str;

    /// The machine on the socket of that key; `None` if there is none any more.
    fn machine(&mut self, key: Key) -> Option<&mut Self::Machine>;

    /// Acts on what the machines have done. Returns the sockets to open: their keys, and to where.
    fn step(&mut self, now: Instant) -> Vec<(Key, SocketAddr)>;

    /// Something about a socket. An error ends everything.
    fn on_trouble(&mut self, now: Instant, key: Key, trouble: Trouble) -> io::Result<()>;

    /// When [`step`](Self::step) is due.
    fn step_timeout(&self) -> Option<Instant>;

    /// When something is due at one of the machines.
    fn machine_timeout(&self) -> Option<Instant>;

    fn poll_event(&mut self, now: Instant) -> Option<Self::Event>;

    /// Whether there will be no events any more, once those that wait are taken.
    fn is_over(&self) -> bool;

    /// Its machine is on another socket now.
    fn on_rebound(&mut self);

    /// The last handle is gone: says goodbye, if there is anybody to say it to.
    fn leave(&mut self, now: Instant);

    /// The first round is over: time for what is needed later.
    fn prepare();
}

/// What a driver has found out about a socket.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Nobody listens at the other end.
    Refused,
    /// It could not be opened.
    NotOpened(io::Error),
    /// It broke.
    Broken(io::Error),
}

pub(crate) struct Shared<E: End> {
    state: Mutex<State<E>>,
    changed: Condvar,
    pub(crate) clock: Clock,
}

pub(crate) struct State<E: End> {
    pub(crate) end: E,
    /// Taken out of the machine for somebody who waits.
    next_event: Option<E::Event>,
    /// Threads that wait for a change, and tasks.
    sleepers: usize,
    wakers: Vec<Waker>,
    /// Somebody waits for more than events: every round is a change.
    is_finishing: bool,
    /// A change at this time.
    alarm: Option<Instant>,
    /// Ends the driver's sleep.
    driver: Waker,
    plan: Plan,
    /// Orders to the driver: to go on with this socket, and to stop.
    pub(crate) new_socket: Option<Socket>,
    pub(crate) is_stopping: bool,
    /// The driver is gone, and its sockets are closed.
    is_stopped: bool,
    pub(crate) driver_thread: Option<ThreadId>,
    failure: Option<NetworkError>,
    /// Inline: events of the last round are being handed out.
    pub(crate) is_draining: bool,
    /// Where the sockets are.
    pub(crate) locals: Vec<(Key, SocketAddr)>,
    /// What the system has granted the newest of them.
    pub(crate) buffers: Option<BufferSizes>,
}

/// What the driver will do next.
#[derive(Clone, Copy, PartialEq)]
enum Plan {
    /// Look at everything before it sleeps.
    Look,
    /// Sleep until then, if nobody wakes it.
    Sleep(Option<Instant>),
}

impl<E: End> Shared<E> {
    pub(crate) fn new(end: E, clock: Clock, driver: Waker) -> Self {
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
        Self { state: Mutex::new(state), changed: Condvar::new(), clock }
    }

    /// The state. If somebody panicked with it in hand, it is not to be relied on: that is the end.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(|poisoned| {
            let mut state = poisoned.into_inner();
            state.failure.get_or_insert(NetworkError::Panicked);
            state
        })
    }

    /// Does something to the machine, and sees to what follows from it. `None` if nothing drives it any more.
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut E, Instant) -> R) -> Option<R> {
        let now = self.clock.now();
        let mut state = self.lock();
        let result = state.failure.is_none().then(|| act(&mut state.end, now));
        self.release(state, now);
        result
    }

    /// Looks at the machine.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&E) -> R) -> R {
        look(&self.lock().end)
    }

    /// Gives back the lock, and wakes whoever has to know what was done under it.
    pub(crate) fn release(&self, state: MutexGuard<'_, State<E>>, now: Instant) {
        self.release_and_wait(state, now, None);
    }

    /// The same; then `waiting` is woken by the next change.
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

    /// Ends the driver's sleep in any case.
    pub(crate) fn order(&self, order: impl FnOnce(&mut State<E>)) {
        let mut state = self.lock();
        order(&mut state);
        state.plan = Plan::Look;
        let driver = state.driver.clone();
        drop(state);
        driver.wake();
    }

    /// Sleeps until something has changed.
    pub(crate) fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, State<E>>,
        max: Duration,
    ) -> MutexGuard<'a, State<E>> {
        state.sleepers += 1;
        // A poisoned lock is what the next `lock` reports.
        let slept = self.changed.wait_timeout(state, max);
        let (mut state, _) = slept.unwrap_or_else(PoisonError::into_inner);
        state.sleepers -= 1;
        state
    }

    /// Wakes the threads that sleep.
    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// The driver is gone; by this failure, unless there was another, or it was asked to.
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

    /// Whether it is over, for good or ill; once all events were taken.
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

    /// From now on every round is a change, and that time is one.
    pub(crate) fn watch(&mut self, until: Instant) {
        self.is_finishing = true;
        self.alarm = earliest(self.alarm, Some(until));
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn set_driver(&mut self, waker: &Waker) {
        self.driver.clone_from(waker);
    }

    /// The driver begins a round.
    pub(crate) const fn begin_round(&mut self) {
        self.plan = Plan::Look;
    }

    /// The driver is about to sleep. Returns until when, at most; the deadlines of the machines, which it has
    /// from its runners, come on top.
    pub(crate) fn begin_sleep(&mut self) -> Option<Instant> {
        if self.is_stopping || self.new_socket.is_some() {
            return Some(Instant::ZERO);
        }
        let due = earliest(self.alarm, self.end.step_timeout());
        self.plan = Plan::Sleep(earliest(due, self.end.machine_timeout()));
        due
    }

    /// Whether the driver was called since it began to sleep.
    #[cfg(feature = "tokio")]
    pub(crate) fn is_called(&self) -> bool {
        self.plan == Plan::Look
    }

    /// The driver, if it would sleep too long.
    pub(crate) fn call_driver(&mut self) -> Option<Waker> {
        let Plan::Sleep(until) = self.plan else { return None };
        let due = earliest(self.end.step_timeout(), self.end.machine_timeout())?;
        if until.is_some_and(|until| until <= due) {
            return None;
        }
        self.plan = Plan::Look;
        Some(self.driver.clone())
    }

    /// Whom to wake because of what has happened: threads or not, and these tasks.
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

    fn handle_timeout(&mut self, now: Instant) {
        self.with(|machine| machine.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        self.with(|machine| machine.poll_transmit(now, batch));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.with(|machine| machine.poll_timeout())
    }
}
