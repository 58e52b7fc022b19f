//! Receiving: a datagram is decrypted and verified as a whole, and only then are its frames acted on.

use zeroize::Zeroize as _;

use super::path::Validated;
use super::protection::Head;
use super::trace::TraceEvent;
use super::{CloseCode, Connection, Event};
use crate::channels::MessageViolation;
use crate::fragment::FragmentPool;
use crate::incoming::{Fate, Fault};
use crate::outgoing::Contradiction;
use crate::wire::frames::{Frame, Frames, SliceFrame};
use crate::wire::header::DATA_HEADER_BYTES;
use crate::wire::{DataHeader, ResponseHeader};
use crate::{DropReason, FourTuple, Instant};

/// Probe timeouts for which the previous key is kept (RFC 9001, 6.5).
const PREVIOUS_KEY_PTOS: u32 = 3;

/// The peer violated a rule: the connection is closed with this code.
struct Violation(CloseCode);

impl From<CloseCode> for Violation {
    fn from(code: CloseCode) -> Self {
        Self(code)
    }
}

impl Connection {
    /// Handles a data datagram. Nothing changes before it is verified.
    pub(crate) fn handle_data(
        &mut self,
        now: Instant,
        path: FourTuple,
        header: &DataHeader,
        datagram: &mut [u8],
        pool: &mut FragmentPool,
    ) -> Result<(), DropReason> {
        if header.from != self.agreement.ends().role.peer() {
            return Err(DropReason::WrongRole);
        }
        if datagram.len() > usize::from(self.config.max_datagram_bytes) {
            return Err(DropReason::TooLong);
        }
        let (bytes, layout) = (datagram.len(), (DATA_HEADER_BYTES, header.phase));
        let outcome = self.handle(now, path, header.number, layout, datagram, pool);
        outcome.inspect_err(|&reason| self.note_dropped(now, reason, bytes))
    }

    /// Handles a response, which only clients receive.
    pub(crate) fn handle_response(
        &mut self,
        now: Instant,
        path: FourTuple,
        datagram: &mut [u8],
        pool: &mut FragmentPool,
    ) -> Result<(), DropReason> {
        let header = ResponseHeader::read(datagram)?;
        let (number, welcome_bytes) = (header.number, header.welcome_message.len());
        let (bytes, layout) = (datagram.len(), (ResponseHeader::bytes(welcome_bytes), false));
        let outcome = self.handle(now, path, number, layout, datagram, pool);
        outcome.inspect_err(|&reason| self.note_dropped(now, reason, bytes))
    }

    fn handle(
        &mut self,
        now: Instant,
        path: FourTuple,
        truncated: u32,
        (header_bytes, phase): (usize, bool),
        datagram: &mut [u8],
        pool: &mut FragmentPool,
    ) -> Result<(), DropReason> {
        if self.is_closed() {
            return Err(DropReason::NotNow);
        }
        let bytes = datagram.len();
        let (number, may_open) = self.inbound.number(truncated);
        let keep_previous = || self.path.timing.probe_timeout().saturating_mul(PREVIOUS_KEY_PTOS);
        let opened = may_open.and_then(|()| {
            let head = Head { number, phase, bytes: header_bytes };
            self.agreement.open(now, head, datagram, keep_previous)
        });
        let plaintext = match opened {
            Ok(plaintext) => plaintext,
            Err(reason) => {
                self.counters.datagrams_refused += 1;
                if self.agreement.is_used_up() {
                    self.close(now, CloseCode::AEAD_LIMIT, "");
                }
                return Err(reason);
            }
        };
        self.life.set_now(now);
        self.inbound.on_datagram(now);
        self.counters.datagrams_received += 1;
        self.counters.bytes_received += bytes as u64;
        let is_data = header_bytes == DATA_HEADER_BYTES;
        self.note_received(is_data, number, bytes, plaintext);
        let contents = match verify(plaintext) {
            Ok(contents) => contents,
            Err(reason) => {
                // There may be a secret before what is wrong.
                datagram.zeroize();
                self.counters.datagrams_refused += 1;
                self.close_on_violation(now, CloseCode::PROTOCOL, reason.name());
                return Err(reason);
            }
        };
        let is_newest = self.inbound.is_newest(number);
        if self.liveness.is_at_rest(now) {
            self.rest();
        }
        self.on_heard(now);
        if self.agreement.is_server() {
            self.on_address(now, path, bytes, is_newest);
        }
        let Contents { slice, is_ack_eliciting, has_secret } = contents;
        let is_kept = match slice {
            Some(slice) => self.act_on_slice(now, &slice),
            None => self.act(now, path, number, Frames::of(plaintext).flatten(), pool),
        };
        if has_secret {
            // The buffer belongs to the caller, which frees it, or receives something shorter into it.
            datagram.zeroize();
        }
        self.inbound.on_verified(now, number, is_ack_eliciting, is_kept)
    }

    /// A datagram of the peer was verified.
    fn on_heard(&mut self, now: Instant) {
        self.liveness.on_received(now);
        if let Some(sender) = self.outbound.transfer_mut().sender_mut() {
            sender.on_heard(now);
        }
        self.inbound.on_heard(now);
    }

    fn on_address(&mut self, now: Instant, path: FourTuple, bytes: usize, is_newest: bool) {
        if self.is_handshake() && self.path.address().has_remote_of(path) {
            self.path.validate();
            self.become_connected();
        } else if is_newest {
            let challenge = self.entropy.bytes();
            self.path.on_newest_from(now, path, bytes, challenge);
        }
    }

    fn become_connected(&mut self) {
        if self.life.on_validated() {
            self.agreement.end_responding();
            self.signals.on_validated();
            let room = self.path.slice_room();
            self.outbound.transfer_mut().set_slice_room(&mut self.path.blocks, room);
        }
    }

    /// The peer's address has changed. Its new path takes the place of the old one, of which nothing is left:
    /// what is measured, and how it is used, begins anew (RFC 9000, 9.4).
    fn migrate(&mut self, now: Instant, new: Validated) {
        self.path = self.path.followed_by(now, new, self.config.ecn);
        let (room, next) = (self.path.slice_room(), self.recovery.next_number());
        let transfer = self.outbound.transfer_mut();
        transfer.measure_anew(now, &mut self.path.blocks, next);
        transfer.set_slice_room(&mut self.path.blocks, room);
        transfer.on_black_hole();
        self.life.note(now, || TraceEvent::AddressChanged(new.address.remote));
        // A peer can do this as often as it likes; one unread event is enough.
        self.life.tell_once(Event::AddressChanged);
        self.become_connected();
    }

    /// Acts on the frames of a datagram that was verified as a whole. Returns whether it may be acknowledged:
    /// not if there was no room for what a block sent in it [H-4.2e].
    fn act<'a>(
        &mut self,
        now: Instant,
        path: FourTuple,
        number: u64,
        frames: impl IntoIterator<Item = Frame<'a>>,
        pool: &mut FragmentPool,
    ) -> bool {
        let mut is_kept = true;
        for frame in frames {
            self.counters.steps += 1;
            if let Frame::Close { code, reason } = frame {
                self.life.on_close(now, CloseCode(code), reason);
                return true;
            }
            if !self.life.is_open() {
                continue;
            }
            match self.on_frame(now, path, number, &frame, pool) {
                Ok(fate) => is_kept &= fate != Fate::NotKept,
                Err(Violation(code)) => self.close_on_violation(now, code, ""),
            }
        }
        self.after_frames(now);
        is_kept
    }

    /// Acts on the slice of a datagram that has nothing else. Returns what [`act`](Self::act) does.
    fn act_on_slice(&mut self, now: Instant, slice: &SliceFrame<'_>) -> bool {
        self.counters.steps += 1;
        if !self.life.is_open() {
            return true;
        }
        let fate = self.blocks_in(now).on_slice(now, slice);
        if let Err(fault) = fate {
            self.close_on_violation(now, code_of(fault), "");
        }
        self.after_frames(now);
        fate != Ok(Fate::NotKept)
    }

    fn after_frames(&mut self, now: Instant) {
        if self.life.is_open() {
            self.pass_losses(now);
            self.after_blocks(now);
        }
    }

    fn on_frame(
        &mut self,
        now: Instant,
        path: FourTuple,
        number: u64,
        frame: &Frame<'_>,
        pool: &mut FragmentPool,
    ) -> Result<Fate, Violation> {
        match *frame {
            Frame::Padding | Frame::Ping | Frame::Close { .. } | Frame::Ignored { .. } => {}
            Frame::Slice(slice) => return Ok(self.blocks_in(now).on_slice(now, &slice)?),
            Frame::Hashes(hashes) => return Ok(self.blocks_in(now).on_hashes(now, &hashes)?),
            Frame::Ack(ack) => self.on_ack(now, &ack)?,
            Frame::Arrivals(arrivals) => {
                let transfer = self.outbound.transfer_mut();
                if let Some((sender, path)) = transfer.sender_on(&mut self.path.blocks) {
                    sender.on_arrivals(path, &arrivals, self.recovery.ledger());
                }
            }
            Frame::Progress(progress) => {
                self.counters.steps += progress.entry_bytes() as u64;
                self.outbound.blocks_mut().on_progress(now, number, &progress)?;
            }
            Frame::SlicesHere(here) => {
                self.outbound.blocks_mut().on_slices_here(&mut self.path.blocks, now, &here)?;
            }
            Frame::ChunksHere(here) => self.outbound.blocks_mut().on_chunks_here(now, &here)?,
            Frame::RootHere(root) => self.outbound.blocks_mut().on_root_here(now, root),
            Frame::Decline { block, code } => {
                self.outbound.blocks_mut().on_decline(now, block, code)?;
            }
            Frame::Block(block) => self.blocks_in(now).on_block(now, &block)?,
            Frame::Cancel { block, code, opened } => {
                self.blocks_in(now).on_cancel(now, block, code, opened)?;
            }
            Frame::AckFrequency { datagrams, delay } => {
                self.inbound.set_frequency(datagrams, delay);
            }
            Frame::Packet { sequence, data } => {
                self.inbound.on_packet(number, (sequence, data), &self.config, pool);
            }
            Frame::Fragment(fragment) => {
                self.inbound.on_fragment(now, number, &fragment, &self.config, pool);
            }
            Frame::Message(message) => self.inbound.on_message(&message, &self.config)?,
            Frame::ChannelLimit(limit) => self.outbound.on_limit(limit)?,
            Frame::PathChallenge(bytes) => self.signals.on_challenge(bytes),
            Frame::PathResponse(bytes) => {
                if self.agreement.is_server()
                    && let Some(new) = self.path.on_response(now, path, bytes)
                {
                    self.migrate(now, new);
                }
            }
            Frame::ResetToken(_) if self.agreement.is_server() => {
                return Err(CloseCode::PROTOCOL.into());
            }
            Frame::ResetToken(token) => self.agreement.set_peer_reset_token(token),
        }
        Ok(Fate::New)
    }
}

impl From<Fault> for Violation {
    fn from(fault: Fault) -> Self {
        Self(code_of(fault))
    }
}

impl From<Contradiction> for Violation {
    fn from(_: Contradiction) -> Self {
        Self(CloseCode::PROTOCOL)
    }
}

impl From<MessageViolation> for Violation {
    fn from(_: MessageViolation) -> Self {
        Self(CloseCode::PROTOCOL)
    }
}

/// The code that a connection is closed with after a fault of the sender of blocks.
pub(super) const fn code_of(fault: Fault) -> CloseCode {
    match fault {
        Fault::Protocol => CloseCode::PROTOCOL,
        Fault::NoProgress => CloseCode::NO_PROGRESS,
        Fault::TooLarge => CloseCode::BLOCK_TOO_LARGE,
        Fault::Damaged => CloseCode::BLOCK_DAMAGED,
        Fault::Resources => CloseCode::RESOURCES,
        Fault::Credit => CloseCode::CREDIT,
    }
}

/// What has to be known of a plaintext before and after its frames are acted on.
#[derive(Clone, Copy, Default)]
struct Contents<'a> {
    /// Its slice, if it has nothing else: that is not read twice.
    slice: Option<SliceFrame<'a>>,
    is_ack_eliciting: bool,
    /// It must not stay in memory: whoever reads the token of a reset can end the connection.
    has_secret: bool,
}

/// Checks that a plaintext consists of frames, and has at least one.
fn verify(plaintext: &[u8]) -> Result<Contents<'_>, DropReason> {
    if plaintext.is_empty() {
        return Err(DropReason::TooShort);
    }
    if let Some(slice) = Frames::slice_alone(plaintext) {
        let slice = Some(slice?);
        return Ok(Contents { slice, is_ack_eliciting: true, has_secret: false });
    }
    let mut contents = Contents::default();
    for frame in Frames::of(plaintext) {
        let frame = frame?;
        contents.is_ack_eliciting |= frame.is_ack_eliciting();
        contents.has_secret |= matches!(frame, Frame::ResetToken(_));
    }
    Ok(contents)
}
