//! The receiving end of messages: all channels of a connection.
//!
//! The invariant: what [`memory_bytes`](MessageReceiver::memory_bytes) says is what is allocated, and a peer
//! that sends what it likes makes this end hold no more than the limits of the channels it accepts.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;

use super::channel_set::ChannelSet;
use super::inbox::{Arrival, Inbox};
use super::{MAX_CHANNELS, MAX_MESSAGE_BYTES, MIN_ROOM, MessageViolation};
use crate::transit::SentLimit;
use crate::wire::frames::{ChannelLimitFrame, Frame, MessageFrame};

/// The longest channel limit frame: type, channel, two numbers.
pub(crate) const MAX_CHANNEL_LIMIT_BYTES: usize = 18;

/// A message that can be read.
struct Unread {
    channel: u8,
    data: Bytes,
}

/// Receives messages on the channels that this end accepts. Channels that were not used cost nothing.
pub(crate) struct MessageReceiver {
    /// The channels that were used, in their order.
    inboxes: Vec<(u8, Box<Inbox>)>,
    /// What can be read, in the order in which it could be.
    unread: VecDeque<Unread>,
    unread_bytes: usize,
    /// Bytes on the heap of all inboxes.
    inbox_bytes: usize,
    limits_due: ChannelSet,
    channels: u16,
    channel_bytes: u64,
}

crate::debug_as! {
    MessageReceiver: |receiver| channels = receiver.inboxes.len(), unread = receiver.unread.len(),
        unread_bytes = receiver.unread_bytes
}

impl MessageReceiver {
    /// A receiver that accepts this many channels, with this many unread bytes each (its parameters 8 and
    /// 9).
    pub(crate) fn new(channels: u16, channel_bytes: u64) -> Self {
        Self {
            inboxes: Vec::new(),
            unread: VecDeque::new(),
            unread_bytes: 0,
            inbox_bytes: 0,
            limits_due: ChannelSet::default(),
            channels: channels.clamp(1, MAX_CHANNELS),
            channel_bytes: channel_bytes.max(MAX_MESSAGE_BYTES.into()),
        }
    }

    /// Handles a message or a part of one, and copies it if it is new.
    ///
    /// # Errors
    /// [`MessageViolation`]; the connection must be closed.
    pub(crate) fn receive(
        &mut self,
        frame: &MessageFrame<'_>,
    ) -> Result<Arrival, MessageViolation> {
        if u16::from(frame.channel) >= self.channels {
            return Err(MessageViolation::NoSuchChannel);
        }
        let at = self.place(frame.channel).unwrap_or_else(|at| {
            let inbox = Box::new(Inbox::new(self.channel_bytes));
            self.inboxes.insert(at, (frame.channel, inbox));
            at
        });
        let (channel, inbox) = &mut self.inboxes[at];
        self.inbox_bytes -= inbox.heap_bytes();
        let arrival = inbox.receive(frame, |data| {
            self.unread_bytes += data.len();
            self.unread.push_back(Unread { channel: *channel, data });
        });
        self.inbox_bytes += inbox.heap_bytes();
        arrival
    }

    /// The next message with its channel. Messages of different channels come in the order in which they
    /// could be delivered.
    pub(crate) fn pop(&mut self) -> Option<(u8, Bytes)> {
        let Unread { channel, data } = self.unread.pop_front()?;
        self.unread_bytes -= data.len();
        if self.unread.is_empty() && self.unread.capacity() > MIN_ROOM {
            self.unread = VecDeque::new();
        }
        if let Ok(at) = self.place(channel) {
            self.inboxes[at].1.on_read(data.len());
            self.update_limit_due(at);
        }
        Some((channel, data))
    }

    /// Whether [`pop`](Self::pop) would return a message.
    pub(crate) fn has_next(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Whether a limit is to be sent.
    pub(crate) const fn has_limit_due(&self) -> bool {
        !self.limits_due.is_empty()
    }

    /// Appends a channel limit frame that is due, if it fits into `room` bytes. The peer may use that limit
    /// from now on.
    pub(crate) fn poll_limit(&mut self, room: usize, out: &mut Vec<u8>) -> Option<SentLimit> {
        if room < MAX_CHANNEL_LIMIT_BYTES {
            return None;
        }
        let channel = self.limits_due.iter().next()?;
        let at = self.place(channel).ok()?;
        let inbox = &mut self.inboxes[at].1;
        let (messages, bytes) = inbox.limit_due(self.channel_bytes)?;
        let serial = inbox.on_limit_sent(self.channel_bytes);
        Frame::ChannelLimit(ChannelLimitFrame { channel, messages, bytes }).write(out);
        self.update_limit_due(at);
        Some(SentLimit { channel, serial })
    }

    /// The datagram with this limit is lost. If it was the newest of its channel, it is due again.
    pub(crate) fn on_limit_lost(&mut self, limit: SentLimit) {
        if let Ok(at) = self.place(limit.channel) {
            self.inboxes[at].1.on_limit_lost(limit.serial);
            self.update_limit_due(at);
        }
    }

    /// Memory that the peer makes this end hold, in bytes: messages that are unread, incomplete or waiting
    /// for others, and what is known of the channels.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.unread_bytes
            + self.unread.capacity() * size_of::<Unread>()
            + self.inbox_bytes
            + self.inboxes.len() * size_of::<Inbox>()
            + self.inboxes.capacity() * size_of::<(u8, Box<Inbox>)>()
    }

    fn place(&self, channel: u8) -> Result<usize, usize> {
        self.inboxes.binary_search_by_key(&channel, |(channel, _)| *channel)
    }

    fn update_limit_due(&mut self, at: usize) {
        if let Some((channel, inbox)) = self.inboxes.get(at) {
            let is_due = inbox.limit_due(self.channel_bytes).is_some();
            self.limits_due.set(*channel, is_due);
        }
    }

    /// Panics if the channels contradict themselves. For tests, fuzzers and the simulator.
    pub(crate) fn check_invariants(&self) {
        let mut due = ChannelSet::default();
        for (channel, inbox) in &self.inboxes {
            inbox.check_invariants(self.channel_bytes);
            due.set(*channel, inbox.limit_due(self.channel_bytes).is_some());
        }
        assert_eq!(due, self.limits_due, "limits that are due");
        assert!(self.inboxes.is_sorted_by(|a, b| a.0 < b.0), "channels out of order");
        let heap: usize = self.inboxes.iter().map(|(_, inbox)| inbox.heap_bytes()).sum();
        assert_eq!(heap, self.inbox_bytes, "bytes of inboxes");
        let unread: usize = self.unread.iter().map(|unread| unread.data.len()).sum();
        assert_eq!(unread, self.unread_bytes, "unread bytes");
    }
}
