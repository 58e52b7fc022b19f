//! How a connection ends: closed by this end, which sends its close frame until the peer answers it or six
//! times; by the peer's close, which it answers once; or silently (STANDARD-1, 5.3).
//!
//! A server also leaves [`LastWords`]: one more sealed close, with which it answers a client that has not
//! received a close. The invariant: no close is sent because of an answer to a close, so two ends that close
//! never keep a loop going.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::{CloseCode, CloseReason, Connection, ConnectionState, ConnectionTrigger};
use crate::crypto::TAG_BYTES;
use crate::wire::MAX_DATAGRAM_BYTES;
use crate::wire::frames::Frame;
use crate::wire::request::REQUEST_BYTES;
use crate::{DatagramBuffer, FourTuple, Instant};

/// How often a close frame is sent if it is not answered (H-5.3): where 30 % are lost, one peer of 1400
/// receives none of them.
pub(super) const MAX_CLOSES: u8 = 6;

/// The minimum time for which the id of an ended connection stays known (RFC 9000, 10.2), in probe timeouts.
const MIN_LINGER_PTOS: u32 = 3;

/// All copies of a peer's close have arrived after this time: five intervals of at most a second, and a
/// second for the path.
const COPIES_OF_CLOSE: Duration = Duration::from_secs(6);

/// The shortest and the longest time between two copies of a close or a path challenge.
const MIN_REPEAT_INTERVAL: Duration = Duration::from_millis(50);
const MAX_REPEAT_INTERVAL: Duration = Duration::from_secs(1);

/// A close that this end is sending, or would send if asked.
#[derive(Debug)]
pub(super) struct Closing {
    code: CloseCode,
    reason: String,
    remaining: u8,
    /// The peer has closed, too: it needs no more than an answer.
    peer_closed: bool,
    sent_at: Option<Instant>,
    next_at: Instant,
}

impl Closing {
    pub(super) const fn new(now: Instant, code: CloseCode, reason: String, remaining: u8) -> Self {
        Self { code, reason, remaining, peer_closed: false, sent_at: None, next_at: now }
    }

    /// When the next copy is due.
    pub(super) const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// The peer closes, or answers.
    pub(super) const fn on_answer(&mut self) {
        self.peer_closed = true;
    }

    /// The next copy goes at once, if one went before.
    pub(super) fn hasten(&mut self, now: Instant) {
        if let Some(sent_at) = self.sent_at {
            self.next_at = self.next_at.min(now.max(sent_at + MIN_REPEAT_INTERVAL));
        }
    }

    /// A copy is sent now, and the next one after `interval`. Returns whether it is the last.
    fn on_copy(&mut self, now: Instant, interval: Duration) -> bool {
        self.remaining -= 1;
        (self.sent_at, self.next_at) = (Some(now), now + interval);
        self.remaining == 0
    }
}

/// What a server keeps of a connection that has ended.
#[derive(Debug)]
pub(crate) struct LastWords {
    /// A sealed close; empty if no key was left to seal it with.
    pub(crate) close: Vec<u8>,
    /// The client may still be asking for the connection, and `close` is a response.
    pub(crate) is_response: bool,
    /// Where the client was.
    pub(crate) address: FourTuple,
    /// Bytes that may be sent there without receiving any more.
    pub(crate) credit: usize,
    /// How long a client that has not received a close may still keep its connection.
    pub(crate) lasts: Duration,
}

impl Connection {
    /// Closes, with a reason of up to 255 bytes for the peer. Data that is not acknowledged may be lost: wait
    /// for [`all_acked`](Self::all_acked) first if that matters.
    pub fn close(&mut self, now: Instant, code: CloseCode, reason: &str) {
        if self.life.close(now, code, reason) {
            self.recovery.forget();
        }
    }

    /// Closes because the peer broke a rule. Its reports of the path are not used for the next client at its
    /// address: they may be false.
    pub(super) fn close_on_violation(&mut self, now: Instant, code: CloseCode, reason: &str) {
        self.path.blocks.forget();
        self.close(now, code, reason);
    }

    /// Ends it without sending anything more.
    pub(crate) fn end(&mut self, trigger: ConnectionTrigger, reason: CloseReason) {
        self.life.end(trigger, reason);
    }

    /// Ends it without sending anything. A client that still sends is answered with a close with `code`.
    pub(crate) fn end_silently(&mut self, now: Instant, reason: CloseReason, code: CloseCode) {
        self.life.end_silently(now, reason, code);
    }

    /// Ends it if the idle timeout or the handshake timeout has passed.
    pub(super) fn end_if_silent(&mut self, now: Instant) {
        let state = self.life.state();
        if state == ConnectionState::Closed || self.liveness.ends_at(state) > now {
            return;
        }
        let reason = match state {
            ConnectionState::Responding => CloseReason::NoAnswer,
            _ => CloseReason::TimedOut,
        };
        self.life.end_silently(now, reason, CloseCode::TIMED_OUT);
    }

    /// The next copy of the close frame, when it is due.
    pub(super) fn transmit_close(
        &mut self,
        now: Instant,
        out: &mut DatagramBuffer<'_>,
    ) -> Option<FourTuple> {
        let interval = self.repeat_interval();
        let closing = self.life.closing_mut().filter(|closing| closing.next_at <= now)?;
        let is_last = closing.on_copy(now, interval);
        let (code, reason) = (closing.code.0, closing.reason.clone());
        let sealed = self.seal_close(now, code, &reason, self.path.room(), out);
        if is_last {
            self.life.on_last_close();
        }
        sealed?;
        self.path.on_sent(out.len());
        Some(self.path.address())
    }

    fn seal_close(
        &mut self,
        now: Instant,
        code: u32,
        reason: &str,
        room: usize,
        out: &mut DatagramBuffer<'_>,
    ) -> Option<()> {
        let number = self.begin(now, out, room)?;
        let header_bytes = out.len();
        Frame::Close { code, reason }.write(out.vec());
        if out.len() + TAG_BYTES > room {
            return None;
        }
        self.finish(number, header_bytes, out, None)?;
        self.recovery.on_unrecorded(number);
        Some(())
    }

    /// What a server keeps of this connection, which has ended.
    pub(crate) fn last_words(&mut self, now: Instant) -> LastWords {
        let probes = self.path.timing.probe_timeout().saturating_mul(MIN_LINGER_PTOS);
        let closing = self.life.take_closing();
        let close = closing.as_ref().and_then(|closing| self.sealed_close(now, closing));
        let lasts = match closing {
            // After that a client that receives nothing has ended on its own.
            Some(closing) if !closing.peer_closed => self.liveness.max_silence(),
            _ => COPIES_OF_CLOSE,
        };
        LastWords {
            close: close.unwrap_or_default(),
            is_response: self.agreement.is_responding(),
            address: self.path.address(),
            // A validated address has sent at least its request.
            credit: self.path.limited_room().unwrap_or(REQUEST_BYTES),
            lasts: lasts.max(probes),
        }
    }

    /// A close of its own, which the peer takes once however often it comes.
    fn sealed_close(&mut self, now: Instant, closing: &Closing) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut out = DatagramBuffer::behind(&mut bytes);
        // It counts as sent when it is, and that is after the application has looked.
        let (counters, trace) = (self.counters, self.life.take_trace());
        let Closing { code, reason, .. } = closing;
        let sealed = self.seal_close(now, code.0, reason, MAX_DATAGRAM_BYTES, &mut out);
        self.counters = counters;
        self.life.set_trace(trace);
        sealed.map(|()| bytes)
    }

    /// The time between two copies of a close or a path challenge: the probe timeout within bounds.
    pub(super) fn repeat_interval(&self) -> Duration {
        self.path.timing.probe_timeout().clamp(MIN_REPEAT_INTERVAL, MAX_REPEAT_INTERVAL)
    }
}
