//! Sending: a datagram is composed after its header, encrypted in place, and recorded with what has to be
//! known if it is lost. What goes into it is in [`compose`](super::compose).

use super::draft::{Room, Written};
use super::{CloseReason, Connection, ConnectionState, ConnectionTrigger};

use crate::crypto::TAG_BYTES;
use crate::incoming::IncomingBlocks;
use crate::transit::{ChunkAt, Outgoing, Symbol, UDP_IPV4_BYTES};
use crate::wire::MAX_DATAGRAM_BYTES;
use crate::wire::frames::Frame;
use crate::{DatagramBuffer, Ecn, FourTuple, Instant};

impl Connection {
    /// Composes the next datagram in `out` and returns its destination. `None` if no datagram is to be sent
    /// now; the content of `out` is then meaningless. The caller hands `is_run` to the next call, if that is
    /// for the same connection at the same time, with no other call in between: then the checks made for a
    /// datagram with a slice alone are not repeated. It is false at first.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        out: &mut DatagramBuffer<'_>,
        is_run: &mut bool,
    ) -> Option<FourTuple> {
        let is_next = core::mem::take(is_run);
        if !is_next {
            self.life.set_now(now);
            self.inbound.on_turn(now);
            if self.life.is(ConnectionState::Closing) {
                return self.transmit_close(now, out);
            }
            if !self.life.is_open() {
                return None;
            }
            self.settle_fates();
            if let Some(to) = self.transmit_challenge(now, out) {
                return Some(to);
            }
        }
        let may_send_slices = match is_next {
            true => self.may_send_more_slices(),
            false => self.may_send_slices(),
        };
        if !may_send_slices && let Some(sender) = self.outbound.transfer_mut().sender_mut() {
            sender.on_blocked();
        }
        if !is_next && let Some(to) = self.transmit_mtu_probe(now, out) {
            return Some(to);
        }
        // Behind a slice no ping is due, and a large one does not go while an ack is overdue.
        let room = if is_next { self.path.room() } else { self.room() };
        let number = self.begin(now, out, room)?;
        let header_bytes = out.len();
        let (end, frames) = (room - TAG_BYTES, self.frame_room());
        let written = self.compose(now, out, Room { end, frames, may_send_slices, is_next });
        if out.len() == header_bytes {
            return None;
        }
        self.finish(number, header_bytes, out, written.elsewhere())?;
        self.on_sent(now, number, out, &written);
        *is_run = written.is_slice_alone() && self.life.is(ConnectionState::Connected);
        Some(self.path.address())
    }

    /// A datagram goes with this in it.
    fn on_sent(
        &mut self,
        now: Instant,
        number: u64,
        out: &mut DatagramBuffer<'_>,
        written: &Written,
    ) {
        let Written { is_ack_eliciting, slice, .. } = *written;
        self.path.on_sent(out.len());
        let is_marked =
            is_ack_eliciting && !self.agreement.is_responding() && self.path.ecn.is_due();
        if is_marked {
            out.set_ecn(Ecn::Ect0);
            self.path.ecn.on_sent();
        }
        let wire_bytes = out.len() + UDP_IPV4_BYTES;
        // Packets and messages use the link too, although they do not wait for the send budget.
        if let Some((sender, path)) = self.outbound.transfer_mut().sender_on(&mut self.path.blocks)
        {
            sender.on_sent(path, now, number, wire_bytes, slice);
        }
        self.record(now, Outgoing { number, wire_bytes, is_ack_eliciting, is_marked, slice });
        self.inbound.on_sent(now, written);
        if is_ack_eliciting {
            self.liveness.on_ack_eliciting_sent(now, self.recovery.in_flight());
        }
        if !written.has_content {
            self.counters.ack_bytes_sent += out.len() as u64;
        }
    }

    /// Starts a datagram with its header. Returns its packet number.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        out: &mut DatagramBuffer<'_>,
        room: usize,
    ) -> Option<u64> {
        if room <= self.agreement.header_bytes() + TAG_BYTES {
            return None;
        }
        out.truncate(0);
        // So that it does not grow while there is plaintext in it: what was freed would hold a reset token.
        out.vec().reserve(room);
        let number = self.recovery.begin(&mut self.entropy);
        self.agreement.write_header(now, number, self.config.key_limits(), out.vec());
        Some(number)
    }

    /// Encrypts a datagram after its last frame, and behind it the data of the slice that is `elsewhere`: in
    /// its block. `None` ends the connection: no key is left.
    pub(super) fn finish(
        &mut self,
        number: u64,
        header_bytes: usize,
        out: &mut DatagramBuffer<'_>,
        elsewhere: Option<(ChunkAt, Symbol)>,
    ) -> Option<()> {
        let transfer = self.outbound.transfer();
        let slice = elsewhere.and_then(|(at, symbol)| transfer.source_slice(at, symbol));
        let slice = slice.unwrap_or_default();
        let noted = self.life.trace().map(|trace| {
            let next = self.inbound.heard().next;
            trace.compose(out, header_bytes, slice, next)
        });
        if !self.agreement.seal(number, header_bytes, out, slice) {
            // The key has reached its limit and the peer never confirmed it: nothing may be sent any more.
            self.life.end(ConnectionTrigger::Silence, CloseReason::KeyUsedUp);
            return None;
        }
        self.counters.datagrams_sent += 1;
        self.counters.bytes_sent += out.len() as u64;
        if let Some(noted) = noted {
            self.note_sent(number, out.len(), noted);
        }
        Some(())
    }

    fn transmit_challenge(
        &mut self,
        now: Instant,
        out: &mut DatagramBuffer<'_>,
    ) -> Option<FourTuple> {
        let (to, bytes, room) = self.path.poll_challenge(now)?;
        let interval = self.repeat_interval();
        let Some(number) = self.begin(now, out, room) else {
            self.path.on_challenge(now, None, interval);
            return None;
        };
        let header_bytes = out.len();
        Frame::PathChallenge(bytes).write(out.vec());
        if out.len() + TAG_BYTES > room {
            self.path.on_challenge(now, None, interval);
            return None;
        }
        self.finish(number, header_bytes, out, None)?;
        self.path.on_challenge(now, Some(out.len()), interval);
        self.recovery.on_unrecorded(number);
        Some(to)
    }

    /// When a probe for larger datagrams is due [H-5.6a].
    pub(super) fn mtu_probe_at(&self) -> Option<Instant> {
        // Not before both ends have each other's keys: the rest of the handshake goes first.
        let is_connected = self.life.is(ConnectionState::Connected);
        self.path.probe_at().filter(|_| is_connected && self.gains_by_probe())
    }

    /// Whether a larger size is of use soon: not for a chunk that is cut already. And no acks of a block wait
    /// behind a probe, which takes 40 ms on a way up of 300 kbit/s.
    fn gains_by_probe(&self) -> bool {
        let is_receiving = self.inbound.blocks().is_some_and(IncomingBlocks::has_open);
        !is_receiving && !self.outbound.blocks().is_at_end()
    }

    /// The probe that is due: a ping, and padding up to its size. The block sender does not hear of it,
    /// because its loss says nothing about congestion.
    fn transmit_mtu_probe(
        &mut self,
        now: Instant,
        out: &mut DatagramBuffer<'_>,
    ) -> Option<FourTuple> {
        self.mtu_probe_at()?;
        let size = usize::from(self.path.poll_probe(now)?);
        let number = self.begin(now, out, size)?;
        let header_bytes = out.len();
        Frame::Ping.write(out.vec());
        for _ in out.len() + TAG_BYTES..size {
            Frame::Padding.write(out.vec());
        }
        self.finish(number, header_bytes, out, None)?;
        out.set_alone();
        self.path.on_probe_sent(number);
        self.note_probe(out.len());
        self.record(now, Outgoing::probe(number));
        self.liveness.on_ack_eliciting_sent(now, self.recovery.in_flight());
        Some(self.path.address())
    }

    /// Bytes that the next datagram may have. One with a ping has 1200 at most, and so has each while an ack
    /// is long overdue: these show whether smaller ones still arrive where larger ones no longer do [H-5.6b].
    fn room(&self) -> usize {
        let room = self.path.room();
        let is_small = self.signals.is_ping_due() || self.is_doubted();
        if is_small { room.min(MAX_DATAGRAM_BYTES) } else { room }
    }
}
