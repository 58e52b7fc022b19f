//! A connection comes and goes: what a server counts and looks up of it, by its id, its request, the prefix
//! of its address, and whether it is a handshake.
//!
//! The invariant: after each of these calls the indices and the counts agree with the slots.

use bytes::Bytes;

use super::admission::Prefix;
use super::memory::RequestName;
use super::slots::Slot;
use super::{ConnectionId, ServerMachine};
use crate::Instant;
use crate::connection::Connection;
use crate::credentials::TokenClaims;
use crate::wire::WireId;

impl ServerMachine {
    /// Updates what is known of a connection after anything was done to it.
    pub(super) fn refresh(&mut self, id: ConnectionId) {
        self.slots.refresh(id);
        if let Some(slot) = self.slots.get_mut(id)
            && slot.is_handshake
            && !slot.connection.is_handshake()
        {
            slot.is_handshake = false;
            self.handshakes -= 1;
            if let Some(share) = self.prefixes.get_mut(&slot.prefix) {
                share.handshakes -= 1;
                share.credited -= usize::from(slot.has_credit);
            }
            self.stats.accepted += u64::from(slot.connection.state().is_open());
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
        let connection = &slot.connection;
        self.work += connection.work();
        let ip = connection.address().ip();
        self.paths.remember(ip, slot.client, connection.known_path());
        slot.connection.clear(&mut self.pool);
        self.by_id.remove(&slot.connection.local_id());
        self.by_request.remove(&slot.name);
        self.stats.closed += 1;
        if let Some(share) = self.prefixes.get_mut(&slot.prefix) {
            share.connections -= 1;
            if share.connections == 0 {
                self.prefixes.remove(&slot.prefix);
            }
        }
    }

    /// A client whose request is accepted.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        mut connection: Connection,
        (name, bytes): (RequestName, usize),
        request: Bytes,
        token: Option<TokenClaims>,
        has_credit: bool,
    ) {
        connection.on_request(now, bytes);
        let client = token.as_ref().and_then(TokenClaims::client);
        let ip = connection.address().ip();
        connection.set_known_path(self.paths.recall(now, ip, client));
        let prefix = Prefix::of(connection.address());
        let wire_id = connection.local_id();
        let id = self.slots.insert(connection, name, (prefix, client), has_credit);
        self.by_id.insert(wire_id, id);
        self.by_request.insert(name, id);
        let share = self.prefixes.entry(prefix).or_default();
        share.connections += 1;
        share.handshakes += 1;
        share.credited += usize::from(has_credit);
        self.handshakes += 1;
        self.started.push_back((now, id));
        self.stats.requests += 1;
        self.requests.push_back((id, request, token));
        self.refresh(id);
        self.forget_finished_handshakes();
    }

    /// An id that no present connection has.
    pub(super) fn new_id(&mut self, context: &[&[u8]]) -> WireId {
        loop {
            let [a, b, c, d, e, f, ..] = *self.entropy.hedged(context).as_bytes();
            let id = WireId(self.reset_key.id([a, b, c, d, e, f]));
            if !self.by_id.contains_key(&id) && !self.lingering.has(id) {
                return id;
            }
        }
    }
}
