//! The bridge to an event loop: futures of haulier that a coroutine polls, and how it hears that it should.
//!
//! ```text
//! a network thread -> Waker -> Bell: a number into a list, a byte into a pipe
//!                           -> the loop's reader -> asyncio.Future
//! ```
//!
//! The invariant: no waker touches Python, so a network thread never waits for the interpreter's lock. It
//! needs no thread: one pipe serves all that a loop awaits.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use haulier::{CloseReason, ConnectionId, Event, ServerEvent};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::classes;
use crate::failure::Outcome;
use crate::names;

/// What an awaited call gives.
pub(crate) enum Found {
    Nothing,
    Event(Event),
    Of(ConnectionId, ServerEvent),
    Closed(CloseReason),
}

impl Found {
    fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Nothing => Ok(py.None()),
            Self::Event(event) => classes::event(py, event),
            Self::Of(id, event) => pair(py, id, event),
            Self::Closed(reason) => classes::closed(py, &reason),
        }
    }
}

/// An event of a server, with whose it is.
pub(crate) fn pair(py: Python<'_>, id: ConnectionId, event: ServerEvent) -> PyResult<Py<PyAny>> {
    let event = classes::server_event(py, event)?;
    Ok((names::ConnectionId(id), event).into_pyobject(py)?.into_any().unbind())
}

type Awaited = Pin<Box<dyn Future<Output = Outcome<Found>> + Send>>;

/// A call that is awaited.
#[pyclass(module = "haulier._haulier", frozen)]
pub(crate) struct Operation(Mutex<Awaited>);

impl Operation {
    pub(crate) fn new(future: impl Future<Output = Outcome<Found>> + Send + 'static) -> Self {
        Self(Mutex::new(Box::pin(future)))
    }
}

#[pymethods]
impl Operation {
    /// Whether it is done: its result in a tuple of one, or None, and then `number` is rung when it should
    /// be polled again.
    fn poll<'py>(
        &self,
        py: Python<'py>,
        wakeups: &Wakeups,
        number: u64,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let waker = Waker::from(Arc::new(Ring { bell: Arc::clone(&wakeups.bell), number }));
        let polled = py.detach(|| {
            let mut future = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            future.as_mut().poll(&mut Context::from_waker(&waker))
        });
        match polled {
            Poll::Pending => Ok(None),
            Poll::Ready(found) => {
                let found = found?.into_python(py)?;
                PyTuple::new(py, [found]).map(Some)
            }
        }
    }
}

/// What a loop awaits, each under a number, and the end of a pipe that says that one of them goes on.
#[pyclass(module = "haulier._haulier", frozen)]
pub(crate) struct Wakeups {
    bell: Arc<Bell>,
    reader: UnixStream,
}

#[pymethods]
impl Wakeups {
    #[new]
    fn new() -> Outcome<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Self { bell: Arc::new(Bell { rung: Mutex::default(), writer }), reader })
    }

    /// What a loop watches for reading.
    fn fileno(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    /// The numbers that were rung.
    fn take(&self) -> Vec<u64> {
        // First the pipe: what is rung after that has written again.
        let mut bytes = [0; 64];
        loop {
            match (&self.reader).read(&mut bytes) {
                Ok(0) => break,
                Err(error) if error.kind() != ErrorKind::Interrupted => break,
                _ => {}
            }
        }
        std::mem::take(&mut *self.bell.rung.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct Bell {
    rung: Mutex<Vec<u64>>,
    writer: UnixStream,
}

struct Ring {
    bell: Arc<Bell>,
    number: u64,
}

impl Wake for Ring {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut rung = self.bell.rung.lock().unwrap_or_else(PoisonError::into_inner);
        rung.push(self.number);
        let is_first = rung.len() == 1;
        drop(rung);
        if is_first {
            // One byte for a whole list: the pipe is never full, and a loop that is gone reads nothing.
            let _gone = (&self.bell.writer).write(&[0]);
        }
    }
}
