//! The receiving end of messages: delivers each one once and in order.
//!
//! The invariant: all waiting messages are below the limit, which is at most one window above what was read.
//! So a peer can make it hold at most 256 messages of 1024 bytes.

use alloc::collections::VecDeque;

use bytes::Bytes;

use super::{MAX_MESSAGE_BYTES, MESSAGE_WINDOW, MIN_ROOM, MessageViolation};

/// The limit is raised in steps of this size [H-4.4b]: two frames for each window read.
const LIMIT_STEP: u32 = MESSAGE_WINDOW / 2;

/// Whether a message is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It is new; [`MessageReceiver::pop`] may return it.
    New,
    /// It was received before: its ack was lost, or late.
    Duplicate,
}

/// Receives messages. While no message waits, it uses no heap memory.
#[derive(Clone, Debug)]
pub(crate) struct MessageReceiver {
    /// The messages from number `next` on, `None` where one is missing. The last one is never missing.
    waiting: VecDeque<Option<Bytes>>,
    /// The number of the next message to be read.
    next: u32,
    /// The highest limit sent.
    limit: u32,
    /// Bytes of the waiting messages.
    waiting_bytes: u32,
    /// The datagram with that limit is lost.
    is_limit_lost: bool,
}

impl MessageReceiver {
    /// A receiver before the first message. Its limit is 256.
    pub(crate) const fn new() -> Self {
        Self {
            waiting: VecDeque::new(),
            next: 0,
            limit: MESSAGE_WINDOW,
            waiting_bytes: 0,
            is_limit_lost: false,
        }
    }

    /// Handles a message, and copies it if it is new.
    ///
    /// # Errors
    /// [`MessageViolation::BeyondLimit`] or [`MessageViolation::TooLarge`]; the connection must be closed.
    pub(crate) fn receive(
        &mut self,
        number: u32,
        data: &[u8],
    ) -> Result<Arrival, MessageViolation> {
        if data.len() > MAX_MESSAGE_BYTES {
            return Err(MessageViolation::TooLarge);
        }
        if number >= self.limit {
            return Err(MessageViolation::BeyondLimit);
        }
        let Some(index) = number.checked_sub(self.next) else { return Ok(Arrival::Duplicate) };
        // Below 256, as the limit is.
        let index = index as usize;
        if self.waiting.len() <= index {
            self.waiting.resize(index + 1, None);
        }
        match self.waiting.get_mut(index) {
            Some(missing @ None) => {
                *missing = Some(Bytes::copy_from_slice(data));
                self.waiting_bytes += u32::try_from(data.len()).unwrap_or(0);
                Ok(Arrival::New)
            }
            _ => Ok(Arrival::Duplicate),
        }
    }

    /// The next message, in the order in which they were sent, if it has arrived.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        let data = self.waiting.front_mut()?.take()?;
        self.waiting.pop_front();
        self.waiting_bytes -= u32::try_from(data.len()).unwrap_or(0);
        self.next = self.next.saturating_add(1);
        if self.waiting.is_empty() && self.waiting.capacity() > MIN_ROOM {
            self.waiting = VecDeque::new();
        }
        Some(data)
    }

    /// Memory of the waiting messages, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.waiting_bytes as usize + self.waiting.capacity() * size_of::<Option<Bytes>>()
    }

    /// Whether [`pop`](Self::pop) would return a message.
    pub(crate) fn has_next(&self) -> bool {
        self.waiting.front().is_some_and(Option::is_some)
    }

    /// The limit to send to the peer: after half of a window was read, or after the last limit was lost. It
    /// is due until [`on_limit_sent`](Self::on_limit_sent).
    pub(crate) const fn limit_due(&self) -> Option<u32> {
        let limit = self.next.saturating_add(MESSAGE_WINDOW);
        // The last step, at the end of the numbers, is shorter.
        let is_step = limit - self.limit >= LIMIT_STEP;
        let is_last = limit == u32::MAX && self.limit < limit;
        if is_step || is_last || self.is_limit_lost { Some(limit) } else { None }
    }

    /// This limit, from [`limit_due`](Self::limit_due), was sent. The peer may use it from now on.
    pub(crate) fn on_limit_sent(&mut self, limit: u32) {
        let highest = self.next.saturating_add(MESSAGE_WINDOW);
        self.limit = limit.clamp(self.limit, highest);
        self.is_limit_lost = false;
    }

    /// The datagram with this limit is lost. If it was the highest limit, it is retransmitted.
    pub(crate) const fn on_limit_lost(&mut self, limit: u32) {
        self.is_limit_lost |= limit == self.limit;
    }

    /// The number of the next message to be read.
    #[cfg(test)]
    pub(super) const fn next_number(&self) -> u32 {
        self.next
    }

    /// Panics if the queue contradicts itself. For tests, fuzzers and the simulator.
    pub(crate) fn check_invariants(&self) {
        let window = u64::from(self.next)..=u64::from(self.next) + u64::from(MESSAGE_WINDOW);
        assert!(window.contains(&u64::from(self.limit)), "a limit outside the window");
        assert!(self.waiting.back().is_none_or(Option::is_some), "nothing at the end");
        assert!(self.waiting.len() <= (self.limit - self.next) as usize, "beyond the limit");
    }

    /// A receiver whose next message is number `next`, for tests.
    #[cfg(test)]
    pub(super) fn starting_at(next: u32) -> Self {
        let limit = next.saturating_add(MESSAGE_WINDOW);
        Self { next, limit, ..Self::new() }
    }
}

#[cfg(test)]
impl Default for MessageReceiver {
    fn default() -> Self {
        Self::new()
    }
}
