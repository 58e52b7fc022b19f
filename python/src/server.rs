//! `haulier.Server`.

use std::sync::atomic::{AtomicBool, Ordering};

use haulier::{
    CloseCode, EarlierTokens, FinishError, Identity, Listen, Secret, ServerConfig,
    ServerCredentials,
};
use pyo3::prelude::*;

use crate::bytes::{Block, Data, thirty_two};
use crate::classes::{self, fields};
use crate::client::{LAST_WORDS, order};
use crate::config::{self, Settings, options};
use crate::credentials::{Ticket, TokenKey, addresses, resolve};
use crate::failure::{Failure, Outcome};
use crate::names::{BlockHandle, BlockNumber, ConnectionId};
use crate::operation::{Found, Operation, pair};
use crate::released::Released;
use crate::waiting::{Limit, block_on, duration, wait_in_slices};

/// A server of a game and all its clients, at one address.
///
/// It is a handle: network threads do the work. Several threads or tasks may use it; each event goes to one
/// of them. A `with` ends by `finish`; when it is forgotten, all its connections are closed.
#[pyclass(module = "haulier", frozen)]
pub(crate) struct Server {
    server: Released<haulier::Server>,
    is_called: AtomicBool,
}

/// Whom a server lets in.
pub(crate) struct Access {
    pub(crate) secret: Option<Data>,
    pub(crate) open: bool,
    pub(crate) token_keys: Vec<haulier::TokenKey>,
    pub(crate) identity: Option<Data>,
}

impl Access {
    /// A new secret if nothing else is asked for: the safe thing is what needs no words.
    pub(crate) fn credentials(self) -> Outcome<ServerCredentials> {
        let mut credentials = ServerCredentials::default();
        credentials.secret = match &self.secret {
            Some(secret) => Some(Secret::from_bytes(thirty_two(secret, "a secret")?)),
            None if self.open || !self.token_keys.is_empty() => None,
            None => Some(haulier::random_secret()?),
        };
        credentials.open = self.open;
        credentials.token_keys = self.token_keys;
        if let Some(identity) = &self.identity {
            let private = Secret::from_bytes(thirty_two(identity, "an identity")?);
            credentials.identity = Some(Identity::new(private));
        }
        Ok(credentials)
    }
}

/// The keys of these objects.
pub(crate) fn keys(token_keys: Vec<PyRef<'_, TokenKey>>) -> Vec<haulier::TokenKey> {
    token_keys.iter().map(|key| key.0.clone()).collect()
}

/// The ticket to a server at these addresses, or at its own.
pub(crate) fn ticket(server: &haulier::Server, at: Option<Vec<String>>) -> Outcome<Ticket> {
    let at = at.map_or_else(|| Ok(vec![server.local_addr()]), |at| addresses(&at))?;
    let ticket = server.ticket(&at).map_err(Failure::usage)?;
    ticket.map(Ticket).ok_or_else(|| Failure::usage("it has no ticket: it accepts only tokens"))
}

impl Server {
    fn get(&self) -> &haulier::Server {
        self.server.get()
    }

    fn next(&self) -> Operation {
        let server = self.get().clone();
        Operation::new(async move {
            let next = server.next_event().await?;
            Ok(next.map_or(Found::Nothing, |(id, event)| Found::Of(id, event)))
        })
    }
}

#[pymethods]
impl Server {
    /// Listens at an address, and starts. With port 0 the system chooses one.
    ///
    /// Clients with the `secret` are let in, or with a token of one of the `token_keys`, or with `open`
    /// all, without encryption; with none of these there is a new secret, which is in the `ticket`. The
    /// private `identity` proves the server to clients. `addresses` are those of a router in front of it,
    /// with which tokens are compared; `earlier_tokens` accepts those issued before the start. `connections`
    /// is the maximum number of clients, by default as many as 1 GiB holds; `max_uplink_bps` limits the rate
    /// to all clients together, by default without a limit. `workers` is the number of threads: more than 1
    /// only on Linux.
    /// The `first_block` goes to each client with the answer to its request, however late the program looks;
    /// a client that accepts only smaller blocks is closed.
    #[staticmethod]
    #[pyo3(signature = (local, protocol_id, *, secret=None, open=false, token_keys=Vec::new(), identity=None,
        addresses=Vec::new(), earlier_tokens=false, connections=None, max_uplink_bps=None, workers=1,
        first_block=None, config=None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn bind(
        py: Python<'_>,
        local: &str,
        protocol_id: u64,
        secret: Option<Data>,
        open: bool,
        token_keys: Vec<PyRef<'_, TokenKey>>,
        identity: Option<Data>,
        addresses: Vec<String>,
        earlier_tokens: bool,
        connections: Option<usize>,
        max_uplink_bps: Option<u64>,
        workers: usize,
        first_block: Option<PyRef<'_, Block>>,
        config: Option<Settings>,
    ) -> PyResult<Self> {
        let access = Access { secret, open, token_keys: keys(token_keys), identity };
        let mut settings = ServerConfig::new(protocol_id, access.credentials()?)
            .with_addresses(crate::credentials::addresses(&addresses)?)
            .with_first_block(first_block.map(|block| block.0.clone()))
            .with_connection(config::connection(config)?);
        if earlier_tokens {
            settings.earlier_tokens = EarlierTokens::Accepted;
        }
        settings.limits.connections = connections.unwrap_or(settings.limits.connections);
        settings.max_uplink_bps = max_uplink_bps.unwrap_or(settings.max_uplink_bps);
        let server = py.detach(|| {
            let locals = resolve(local)?;
            let listen = Listen::bind(locals.as_slice())
                .map_err(|error| Failure::io(format!("cannot listen at {local}: {error}")))?;
            listen.workers(workers).start(settings).map_err(Failure::from)
        })?;
        Ok(Self { server: Released::new(server), is_called: AtomicBool::new(false) })
    }

    /// A ticket to it, which clients reach at these addresses, or at its own; `UsageError` if it
    /// accepts only tokens.
    #[pyo3(signature = (addresses=None))]
    fn ticket(&self, addresses: Option<Vec<String>>) -> Outcome<Ticket> {
        ticket(self.get(), addresses)
    }

    /// The next event and its client, without waiting; None if no event is ready.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let event = self.get().poll().map_err(Failure::from)?;
        event.map(|(id, event)| pair(py, id, event)).transpose()
    }

    /// The next event, and of which client; None if none came in that time, after a `wake`, and when it is
    /// shut down.
    #[pyo3(signature = (timeout_s=None))]
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Option<Py<PyAny>>> {
        let server = self.get();
        let is_over = || self.is_called.swap(false, Ordering::AcqRel) || server.is_shut_down();
        let event = wait_in_slices(py, Limit::new(timeout_s)?, is_over, |slice| {
            server.wait(slice).map_err(Failure::from)
        })?;
        event.map(|(id, event)| pair(py, id, event)).transpose()
    }

    /// Ends a `wait` without an event: the one under way, or else the next. From any thread.
    fn wake(&self) {
        self.is_called.store(true, Ordering::Release);
        self.get().waker().wake();
    }

    /// The next event, awaited; None when it is shut down. It may be cancelled, and loses no event.
    fn next_event<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        classes::run(py)?.call1((self.next(),))
    }

    /// Its events, waited for, until it is shut down.
    const fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let event = block_on(py, Limit::new(None)?, self.get().next_event())?;
        let event = event.transpose().map_err(Failure::from)?.flatten();
        event.map(|(id, event)| pair(py, id, event)).transpose()
    }

    /// Its events, awaited, until it is shut down.
    const fn __aiter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        classes::run_next(py)?.call1((self.next(),))
    }

    /// Sends a packet of the moment of up to 256 KiB, once. Returns its sequence, which wraps at
    /// 65,536 (`is_newer`); an event says whether it arrived.
    fn send_packet(&self, id: &ConnectionId, data: Data) -> Outcome<u16> {
        Ok(self.get().send_packet(id.0, data.0)?.get())
    }

    /// Sends a message of up to 64 KiB on a channel: it arrives, once. Returns its number there.
    #[pyo3(signature = (id, data, *, channel=0, ordered=true))]
    fn send_message(
        &self,
        id: &ConnectionId,
        data: Data,
        channel: u8,
        ordered: bool,
    ) -> Outcome<u64> {
        Ok(self.get().send_message_on(id.0, channel, order(ordered), data.0)?)
    }

    /// Sends a block of any size, from `ServerEvent.Connecting` on. Those with a higher priority go first;
    /// of one priority, the weight is the share.
    #[pyo3(signature = (id, block, *, priority=0, weight=0, urgency=None))]
    fn send_block(
        &self,
        id: &ConnectionId,
        block: &Block,
        priority: u8,
        weight: u16,
        urgency: Option<&str>,
    ) -> Outcome<BlockHandle> {
        let options = options(priority, weight, urgency)?;
        Ok(BlockHandle(self.get().send_block_with(id.0, &block.0, options)?))
    }

    /// Cancels a block, and sends the code to the client. True if it was waiting or being sent.
    #[pyo3(signature = (id, handle, code=0))]
    fn cancel_block(&self, id: &ConnectionId, handle: &BlockHandle, code: u32) -> bool {
        self.get().cancel_block(id.0, handle.0, code)
    }

    /// Does not want the rest of a block that was announced. Whether it was being received.
    #[pyo3(signature = (id, block, code=0))]
    fn decline_block(&self, id: &ConnectionId, block: &BlockNumber, code: u32) -> bool {
        self.get().decline_block(id.0, block.0, code)
    }

    /// Closes a connection, with a reason of up to 255 bytes for the client. To refuse a client, close at
    /// `ServerEvent.Connecting` with `CloseCode.NOT_ACCEPTED` or a code of the program's own.
    #[pyo3(signature = (id, code=0, reason=""))]
    fn close(&self, id: &ConnectionId, code: u32, reason: &str) {
        self.get().close(id.0, CloseCode(code), reason);
    }

    /// Starts to close all connections; iterations end when that is done.
    fn shut_down(&self) {
        self.get().shut_down();
    }

    /// Shuts down, and waits until every close is sent. Events in that time are dropped.
    #[pyo3(signature = (timeout_s=5.0))]
    fn finish(&self, py: Python<'_>, timeout_s: f64) -> PyResult<()> {
        let finish = self.get().clone().finish_async(duration(timeout_s)?);
        let Some(finished) = block_on(py, Limit::new(None)?, finish)? else { unreachable!() };
        Ok(finished.map_err(Failure::from)?)
    }

    /// `finish`, to be awaited.
    #[pyo3(signature = (timeout_s=5.0))]
    fn finish_async<'py>(&self, py: Python<'py>, timeout_s: f64) -> PyResult<Bound<'py, PyAny>> {
        let finish = self.get().clone().finish_async(duration(timeout_s)?);
        let operation = Operation::new(async move {
            finish.await?;
            Ok(Found::Nothing)
        });
        classes::run(py)?.call1((operation,))
    }

    /// Itself.
    const fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Finishes, for 5 s at most; after an error it only starts to. A client that has vanished answers no
    /// close, and that is no error of the program's.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<Py<PyAny>>,
        _error: Option<Py<PyAny>>,
        _traceback: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        if kind.is_some() || self.get().is_shut_down() {
            self.get().shut_down();
            return Ok(());
        }
        let finish = self.get().clone().finish_async(LAST_WORDS);
        let Some(finished) = block_on(py, Limit::new(None)?, finish)? else { unreachable!() };
        match finished {
            Err(FinishError::TimedOut) => Ok(()),
            finished => Ok(finished.map_err(Failure::from)?),
        }
    }

    /// Whether it was shut down, and no connection is left.
    #[getter]
    fn is_shut_down(&self) -> bool {
        self.get().is_shut_down()
    }

    /// The address it listens at.
    #[getter]
    fn local_addr(&self) -> String {
        self.get().local_addr().to_string()
    }

    /// The number of its threads.
    #[getter]
    fn workers(&self) -> usize {
        self.get().workers()
    }

    /// All connections, those in their handshake included.
    fn connections(&self) -> Vec<ConnectionId> {
        self.get().connections().into_iter().map(ConnectionId).collect()
    }

    /// The address of a client; None if it is gone.
    fn address_of(&self, id: &ConnectionId) -> Option<String> {
        self.get().with_connection(id.0, |connection| connection.address().to_string())
    }

    /// Whether every block and message sent to a client is acknowledged.
    fn all_acked(&self, id: &ConnectionId) -> bool {
        self.get().with_connection(id.0, |connection| connection.all_acked()).unwrap_or(true)
    }

    /// The state of a connection; None if it is gone.
    fn state(&self, id: &ConnectionId) -> Option<String> {
        self.get().state(id.0).map(|state| format!("{state:?}").to_lowercase())
    }

    /// The progress of the block that is being sent to a client.
    fn sending(&self, py: Python<'_>, id: &ConnectionId) -> PyResult<Option<Py<PyAny>>> {
        classes::progress(py, self.get().sending(id.0))
    }

    /// The progress of the block that is being received from a client.
    fn receiving(&self, py: Python<'_>, id: &ConnectionId) -> PyResult<Option<Py<PyAny>>> {
        classes::progress(py, self.get().receiving(id.0))
    }

    /// The counters of a connection; None if it is gone.
    fn connection_stats(&self, py: Python<'_>, id: &ConnectionId) -> PyResult<Option<Py<PyAny>>> {
        classes::stats(py, self.get().connection_stats(id.0))
    }

    /// Limits the rate of a connection's blocks, in bit/s.
    fn set_max_rate_bps(&self, id: &ConnectionId, rate_bps: u64) {
        self.get().set_max_rate_bps(id.0, rate_bps);
    }

    /// Changes how much a connection's blocks may take of the link: "load-screen" or "during-play".
    fn set_urgency(&self, id: &ConnectionId, urgency: &str) -> Outcome<()> {
        self.get().set_urgency(id.0, config::urgency(urgency)?);
        Ok(())
    }

    /// The counters of the server.
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let stats = self.get().stats();
        let fields = fields! { py, stats;
            connections handshakes lingering memory_bytes in_line remembered requests accepted closed
            refused resets closes_repeated strays strays_dropped datagrams_received bytes_received
            datagrams_sent bytes_sent;
        };
        Ok(classes::server_stats(py)?.call((), Some(&fields))?.unbind())
    }

    fn __repr__(&self) -> String {
        format!("<Server at {}>", self.get().local_addr())
    }
}
