//! Messages on channels, and the order in which an application's data is sent (`docs/STANDARD-1.md`, section
//! 4.4, `docs/CHANNELS.md`).
//!
//! A message is up to 64 KiB that arrive once and whole. Its channel decides what it waits for: nothing that
//! is missing on one channel delays another. [`MessageSender`] cuts messages into parts that fill datagrams,
//! [`MessageReceiver`] puts them together; [`Lanes`] says what goes first. [`transit`](crate::transit) knows
//! which datagrams arrived; the connection hands the fate of each part back to its sender.
//!
//! The invariants, one of each file: a byte of a message is in one state (`outbox`); a number is delivered
//! once, and what is remembered for that is bounded (`numbers`, `inbox`); memory follows arrival
//! (`assembly`); a source of higher priority is never passed by (`lanes`).

mod assembly;
mod channel_set;
mod error;
mod inbox;
mod lanes;
mod numbers;
mod outbox;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use self::{
    lanes::{Lane, LaneError, Source},
    outbox::Order,
};

#[cfg(test)]
use self::inbox::Arrival;
pub(crate) use self::{
    error::{MessageViolation, SendMessageError},
    lanes::Lanes,
    receiver::MessageReceiver,
    sender::{MessageEvent, MessageSender},
};

use crate::wire::frames::MAX_MESSAGE_BYTES;

/// The most channels of a connection: a channel has one byte.
pub(crate) const MAX_CHANNELS: u16 = 256;

/// Messages that may be sent on a channel before any was read: at 30 a round trip, those of 8 round trips.
const MESSAGE_WINDOW: u64 = 256;

/// Entries that there is room for in an empty queue: otherwise each message of a quiet game would allocate.
const MIN_ROOM: usize = 4;

/// Messages and their bytes, counted from the start of a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    messages: u64,
    bytes: u64,
}

impl Amount {
    /// The limit of a channel of which nothing was read, with this window in bytes.
    const fn initial(channel_bytes: u64) -> Self {
        Self { messages: MESSAGE_WINDOW, bytes: channel_bytes }
    }

    const fn plus(self, other: Self) -> Self {
        let messages = self.messages.saturating_add(other.messages);
        Self { messages, bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// The larger of each.
    fn max(self, other: Self) -> Self {
        let messages = self.messages.max(other.messages);
        Self { messages, bytes: self.bytes.max(other.bytes) }
    }

    /// Whether neither is more than in `limit`.
    const fn is_within(self, limit: Self) -> bool {
        self.messages <= limit.messages && self.bytes <= limit.bytes
    }
}
