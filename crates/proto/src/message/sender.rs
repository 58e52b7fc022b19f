//! The sending end of messages: keeps each one until it is acked.
//!
//! The invariant: the front of the queue is not acked, and each message is in exactly one state: waiting for
//! its first datagram, in flight in one datagram, lost and waiting for retransmission, or acked.

use alloc::collections::VecDeque;

use bytes::Bytes;

use super::{MAX_MESSAGE_BYTES, MESSAGE_FRAME_BYTES, MESSAGE_WINDOW, MIN_ROOM, MessageViolation};

/// [`MAX_MESSAGE_BYTES`] in the type in which queued bytes are counted.
const LARGEST: u32 = 1024;
const _: () = assert!(LARGEST as usize == MAX_MESSAGE_BYTES);

/// Why a message cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendMessageError {
    /// It has more than 1024 bytes. A block can have more.
    TooLarge,
    /// Too many messages, or bytes of them, are waiting or in flight. Try again after an ack.
    QueueFull,
    /// All 2^32 - 1 numbers of this connection are used: a new connection is needed.
    NumbersUsedUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    InFlight,
    Lost,
    Acked,
}

#[derive(Clone, Debug)]
struct Message {
    data: Bytes,
    state: State,
}

/// Sends messages. While it has no messages, it uses no heap memory.
#[derive(Clone, Debug)]
pub(crate) struct MessageSender {
    /// The messages from number `first` on. Those from `unsent` on were never sent.
    queue: VecDeque<Message>,
    first: u32,
    unsent: u32,
    limit: u32,
    /// How many messages are lost; none of them is below `lost_from`.
    lost: u32,
    lost_from: u32,
    queued_bytes: u32,
    max_queued: u32,
    max_queued_bytes: u32,
}

impl MessageSender {
    /// A sender that keeps at most `max_queued` messages with at most `max_queued_bytes` bytes, waiting and
    /// in flight, but at least one of the largest size.
    pub(crate) fn new(max_queued: u32, max_queued_bytes: u32) -> Self {
        Self {
            queue: VecDeque::new(),
            first: 0,
            unsent: 0,
            limit: MESSAGE_WINDOW,
            lost: 0,
            lost_from: 0,
            queued_bytes: 0,
            max_queued: max_queued.max(1),
            max_queued_bytes: max_queued_bytes.max(LARGEST),
        }
    }

    /// Queues a message of 0 to 1024 bytes, and returns its number. If `data` is a part of a larger
    /// allocation, all of that stays in memory until the ack.
    ///
    /// # Errors
    /// [`SendMessageError`]; the message is not queued.
    pub(crate) fn send(&mut self, data: Bytes) -> Result<u32, SendMessageError> {
        if data.len() > MAX_MESSAGE_BYTES {
            return Err(SendMessageError::TooLarge);
        }
        let count = self.count();
        // The last number is not used: a limit is above the numbers it allows, so none could allow it.
        let number = self.first.checked_add(count).filter(|&number| number < u32::MAX);
        let number = number.ok_or(SendMessageError::NumbersUsedUp)?;
        let bytes = self.queued_bytes.saturating_add(len(&data));
        if count >= self.max_queued || bytes > self.max_queued_bytes {
            return Err(SendMessageError::QueueFull);
        }
        self.queued_bytes = bytes;
        self.queue.push_back(Message { data, state: State::Waiting });
        Ok(number)
    }

    /// The next message for a datagram, if its frame fits into `room` bytes and the peer's limit allows it:
    /// lost ones first, then by number. It is in flight from then on.
    pub(crate) fn poll(&mut self, room: usize) -> Option<(u32, Bytes)> {
        let number = match self.next_lost() {
            Some(lost) => lost,
            None if self.unsent < self.limit => self.unsent,
            None => return None,
        };
        let message = self.message_mut(number)?;
        if message.data.len() + MESSAGE_FRAME_BYTES > room {
            return None;
        }
        let state = core::mem::replace(&mut message.state, State::InFlight);
        let data = message.data.clone();
        if state == State::Lost {
            self.lost -= 1;
            self.lost_from = number.saturating_add(1);
        } else {
            self.unsent = number.saturating_add(1);
        }
        Some((number, data))
    }

    /// A datagram with this message was acknowledged. Returns whether it is the first one.
    pub(crate) fn on_acked(&mut self, number: u32) -> bool {
        let Some(message) = self.message_mut(number) else { return false };
        if matches!(message.state, State::Waiting | State::Acked) {
            return false;
        }
        let was_lost = message.state == State::Lost;
        message.state = State::Acked;
        let data = core::mem::take(&mut message.data);
        self.queued_bytes -= len(&data);
        self.lost -= u32::from(was_lost);
        while self.queue.front().is_some_and(|message| message.state == State::Acked) {
            self.queue.pop_front();
            self.first += 1;
        }
        if self.queue.is_empty() && self.queue.capacity() > MIN_ROOM {
            self.queue = VecDeque::new();
        }
        true
    }

    /// The datagram with this message is lost: the message is retransmitted. Ignored if it is not in flight.
    pub(crate) fn on_lost(&mut self, number: u32) {
        let Some(message) = self.message_mut(number) else { return };
        if message.state == State::InFlight {
            message.state = State::Lost;
            self.lost_from = if self.lost == 0 { number } else { self.lost_from.min(number) };
            self.lost += 1;
        }
    }

    /// The peer allows all numbers below `limit`. A lower limit than an earlier one arrived late, and is
    /// ignored.
    ///
    /// # Errors
    /// [`MessageViolation::BadLimit`] if it is more than a window above the messages sent: the peer cannot
    /// have read so many.
    pub(crate) fn on_limit(&mut self, limit: u32) -> Result<(), MessageViolation> {
        if limit > self.unsent.saturating_add(MESSAGE_WINDOW) {
            return Err(MessageViolation::BadLimit);
        }
        self.limit = self.limit.max(limit);
        Ok(())
    }

    /// Whether all messages are acked.
    pub(crate) fn all_acked(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether [`poll`](Self::poll) has a message for a datagram with enough room.
    pub(crate) fn has_due(&self) -> bool {
        self.lost > 0 || (self.unsent < self.limit && self.unsent < self.end())
    }

    /// Bytes of the messages that are waiting or in flight.
    #[cfg(test)]
    pub(super) const fn queued_bytes(&self) -> usize {
        self.queued_bytes as usize
    }

    /// Panics if the queue contradicts itself. For tests, fuzzers and the simulator.
    pub(crate) fn check_invariants(&self) {
        let front = self.queue.front();
        assert!(front.is_none_or(|message| message.state != State::Acked), "an acked front");
        let bytes: u32 = self.queue.iter().map(|message| len(&message.data)).sum();
        assert_eq!(bytes, self.queued_bytes, "bytes in the queue");
        assert!(self.queued_bytes <= self.max_queued_bytes, "too many bytes");
        assert!(self.count() <= self.max_queued, "too many messages");
        assert!((self.first..=self.end()).contains(&self.unsent), "unsent outside the queue");
        assert!(self.unsent <= self.limit, "sent beyond the limit");
        let numbered = || (self.first..=u32::MAX).zip(&self.queue);
        let lost = || numbered().filter(|(_, message)| message.state == State::Lost);
        assert_eq!(lost().count(), self.lost as usize, "lost messages");
        assert!(lost().all(|(number, _)| number >= self.lost_from), "lost below the first lost");
        let waiting = |message: &Message| message.state == State::Waiting;
        assert!(
            numbered().all(|(number, message)| waiting(message) == (number >= self.unsent)),
            "sent and waiting"
        );
    }

    /// Messages in the queue, including acked ones that follow one that is not.
    fn count(&self) -> u32 {
        u32::try_from(self.queue.len()).unwrap_or(u32::MAX)
    }

    /// The number after the last one in the queue.
    fn end(&self) -> u32 {
        self.first.saturating_add(self.count())
    }

    fn message_mut(&mut self, number: u32) -> Option<&mut Message> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.queue.get_mut(index)
    }

    /// The first lost message. Each search continues where the previous one ended.
    fn next_lost(&mut self) -> Option<u32> {
        if self.lost == 0 {
            return None;
        }
        let from = self.lost_from.max(self.first);
        let skipped = usize::try_from(from - self.first).ok()?;
        let mut numbered = (from..=u32::MAX).zip(self.queue.iter().skip(skipped));
        let (number, _) = numbered.find(|(_, message)| message.state == State::Lost)?;
        self.lost_from = number;
        Some(number)
    }

    /// A sender with this many numbers left, for tests.
    #[cfg(test)]
    pub(super) fn with_numbers_left(left: u32) -> Self {
        let first = u32::MAX - left;
        Self { first, unsent: first, limit: u32::MAX, ..Self::default() }
    }
}

/// Four windows of messages, with as many bytes as the peer's window holds.
#[cfg(test)]
impl Default for MessageSender {
    fn default() -> Self {
        Self::new(1024, 262_144)
    }
}

/// At most 1024.
fn len(data: &Bytes) -> u32 {
    u32::try_from(data.len()).unwrap_or(u32::MAX)
}
