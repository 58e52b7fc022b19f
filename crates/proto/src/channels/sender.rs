//! The sending end of messages: all channels of a connection.
//!
//! The invariant: of each channel the room is known in which it could send something now. A channel exists
//! from its first message on; those that were never used cost nothing, and none delays another.

use alloc::boxed::Box;
use alloc::vec::Vec;

use bytes::Bytes;

use super::outbox::{Acked, Order, Outbox};
use super::{Amount, MAX_CHANNELS, MAX_MESSAGE_BYTES, MessageViolation, SendMessageError};
use crate::transit::SentPart;
use crate::wire::frames::ChannelLimitFrame;

/// News of messages for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageEvent {
    /// A message has arrived: all of it is acknowledged.
    Acked {
        /// Its channel.
        channel: u8,
        /// Its number, from [`MessageSender::send`].
        number: u64,
    },
    /// There is room for the message that was refused last on this channel.
    Writable {
        /// The channel.
        channel: u8,
    },
}

/// A channel that was used.
#[derive(Debug)]
struct Channel {
    channel: u8,
    outbox: Box<Outbox>,
    /// The smallest room in which it has something to send.
    next_bytes: Option<u32>,
}

/// Sends messages on the channels that the peer accepts.
#[derive(Debug)]
pub(crate) struct MessageSender {
    /// The channels that were used, in their order.
    used: Vec<Channel>,
    /// Channels that have something to send.
    due: u16,
    channels: u16,
    channel_bytes: u64,
    max_queued_bytes: usize,
    /// Channels with messages that are not acknowledged.
    busy: u16,
}

impl MessageSender {
    /// A sender to a peer that accepts this many channels, with this many unread bytes each (its parameters
    /// 8 and 9). It keeps at most `max_queued_bytes` on each channel, waiting and in flight, or one message.
    pub(crate) fn new(channels: u16, channel_bytes: u64, max_queued_bytes: usize) -> Self {
        Self {
            used: Vec::new(),
            due: 0,
            channels: channels.clamp(1, MAX_CHANNELS),
            channel_bytes: channel_bytes.max(MAX_MESSAGE_BYTES.into()),
            max_queued_bytes,
            busy: 0,
        }
    }

    /// Queues a message of 0 to 65,536 bytes, and returns its number on its channel. The bytes are not
    /// copied; if they are a part of a larger allocation, all of that stays in memory until the ack.
    ///
    /// # Errors
    /// [`SendMessageError`]; the message is not queued.
    pub(crate) fn send(
        &mut self,
        channel: u8,
        order: Order,
        data: Bytes,
    ) -> Result<u64, SendMessageError> {
        if u16::from(channel) >= self.channels {
            return Err(SendMessageError::NoSuchChannel { accepted: self.channels });
        }
        if data.len() > MAX_MESSAGE_BYTES as usize {
            return Err(SendMessageError::TooLarge);
        }
        let at = match self.place(channel) {
            Ok(at) => at,
            Err(at) => {
                let outbox = Box::new(Outbox::new(self.channel_bytes));
                self.used.insert(at, Channel { channel, outbox, next_bytes: None });
                at
            }
        };
        let max_queued_bytes = self.max_queued_bytes;
        let outbox = &mut self.used[at].outbox;
        let was_empty = outbox.is_empty();
        let number = outbox.send(order, data, max_queued_bytes)?;
        self.busy += u16::from(was_empty);
        self.update_due(at);
        Ok(number)
    }

    /// Whether [`poll`](Self::poll) would have something for an empty datagram.
    pub(crate) const fn has_due(&self) -> bool {
        self.due > 0
    }

    /// The channels that have something to send, in their order, each with the smallest room in which
    /// [`poll`](Self::poll) finds something.
    pub(crate) fn due(&self) -> impl Iterator<Item = (u8, usize)> {
        self.used.iter().filter_map(|used| Some((used.channel, used.next_bytes? as usize)))
    }

    /// Appends a frame of the next message of this channel, or of a part of it, if it fits into `room`
    /// bytes. It is in flight from then on.
    pub(crate) fn poll(&mut self, channel: u8, room: usize, out: &mut Vec<u8>) -> Option<SentPart> {
        let at = self.place(channel).ok()?;
        let sent = self.used[at].outbox.poll(channel, room, out);
        self.update_due(at);
        sent
    }

    /// Appends a part that is in flight once more, in a probe. Returns whether its ack counts.
    pub(crate) fn copy(&self, part: SentPart, room: usize, out: &mut Vec<u8>) -> Option<bool> {
        let at = self.place(part.channel).ok()?;
        self.used.get(at)?.outbox.copy(part, room, out)
    }

    /// A datagram with this part was acknowledged. Each part is reported once, as acknowledged or lost.
    pub(crate) fn on_acked(
        &mut self,
        part: SentPart,
    ) -> impl Iterator<Item = MessageEvent> + use<> {
        self.acked(part, Outbox::on_acked)
    }

    /// A probe with a copy of this whole message was acknowledged.
    pub(crate) fn on_copy_acked(
        &mut self,
        part: SentPart,
    ) -> impl Iterator<Item = MessageEvent> + use<> {
        self.acked(part, Outbox::on_copy_acked)
    }

    fn acked(
        &mut self,
        part: SentPart,
        on_acked: fn(&mut Outbox, SentPart, usize) -> Acked,
    ) -> impl Iterator<Item = MessageEvent> + use<> {
        let channel = part.channel;
        let mut acked = Acked::default();
        if let Ok(at) = self.place(channel) {
            let outbox = &mut self.used[at].outbox;
            acked = on_acked(outbox, part, self.max_queued_bytes);
            self.busy -= u16::from(acked.number.is_some() && outbox.is_empty());
            self.update_due(at);
        }
        let whole = acked.number.map(|number| MessageEvent::Acked { channel, number });
        let writable = acked.is_writable.then_some(MessageEvent::Writable { channel });
        whole.into_iter().chain(writable)
    }

    /// A datagram with this part is lost: the part is retransmitted.
    pub(crate) fn on_lost(&mut self, part: SentPart) {
        if let Ok(at) = self.place(part.channel) {
            self.used[at].outbox.on_lost(part);
            self.update_due(at);
        }
    }

    /// The peer's limit of a channel arrived.
    ///
    /// # Errors
    /// [`MessageViolation`] if it cannot be; the connection must be closed.
    pub(crate) fn on_limit(&mut self, frame: ChannelLimitFrame) -> Result<(), MessageViolation> {
        let limit = Amount { messages: frame.messages, bytes: frame.bytes };
        if u16::from(frame.channel) >= self.channels {
            return Err(MessageViolation::NoSuchChannel);
        }
        match self.place(frame.channel) {
            Ok(at) => {
                self.used[at].outbox.on_limit(limit, self.channel_bytes)?;
                self.update_due(at);
                Ok(())
            }
            // Nothing was sent on it, so there is no more than the initial value to allow.
            Err(_) if limit.is_within(Amount::initial(self.channel_bytes)) => Ok(()),
            Err(_) => Err(MessageViolation::BadLimit),
        }
    }

    /// Whether all messages are acknowledged.
    pub(crate) const fn all_acked(&self) -> bool {
        self.busy == 0
    }

    fn place(&self, channel: u8) -> Result<usize, usize> {
        self.used.binary_search_by_key(&channel, |used| used.channel)
    }

    fn update_due(&mut self, at: usize) {
        let Some(used) = self.used.get_mut(at) else { return };
        let next_bytes = used.outbox.next_bytes().map(|bytes| bytes.try_into().unwrap_or(u32::MAX));
        self.due -= u16::from(used.next_bytes.is_some());
        self.due += u16::from(next_bytes.is_some());
        used.next_bytes = next_bytes;
    }

    /// A sender with this channel, for tests.
    #[cfg(test)]
    pub(super) fn with(channel: u8, outbox: Outbox, channel_bytes: u64) -> Self {
        let used = alloc::vec![Channel { channel, outbox: Box::new(outbox), next_bytes: None }];
        Self { used, ..Self::new(MAX_CHANNELS, channel_bytes, usize::MAX) }
    }

    /// Panics if the channels contradict themselves. For tests, fuzzers and the simulator.
    pub(crate) fn check_invariants(&self) {
        for used in &self.used {
            used.outbox.check_invariants();
            let next_bytes = used.outbox.next_bytes();
            assert_eq!(
                next_bytes,
                used.next_bytes.map(|bytes| bytes as usize),
                "room for the next"
            );
        }
        assert!(self.used.is_sorted_by(|a, b| a.channel < b.channel), "channels out of order");
        assert_eq!(self.due().count(), usize::from(self.due), "channels that have something");
        let busy = self.used.iter().filter(|used| !used.outbox.is_empty());
        assert_eq!(busy.count(), usize::from(self.busy), "channels in use");
    }
}
