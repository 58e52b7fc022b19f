//! Waiting without the interpreter's lock, and with an eye on Ctrl-C.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::failure::Failure;

/// The length of a slice of a wait. Python's signal handlers run between two, so Ctrl-C ends it after one.
pub(crate) const SLICE: Duration = Duration::from_millis(100);

/// Until when, if there is a limit.
#[derive(Clone, Copy)]
pub(crate) struct Limit(Option<Instant>);

impl Limit {
    /// The limit in this number of seconds; no limit for `None`. Negative numbers and NaN are refused.
    pub(crate) fn new(seconds: Option<f64>) -> Result<Self, Failure> {
        let Some(seconds) = seconds else { return Ok(Self(None)) };
        // An instant beyond the clock's range is no limit.
        Ok(Self(Instant::now().checked_add(duration(seconds)?)))
    }

    /// How long the next slice may be; `None` if the time is over.
    pub(crate) fn slice(self) -> Option<Duration> {
        let Some(until) = self.0 else { return Some(SLICE) };
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then(|| left.min(SLICE))
    }
}

/// A length of time in seconds.
pub(crate) fn duration(seconds: f64) -> Result<Duration, Failure> {
    if seconds >= 0.0 {
        // More than `Duration::MAX` is for ever.
        return Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    Err(Failure::usage(format!("{seconds} is no length of time: give seconds, 0 or more")))
}

/// Waits for a future; `None` once the time is over.
pub(crate) fn block_on<T: Send>(
    py: Python<'_>,
    limit: Limit,
    future: impl Future<Output = T> + Send,
) -> PyResult<Option<T>> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        let slice = limit.slice();
        let polled = py.detach(|| {
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            if let (Poll::Pending, Some(slice)) = (&polled, slice) {
                thread::park_timeout(slice);
            }
            polled
        });
        match polled {
            Poll::Ready(value) => return Ok(Some(value)),
            Poll::Pending if slice.is_none() => return Ok(None),
            Poll::Pending => py.check_signals()?,
        }
    }
}

/// Calls `wait` for one slice after the other, until it returns something or `is_called` says so.
pub(crate) fn wait_in_slices<T: Send>(
    py: Python<'_>,
    limit: Limit,
    is_called: impl Fn() -> bool,
    wait: impl Fn(Duration) -> Result<Option<T>, Failure> + Sync,
) -> PyResult<Option<T>> {
    loop {
        let slice = limit.slice();
        let found = py.detach(|| wait(slice.unwrap_or_default()))?;
        if found.is_some() || slice.is_none() || is_called() {
            return Ok(found);
        }
        py.check_signals()?;
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
