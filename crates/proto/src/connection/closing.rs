//! How a connection ends: closed by this end, which sends its close frame three times, or silently
//! (STANDARD-1, 5.3).
//!
//! A server also leaves [`LastWords`]: one more sealed close, with which it answers a client that has not
//! heard that its connection has ended. The invariant: a connection that was closed by its peer leaves none
//! to say, because there is nobody left to hear them.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::{CloseCode, CloseReason, Connection, ConnectionState, ConnectionTrigger, Event};
use crate::crypto::TAG_BYTES;
use crate::wire::request::REQUEST_BYTES;
use crate::wire::{Frame, MAX_DATAGRAM_BYTES};
use crate::{DatagramBuffer, FourTuple, Instant};

/// How often a close frame is sent (H-5.3).
const MAX_CLOSES: u8 = 3;

/// The minimum time for which the id of an ended connection stays known (RFC 9000, 10.2), in probe timeouts.
const MIN_LINGER_PTOS: u32 = 3;

/// The other copies of a peer's close arrive within this time: two intervals of at most a second, and a second
/// for the path.
const MAX_COPIES_OF_CLOSE: Duration = Duration::from_secs(3);

/// A close that this end is sending, or would send if asked.
#[derive(Debug)]
pub(super) struct Closing {
    code: CloseCode,
    reason: String,
    remaining: u8,
    pub(super) next_at: Instant,
}

/// What a server keeps of a connection that has ended.
#[derive(Debug)]
pub(crate) struct LastWords {
    /// A sealed close; empty if the client needs none.
    pub(crate) close: Vec<u8>,
    /// Where the client was.
    pub(crate) address: FourTuple,
    /// Bytes that may be sent there without receiving any more.
    pub(crate) credit: usize,
    /// How long a client can be there that has not heard of the end.
    pub(crate) lasts: Duration,
}

impl Connection {
    /// Closes, with a reason of up to 255 bytes for the peer. Data that is not acknowledged may be lost: wait
    /// for [`all_acked`](Self::all_acked) first if that matters.
    pub fn close(&mut self, now: Instant, code: CloseCode, reason: &str) {
        if self.transition(ConnectionTrigger::CloseHere) {
            let reason = crate::wire::frame::truncate_reason(reason).into();
            self.closing = Some(Closing { code, reason, remaining: MAX_CLOSES, next_at: now });
            self.events.push_back(Event::Closed(CloseReason::Here(code)));
        }
    }

    /// Ends it without sending anything more.
    pub(crate) fn end(&mut self, trigger: ConnectionTrigger, reason: CloseReason) {
        let was_closing = self.state == ConnectionState::Closing;
        if trigger == ConnectionTrigger::CloseThere {
            self.closing = None;
        }
        if self.transition(trigger) && !was_closing {
            self.events.push_back(Event::Closed(reason));
        }
    }

    /// Ends it without sending anything. A client that still sends is told `code`.
    pub(crate) fn end_silently(&mut self, now: Instant, reason: CloseReason, code: CloseCode) {
        let silent = Closing { code, reason: String::new(), remaining: 0, next_at: now };
        self.closing.get_or_insert(silent);
        self.end(ConnectionTrigger::Silence, reason);
    }

    /// Ends it if the idle timeout or the handshake timeout has passed.
    pub(super) fn end_if_silent(&mut self, now: Instant) {
        if self.state == ConnectionState::Closed || self.liveness.ends_at(self.state) > now {
            return;
        }
        let reason = match self.state {
            ConnectionState::Responding => CloseReason::NoAnswer,
            _ => CloseReason::TimedOut,
        };
        self.end_silently(now, reason, CloseCode::TIMED_OUT);
    }

    /// The next copy of the close frame, when it is due.
    pub(super) fn transmit_close(
        &mut self,
        now: Instant,
        out: &mut DatagramBuffer<'_>,
    ) -> Option<FourTuple> {
        let interval = self.repeat_interval();
        let closing = self.closing.as_mut().filter(|closing| closing.next_at <= now)?;
        closing.remaining -= 1;
        closing.next_at = now + interval;
        let (code, reason) = (closing.code.0, closing.reason.clone());
        if closing.remaining == 0 {
            self.transition(ConnectionTrigger::CloseSent);
        }
        self.seal_close(now, code, &reason, self.path.room(), out)?;
        self.path.on_sent(out.len());
        Some(self.path.address())
    }

    fn seal_close(
        &mut self,
        now: Instant,
        code: u16,
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
        self.finish(number, header_bytes, out)?;
        self.sent.on_unrecorded(number);
        Some(())
    }

    /// What a server keeps of this connection, which has ended.
    pub(crate) fn last_words(&mut self, now: Instant) -> LastWords {
        let probes = self.sent.probe_timeout().saturating_mul(MIN_LINGER_PTOS);
        let close = self.closing.take().and_then(|closing| self.sealed_close(now, &closing));
        let lasts = match close {
            // After that a client that hears nothing has ended on its own.
            Some(_) => self.liveness.max_silence(),
            None => MAX_COPIES_OF_CLOSE,
        };
        LastWords {
            close: close.unwrap_or_default(),
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
        let stats = self.stats;
        let Closing { code, reason, .. } = closing;
        let sealed = self.seal_close(now, code.0, reason, MAX_DATAGRAM_BYTES, &mut out);
        self.stats = stats;
        sealed.map(|()| bytes)
    }

    /// The time between two copies of a close or a path challenge: the probe timeout within bounds.
    pub(super) fn repeat_interval(&self) -> Duration {
        self.sent.probe_timeout().clamp(Duration::from_millis(50), Duration::from_secs(1))
    }
}
