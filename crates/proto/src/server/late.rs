//! Datagrams for connections that are not there any more: one that has ended is answered with its close
//! (STANDARD-1, 5.3), one that this server does not know with a reset (3.6).

use alloc::vec::Vec;

use super::ConnectionId;
use super::desk::AtDesk;
use super::worker::Worker;
use crate::wire::{WireId, answer};
use crate::{DropReason, FourTuple, Instant};

/// The minimum length of data that is answered with a reset, in bytes (H-3.7a): a reset is always shorter.
const MIN_BYTES_FOR_RESET: usize = 26;

impl Worker {
    /// If this connection has ended, keeps what its client may have to be told.
    pub(super) fn linger(&mut self, now: Instant, id: ConnectionId) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        if slot.lingers || !slot.connection.is_closed() {
            return;
        }
        slot.lingers = true;
        let last_words = slot.connection.last_words(now);
        self.lingering.insert(now, slot.connection.local_id(), slot.name, last_words);
    }

    /// A datagram for a connection that has ended, data or a copy of its request: the client has not heard
    /// it, or the datagram is a late one.
    pub(super) fn on_late(&mut self, now: Instant, id: WireId, from: FourTuple, bytes: usize) {
        if let Some(close) = self.lingering.on_datagram(now, id, from, bytes) {
            let close = close.to_vec();
            self.stats.closes_repeated += 1;
            self.answer(from, close);
        }
    }

    /// Data for a connection that is not there.
    pub(super) fn on_stray(
        &mut self,
        now: Instant,
        desk: &mut impl AtDesk,
        id: WireId,
        from: FourTuple,
        bytes: usize,
    ) -> DropReason {
        if self.lingering.has(id) {
            self.on_late(now, id, from, bytes);
            return DropReason::NotNow;
        }
        self.reset(now, desk, from, id, bytes);
        DropReason::UnknownConnection
    }

    fn reset(
        &mut self,
        now: Instant,
        desk: &mut impl AtDesk,
        to: FourTuple,
        id: WireId,
        bytes: usize,
    ) {
        let is_own = bytes >= MIN_BYTES_FOR_RESET && self.reset_key.is_own_id(id.0);
        if is_own && self.may_answer(now, desk) {
            let mut out = Vec::new();
            answer::write_reset(self.reset_key.reset_token(id.0), &mut out);
            self.stats.resets += 1;
            self.answer(to, out);
        }
    }
}
