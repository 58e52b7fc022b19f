//! Datagrams for connections that do not exist any more: if the connection has ended, the answer is its close
//! (STANDARD-1, 5.3); if this server does not know it, the answer is a reset (3.6).

use alloc::vec::Vec;

use super::ConnectionId;
use super::desk::{AtDesk, Note};
use super::worker::{Handled, Worker};
use crate::wire::{WireId, answer};
use crate::{DropReason, FourTuple, Instant};

/// The minimum length of data that is answered with a reset, in bytes (H-3.7a): a reset is always shorter.
const MIN_BYTES_FOR_RESET: usize = 26;

impl Worker {
    /// If this connection has ended, keeps its close, which its client may still need. The client may repeat
    /// its request, which can reach another worker: a note to the desk says which worker had the connection.
    pub(super) fn linger(&mut self, now: Instant, id: ConnectionId) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        if slot.lingers || !slot.connection.is_closed() {
            return;
        }
        slot.lingers = true;
        let last_words = slot.connection.last_words(now);
        if last_words.is_response && self.board.workers() > 1 {
            let until = now + last_words.lasts;
            self.notes.push(Note::Ended { name: slot.name, worker: self.number, until });
        }
        self.lingering.insert(now, slot.connection.local_id(), slot.name, last_words);
    }

    /// A datagram for a connection that has ended, data or a copy of its request: the client has not received
    /// the close, or the datagram is late.
    pub(super) fn on_late(&mut self, now: Instant, id: WireId, from: FourTuple, bytes: usize) {
        if let Some(close) = self.lingering.on_datagram(now, id, from, bytes) {
            let close = close.to_vec();
            self.stats.closes_repeated += 1;
            self.answer(from, close);
        }
    }

    /// Data for a connection that this worker does not have: it is another worker's, or gone.
    pub(super) fn on_unknown(
        &mut self,
        now: Instant,
        desk: &mut impl AtDesk,
        id: WireId,
        from: FourTuple,
        bytes: usize,
    ) -> Result<Handled, DropReason> {
        if self.lingering.has(id) {
            self.on_late(now, id, from, bytes);
            return Err(DropReason::NotNow);
        }
        self.update_reset_key(desk);
        let Some(number) = self.reset_key.number(id.0) else {
            return Err(DropReason::UnknownConnection);
        };
        let worker = self.worker_of(number);
        if worker != usize::from(self.number) {
            return Ok(Handled::ForWorker(worker));
        }
        if bytes >= MIN_BYTES_FOR_RESET && self.may_answer(now, desk) {
            let mut out = Vec::new();
            answer::write_reset(self.reset_key.reset_token(id.0), &mut out);
            self.stats.resets += 1;
            self.answer(from, out);
        }
        Err(DropReason::UnknownConnection)
    }
}
