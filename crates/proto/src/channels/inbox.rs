//! The messages of one channel that arrived, and are not read yet.
//!
//! The invariant: everything that arrived is within the limits that were sent, which are at most a window
//! above what the application has read. So a peer can make a channel hold 256 messages and one window of
//! bytes, and no number is delivered twice.

use alloc::collections::VecDeque;

use bytes::Bytes;

use super::assembly::Assembly;
use super::numbers::Numbers;
use super::{Amount, MAX_MESSAGE_BYTES, MESSAGE_WINDOW, MIN_ROOM, MessageViolation};
use crate::wire::frames::MessageFrame;

/// Whether a message or part is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Some of it is.
    New,
    /// It was received before: its ack was lost, or late.
    Duplicate,
}

enum Content {
    Whole(Bytes),
    Parts(Assembly),
}

impl Content {
    const fn whole(&self) -> u32 {
        match self {
            // At most 64 KiB.
            #[allow(clippy::cast_possible_truncation, reason = "at most 64 KiB")]
            Self::Whole(data) => data.len() as u32,
            Self::Parts(assembly) => assembly.whole(),
        }
    }

    const fn heap_bytes(&self) -> usize {
        match self {
            Self::Whole(data) => data.len(),
            Self::Parts(assembly) => assembly.heap_bytes(),
        }
    }

    /// Adds a part, or compares it.
    fn add(&mut self, offset: u32, part: &[u8]) -> Result<Arrival, MessageViolation> {
        match self {
            Self::Whole(data) => {
                let from = offset as usize;
                let is_same = data.get(from..from.saturating_add(part.len())) == Some(part);
                if is_same { Ok(Arrival::Duplicate) } else { Err(MessageViolation::Contradiction) }
            }
            Self::Parts(assembly) => {
                let is_new = assembly.insert(offset, part)?;
                if assembly.is_whole() {
                    *self = Self::Whole(assembly.join());
                }
                Ok(if is_new { Arrival::New } else { Arrival::Duplicate })
            }
        }
    }
}

/// A message that cannot be delivered yet.
struct Held {
    number: u64,
    is_unordered: bool,
    content: Content,
}

impl Held {
    const fn is_whole(&self) -> bool {
        matches!(self.content, Content::Whole(_))
    }
}

/// Receives the messages of a channel. While none is held or missing, it uses no heap memory.
pub(super) struct Inbox {
    /// Messages in parts, or that wait for earlier ones, in the order of their numbers.
    held: VecDeque<Held>,
    /// Bytes on the heap of the held messages' contents.
    content_bytes: usize,
    /// The numbers of messages that were handed out.
    delivered: Numbers,
    /// All messages with lower numbers are known as ordered or not, and the ordered ones are delivered.
    next_ordered: u64,
    /// The sum of the lengths of all messages of which a part arrived.
    arrived_bytes: u64,
    /// The amount that the application has read.
    read: Amount,
    /// The highest limit sent.
    limit: Amount,
    /// The number of limits sent; wraps.
    limits_sent: u16,
    is_limit_lost: bool,
}

crate::debug_as! {
    Inbox: |inbox| held = inbox.held.len(), next_ordered = inbox.next_ordered, read = inbox.read,
        limit = inbox.limit
}

impl Inbox {
    /// A channel before its first message, on which `channel_bytes` may wait unread.
    pub(super) fn new(channel_bytes: u64) -> Self {
        Self {
            held: VecDeque::new(),
            content_bytes: 0,
            delivered: Numbers::default(),
            next_ordered: 0,
            arrived_bytes: 0,
            read: Amount::default(),
            limit: Amount::initial(channel_bytes),
            limits_sent: 0,
            is_limit_lost: false,
        }
    }

    /// Handles a message or a part, and delivers what can be delivered by it.
    ///
    /// # Errors
    /// [`MessageViolation`]; the connection must be closed.
    pub(super) fn receive(
        &mut self,
        frame: &MessageFrame<'_>,
        mut deliver: impl FnMut(Bytes),
    ) -> Result<Arrival, MessageViolation> {
        if frame.number >= self.limit.messages {
            return Err(MessageViolation::BeyondLimit);
        }
        if self.delivered.contains(frame.number) {
            return Ok(Arrival::Duplicate);
        }
        let at = self.held.partition_point(|held| held.number < frame.number);
        if self.held.get(at).is_none_or(|held| held.number != frame.number) {
            self.begin(at, frame, &mut deliver)?;
            return Ok(Arrival::New);
        }
        let arrival = self.add(at, frame)?;
        self.deliver_from(at, &mut deliver);
        Ok(arrival)
    }

    /// The first part of a message, or all of it.
    fn begin(
        &mut self,
        at: usize,
        frame: &MessageFrame<'_>,
        deliver: &mut impl FnMut(Bytes),
    ) -> Result<(), MessageViolation> {
        let whole = whole(frame);
        let arrived_bytes = self.arrived_bytes.saturating_add(whole.into());
        if arrived_bytes > self.limit.bytes {
            return Err(MessageViolation::BeyondLimit);
        }
        self.arrived_bytes = arrived_bytes;
        let content = if frame.data.len() == whole as usize {
            let data = Bytes::copy_from_slice(frame.data);
            if frame.is_unordered {
                self.hand_out(frame.number, data, deliver);
                self.advance(deliver);
                return Ok(());
            }
            Content::Whole(data)
        } else {
            let mut assembly = Assembly::new(whole);
            assembly.insert(offset(frame), frame.data)?;
            Content::Parts(assembly)
        };
        self.content_bytes += content.heap_bytes();
        let (number, is_unordered) = (frame.number, frame.is_unordered);
        self.held.insert(at, Held { number, is_unordered, content });
        self.advance(deliver);
        Ok(())
    }

    /// Another part of the message at this place, or the same again.
    fn add(&mut self, at: usize, frame: &MessageFrame<'_>) -> Result<Arrival, MessageViolation> {
        let held = &mut self.held[at];
        if held.is_unordered != frame.is_unordered || held.content.whole() != whole(frame) {
            return Err(MessageViolation::Contradiction);
        }
        let before = held.content.heap_bytes();
        let arrival = held.content.add(offset(frame), frame.data);
        self.content_bytes = self.content_bytes + held.content.heap_bytes() - before;
        arrival
    }

    /// Delivers the message at this place if it is whole and may be, and then what waited for it.
    fn deliver_from(&mut self, at: usize, deliver: &mut impl FnMut(Bytes)) {
        if self.held.get(at).is_some_and(|held| held.is_unordered && held.is_whole()) {
            self.take(at, deliver);
        }
        self.advance(deliver);
    }

    /// Delivers the ordered messages whose turn it is.
    fn advance(&mut self, deliver: &mut impl FnMut(Bytes)) {
        loop {
            if let Some(end) = self.delivered.end_of_run(self.next_ordered) {
                self.next_ordered = end;
                continue;
            }
            let next = self.next_ordered;
            let at = self.held.partition_point(|held| held.number < next);
            match self.held.get(at) {
                Some(held) if held.number == next && held.is_unordered => self.next_ordered += 1,
                Some(held) if held.number == next && held.is_whole() => self.take(at, deliver),
                _ => return,
            }
        }
    }

    fn take(&mut self, at: usize, deliver: &mut impl FnMut(Bytes)) {
        let Some(Held { number, content: Content::Whole(data), .. }) = self.held.remove(at) else {
            return;
        };
        self.content_bytes -= data.len();
        if self.held.is_empty() && self.held.capacity() > MIN_ROOM {
            self.held = VecDeque::new();
        }
        self.hand_out(number, data, deliver);
    }

    fn hand_out(&mut self, number: u64, data: Bytes, deliver: &mut impl FnMut(Bytes)) {
        self.delivered.insert(number);
        deliver(data);
    }

    /// The application has read a message of this many bytes.
    pub(super) fn on_read(&mut self, bytes: usize) {
        self.read = self.read.plus(Amount { messages: 1, bytes: bytes as u64 });
    }

    /// The limit to send, if one is due: half of a window was read since the last limit (H-4.4b), or the rest
    /// of the window is shorter than the largest message, or the last limit was lost.
    pub(super) fn limit_due(&self, channel_bytes: u64) -> Option<(u64, u64)> {
        let highest = self.read.plus(Amount::initial(channel_bytes));
        let left_messages = self.limit.messages.saturating_sub(self.read.messages);
        let left_bytes = self.limit.bytes.saturating_sub(self.read.bytes);
        let is_step = left_messages <= MESSAGE_WINDOW / 2
            || left_bytes <= channel_bytes / 2
            || left_bytes < MAX_MESSAGE_BYTES.into();
        (is_step || self.is_limit_lost).then_some((highest.messages, highest.bytes))
    }

    /// The limit that was due is sent. Returns its serial number.
    pub(super) fn on_limit_sent(&mut self, channel_bytes: u64) -> u16 {
        self.limit = self.read.plus(Amount::initial(channel_bytes));
        self.is_limit_lost = false;
        self.limits_sent = self.limits_sent.wrapping_add(1);
        self.limits_sent
    }

    /// The datagram with this limit is lost. If it was the newest, it is due again.
    pub(super) const fn on_limit_lost(&mut self, serial: u16) {
        self.is_limit_lost |= serial == self.limits_sent;
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.content_bytes + self.held.capacity() * size_of::<Held>() + self.delivered.heap_bytes()
    }

    /// Panics if the channel contradicts itself. For tests, fuzzers and the simulator.
    pub(super) fn check_invariants(&self, channel_bytes: u64) {
        self.delivered.check_invariants();
        let mut bytes = 0;
        for held in &self.held {
            bytes += held.content.heap_bytes();
            assert!(!self.delivered.contains(held.number), "held and delivered");
            assert!(held.number < self.limit.messages, "beyond the limit");
            if let Content::Parts(assembly) = &held.content {
                assembly.check_invariants();
                assert!(!assembly.is_whole(), "whole and in parts");
            }
            let must_go = held.is_unordered || held.number < self.next_ordered;
            assert!(!(must_go && held.is_whole()), "whole and not delivered");
        }
        assert_eq!(bytes, self.content_bytes, "bytes of content");
        assert!(self.held.iter().is_sorted_by(|a, b| a.number < b.number), "out of order");
        assert!(self.held.len() as u64 <= MESSAGE_WINDOW, "more messages than a window");
        let highest = self.read.plus(Amount::initial(channel_bytes));
        assert!(self.limit.is_within(highest), "a limit beyond the window");
        assert!(self.arrived_bytes <= self.limit.bytes, "more bytes than the limit");
        assert!(self.read.bytes <= self.arrived_bytes, "more read than arrived");
    }
}

/// The length of the message.
fn whole(frame: &MessageFrame<'_>) -> u32 {
    match frame.part {
        Some(part) => part.whole,
        None => u32::try_from(frame.data.len()).unwrap_or(u32::MAX),
    }
}

/// Where the part begins.
const fn offset(frame: &MessageFrame<'_>) -> u32 {
    match frame.part {
        Some(part) => part.offset,
        None => 0,
    }
}
