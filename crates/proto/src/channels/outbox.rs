//! The messages that wait to be sent, or to be acknowledged, on one channel.
//!
//! The invariant: each byte of a message is in exactly one state: waiting for its first datagram, in flight
//! in one datagram, lost and waiting for the next one, or acknowledged. Messages are begun in the order of
//! their numbers, and only if the peer's limit has room for the whole: so what is begun can always be
//! finished, and the parts of several never wait for each other.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;

use super::{Amount, MAX_MESSAGE_BYTES, MIN_ROOM, MessageViolation, SendMessageError};
use crate::transit::SentPart;
use crate::wire::frames::{Frame, MessageFrame, MessagePart};

/// A part that is not the last of its message has at least this many bytes. A part has a head of up to 17
/// bytes, and is one more datagram without which the message is not whole. Filling a gap of `n` bytes
/// saves `n / 1170` of a datagram, whose header and UDP's are 57 bytes: below 300 bytes the head costs
/// more. The rest of the distance is for the second reason: a message of up to 512 bytes is never cut.
const MIN_PART_BYTES: usize = 512;

/// The most bytes of one part: the data of the largest datagram there is.
const MAX_PART_BYTES: usize = 65_507;

/// What a message in the queue counts for beside its bytes, so that empty ones are not free: its place in
/// the queue.
pub(super) const MESSAGE_COST: usize = 64;
const _: () = assert!(size_of::<Message>() <= MESSAGE_COST);

/// When a message may be delivered.
///
/// # Examples
/// ```
/// use haulier_proto::connection::Order;
///
/// /// For `send_message_on`: what is complete in itself need not wait for what was sent before.
/// fn order(kind: &str) -> Order {
///     if kind == "chat" { Order::Ordered } else { Order::Unordered }
/// }
/// assert_eq!(order("chest opened"), Order::Unordered);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// After all ordered messages that were sent before it on its channel.
    Ordered,
    /// As soon as it has arrived.
    Unordered,
}

struct Message {
    /// Empty once it is acknowledged.
    data: Bytes,
    /// Bytes that were acknowledged.
    acked: u32,
    /// Its length, but 1 if it is empty: an empty message has one part, too.
    units: u32,
    order: Order,
}

impl Message {
    const fn is_acked(&self) -> bool {
        self.acked >= self.units
    }
}

/// Bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    number: u64,
    from: u32,
    to: u32,
}

/// What the ack of a part means to the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acked {
    /// This message is acknowledged as a whole.
    pub(super) number: Option<u64>,
    /// There is room for the message that was refused.
    pub(super) is_writable: bool,
}

/// Sends the messages of a channel. While it has none, it uses no heap memory.
pub(super) struct Outbox {
    /// The messages from number `first` on.
    queue: VecDeque<Message>,
    first: u64,
    /// The message that is being sent, or is the next one to begin.
    next: u64,
    /// What was sent of it: it is begun if this is not 0.
    offset: u32,
    /// Parts that were lost, in the order of number and offset.
    lost: VecDeque<Range>,
    /// What was begun, and what may be.
    begun: Amount,
    limit: Amount,
    queued_bytes: usize,
    /// The cost of the last message that was refused.
    refused: Option<usize>,
}

crate::debug_as! {
    Outbox: |outbox| messages = outbox.queue.len(), first = outbox.first, next = outbox.next,
        begun = outbox.begun, limit = outbox.limit
}

impl Outbox {
    /// A channel whose messages may at first have this many bytes.
    pub(super) const fn new(channel_bytes: u64) -> Self {
        Self {
            queue: VecDeque::new(),
            first: 0,
            next: 0,
            offset: 0,
            lost: VecDeque::new(),
            begun: Amount { messages: 0, bytes: 0 },
            limit: Amount::initial(channel_bytes),
            queued_bytes: 0,
            refused: None,
        }
    }

    /// Queues a message if there is room for it, and returns its number. An empty queue takes any.
    pub(super) fn send(
        &mut self,
        order: Order,
        data: Bytes,
        max_queued_bytes: usize,
    ) -> Result<u64, SendMessageError> {
        let units = match u32::try_from(data.len()) {
            Ok(bytes) if bytes <= MAX_MESSAGE_BYTES => bytes.max(1),
            _ => return Err(SendMessageError::TooLarge),
        };
        let cost = data.len() + MESSAGE_COST;
        if !self.has_room(cost, max_queued_bytes) {
            self.refused = Some(cost);
            return Err(SendMessageError::QueueFull);
        }
        self.queued_bytes += cost;
        let number = self.end();
        self.queue.push_back(Message { data, acked: 0, units, order });
        Ok(number)
    }

    /// The smallest room in which something of this channel goes; `None` if nothing may go now.
    pub(super) fn next_bytes(&self) -> Option<usize> {
        let range = self.next_range()?;
        let message = self.message(range.number)?;
        let rest = message.frame_bytes(range);
        let least = usize::try_from(range.to - range.from).ok()?.min(MIN_PART_BYTES);
        Some(rest.min(Self::part_head(range, message, least) + least))
    }

    /// Appends the next message or part if it fits into `room`: lost ones first, then by number.
    pub(super) fn poll(&mut self, channel: u8, room: usize, out: &mut Vec<u8>) -> Option<SentPart> {
        let range = self.next_range()?;
        let message = self.message(range.number)?;
        let sent = Range { to: Self::cut(range, message, room)?, ..range };
        message.frame(channel, sent).write(out);
        if self.lost.front() == Some(&range) {
            if sent.to == range.to {
                self.lost.pop_front();
                if self.lost.is_empty() && self.lost.capacity() > MIN_ROOM {
                    self.lost = VecDeque::new();
                }
            } else if let Some(front) = self.lost.front_mut() {
                front.from = sent.to;
            }
        } else {
            self.on_first_sent(sent);
        }
        Some(SentPart {
            number: low_bits(sent.number),
            offset: u16::try_from(sent.from).unwrap_or(u16::MAX),
            units: u16::try_from(sent.to - sent.from).unwrap_or(u16::MAX),
            channel,
        })
    }

    /// Appends a part that is in flight once more, if it fits into `room`. Returns whether it is a whole
    /// message: the ack of a copy counts only then, because bytes must not count twice.
    pub(super) fn copy(&self, part: SentPart, room: usize, out: &mut Vec<u8>) -> Option<bool> {
        let number = self.expand(part.number);
        let message = self.message(number).filter(|message| !message.is_acked())?;
        let from = u32::from(part.offset);
        let range = Range { number, from, to: from + u32::from(part.units) };
        if message.frame_bytes(range) > room {
            return None;
        }
        message.frame(part.channel, range).write(out);
        Some(from == 0 && range.to == message.units)
    }

    /// The datagram with this part was acknowledged. Each part is acknowledged or lost once.
    pub(super) fn on_acked(&mut self, part: SentPart, max_queued_bytes: usize) -> Acked {
        let number = self.expand(part.number);
        // A copy may have been acknowledged before.
        let open = self.message_mut(number).filter(|message| !message.is_acked());
        let Some(message) = open else { return Acked::default() };
        message.acked += u32::from(part.units);
        if !message.is_acked() {
            return Acked::default();
        }
        let data = core::mem::take(&mut message.data);
        self.queued_bytes -= data.len();
        while self.queue.front().is_some_and(Message::is_acked) {
            self.queue.pop_front();
            self.first += 1;
            self.queued_bytes -= MESSAGE_COST;
        }
        if self.queue.is_empty() && self.queue.capacity() > MIN_ROOM {
            self.queue = VecDeque::new();
        }
        let is_writable = self.refused.is_some_and(|cost| self.has_room(cost, max_queued_bytes));
        if is_writable {
            self.refused = None;
        }
        Acked { number: Some(number), is_writable }
    }

    /// A copy of a whole message was acknowledged.
    pub(super) fn on_copy_acked(&mut self, part: SentPart, max_queued_bytes: usize) -> Acked {
        let number = self.expand(part.number);
        self.lost.retain(|range| range.number != number);
        self.on_acked(part, max_queued_bytes)
    }

    /// The datagram with this part is lost: the part is retransmitted.
    pub(super) fn on_lost(&mut self, part: SentPart) {
        let number = self.expand(part.number);
        let from = u32::from(part.offset);
        let lost = Range { number, from, to: from + u32::from(part.units) };
        if self.message(number).is_none_or(Message::is_acked) {
            return;
        }
        let key = |range: &Range| (range.number, range.from);
        let at = self.lost.partition_point(|other| key(other) < key(&lost));
        // Neighbours are one, so that what was cut for little room is sent in large parts again.
        let joins_next =
            self.lost.get(at).is_some_and(|next| next.number == number && next.from == lost.to);
        let to =
            if joins_next { self.lost.remove(at).map_or(lost.to, |next| next.to) } else { lost.to };
        match at.checked_sub(1).and_then(|before| self.lost.get_mut(before)) {
            Some(before) if before.number == number && before.to == lost.from => before.to = to,
            _ => self.lost.insert(at, Range { to, ..lost }),
        }
    }

    /// The peer allows messages up to `limit`. A lower limit than before arrived late, and is ignored.
    ///
    /// # Errors
    /// [`MessageViolation::BadLimit`] if the limit implies that the peer has read more than was sent.
    pub(super) fn on_limit(
        &mut self,
        limit: Amount,
        channel_bytes: u64,
    ) -> Result<(), MessageViolation> {
        if !limit.is_within(self.begun.plus(Amount::initial(channel_bytes))) {
            return Err(MessageViolation::BadLimit);
        }
        self.limit = self.limit.max(limit);
        Ok(())
    }

    /// Whether all messages are acknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn has_room(&self, cost: usize, max_queued_bytes: usize) -> bool {
        self.queue.is_empty() || self.queued_bytes + cost <= max_queued_bytes
    }

    fn on_first_sent(&mut self, sent: Range) {
        let Some(message) = self.message(sent.number) else { return };
        let (units, bytes) = (message.units, message.data.len() as u64);
        if sent.from == 0 {
            self.begun = self.begun.plus(Amount { messages: 1, bytes });
        }
        if sent.to < units {
            self.offset = sent.to;
        } else {
            (self.next, self.offset) = (sent.number + 1, 0);
        }
    }

    /// What goes next, as a whole.
    fn next_range(&self) -> Option<Range> {
        if let Some(lost) = self.lost.front() {
            return Some(*lost);
        }
        let message = self.message(self.next)?;
        let bytes = message.data.len() as u64;
        let begun = self.begun.plus(Amount { messages: 1, bytes });
        let is_begun = self.offset > 0;
        (is_begun || begun.is_within(self.limit)).then_some(Range {
            number: self.next,
            from: self.offset,
            to: message.units,
        })
    }

    /// Where to cut these bytes so that their frame fits into `room`; `None` if that is not worth it.
    fn cut(range: Range, message: &Message, room: usize) -> Option<u32> {
        let rest = usize::try_from(range.to - range.from).ok()?;
        if rest <= MAX_PART_BYTES && message.frame_bytes(range) <= room {
            return Some(range.to);
        }
        // The length of a shorter part has no more bytes.
        let fits = room.checked_sub(Self::part_head(range, message, room))?;
        let count = fits.min(rest).min(MAX_PART_BYTES);
        let is_worth_it = count >= MIN_PART_BYTES && count < rest;
        is_worth_it.then(|| u32::try_from(count).ok().map(|count| range.from + count))?
    }

    /// Bytes before the data of a part of `data` bytes from the front of these.
    fn part_head(range: Range, message: &Message, data: usize) -> usize {
        let part = Some(MessagePart { whole: message.units, offset: range.from });
        MessageFrame::head_bytes(range.number, part, data)
    }

    /// The number after the last one in the queue.
    fn end(&self) -> u64 {
        self.first + self.queue.len() as u64
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first)?).ok()
    }

    fn message(&self, number: u64) -> Option<&Message> {
        self.queue.get(self.index(number)?)
    }

    fn message_mut(&mut self, number: u64) -> Option<&mut Message> {
        let index = self.index(number)?;
        self.queue.get_mut(index)
    }

    /// The number in the queue, or close before it, with these low bits.
    fn expand(&self, low: u32) -> u64 {
        let after = low.wrapping_sub(low_bits(self.first)).cast_signed();
        self.first.wrapping_add_signed(after.into())
    }

    /// A channel whose next message has this number, for tests.
    #[cfg(test)]
    pub(super) fn starting_at(channel_bytes: u64, first: u64) -> Self {
        let begun = Amount { messages: first, bytes: 0 };
        let limit = begun.plus(Amount::initial(channel_bytes));
        Self { first, next: first, begun, limit, ..Self::new(channel_bytes) }
    }

    /// Panics if the queue contradicts itself. For tests, fuzzers and the simulator.
    pub(super) fn check_invariants(&self) {
        assert!(!self.queue.front().is_some_and(Message::is_acked), "an acked front");
        let bytes: usize = self.queue.iter().map(|message| message.data.len()).sum();
        let cost = bytes + self.queue.len() * MESSAGE_COST;
        assert_eq!(cost, self.queued_bytes, "bytes in the queue");
        assert!((self.first..=self.end()).contains(&self.next), "next is outside the queue");
        assert!(self.begun.is_within(self.limit), "sent beyond the limit");
        let is_begun = u64::from(self.offset > 0);
        assert_eq!(self.begun.messages, self.next + is_begun, "messages begun");
        let unsent = self.message(self.next).is_none_or(|message| self.offset < message.units);
        assert!(unsent || self.offset == 0, "the next one is sent");
        let ends = |range: &Range| (range.number, range.to);
        for (range, next) in self.lost.iter().zip(self.lost.iter().skip(1)) {
            assert!(ends(range) < (next.number, next.from), "lost ones overlap or touch");
        }
        for range in &self.lost {
            let message = self.message(range.number);
            assert!(message.is_some_and(|message| range.to <= message.units), "lost, not there");
            let sent = (range.number, range.to) <= (self.next, self.offset);
            assert!(range.from < range.to && sent, "lost before it was sent");
        }
    }
}

impl Message {
    /// The frame of these bytes: a part, unless they are all.
    fn frame(&self, channel: u8, range: Range) -> Frame<'_> {
        let is_whole = range.from == 0 && range.to == self.units;
        let part = MessagePart { whole: self.units, offset: range.from };
        let bytes = range.from as usize..range.to as usize;
        Frame::Message(MessageFrame {
            channel,
            is_unordered: self.order == Order::Unordered,
            number: range.number,
            part: (!is_whole).then_some(part),
            data: self.data.get(bytes).unwrap_or_default(),
        })
    }

    /// Bytes of that frame.
    fn frame_bytes(&self, range: Range) -> usize {
        let Frame::Message(frame) = self.frame(0, range) else { return usize::MAX };
        MessageFrame::head_bytes(frame.number, frame.part, frame.data.len()) + frame.data.len()
    }
}

#[allow(clippy::cast_possible_truncation, reason = "that is what it is for")]
const fn low_bits(number: u64) -> u32 {
    number as u32
}
