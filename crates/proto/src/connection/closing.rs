//! How a connection ends: closed by this end, which sends its close frame until the peer answers it or six
//! times; by the peer's close, which it answers once; or silently (STANDARD-1, 5.3).
//!
//! A server also leaves [`LastWords`]: one more sealed close, with which it answers a client that has not
//! heard that its connection has ended. The invariant: no close is sent because of an answer to a close, so
//! that two ends that close never keep a loop going.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::{CloseCode, CloseReason, Connection, ConnectionState, ConnectionTrigger, Event};
use crate::crypto::TAG_BYTES;
use crate::wire::MAX_DATAGRAM_BYTES;
use crate::wire::frames::{Frame, truncate_reason};
use crate::wire::request::REQUEST_BYTES;
use crate::{DatagramBuffer, FourTuple, Instant};

/// How often a close frame is sent if it is not answered (H-5.3): where 30 % are lost, one peer of 1400 hears
/// none of them.
const MAX_CLOSES: u8 = 6;

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
    pub(super) next_at: Instant,
}

impl Closing {
    const fn new(now: Instant, code: CloseCode, reason: String, remaining: u8) -> Self {
        Self { code, reason, remaining, peer_closed: false, sent_at: None, next_at: now }
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
    /// How long a client can be there that has not heard of the end.
    pub(crate) lasts: Duration,
}

impl Connection {
    /// Closes, with a reason of up to 255 bytes for the peer. Data that is not acknowledged may be lost: wait
    /// for [`all_acked`](Self::all_acked) first if that matters.
    pub fn close(&mut self, now: Instant, code: CloseCode, reason: &str) {
        if self.transition(ConnectionTrigger::CloseHere) {
            let reason = truncate_reason(reason).into();
            self.closing = Some(Box::new(Closing::new(now, code, reason, MAX_CLOSES)));
            self.sent.forget();
            self.note_closed(now, &CloseReason::Here(code));
            self.events.push_back(Event::Closed(CloseReason::Here(code)));
        }
    }

    /// Closes because the peer broke a rule. What it reported of its path is not passed on to the next
    /// client at its address: it may have lied.
    pub(super) fn close_on_violation(&mut self, now: Instant, code: CloseCode, reason: &str) {
        self.path.blocks.forget();
        self.close(now, code, reason);
    }

    /// The peer closes. That is answered once, so that it need not repeat it.
    pub(super) fn on_close(&mut self, now: Instant, code: CloseCode, reason: &str) {
        let answer = Closing::new(now, CloseCode::DONE, String::new(), 1);
        self.closing.get_or_insert_with(|| Box::new(answer)).peer_closed = true;
        let reason = CloseReason::There { code, reason: reason.into() };
        self.end(ConnectionTrigger::CloseThere, reason);
    }

    /// A copy of the request arrived: if this end closes, the client has not heard it. It is told at once,
    /// with one of the copies that are left. (Data says nothing: what was in flight arrives for a round
    /// trip, and the next copy is due not much later.)
    pub(super) fn hasten_close(&mut self, now: Instant) {
        if let Some(closing) = &mut self.closing
            && let Some(sent_at) = closing.sent_at
        {
            closing.next_at = closing.next_at.min(now.max(sent_at + MIN_REPEAT_INTERVAL));
        }
    }

    /// Ends it without sending anything more.
    pub(crate) fn end(&mut self, trigger: ConnectionTrigger, reason: CloseReason) {
        let was_closing = self.state == ConnectionState::Closing;
        if self.transition(trigger) && !was_closing {
            self.note_closed(self.now, &reason);
            self.events.push_back(Event::Closed(reason));
        }
    }

    /// Ends it without sending anything. A client that still sends is told `code`.
    pub(crate) fn end_silently(&mut self, now: Instant, reason: CloseReason, code: CloseCode) {
        let silent = Closing::new(now, code, String::new(), 0);
        self.closing.get_or_insert_with(|| Box::new(silent));
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
        closing.sent_at = Some(now);
        closing.next_at = now + interval;
        let (code, reason, is_last) =
            (closing.code.0, closing.reason.clone(), closing.remaining == 0);
        let sealed = self.seal_close(now, code, &reason, self.path.room(), out);
        if is_last {
            self.transition(ConnectionTrigger::CloseSent);
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
        self.sent.on_unrecorded(number);
        Some(())
    }

    /// What a server keeps of this connection, which has ended.
    pub(crate) fn last_words(&mut self, now: Instant) -> LastWords {
        let probes = self.path.timing.probe_timeout().saturating_mul(MIN_LINGER_PTOS);
        let closing = self.closing.take();
        let close = closing.as_ref().and_then(|closing| self.sealed_close(now, closing));
        let lasts = match closing {
            // After that a client that hears nothing has ended on its own.
            Some(closing) if !closing.peer_closed => self.liveness.max_silence(),
            _ => COPIES_OF_CLOSE,
        };
        LastWords {
            close: close.unwrap_or_default(),
            is_response: !self.welcome_message.is_empty(),
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
        let (counters, trace) = (self.counters, self.trace.take());
        let Closing { code, reason, .. } = closing;
        let sealed = self.seal_close(now, code.0, reason, MAX_DATAGRAM_BYTES, &mut out);
        (self.counters, self.trace) = (counters, trace);
        sealed.map(|()| bytes)
    }

    /// The time between two copies of a close or a path challenge: the probe timeout within bounds.
    pub(super) fn repeat_interval(&self) -> Duration {
        self.path.timing.probe_timeout().clamp(MIN_REPEAT_INTERVAL, MAX_REPEAT_INTERVAL)
    }
}
