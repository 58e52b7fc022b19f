//! Messages: small, retransmitted until they arrive, delivered in order (`docs/STANDARD-1.md`, section 4.4).
//!
//! [`MessageSender`] numbers messages and keeps them until they are acked, [`MessageReceiver`] restores their
//! order. [`transit`](crate::transit) knows which datagrams arrived; the connection reports the fate of a
//! message by its number.
//!
//! Numbers do not wrap. An end that has sent 2^32 - 1 messages can send no more on its connection
//! ([`SendMessageError::NumbersUsedUp`]): at a thousand per second that takes seven weeks.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub(crate) use receiver::MessageReceiver;
pub(crate) use sender::{MessageSender, SendMessageError};

/// The largest message, in bytes: it fits into one datagram together with an ack.
pub(crate) const MAX_MESSAGE_BYTES: usize = 1024;

/// Messages that may wait at a receiver: 256 KiB of the largest ones, or 8 round trips at 30 per round trip.
/// A message limit is at most this far above what its receiver has read.
pub(crate) const MESSAGE_WINDOW: u32 = 256;

/// Bytes of a message frame without its data: type, number, length.
pub(crate) const MESSAGE_FRAME_BYTES: usize = 7;

/// Messages that there is room for in an empty queue: otherwise each message of a quiet game would allocate.
const MIN_ROOM: usize = 4;

/// A violation by the peer: the connection is closed with `protocol`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageViolation {
    /// A message at or above the limit [H-4.4a].
    BeyondLimit,
    /// A message of more than 1024 bytes.
    TooLarge,
    /// A limit more than one window above the messages sent [H-4.4a].
    BadLimit,
}
