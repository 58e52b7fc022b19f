//! A server's connections, and which of them has something to send, to report, or to do later.
//!
//! A server of ten thousand idle connections must not look at all of them for each datagram: those that may
//! have something to send are in one queue, those with events in another, and the deadlines of the rest are
//! sorted. The invariant: a connection is in a queue exactly if its slot says so.

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};

use slotmap::{DefaultKey, SlotMap};

use crate::Instant;
use crate::connection::Connection;
use crate::connection::trace::Traced;

use super::ConnectionId;
use super::admission::{ClientName, Prefix};
use super::memory::RequestName;

/// Datagrams that a connection may send before the next one's turn: few enough that 20 KB at most delay the
/// others, and enough for a socket that takes many per call (a GSO batch of full datagrams has 53).
const MAX_DATAGRAMS_PER_TURN: u8 = 16;

/// A connection and what the server knows about it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) connection: Box<Connection>,
    pub(super) name: RequestName,
    pub(super) prefix: Prefix,
    pub(super) sends: Sends,
    /// Counted among the handshakes in progress.
    pub(super) is_handshake: bool,
    /// It has ended as a handshake, and holds no seat.
    pub(super) is_unseated: bool,
    /// The client's name, if its token has one.
    pub(super) client: Option<ClientName>,
    /// It has ended, and its last words are kept.
    pub(super) lingers: bool,
    /// The memory it held when it was last refreshed.
    memory_bytes: usize,
    deadline: Option<Instant>,
    is_ready: bool,
    /// In the queue of those with events: until the application has read that there are no more.
    pub(super) has_events: bool,
    /// In the queue of those with a trace to take.
    has_trace: bool,
}

/// Whether a connection sends blocks, and whether others do to the same address. One byte: a server has ten
/// thousand of these that send nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sends {
    Nothing,
    Alone,
    BesideOthers,
}

/// What a connection holds, and whose it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) id: ConnectionId,
    pub(super) prefix: Prefix,
    pub(super) client: Option<ClientName>,
    pub(super) memory_bytes: usize,
}

/// All connections of a worker.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// The worker's number.
    worker: u8,
    slots: SlotMap<DefaultKey, Slot>,
    /// The sum over all slots.
    memory_bytes: usize,
    deadlines: BTreeSet<(Instant, ConnectionId)>,
    ready: VecDeque<ConnectionId>,
    /// Datagrams that the first of `ready` has sent in its turn.
    sent_in_turn: u8,
    with_events: VecDeque<ConnectionId>,
    with_trace: VecDeque<ConnectionId>,
}

impl Slots {
    pub(super) fn new(worker: u8) -> Self {
        Self { worker, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Memory that clients make the server hold, in bytes.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// What each connection holds, and whose it is.
    pub(super) fn holders(&self) -> impl Iterator<Item = Holder> + '_ {
        self.slots.iter().map(|(key, slot)| Holder {
            id: ConnectionId::new(self.worker, key),
            prefix: slot.prefix,
            client: slot.client,
            memory_bytes: slot.memory_bytes,
        })
    }

    /// Handshakes in progress.
    pub(super) fn handshakes(&self) -> usize {
        self.slots.values().filter(|slot| slot.is_handshake).count()
    }

    pub(super) fn insert(
        &mut self,
        connection: Connection,
        name: RequestName,
        (prefix, client): (Prefix, Option<ClientName>),
    ) -> ConnectionId {
        let key = self.slots.insert(Slot {
            connection: Box::new(connection),
            name,
            prefix,
            sends: Sends::Nothing,
            is_handshake: true,
            is_unseated: false,
            client,
            lingers: false,
            memory_bytes: 0,
            deadline: None,
            is_ready: false,
            has_events: false,
            has_trace: false,
        });
        ConnectionId::new(self.worker, key)
    }

    pub(super) fn remove(&mut self, id: ConnectionId) -> Option<Slot> {
        let slot = self.slots.remove(self.key(id)?)?;
        if let Some(at) = slot.deadline {
            self.deadlines.remove(&(at, id));
        }
        // The queues can be long, so they are searched only when it is in them.
        if slot.is_ready {
            if self.ready.front() == Some(&id) {
                self.sent_in_turn = 0;
            }
            self.ready.retain(|&other| other != id);
        }
        if slot.has_events {
            self.with_events.retain(|&other| other != id);
        }
        if slot.has_trace {
            self.with_trace.retain(|&other| other != id);
        }
        self.memory_bytes -= slot.memory_bytes;
        Some(slot)
    }

    pub(super) fn get(&self, id: ConnectionId) -> Option<&Slot> {
        self.slots.get(self.key(id)?)
    }

    /// The key of a connection of this worker.
    fn key(&self, id: ConnectionId) -> Option<DefaultKey> {
        (id.worker() == usize::from(self.worker)).then(|| id.key())
    }

    pub(super) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Slot> {
        let key = self.key(id)?;
        self.slots.get_mut(key)
    }

    pub(super) fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.get_mut(id).map(|slot| &mut *slot.connection)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.slots.keys().map(|key| ConnectionId::new(self.worker, key))
    }

    /// Updates what is known of a connection after anything was done to it: it may have something to send,
    /// and to report.
    pub(super) fn refresh(&mut self, id: ConnectionId) {
        let Some(key) = self.key(id) else { return };
        let Some(slot) = self.slots.get_mut(key) else { return };
        if !slot.is_ready {
            slot.is_ready = true;
            self.ready.push_back(id);
        }
        let held = slot.connection.memory_bytes();
        self.memory_bytes = self.memory_bytes - slot.memory_bytes + held;
        slot.memory_bytes = held;
        if !slot.has_events && slot.connection.has_events() {
            slot.has_events = true;
            self.with_events.push_back(id);
        }
        if !slot.has_trace && slot.connection.has_trace() {
            slot.has_trace = true;
            self.with_trace.push_back(id);
        }
    }

    /// The connection whose turn it is to send.
    pub(super) fn next_ready(&self) -> Option<ConnectionId> {
        self.ready.front().copied()
    }

    /// That connection has sent a datagram. At the end of its turn it goes to the end of the queue.
    pub(super) fn on_sent(&mut self) {
        self.sent_in_turn += 1;
        if self.sent_in_turn >= MAX_DATAGRAMS_PER_TURN {
            self.sent_in_turn = 0;
            self.ready.rotate_left(1);
        }
    }

    /// That connection has nothing more to send before its next deadline.
    pub(super) fn on_nothing_to_send(&mut self) {
        self.sent_in_turn = 0;
        let Some(id) = self.ready.pop_front() else { return };
        let Some(key) = self.key(id) else { return };
        let Some(slot) = self.slots.get_mut(key) else { return };
        slot.is_ready = false;
        // What was sent is recorded.
        let held = slot.connection.memory_bytes();
        self.memory_bytes = self.memory_bytes - slot.memory_bytes + held;
        slot.memory_bytes = held;
        // Sending can end a connection, and that is an event.
        if !slot.has_events && slot.connection.has_events() {
            slot.has_events = true;
            self.with_events.push_back(id);
        }
        if !slot.has_trace && slot.connection.has_trace() {
            slot.has_trace = true;
            self.with_trace.push_back(id);
        }
        let deadline = slot.connection.poll_timeout();
        if slot.deadline != deadline {
            if let Some(at) = slot.deadline {
                self.deadlines.remove(&(at, id));
            }
            if let Some(at) = deadline {
                self.deadlines.insert((at, id));
            }
            slot.deadline = deadline;
        }
    }

    /// The next connection whose deadline has passed. The deadline is removed.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<ConnectionId> {
        let (_, id) = self.deadlines.first().filter(|(at, _)| *at <= now).copied()?;
        self.deadlines.pop_first();
        if let Some(slot) = self.get_mut(id) {
            slot.deadline = None;
        }
        Some(id)
    }

    /// The first connection with events.
    pub(super) fn next_with_events(&self) -> Option<ConnectionId> {
        self.with_events.front().copied()
    }

    /// That connection has no more events.
    pub(super) fn on_events_read(&mut self) {
        let Some(id) = self.with_events.pop_front() else { return };
        if let Some(slot) = self.get_mut(id) {
            slot.has_events = false;
        }
    }

    /// The next event of the trace of any connection.
    pub(super) fn poll_trace(&mut self) -> Option<(ConnectionId, Traced)> {
        while let Some(&id) = self.with_trace.front() {
            let traced = self.connection_mut(id).and_then(Connection::poll_trace);
            if let Some(traced) = traced {
                return Some((id, traced));
            }
            self.with_trace.pop_front();
            if let Some(slot) = self.get_mut(id) {
                slot.has_trace = false;
            }
        }
        None
    }

    pub(super) fn is_any_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn first_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    pub(super) fn check_invariants(&self) {
        let held: usize = self.slots.values().map(|slot| slot.memory_bytes).sum();
        assert_eq!(held, self.memory_bytes, "memory held");
        for (key, slot) in &self.slots {
            let id = ConnectionId::new(self.worker, key);
            slot.connection.check_invariants();
            assert_eq!(slot.is_ready, self.ready.contains(&id), "in the queue of senders");
            assert_eq!(slot.has_events, self.with_events.contains(&id), "in the queue of events");
            assert_eq!(slot.has_trace, self.with_trace.contains(&id), "in the queue of traces");
            let is_waiting = slot.deadline.is_some_and(|at| self.deadlines.contains(&(at, id)));
            assert_eq!(slot.deadline.is_some(), is_waiting, "its deadline");
        }
    }
}
