//! A server of haulier/1 with an application on each connection.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use haulier_core::time::earliest;
use haulier_core::{Batch, Ecn, FourTuple, Instant, Machine};
use haulier_proto::DropReason;
use haulier_proto::connection::{Block, Connection, Event};
use haulier_proto::server::{ConnectionId, ServerConfig, ServerEvent, ServerMachine};

use super::{AmplificationMeter, App, Script};
use crate::oracle::Watch;
use crate::{Host, Rng};

/// The Unix time at the start of every simulation: 2026-11-21.
pub const UNIX_TIME: u64 = 1_795_219_200;

/// Bytes of an application whose connection is closed: what it received, to be looked at by the test.
const PAST_BYTES: u64 = 64 << 10;

/// Makes the application for a client from its request.
type Accept<A> = Box<dyn FnMut(Instant, &Bytes) -> A>;

/// A server.
pub struct ServerHost<A = Script> {
    /// The server.
    pub server: ServerMachine,
    /// What it sent to addresses that are not validated.
    pub meter: AmplificationMeter,
    /// Applications of open connections.
    pub apps: BTreeMap<ConnectionId, A>,
    /// Applications of closed connections, in the order of their ends.
    pub past: Vec<A>,
    /// Whether the machine's own invariants are checked too: all connections, after each step.
    pub is_checked: bool,
    /// The bounds on memory and work, if they are to be checked. A restart begins a new one.
    pub watch: Option<Watch>,
    /// What its clock is ahead of the true time. Its machine and its applications see that clock.
    pub ahead: Duration,
    /// Until then, by its clock, its applications read and send nothing.
    pub stalls_until: Instant,
    accept: Accept<A>,
    /// What applications gave connections that have ended and are not removed yet.
    closing: BTreeMap<ConnectionId, u64>,
    /// Its clock at its last deadline.
    now: Instant,
    /// Connections whose application may act before it receives anything.
    active: BTreeSet<ConnectionId>,
}

impl ServerHost {
    /// A server that sends this block to every client.
    #[must_use]
    pub fn giving(block: Block, config: ServerConfig, seed: u64) -> Self {
        Self::new(move |_, _| Script::idle().sending(block.clone(), 1), config, seed)
    }
}

impl<A: App> ServerHost<A> {
    /// A server that runs for each client the application that `accept` makes for its request.
    pub fn new(
        accept: impl FnMut(Instant, &Bytes) -> A + 'static,
        config: ServerConfig,
        seed: u64,
    ) -> Self {
        Self::with_seed(accept, config, Rng::stream(seed, 78).key())
    }

    /// A server like that of [`new`](Self::new), with all random choices from this seed.
    pub fn with_seed(
        accept: impl FnMut(Instant, &Bytes) -> A + 'static,
        config: ServerConfig,
        seed: [u8; 32],
    ) -> Self {
        Self {
            server: machine(Instant::ZERO, config, seed),
            meter: AmplificationMeter::default(),
            apps: BTreeMap::new(),
            past: Vec::new(),
            is_checked: false,
            watch: None,
            ahead: Duration::ZERO,
            stalls_until: Instant::ZERO,
            accept: Box::new(accept),
            closing: BTreeMap::new(),
            now: Instant::ZERO,
            active: BTreeSet::new(),
        }
    }

    /// The program crashed and restarted without its connections.
    pub fn restart(&mut self, now: Instant, config: ServerConfig, seed: [u8; 32]) {
        self.server = machine(now + self.ahead, config, seed);
        self.watch = self.watch.take().map(|_| Watch::default());
        self.meter = AmplificationMeter::default();
        self.past.extend(std::mem::take(&mut self.apps).into_values());
        self.active.clear();
        self.closing.clear();
    }

    /// The applications of all connections, open and closed.
    pub fn all_apps(&self) -> impl Iterator<Item = &A> {
        self.past.iter().chain(self.apps.values())
    }

    /// The first of its connections.
    #[must_use]
    pub fn connection(&self) -> Option<&Connection> {
        self.server.connections().next().and_then(|id| self.server.connection(id))
    }

    /// The first of its connections, to change.
    #[must_use]
    pub fn connection_mut(&mut self) -> Option<&mut Connection> {
        let id = self.server.connections().next()?;
        self.server.connection_mut(id)
    }

    fn turn(&mut self, now: Instant) {
        if now < self.stalls_until {
            return;
        }
        self.apps.values_mut().for_each(|app| app.work(now));
        self.poll_events(now);
        let was_full = self.is_full();
        self.let_act(now);
        if was_full && !self.is_full() {
            self.turn(now);
        }
    }

    /// A full application holds up the others: their events are in one queue.
    fn is_full(&self) -> bool {
        self.apps.values().any(App::is_full)
    }

    fn poll_events(&mut self, now: Instant) {
        while !self.is_full()
            && let Some((id, event)) = self.server.poll_event(now)
        {
            match event {
                ServerEvent::Connecting { request, .. } => {
                    let old = self.apps.insert(id, (self.accept)(now, &request));
                    self.past.extend(old);
                    self.active.insert(id);
                }
                ServerEvent::Connection(event) => {
                    let is_last = matches!(event, Event::Closed(_));
                    if let Some(app) = self.apps.get_mut(&id) {
                        app.hear(now, event);
                        self.active.insert(id);
                    }
                    if is_last {
                        let own_bytes = self.apps.get(&id).map_or(0, App::own_bytes);
                        self.closing.insert(id, own_bytes);
                        self.past.extend(self.apps.remove(&id));
                    }
                }
                _ => {}
            }
        }
    }

    fn let_act(&mut self, now: Instant) {
        let Self { active, apps, server, .. } = self;
        active.retain(|&id| {
            let Some(app) = apps.get_mut(&id) else { return false };
            // `connection_mut` wakes the connection.
            if app.is_due(now)
                && server.connection(id).is_some_and(|connection| connection.state().is_open())
                && let Some(connection) = server.connection_mut(id)
            {
                app.act(now, connection);
            }
            app.wakes_at().is_some()
        });
    }
}

impl<A: App> ServerHost<A> {
    /// Makes a call under the meter, if there is one.
    fn watched<R>(&mut self, act: impl FnOnce(&mut Self) -> R) -> R {
        let Some(mut watch) = self.watch.take() else { return act(self) };
        let outcome = watch.around(|| act(self));
        self.watch = Some(watch);
        outcome
    }

    fn judge(&mut self) {
        self.closing.retain(|&id, _| self.server.connection(id).is_some());
        let own_bytes = self.past.len() as u64 * PAST_BYTES
            + self.closing.values().sum::<u64>()
            + self.apps.values().map(App::own_bytes).sum::<u64>();
        if let Some(watch) = &mut self.watch {
            watch.judge(&self.server, own_bytes);
        }
    }
}

fn machine(now: Instant, config: ServerConfig, seed: [u8; 32]) -> ServerMachine {
    let unix_time = UNIX_TIME + now.since(Instant::ZERO).as_secs();
    ServerMachine::new(now, unix_time, config, seed).expect("a configuration that works")
}

impl<A: App> Machine for ServerHost<A> {
    fn handle_datagram(&mut self, now: Instant, path: FourTuple, datagram: &mut [u8]) {
        self.handle_marked_datagram(now, path, Ecn::NotEct, datagram);
    }

    fn handle_marked_datagram(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Ecn,
        datagram: &mut [u8],
    ) {
        let now = now + self.ahead;
        let (bytes, head) = (datagram.len(), datagram[..datagram.len().min(32)].to_vec());
        let taken = self.watched(|host| {
            let outcome = host.server.handle_marked_datagram(now, path, ecn, datagram);
            host.turn(now);
            // A datagram whose contents were not kept for lack of room is verified, and proves the address.
            matches!(outcome, Ok(()) | Err(DropReason::NotKept))
        });
        if let Some(watch) = &mut self.watch {
            watch.on_received(bytes);
        }
        self.judge();
        self.meter.on_received(path.remote, &head, bytes, taken);
    }

    fn handle_timeout(&mut self, now: Instant) {
        let now = now + self.ahead;
        self.now = now;
        self.watched(|host| {
            host.server.handle_timeout(now);
            host.turn(now);
        });
        self.judge();
    }

    fn poll_transmit(&mut self, now: Instant, batch: &mut Batch) {
        let (now, before) = (now + self.ahead, batch.len());
        self.watched(|host| host.server.poll_transmit(now, batch));
        if let Some(watch) = &mut self.watch {
            watch.on_sent(batch, before);
        }
        for (to, datagram) in batch.iter().skip(before) {
            self.meter.on_sent(to.remote, datagram.len());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let apps = self.active.iter().filter_map(|id| Some((id, self.apps.get(id)?)));
        let is_open = |id| self.server.connection(id).is_some_and(|it| it.state().is_open());
        let apps = apps.map(|(id, app)| match is_open(*id) {
            true => app.wakes_at(),
            false => app.works_at().filter(|_| app.is_full()),
        });
        let apps = apps.map(|at| at.map(|at| at.max(self.stalls_until)));
        let stall = Some(self.stalls_until).filter(|&at| at > self.now);
        let at = apps.fold(earliest(self.server.poll_timeout(), stall), earliest)?;
        Some(Instant::ZERO + at.since(Instant::ZERO + self.ahead))
    }
}

impl<A: App> Host for ServerHost<A> {
    fn check_invariants(&self) {
        self.meter.check();
        if self.is_checked {
            self.server.check_invariants();
        }
    }
}
