//! `haulier.Client`.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{io, thread};

use haulier::{CloseCode, Connect, Credentials, Order, Secret};
use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle};

use crate::bytes::{Block, Data, thirty_two};
use crate::classes;
use crate::config::{self, Settings, options};
use crate::credentials::{ConnectToken, Ticket, resolve};
use crate::failure::{Failure, Outcome};
use crate::names::{BlockHandle, BlockNumber};
use crate::operation::{Found, Operation};
use crate::released::Released;
use crate::waiting::{Limit, block_on, duration, wait_in_slices};

/// What a client connects to.
#[derive(FromPyObject)]
enum To<'py> {
    Text(String),
    Ticket(PyRef<'py, Ticket>),
    Token(PyRef<'py, ConnectToken>),
}

/// A client of a game, and its connection to a server.
///
/// It is a handle: a network thread does the work. Several threads or tasks may use it; each event goes to
/// one of them. A `with` ends by `finish`; a client that is forgotten closes its connection at once.
#[pyclass(module = "haulier", frozen)]
pub(crate) struct Client {
    client: Released<haulier::Client>,
    /// A wait is to end.
    is_called: AtomicBool,
}

impl Client {
    fn get(&self) -> &haulier::Client {
        self.client.get()
    }
}

#[pymethods]
impl Client {
    /// Starts to connect, and returns at once: `connected` waits for it.
    ///
    /// `to` is a ticket or a connect token, or HOST:PORT, and then `protocol_id` and either `secret` (32
    /// bytes, with the server's public `identity` if it has one) or `open=True` are needed. `request` is
    /// what the program asks for: up to 400 bytes, which may be replayed and are not secret. `servers` are
    /// addresses for a token that names no server. `copies` of the request go out at once, 4 by default. It
    /// waits in a line for at most 10 minutes. With `shared_thread` one thread drives all such clients, in
    /// place of one for each: for load tests with hundreds; waits have a precision of 1 ms then.
    #[staticmethod]
    #[pyo3(signature = (to, *, protocol_id=None, secret=None, identity=None, open=false, request=None,
        servers=None, copies=None, max_time_in_line_s=None, config=None, shared_thread=false))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn connect(
        py: Python<'_>,
        to: To<'_>,
        protocol_id: Option<u64>,
        secret: Option<Data>,
        identity: Option<Data>,
        open: bool,
        request: Option<Data>,
        servers: Option<Vec<String>>,
        copies: Option<u8>,
        max_time_in_line_s: Option<f64>,
        config: Option<Settings>,
        shared_thread: bool,
    ) -> PyResult<Self> {
        let by_hand = ByHand { protocol_id, secret, identity, open };
        let mut connect = match to {
            To::Ticket(ticket) => by_hand.refused().map(|()| Connect::from(&ticket.0))?,
            To::Token(token) => by_hand.refused().map(|()| Connect::from(&token.0))?,
            To::Text(text) if by_hand.is_any() => py.detach(|| by_hand.connect(&text))?,
            To::Text(text) => ticket_in(&text)?,
        };
        if let Some(servers) = servers {
            connect.servers = crate::credentials::addresses(&servers)?;
        }
        connect.request = request.map_or_else(Vec::new, |request| request.0.to_vec());
        connect.copies = copies.unwrap_or(connect.copies);
        if let Some(seconds) = max_time_in_line_s {
            connect.max_time_in_line = duration(seconds)?;
        }
        connect.connection = config::connection(config)?;
        let client = py.detach(|| match shared_thread {
            true => {
                let _runtime = shared_runtime()?.enter();
                haulier::Client::connect(connect.on_tokio()).map_err(Failure::from)
            }
            false => haulier::Client::connect(connect).map_err(Failure::from),
        })?;
        Ok(Self { client: Released::new(client), is_called: AtomicBool::new(false) })
    }

    /// Waits until there is a connection, or raises the reason why it failed. It takes no event.
    #[pyo3(signature = (timeout_s=None))]
    fn connected(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<()> {
        match block_on(py, Limit::new(timeout_s)?, self.get().connected())? {
            Some(connected) => Ok(connected.map_err(Failure::from)?),
            None => Err(Failure::timeout("not connected in that time: it goes on").into()),
        }
    }

    /// `connected`, to be awaited.
    fn connected_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let client = self.get().clone();
        let operation = Operation::new(async move {
            client.connected().await?;
            Ok(Found::Nothing)
        });
        classes::run(py)?.call1((operation,))
    }

    /// The next event, without waiting; None if no event is ready.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let event = self.get().poll().map_err(Failure::from)?;
        event.map(|event| classes::event(py, event)).transpose()
    }

    /// The next event; None if none came in that time, after a `wake`, and after the end.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Option<Py<PyAny>>> {
        let client = self.get();
        let is_over = || self.is_called.swap(false, Ordering::AcqRel) || client.is_closed();
        let event = wait_in_slices(py, Limit::new(timeout_s)?, is_over, |slice| {
            client.wait(slice).map_err(Failure::from)
        })?;
        event.map(|event| classes::event(py, event)).transpose()
    }

    /// Ends a `wait` without an event: the one under way, or else the next. From any thread.
    fn wake(&self) {
        self.is_called.store(true, Ordering::Release);
        self.get().waker().wake();
    }

    /// The next event, awaited; None after the end. It may be cancelled, and loses no event.
    fn next_event<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        classes::run(py)?.call1((self.next(),))
    }

    /// Its events, waited for, until it is closed.
    const fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let client = self.get();
        let event = block_on(py, Limit::new(None)?, client.next_event())?;
        let event = event.transpose().map_err(Failure::from)?.flatten();
        event.map(|event| classes::event(py, event)).transpose()
    }

    /// Its events, awaited, until it is closed.
    const fn __aiter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        classes::run_next(py)?.call1((self.next(),))
    }

    /// Sends a packet of the moment of up to 256 KiB, once. Returns its sequence, which wraps at
    /// 65,536 (`is_newer`); an event says whether it arrived.
    fn send_packet(&self, data: Data) -> Outcome<u16> {
        Ok(self.get().send_packet(data.0)?.get())
    }

    /// Sends a message of up to 64 KiB on a channel: it arrives, once. Returns its number there.
    #[pyo3(signature = (data, *, channel=0, ordered=true))]
    fn send_message(&self, data: Data, channel: u8, ordered: bool) -> Outcome<u64> {
        Ok(self.get().send_message_on(channel, order(ordered), data.0)?)
    }

    /// Sends a block of any size. Those with a higher priority go first; of one priority, the weight is the
    /// share. `urgency` is as in `ConnectionConfig`.
    #[pyo3(signature = (block, *, priority=0, weight=0, urgency=None))]
    fn send_block(
        &self,
        block: &Block,
        priority: u8,
        weight: u16,
        urgency: Option<&str>,
    ) -> Outcome<BlockHandle> {
        let options = options(priority, weight, urgency)?;
        Ok(BlockHandle(self.get().send_block_with(&block.0, options)?))
    }

    /// Cancels a block, and sends the code to the server. True if it was waiting or being sent.
    #[pyo3(signature = (handle, code=0))]
    fn cancel_block(&self, handle: &BlockHandle, code: u32) -> bool {
        self.get().cancel_block(handle.0, code)
    }

    /// Does not want the rest of a block that was announced. Whether it was being received.
    #[pyo3(signature = (block, code=0))]
    fn decline_block(&self, block: &BlockNumber, code: u32) -> bool {
        self.get().decline_block(block.0, code)
    }

    /// The program has the block with this BLAKE3: when it is announced, `Event.BlockHere` takes its place.
    /// Whether it is remembered: at most 64 are.
    fn have_block(&self, digest: Data) -> Outcome<bool> {
        Ok(self.get().have_block(thirty_two(&digest, "a digest")?))
    }

    /// Pauses a block. Whether it is on its way.
    fn pause_block(&self, handle: &BlockHandle) -> bool {
        self.get().pause_block(handle.0)
    }

    /// Goes on with a block that was paused. Whether it is on its way.
    fn resume_block(&self, handle: &BlockHandle) -> bool {
        self.get().resume_block(handle.0)
    }

    /// Says which bytes of a block go first. Whether it is on its way.
    fn prefer_range(&self, handle: &BlockHandle, begin_bytes: u64, end_bytes: u64) -> bool {
        self.get().prefer_range(handle.0, Range { start: begin_bytes, end: end_bytes })
    }

    /// Changes the priority of a block. Whether it is on its way.
    fn set_block_priority(&self, handle: &BlockHandle, priority: u8) -> bool {
        self.get().set_block_priority(handle.0, priority)
    }

    /// Limits the rate of its blocks, in bit/s.
    fn set_max_rate_bps(&self, rate_bps: u64) {
        self.get().set_max_rate_bps(rate_bps);
    }

    /// Changes how much blocks may take of the link: "load-screen" or "during-play".
    fn set_urgency(&self, urgency: &str) -> Outcome<()> {
        self.get().set_urgency(config::urgency(urgency)?);
        Ok(())
    }

    /// Closes the connection, with a reason of up to 255 bytes for the server. What was not acknowledged
    /// may be lost.
    #[pyo3(signature = (code=0, reason=""))]
    fn close(&self, code: u32, reason: &str) {
        self.get().close(CloseCode(code), reason);
    }

    /// Waits until all blocks and messages sent are acknowledged, and closes. Events in that time are
    /// dropped. Returns how the connection ended; `TimeoutError` if it was not done in time.
    #[pyo3(signature = (timeout_s=5.0))]
    fn finish(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Py<PyAny>> {
        let finish = self.get().clone().finish_async(duration(timeout_s)?);
        let Some(reason) = block_on(py, Limit::new(None)?, finish)? else { unreachable!() };
        classes::closed(py, &reason.map_err(Failure::from)?)
    }

    /// `finish`, to be awaited.
    #[pyo3(signature = (timeout_s=5.0))]
    fn finish_async<'py>(&self, py: Python<'py>, timeout_s: f64) -> PyResult<Bound<'py, PyAny>> {
        let finish = self.get().clone().finish_async(duration(timeout_s)?);
        let operation = Operation::new(async move { Ok(Found::Closed(finish.await?)) });
        classes::run(py)?.call1((operation,))
    }

    /// Itself.
    const fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Finishes within 5 s; after an error it closes at once.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Py<PyAny>>,
        _error: Option<Py<PyAny>>,
        _traceback: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        if self.get().is_closed() {
            return Ok(());
        }
        if kind.is_some() {
            self.get().close(CloseCode::DONE, "");
            return Ok(());
        }
        self.finish(py, LAST_WORDS.as_secs_f64()).map(drop)
    }

    /// Whether every block and message that was sent is acknowledged.
    #[getter]
    fn all_acked(&self) -> bool {
        self.get().all_acked()
    }

    /// Whether the connection is closed, and the close was sent: there will be no more events.
    #[getter]
    fn is_closed(&self) -> bool {
        self.get().is_closed()
    }

    /// The state of the connection: "confirming", "connected", "closing", "closed"; None before the server
    /// has answered.
    #[getter]
    fn state(&self) -> Option<String> {
        self.get().state().map(|state| format!("{state:?}").to_lowercase())
    }

    /// The server's address; one of several while connecting.
    #[getter]
    fn server(&self) -> String {
        self.get().server().to_string()
    }

    /// The address of its socket.
    #[getter]
    fn local_addr(&self) -> String {
        self.get().local_addr().to_string()
    }

    /// All addresses that were tried, each with its outcome.
    #[getter]
    fn attempts(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let class = classes::attempt(py)?;
        let attempts = self.get().attempts().into_iter().map(|attempt| {
            let kind = attempt.error.as_ref().map(|error| error.kind().name());
            let error = attempt.error.as_ref().map(ToString::to_string);
            Ok(class.call1((attempt.server.to_string(), kind, error))?.unbind())
        });
        attempts.collect()
    }

    /// Bytes of all datagrams, the handshake included.
    #[getter]
    fn wire_bytes(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let bytes = self.get().wire_bytes();
        Ok(classes::wire_bytes(py)?.call1((bytes.received, bytes.sent))?.unbind())
    }

    /// What to do if the system gives its socket too little memory; None if it does not.
    #[getter]
    fn buffer_warning(&self) -> Option<String> {
        self.get().buffer_warning()
    }

    /// The progress of the block that is being sent.
    fn sending(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        classes::progress(py, self.get().sending())
    }

    /// The progress of the block that is being received.
    fn receiving(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        classes::progress(py, self.get().receiving())
    }

    /// The counters of the connection; None before there is one.
    fn stats(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        classes::stats(py, self.get().stats())
    }

    /// Moves to a new socket, when the network has changed. The connection goes on.
    fn rebind(&self, py: Python<'_>) -> Outcome<()> {
        Ok(py.detach(|| self.get().rebind())?)
    }

    fn __repr__(&self) -> String {
        let state = self.state().unwrap_or_else(|| "connecting".to_owned());
        format!("<Client to {}, {state}>", self.server())
    }
}

impl Client {
    fn next(&self) -> Operation {
        let client = self.get().clone();
        Operation::new(async move {
            Ok(client.next_event().await?.map_or(Found::Nothing, Found::Event))
        })
    }
}

/// The maximum wait at the end of a `with` for data in flight.
pub(crate) const LAST_WORDS: Duration = Duration::from_secs(5);

/// A message's order.
pub(crate) const fn order(ordered: bool) -> Order {
    if ordered { Order::Ordered } else { Order::Unordered }
}

/// What a ticket or a token in a text leads to.
fn ticket_in(text: &str) -> Outcome<Connect> {
    let is_address = |text: &str| match text.rsplit_once(':') {
        Some((host, port)) => port.parse::<u16>().is_ok() && !host.starts_with("haulier"),
        None => false,
    };
    Connect::try_from(text).map_err(|error| match is_address(text.trim()) {
        true => Failure::usage(format!(
            "{text} is an address: give its protocol_id, and its secret or open=True, too; or the server's \
             ticket in its place"
        )),
        false => error.into(),
    })
}

/// What a client proves without a ticket or token.
struct ByHand {
    protocol_id: Option<u64>,
    secret: Option<Data>,
    identity: Option<Data>,
    open: bool,
}

impl ByHand {
    const fn is_any(&self) -> bool {
        self.protocol_id.is_some() || self.secret.is_some() || self.identity.is_some() || self.open
    }

    /// A ticket and a token have all of it.
    fn refused(&self) -> Outcome<()> {
        let what = "a ticket or a token has the protocol_id and the secret: give those with HOST:PORT alone";
        if self.is_any() { Err(Failure::usage(what)) } else { Ok(()) }
    }

    fn connect(self, server: &str) -> Outcome<Connect> {
        let Some(protocol_id) = self.protocol_id else {
            return Err(Failure::usage("the protocol_id is missing: the server's"));
        };
        let identity = self.identity.map(|it| thirty_two(&it, "an identity")).transpose()?;
        let credentials = match (self.secret, self.open) {
            (Some(secret), false) => {
                let secret = Secret::from_bytes(thirty_two(&secret, "a secret")?);
                Credentials::Secret { secret, identity }
            }
            (None, true) => Credentials::Open,
            _ => return Err(Failure::usage("either the server's secret, or open=True, is needed")),
        };
        let servers = resolve(server)?;
        let [first, ..] = servers.as_slice() else {
            return Err(Failure::io(format!("{server} has no address")));
        };
        Ok(Connect::new(*first, protocol_id, credentials).with_servers(servers))
    }
}

/// The one thread that drives all clients with `shared_thread=True`.
fn shared_runtime() -> io::Result<&'static Handle> {
    static RUNTIME: OnceLock<Handle> = OnceLock::new();
    if let Some(handle) = RUNTIME.get() {
        return Ok(handle);
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let thread = thread::Builder::new().name("haulier-clients".into());
    thread.spawn(move || runtime.block_on(std::future::pending::<()>()))?;
    // If two threads were first at once, one of the runtimes stays unused.
    Ok(RUNTIME.get_or_init(|| handle))
}
