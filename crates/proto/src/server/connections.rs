//! A connection comes and goes: what a worker counts and looks up of it, and what it reports to the desk.
//!
//! The invariant: after each of these calls the indices agree with the slots, and the desk will hear of
//! everything that it counts.

use alloc::boxed::Box;

use bytes::Bytes;

use super::ConnectionId;
use super::admission::Prefix;
use super::desk::{Measured, Note};
use super::ensembles::Arrived;
use super::memory::RequestName;
use super::slots::{Sends, Slot};
use super::worker::Worker;
use crate::connection::Connection;
use crate::credentials::TokenClaims;
use crate::wire::WireId;

impl Worker {
    /// Updates what is known of a connection after anything was done to it.
    pub(super) fn refresh(&mut self, id: ConnectionId) {
        self.slots.refresh(id);
        self.count_flight(id);
        self.note_handshake(id);
    }

    /// Tells the desk if a handshake is over. One that was not completed, because the program refused it
    /// perhaps, counts as one until its connection is gone, but needs no seat.
    pub(super) fn note_handshake(&mut self, id: ConnectionId) {
        let Some(slot) = self.slots.get_mut(id).filter(|slot| slot.is_handshake) else { return };
        let name = slot.name;
        if slot.connection.state().is_open() && !slot.connection.is_handshake() {
            slot.is_handshake = false;
            self.stats.accepted += 1;
            self.notes.push(Note::HandshakeOver { name });
        } else if !slot.connection.is_handshake() && !slot.is_unseated {
            slot.is_unseated = true;
            self.notes.push(Note::Unseated { name });
        }
    }

    /// What a crowd has to know of a connection, where no limit of the uplink is known.
    pub(super) fn count_flight(&mut self, id: ConnectionId) {
        self.count_in_ensemble(id);
        if self.uplink.finds_out() {
            let slot = self.slots.get(id);
            if self.flights.set(id, slot.and_then(|slot| slot.connection.flight()))
                && let Some(connection) = self.slots.connection_mut(id)
            {
                connection.excuse_losses();
            }
        }
    }

    /// What others with the same address have to know of a connection that sends blocks.
    fn count_in_ensemble(&mut self, id: ConnectionId) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        let sends = slot.connection.sends_blocks();
        if !sends && slot.sends == Sends::Nothing {
            return;
        }
        let address = sends.then(|| Prefix::of(slot.connection.address()));
        if self.ensembles.address_of(id) != address {
            slot.sends = if sends { Sends::Alone } else { Sends::Nothing };
            slot.connection.set_paced_together(false);
            self.ensembles.leave(id);
            address.into_iter().for_each(|address| self.arrive(address, id));
        } else if slot.sends == Sends::BesideOthers
            && let Some(flight) = slot.connection.flight()
        {
            self.ensembles.set(id, flight);
        }
    }

    /// A connection begins to send blocks to this address.
    fn arrive(&mut self, address: Prefix, id: ConnectionId) {
        let first = match self.ensembles.arrive(address, id) {
            Arrived::Alone => return,
            Arrived::BesideOne(first) => Some(first),
            Arrived::BesideMany => None,
        };
        for id in first.into_iter().chain([id]) {
            let Some(slot) = self.slots.get_mut(id) else { continue };
            slot.sends = Sends::BesideOthers;
            slot.connection.set_paced_together(true);
            if let Some(flight) = slot.connection.flight() {
                self.ensembles.join(id, flight, slot.connection.first_bps());
            }
        }
    }

    /// Removes a connection that has ended, once the application has read its last event and asks for more.
    pub(super) fn remove_if_over(&mut self, id: ConnectionId) {
        let is_over = |slot: &Slot| slot.connection.is_closed() && !slot.has_events;
        if !self.slots.get(id).is_some_and(is_over) {
            return;
        }
        self.refresh(id);
        let Some(mut slot) = self.slots.remove(id) else { return };
        self.uplink.forget(id);
        self.ensembles.leave(id);
        let _removed = self.flights.set(id, None);
        let connection = &slot.connection;
        self.work += connection.work();
        let (ip, client) = (connection.address().ip(), slot.client);
        let known = connection.known_path();
        let path = known.rate.map(|_| Box::new(Measured { ip, client, known }));
        slot.connection.clear(&mut self.pool);
        self.old_traces.push(id, slot.connection.take_trace());
        self.by_id.remove(&slot.connection.local_id());
        self.stats.closed += 1;
        self.notes.push(Note::Gone { name: slot.name, prefix: slot.prefix, path });
    }

    /// A client whose request is accepted.
    pub(super) fn insert(
        &mut self,
        connection: Connection,
        name: RequestName,
        request: Bytes,
        token: Option<TokenClaims>,
    ) {
        let client = token.as_ref().and_then(TokenClaims::client);
        let (prefix, wire_id) = (Prefix::of(connection.address()), connection.local_id());
        let id = self.slots.insert(connection, name, (prefix, client));
        self.by_id.insert(wire_id, id);
        self.notes.push(Note::Seated { name, id });
        self.stats.requests += 1;
        self.requests.push_back((id, request, token.map(Box::new)));
        self.refresh(id);
    }

    /// An id that no present connection has, and that says that the connection is this worker's: of the
    /// random bytes after those drawn the first that make it so.
    pub(super) fn new_id(&mut self, context: &[&[u8]]) -> WireId {
        loop {
            let [a, b, c, d, e, f, ..] = *self.entropy.hedged(context).as_bytes();
            let mut random = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
            let id = loop {
                let [a, b, c, d, e, f, ..] = random.to_le_bytes();
                let (id, number) = self.reset_key.numbered_id([a, b, c, d, e, f]);
                if self.worker_of(number) == usize::from(self.number) {
                    break WireId(id);
                }
                random = random.wrapping_add(1);
            };
            if !self.by_id.contains_key(&id) && !self.lingering.has(id) {
                return id;
            }
        }
    }

    /// Whose connections have ids with this number.
    pub(super) fn worker_of(&self, number: u32) -> usize {
        number as usize % self.board.workers()
    }
}
