//! How a connection ends: closed by this end, which sends its close frame three times, or silently
//! (STANDARD-1, 5.3).

use alloc::string::String;
use core::time::Duration;

use super::{CloseCode, CloseReason, Connection, ConnectionState, ConnectionTrigger, Event};
use crate::crypto::TAG_BYTES;
use crate::wire::Frame;
use crate::{DatagramBuffer, FourTuple, Instant};

/// How often a close frame is sent (H-5.3).
const MAX_CLOSES: u8 = 3;

/// A close that this end is sending.
#[derive(Debug)]
pub(super) struct Closing {
    code: CloseCode,
    reason: String,
    remaining: u8,
    pub(super) next_at: Instant,
}

impl Connection {
    /// Closes, with a reason of up to 200 bytes for the peer. Data that is not acknowledged may be lost: wait
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
        if self.transition(trigger) && !was_closing {
            self.events.push_back(Event::Closed(reason));
        }
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
        self.end(ConnectionTrigger::Silence, reason);
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
        let number = self.begin(now, out, self.path.room())?;
        let header_bytes = out.len();
        Frame::Close { code, reason: &reason }.write(out.vec());
        if out.len() + TAG_BYTES > self.path.room() {
            return None;
        }
        self.finish(number, header_bytes, out)?;
        self.path.on_sent(out.len());
        self.sent.on_unrecorded(number);
        Some(self.path.address())
    }

    /// The time between two copies of a close or a path challenge: the probe timeout within bounds.
    pub(super) fn repeat_interval(&self) -> Duration {
        self.sent.probe_timeout().clamp(Duration::from_millis(50), Duration::from_secs(1))
    }
}
