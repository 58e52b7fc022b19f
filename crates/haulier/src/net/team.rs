//! The workers of a server as one: their events in turn, and the waits for all of them.
//!
//! Each worker has its lock, its driver and its thread, as a client has. With one worker every call here is
//! that worker's own. The invariant: a caller that waits for all is registered with each worker before it
//! sleeps, so no event of any of them is missed.

use std::cell::OnceCell;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant as StdInstant};

use haulier_proto::server::{ConnectionId, ServerEvent};
use haulier_udp::{Clock, Socket};

use super::LONG;
use super::error::NetworkError;
use super::handle::{Drive, Handle, StartError};
use super::serving::{Common, Serving};
use super::shared::State;

type Next = Result<Option<(ConnectionId, ServerEvent)>, NetworkError>;

/// The workers of a server.
pub(crate) struct Team {
    handles: Vec<Handle<Serving>>,
    pub(crate) common: Arc<Common>,
    /// The worker whose events are looked at first next time.
    turn: AtomicUsize,
    call: Arc<Call>,
}

/// The application's wish that a wait for all ends.
#[derive(Default)]
struct Call {
    is_called: AtomicBool,
    /// Threads that wait.
    waiting: Mutex<Vec<Waker>>,
}

impl Team {
    /// Starts the driver of each worker on its socket.
    pub(crate) fn start(
        servings: Vec<Serving>,
        common: Arc<Common>,
        clock: Clock,
        sockets: Vec<Socket>,
        drive: Drive,
    ) -> Result<Self, StartError> {
        let starts = servings.into_iter().zip(sockets);
        let handles =
            starts.map(|(serving, socket)| Handle::start(serving, clock, Some(socket), drive));
        let handles = handles.collect::<Result<Vec<_>, _>>()?;
        for (number, handle) in handles.iter().enumerate() {
            common.set_waker(number, handle.shared.lock().driver());
        }
        Ok(Self { handles, common, turn: AtomicUsize::new(0), call: Arc::default() })
    }

    /// The handle of each worker.
    pub(crate) fn handles(&self) -> &[Handle<Serving>] {
        &self.handles
    }

    /// The handle of the worker that has this connection.
    pub(crate) fn of(&self, id: ConnectionId) -> Option<&Handle<Serving>> {
        self.handles.get(id.worker())
    }

    /// The handle of one worker, or those of all, beginning with the worker whose turn is next.
    fn in_turn(&self, only: Option<usize>) -> impl Iterator<Item = &Handle<Serving>> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let (first, count) = match only {
            Some(number) => (number, 1),
            None => (turn % self.handles.len(), self.handles.len()),
        };
        self.handles.iter().cycle().skip(first).take(count)
    }

    fn alone(&self, only: Option<usize>) -> Option<&Handle<Serving>> {
        match (only, self.handles.as_slice()) {
            (Some(number), handles) => handles.get(number),
            (None, [handle]) => Some(handle),
            (None, _) => None,
        }
    }

    pub(crate) fn poll(&self, only: Option<usize>) -> Next {
        let mut failure = None;
        for handle in self.in_turn(only) {
            match handle.poll() {
                Ok(None) => {}
                Ok(event) => return Ok(event),
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(None), Err)
    }

    pub(crate) fn wait(&self, only: Option<usize>, max: Duration) -> Next {
        if let Some(handle) = self.alone(only) {
            return handle.wait(max);
        }
        let until = StdInstant::now().checked_add(max);
        let waker = own_waker();
        loop {
            self.call.register(&waker);
            if self.call.is_called.swap(false, Ordering::AcqRel) {
                return Ok(None);
            }
            if let Poll::Ready(next) = self.poll_next(&waker) {
                return next;
            }
            let left = until.map_or(LONG, |at| at.saturating_duration_since(StdInstant::now()));
            if left.is_zero() {
                return Ok(None);
            }
            thread::park_timeout(left.min(LONG));
        }
    }

    pub(crate) async fn next_event(&self, only: Option<usize>) -> Next {
        if let Some(handle) = self.alone(only) {
            return handle.when(State::take_event).await;
        }
        std::future::poll_fn(|context| self.poll_next(context.waker())).await
    }

    /// The next event of all; `None` once all have ended. Otherwise each uses the waker.
    fn poll_next(&self, waker: &Waker) -> Poll<Next> {
        let mut are_over = true;
        let mut failure = None;
        for handle in self.in_turn(None) {
            match handle.poll_when(waker, &mut State::take_event) {
                Poll::Pending => are_over = false,
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Ok(event)) => return Poll::Ready(Ok(event)),
                Poll::Ready(Err(error)) => failure = Some(error),
            }
        }
        match failure {
            Some(failure) => Poll::Ready(Err(failure)),
            None if are_over => Poll::Ready(Ok(None)),
            None => Poll::Pending,
        }
    }

    /// Ends a `wait`.
    pub(crate) fn waker(&self, only: Option<usize>) -> Waker {
        match self.alone(only) {
            Some(handle) => handle.waker(),
            None => Waker::from(Arc::new(Caller(Arc::downgrade(&self.call)))),
        }
    }
}

/// All of them stop at the same time; then each is waited for.
impl Drop for Team {
    fn drop(&mut self) {
        if self.handles.len() > 1 {
            self.handles.iter().for_each(Handle::begin_stop);
        }
    }
}

impl Call {
    fn register(&self, waker: &Waker) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }
}

/// The application's waker.
struct Caller(Weak<Call>);

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let Some(call) = self.0.upgrade() else { return };
        call.is_called.store(true, Ordering::Release);
        let waiting = mem::take(&mut *call.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// Ends the sleep of a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The waker of this thread: always the same, so that it is registered once, however often the thread waits.
fn own_waker() -> Waker {
    thread_local!(static OWN: OnceCell<Waker> = const { OnceCell::new() });
    let make = || Waker::from(Arc::new(Unpark(thread::current())));
    OWN.with(|own| own.get_or_init(make).clone())
}
