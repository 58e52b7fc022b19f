//! Sending: a datagram is composed after its header, encrypted in place, and recorded with what has to be
//! known if it is lost. What goes into it is in [`compose`](super::compose).

use super::draft::Draft;
use super::{CloseReason, Connection, ConnectionState, ConnectionTrigger};
use alloc::vec::Vec;

use crate::crypto::TAG_BYTES;
use crate::incoming::ProgressDue;
use crate::transit::{ChunkAt, Outgoing, Symbol, UDP_IPV4_BYTES};
use crate::wire::frames::Frame;
use crate::wire::header::DATA_HEADER_BYTES;
use crate::wire::{DataHeader, MAX_DATAGRAM_BYTES, ResponseHeader};
use crate::{DatagramBuffer, Ecn, FourTuple, Instant};

/// Probe timeouts after which an ack is overdue: the second one of [H-5.6b].
const OVERDUE_PTOS: u32 = 2;

impl Connection {
    /// Composes the next datagram in `out` and returns its destination. `None` if there is none now; the
    /// content of `out` is then meaningless. `is_run` is for the caller to hand to the next call, if that is
    /// for the same connection at the same time, with no call of anything else in between: then what a slice
    /// alone was composed by need not be asked again. It is false at first.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        out: &mut DatagramBuffer<'_>,
        is_run: &mut bool,
    ) -> Option<FourTuple> {
        let is_next = core::mem::take(is_run);
        if !is_next {
            self.now = now;
            self.reading.on_turn(now);
            if self.state == ConnectionState::Closing {
                return self.transmit_close(now, out);
            }
            if !self.state.is_open() {
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
        if !may_send_slices && let Some(sender) = self.blocks_out.sender_mut() {
            sender.on_blocked();
        }
        if !is_next && let Some(to) = self.transmit_mtu_probe(now, out) {
            return Some(to);
        }
        // Behind a slice no ping is due, and a large one does not go while an ack is overdue.
        let room = if is_next { self.path.room() } else { self.room() };
        let number = self.begin(now, out, room)?;
        let header_bytes = out.len();
        let mut draft = Draft::new(out, room - TAG_BYTES, may_send_slices, is_next);
        self.compose(now, &mut draft);
        let (is_slice_alone, elsewhere) = (draft.is_slice_alone(), draft.elsewhere());
        let Draft { is_ack_eliciting, has_content, is_asking, slice, has_ack, has_report, .. } =
            draft;
        let is_alone = !has_content && !is_asking;
        if out.len() == header_bytes {
            return None;
        }
        self.finish(number, header_bytes, out, elsewhere)?;
        self.path.on_sent(out.len());
        let is_marked =
            is_ack_eliciting && self.welcome_message.is_empty() && self.path.ecn.is_due();
        if is_marked {
            out.set_ecn(Ecn::Ect0);
            self.path.ecn.on_sent();
        }
        let wire_bytes = out.len() + UDP_IPV4_BYTES;
        // Packets and messages use the link too, although they do not wait for the send budget.
        let modelled = self
            .blocks_out
            .sender_on(&mut self.path.blocks)
            .map(|(sender, path)| sender.on_sent(path, now, number, wire_bytes, slice))
            .unwrap_or_default();
        self.record(
            now,
            Outgoing { number, wire_bytes, is_ack_eliciting, is_marked, slice, modelled },
        );
        if has_ack {
            // An ack that says that a block is finished is repeated as well.
            let is_unheard = self.progress_due() > ProgressDue::No;
            self.received.set_block(is_unheard && !is_asking);
            self.received.on_ack_sent(now, is_alone);
            if let Some(it) = self.blocks_in.as_mut().filter(|_| !is_unheard) {
                it.entries = Vec::new();
            }
        } else if has_report && is_alone {
            // It counts against [H-4.1c] too. An ack that did not fit beside it stays due.
            self.received.on_other_ack_alone();
        }
        if is_ack_eliciting {
            self.liveness.on_ack_eliciting_sent(now, self.sent.in_flight());
        }
        if !has_content {
            self.counters.ack_bytes_sent += out.len() as u64;
        }
        *is_run = is_slice_alone && self.state == ConnectionState::Connected;
        Some(self.path.address())
    }

    /// Starts a datagram with its header. Returns its packet number.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        out: &mut DatagramBuffer<'_>,
        room: usize,
    ) -> Option<u64> {
        if room <= self.header_bytes() + TAG_BYTES {
            return None;
        }
        out.truncate(0);
        // So that it does not grow while there is plaintext in it: what was freed would hold a reset token.
        out.vec().reserve(room);
        self.sent.begin();
        let number = self.next_number();
        let limits = self.key_limits();
        let low = low_bits(number);
        if self.welcome_message.is_empty() {
            let phase = self.protection.send_phase(now, number, limits);
            DataHeader { from: self.role, phase, to: self.remote, number: low }.write(out.vec());
        } else {
            let welcome_message = &self.welcome_message;
            ResponseHeader { to: self.remote, welcome_message, number: low }.write(out.vec());
        }
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
        let slice = elsewhere.and_then(|(at, symbol)| self.blocks_out.source_slice(at, symbol));
        let slice = slice.unwrap_or_default();
        let noted = self.trace.is_some().then(|| self.compose_note(out, header_bytes, slice));
        if !self.protection.seal(number, header_bytes, out, slice) {
            // The key has reached its limit and the peer never confirmed it: nothing may be sent any more.
            self.end(ConnectionTrigger::Silence, CloseReason::KeyUsedUp);
            return None;
        }
        debug_assert!(out.len() <= usize::from(self.max_datagram_bytes), "H-5.6a");
        self.counters.datagrams_sent += 1;
        self.counters.bytes_sent += out.len() as u64;
        if let Some(noted) = noted {
            self.note_sent(number, out.len(), noted);
        }
        Some(())
    }

    /// The next packet number. One in 256 is skipped, so that a peer that acknowledges it is exposed
    /// (H-2.2c).
    fn next_number(&mut self) -> u64 {
        if self.sent.next_number() == self.next_skip {
            self.sent.skip();
            self.next_skip = (self.next_skip / 256 + 1) * 256 + self.entropy.next_u64() % 256;
        }
        self.sent.next_number()
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
        self.sent.on_unrecorded(number);
        Some(to)
    }

    /// When a probe for larger datagrams is due [H-5.6a].
    pub(super) fn mtu_probe_at(&self) -> Option<Instant> {
        // Not before both ends have each other's keys: what is left of the handshake goes first.
        self.path
            .probe_at()
            .filter(|_| self.state == ConnectionState::Connected && self.gains_by_probe())
    }

    /// Whether a larger size is of use soon: not for a chunk that is cut already. And no acks of a block wait
    /// behind a probe, which takes 40 ms on a way up of 300 kbit/s.
    fn gains_by_probe(&self) -> bool {
        let is_receiving = self.blocks_in.as_ref().is_some_and(|it| it.blocks.has_open());
        !is_receiving && !self.blocks_out.is_at_end()
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
        self.liveness.on_ack_eliciting_sent(now, self.sent.in_flight());
        Some(self.path.address())
    }

    /// Bytes that the next datagram may have. One with a ping has 1200 at most, and so has each while an ack
    /// is long overdue: these show whether smaller ones still arrive where larger ones no longer do [H-5.6b].
    fn room(&self) -> usize {
        let room = self.path.room();
        if self.ping_due || self.is_ack_overdue() { room.min(MAX_DATAGRAM_BYTES) } else { room }
    }

    /// Whether an ack is so long overdue that only datagrams go that every path carries.
    pub(super) fn is_ack_overdue(&self) -> bool {
        let overdue = self.path.timing.probe_timeout().saturating_mul(OVERDUE_PTOS);
        let overdue = overdue.saturating_add(self.blocks_out.lateness());
        let waits = self.sent.oldest_sent_at().map(|sent_at| self.now.since(sent_at));
        waits > Some(overdue)
    }

    /// Bytes of frames in a full datagram: what a slice with its header may fill.
    pub(super) const fn slice_room(&self) -> usize {
        self.path.max_datagram_bytes() as usize - DATA_HEADER_BYTES - TAG_BYTES
    }

    /// Bytes that the next datagram has for frames: fewer in a response, and to an address that is not
    /// validated.
    pub(super) fn frame_room(&self) -> usize {
        let room = self.path.room().saturating_sub(self.header_bytes() + TAG_BYTES);
        room.min(self.slice_room())
    }

    fn header_bytes(&self) -> usize {
        match self.welcome_message.len() {
            0 => DATA_HEADER_BYTES,
            welcome_bytes => ResponseHeader::bytes(welcome_bytes),
        }
    }
}

fn low_bits(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}
