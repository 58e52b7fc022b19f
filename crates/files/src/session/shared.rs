//! What takes long to compute, once for all that want it: the recipe of a file, or its root.
//!
//! The first slice is done at once: it is enough for most files. The others wait behind urgent jobs, and the
//! computation is cancelled when no session waits for it. So a client that asks for much does not delay
//! the others, and a thousand that ask for the same cost as much as one.
//!
//! The invariant: each ticket is answered once; at most one computation runs; and what failed is not tried
//! again before [`REMEMBERED`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Ticket;
use crate::pool::PoolHandle;
use crate::reason::Fault;

/// Bytes of a file that one slice reads: 8 MiB are hashed in 6 ms, and cut in 16.
pub(super) const SLICE_BYTES: u64 = 8 << 20;

/// How long a failure stands for the next that asks: a disk that cannot be read, or a file that is too long.
/// Then the disk may be well again.
const REMEMBERED: Duration = Duration::from_secs(60);

/// A result that is computed once.
pub(super) struct Shared<T>(Mutex<State<T>>);

struct State<T> {
    known: Option<T>,
    failed: Option<(Fault, Instant)>,
    waiting: Vec<Ticket<T>>,
    is_running: bool,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        let (known, failed, waiting, is_running) = (None, None, Vec::new(), false);
        Self(Mutex::new(State { known, failed, waiting, is_running }))
    }
}

impl<T> std::fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state();
        write!(f, "known: {}, {} wait", state.known.is_some(), state.waiting.len())
    }
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone + Send + 'static> Shared<T> {
    /// What it is, if it is known.
    pub(super) fn known(&self) -> Option<T> {
        self.state().known.clone()
    }

    /// It was found in another way.
    pub(super) fn learn(&self, known: T) {
        let is_running = self.state().is_running;
        self.conclude(Ok(known), is_running);
    }

    /// Answers this ticket: at once if the answer is known, else when it is computed. `slice` does a part of
    /// the computation, and returns the result with the last one.
    pub(super) fn want(
        this: &Arc<Self>,
        pool: &PoolHandle,
        ticket: Ticket<T>,
        slice: impl FnMut() -> Option<Result<T, Fault>> + Send + 'static,
    ) {
        let mut state = this.state();
        let failed = state.failed.as_ref().filter(|(_, at)| at.elapsed() < REMEMBERED);
        let known = failed.map(|(fault, _)| Err(fault.clone()));
        if let Some(known) = known.or_else(|| state.known.clone().map(Ok)) {
            drop(state);
            return ticket.answer(known);
        }
        state.waiting.push(ticket);
        if std::mem::replace(&mut state.is_running, true) {
            return;
        }
        drop(state);
        let mut running = Running { shared: Arc::clone(this), slice, is_over: false };
        let rest = pool.clone();
        pool.run(move || {
            if running.go_on() {
                rest.run_in_slices(move || running.go_on());
            }
        });
    }

    fn conclude(&self, result: Result<T, Fault>, is_running: bool) {
        let mut state = self.state();
        state.is_running = is_running;
        match &result {
            Ok(known) => (state.known, state.failed) = (Some(known.clone()), None),
            Err(_) if state.known.is_some() => {}
            Err(fault) => state.failed = Some((fault.clone(), Instant::now())),
        }
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for ticket in waiting {
            ticket.answer(result.clone());
        }
    }
}

/// A computation under way. If it is dropped before its end, because it panicked or its pool has ended,
/// another one may begin, and the waiting tickets are answered with an error.
struct Running<T, S> {
    shared: Arc<Shared<T>>,
    slice: S,
    is_over: bool,
}

impl<T: Clone + Send + 'static, S: FnMut() -> Option<Result<T, Fault>>> Running<T, S> {
    /// Does a slice, if anybody still waits; whether there is another one to do.
    fn go_on(&mut self) -> bool {
        let mut state = self.shared.state();
        let (waiting, gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.waiting).into_iter().partition(Ticket::is_wanted);
        let is_wanted = !waiting.is_empty();
        state.waiting = waiting;
        // Under the same lock: a ticket that comes after this begins a new computation.
        state.is_running = is_wanted;
        self.is_over = !is_wanted;
        drop(state);
        drop(gone);
        if !is_wanted {
            return false;
        }
        match (self.slice)() {
            None => true,
            Some(result) => {
                self.is_over = true;
                self.shared.conclude(result, false);
                false
            }
        }
    }
}

impl<T, S> Drop for Running<T, S> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.shared.state();
        state.is_running = false;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::pool::{DiskPool, Wake};
    use crate::reason::Reason;
    use crate::session::Jobs;

    type Slice = Box<dyn FnMut() -> Option<Result<u32, Fault>> + Send>;

    /// Ten slices, which are counted; each waits for a word.
    fn slices(count: &Arc<AtomicU32>, end: Result<u32, Reason>) -> (Sender<()>, Slice) {
        let (go, wait) = channel::<()>();
        let count = Arc::clone(count);
        let slice = move || {
            wait.recv().unwrap();
            let done = count.fetch_add(1, Ordering::SeqCst) + 1;
            done.is_multiple_of(10).then(|| end.map_err(Fault::from))
        };
        (go, Box::new(slice))
    }

    fn want(shared: &Arc<Shared<u32>>, jobs: &mut Jobs<Result<u32, Fault>>, slice: Slice) {
        let ticket = jobs.ticket(|result| result);
        let pool = jobs.pool.clone();
        Shared::want(shared, &pool, ticket, slice);
    }

    fn answer(jobs: &mut Jobs<Result<u32, Fault>>) -> Result<u32, Fault> {
        std::iter::repeat_with(|| jobs.take()).find_map(|answer| answer).unwrap()
    }

    fn nothing() -> Slice {
        Box::new(|| panic!("it was computed twice"))
    }

    #[test]
    fn all_that_want_it_share_one_computation() {
        let (shared, count) = (Arc::new(Shared::default()), Arc::default());
        let pool = DiskPool::new(2, Wake::default()).unwrap();
        let mut clients = [(); 4].map(|()| Jobs::new(pool.handle()));
        let (go, slice) = slices(&count, Ok(7));
        want(&shared, &mut clients[0], slice);
        clients[1..].iter_mut().for_each(|client| want(&shared, client, nothing()));
        (0..10).for_each(|_| go.send(()).unwrap());
        for client in &mut clients {
            assert_eq!(answer(client), Ok(7));
            want(&shared, client, nothing());
            assert_eq!(client.take(), Some(Ok(7)));
        }
        assert_eq!(count.load(Ordering::SeqCst), 10);
    }

    #[test]
    fn what_failed_is_not_tried_again_at_once() {
        let (shared, count) = (Arc::new(Shared::default()), Arc::default());
        let pool = DiskPool::new(1, Wake::default()).unwrap();
        let mut jobs = Jobs::new(pool.handle());
        let (go, slice) = slices(&count, Err(Reason::Unreadable));
        (0..10).for_each(|_| go.send(()).unwrap());
        want(&shared, &mut jobs, slice);
        assert_eq!(answer(&mut jobs), Err(Reason::Unreadable.into()));
        want(&shared, &mut jobs, nothing());
        assert_eq!(jobs.take(), Some(Err(Reason::Unreadable.into())));
    }

    /// The last one that waited is gone: it ends. One that comes then begins anew.
    #[test]
    fn what_nobody_waits_for_is_given_up() {
        let (shared, count) = (Arc::new(Shared::default()), Arc::default());
        let pool = DiskPool::new(1, Wake::default()).unwrap();
        let mut jobs = Jobs::new(pool.handle());
        let (go, slice) = slices(&count, Ok(7));
        want(&shared, &mut jobs, slice);
        (0..3).for_each(|_| go.send(()).unwrap());
        while count.load(Ordering::SeqCst) < 3 {
            std::thread::yield_now();
        }
        drop(jobs);
        // The slice that has begun is the last one, if it had.
        let _gone = go.send(());
        let mut jobs = Jobs::new(pool.handle());
        while shared.state().is_running {
            std::thread::yield_now();
        }
        assert!(count.load(Ordering::SeqCst) <= 4);
        count.store(0, Ordering::SeqCst);
        let (go, slice) = slices(&count, Ok(8));
        (0..10).for_each(|_| go.send(()).unwrap());
        want(&shared, &mut jobs, slice);
        assert_eq!(answer(&mut jobs), Ok(8));
    }

    /// A computation that panics leaves nobody waiting, and the next one begins.
    #[test]
    fn a_panic_is_an_answer() {
        let (shared, count) = (Arc::new(Shared::default()), Arc::default());
        let pool = DiskPool::new(1, Wake::default()).unwrap();
        let mut jobs = Jobs::new(pool.handle());
        want(&shared, &mut jobs, nothing());
        assert!(answer(&mut jobs).is_err());
        let (go, slice) = slices(&count, Ok(9));
        (0..10).for_each(|_| go.send(()).unwrap());
        want(&shared, &mut jobs, slice);
        assert_eq!(answer(&mut jobs), Ok(9));
    }
}
