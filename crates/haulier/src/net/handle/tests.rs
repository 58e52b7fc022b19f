//! Wake-ups and the end of a driver, with a fake end that each test controls.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake};

use haulier_core::{Batch, FourTuple, Machine};

use super::super::race::Key;
use super::super::shared::SocketFault;
use super::*;

/// Longer than any test may take.
const MAX: Duration = Duration::from_secs(60);

struct NoMachine;

impl Machine for NoMachine {
    fn handle_datagram(&mut self, _: Instant, _: FourTuple, _: &mut [u8]) {}
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_transmit(&mut self, _: Instant, _: &mut Batch) {}
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
}

#[derive(Default)]
struct Fake {
    due: Option<Instant>,
    events: VecDeque<u32>,
    is_over: bool,
    panics: bool,
    opens: Vec<(Key, SocketAddr)>,
}

impl End for Fake {
    type Machine = NoMachine;
    type Event = u32;

    const THREAD: &'static str = "haulier-test";

    fn machine(&mut self, _: Key) -> Option<&mut NoMachine> {
        None
    }

    fn step(&mut self, _: Instant) -> Vec<(Key, SocketAddr)> {
        assert!(!self.panics, "requested by the test");
        std::mem::take(&mut self.opens)
    }

    fn on_socket_fault(&mut self, _: Instant, _: Key, fault: SocketFault) -> io::Result<()> {
        match fault {
            SocketFault::NotOpened(error) => Err(error),
            fault => panic!("{fault:?}"),
        }
    }

    fn step_timeout(&self) -> Option<Instant> {
        None
    }

    fn machine_timeout(&self) -> Option<Instant> {
        self.due
    }

    fn poll_event(&mut self, _: Instant) -> Option<u32> {
        self.events.pop_front()
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn on_rebound(&mut self) {}

    fn leave(&mut self, _: Instant) {}
}

/// Counts how often it is woken.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Counter {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn threaded(end: Fake) -> Handle<Fake> {
    Handle::start(end, Clock::start(), None, Drive::Thread).unwrap_or_else(|_| panic!("no thread"))
}

#[test]
fn the_driver_is_woken_once_and_only_if_it_would_sleep_too_long() {
    let driver = Arc::new(Counter::default());
    let shared = Shared::new(Fake::default(), Clock::start(), Arc::clone(&driver).into());
    let due = |at| shared.act(|end, _| end.due = at);
    due(Some(Instant::ZERO));
    assert_eq!(driver.count(), 0, "it is not asleep");
    due(Some(Instant::from_millis(50)));
    assert_eq!(shared.lock().begin_sleep(), None);
    due(Some(Instant::from_millis(60)));
    assert_eq!(driver.count(), 0, "it wakes earlier");
    for _ in 0..100 {
        due(Some(Instant::from_millis(40)));
    }
    assert_eq!(driver.count(), 1);
    due(None);
    shared.lock().begin_sleep();
    due(None);
    assert_eq!(driver.count(), 1);
    shared.order(|state| state.is_stopping = true);
    assert_eq!((driver.count(), shared.lock().begin_sleep()), (2, Some(Instant::ZERO)));
}

/// Otherwise the limits on unread data would have no effect.
#[test]
fn at_most_one_event_leaves_the_machine_and_only_for_a_waiter() {
    let handle = threaded(Fake::default());
    let (task, shared) = (Arc::new(Counter::default()), &handle.shared);
    let arrive = |event| {
        shared.act(|end, _| end.events.push_back(event));
        shared.look(|end| end.events.len())
    };
    assert_eq!(arrive(1), 1);
    assert_eq!(handle.poll().unwrap(), Some(1));
    let waker = Arc::clone(&task).into();
    let mut context = Context::from_waker(&waker);
    let mut next = pin!(handle.when(State::take_event));
    assert!(next.as_mut().poll(&mut context).is_pending());
    assert_eq!((arrive(2), task.count()), (0, 1));
    assert_eq!((arrive(3), task.count()), (1, 1), "it was woken already");
    assert!(matches!(next.as_mut().poll(&mut context), Poll::Ready(Ok(Some(2)))));
    assert_eq!(handle.wait(MAX).unwrap(), Some(3));
}

/// A caller that waits for the end of a client checks after each round, and does not spin; nor does the
/// driver, when that time has passed without a caller waiting.
#[test]
fn waiting_for_more_than_events_does_not_spin() {
    let (task, driver) = (Arc::new(Counter::default()), Waker::noop().clone());
    let shared = Shared::new(Fake::default(), Clock::start(), driver);
    shared.order(|state| state.watch(Instant::from_nanos(1)));
    let waker = Waker::from(Arc::clone(&task));
    let now = Instant::from_millis(1);
    shared.release_and_wait(shared.lock(), Instant::ZERO, Some(&waker));
    assert_eq!(task.count(), 0);
    shared.release(shared.lock(), Instant::ZERO);
    assert_eq!(task.count(), 1, "a round is over");
    assert_eq!(shared.lock().begin_sleep(), Some(Instant::from_nanos(1)));
    shared.release(shared.lock(), now);
    assert_eq!(shared.lock().begin_sleep(), None);
}

#[test]
fn a_panic_of_the_network_thread_is_an_error_of_every_call() {
    let handle = threaded(Fake::default());
    handle.shared.act(|end, _| end.events.push_back(1));
    handle.shared.order(|state| state.end.panics = true);
    assert_eq!(handle.wait(MAX).unwrap(), Some(1), "queued events come first");
    let error = handle.wait(MAX).unwrap_err();
    assert!(matches!(error, NetworkError::Panicked), "{error}");
    assert!(handle.poll().is_err());
    assert_eq!(handle.shared.act(|_, _| ()), None);
    let mut context = Context::from_waker(Waker::noop());
    let next = pin!(handle.when(State::take_event)).poll(&mut context);
    assert!(matches!(next, Poll::Ready(Err(NetworkError::Panicked))));
}

#[test]
fn a_socket_that_breaks_ends_every_wait() {
    for drive in [Drive::Thread, Drive::Inline] {
        let Ok(handle) = Handle::start(Fake::default(), Clock::start(), None, drive) else {
            panic!("no thread")
        };
        // No socket may be connected to a broadcast address.
        let nowhere = SocketAddr::from(([255; 4], 9));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| handle.wait(MAX));
            handle.shared.order(|state| state.end.opens = vec![(1, nowhere)]);
            let error = waiting.join().unwrap().unwrap_err();
            assert!(matches!(error, NetworkError::Socket(_)), "{error}");
        });
        assert!(handle.poll().is_err());
    }
}

/// Each wake ends one wait, before or after it began, and no event is lost by it.
#[test]
fn a_waker_ends_a_wait_without_an_event() {
    for drive in [Drive::Thread, Drive::Inline] {
        let Ok(handle) = Handle::start(Fake::default(), Clock::start(), None, drive) else {
            panic!("no thread")
        };
        let waker = handle.waker();
        (0..3).for_each(|_| waker.wake_by_ref());
        assert_eq!(handle.wait(MAX).unwrap(), None);
        assert_eq!(handle.wait(Duration::from_millis(1)).unwrap(), None, "by its time");
        for _ in 0..100 {
            thread::scope(|scope| {
                let waiting = scope.spawn(|| handle.wait(MAX));
                waker.wake_by_ref();
                assert_eq!(waiting.join().unwrap().unwrap(), None);
            });
        }
        handle.shared.act(|end, _| end.events.push_back(7));
        waker.wake_by_ref();
        assert_eq!(handle.wait(MAX).unwrap(), None, "the wake is not starved by events");
        assert_eq!(handle.wait(MAX).unwrap(), Some(7));
        drop(handle);
        waker.wake();
    }
}

#[test]
fn the_end_wakes_every_waiting_thread() {
    let handle = threaded(Fake::default());
    thread::scope(|scope| {
        let waiting = [(); 2].map(|()| scope.spawn(|| handle.wait(MAX)));
        handle.shared.act(|end, _| end.is_over = true);
        for thread in waiting {
            assert!(matches!(thread.join().unwrap(), Ok(None)));
        }
    });
}

#[test]
fn the_last_handle_stops_its_thread() {
    let handle = threaded(Fake::default());
    let shared = Arc::clone(&handle.shared);
    drop(handle);
    assert!(shared.lock().is_stopped(), "the drop has waited for it");
}
