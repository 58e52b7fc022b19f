//! Messages: small, resent until they arrive, delivered in order (`docs/STANDARD-1.md`, section
//! 4.4).
//!
//! [`MessageSender`] numbers and keeps them until they are acked, [`MessageReceiver`] puts them in
//! order again. Which datagram a message went in, and whether that one arrived, is known to
//! [`transit`](crate::transit); the two are told by message number.
//!
//! Numbers do not wrap. An end that has sent 2^32 - 1 messages can send no more on its connection
//! ([`SendMessageError::NumbersUsedUp`]): at a thousand a second that is seven weeks.
//!
//! ```
//! use bytes::Bytes;
//! use haulier_proto::message::{MessageReceiver, MessageSender};
//!
//! let (mut sender, mut receiver) = (MessageSender::default(), MessageReceiver::new());
//! sender.send(Bytes::from_static(b"first"))?;
//! sender.send(Bytes::from_static(b"second"))?;
//!
//! let (lost, _) = sender.poll(1200).unwrap();
//! let (number, data) = sender.poll(1200).unwrap();
//! receiver.receive(number, &data)?;
//! assert!(receiver.pop().is_none(), "the first is not here yet");
//!
//! sender.on_acked(number);
//! sender.on_lost(lost);
//! let (number, data) = sender.poll(1200).unwrap();
//! receiver.receive(number, &data)?;
//! assert_eq!(receiver.pop().as_deref(), Some(&b"first"[..]));
//! assert_eq!(receiver.pop().as_deref(), Some(&b"second"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use receiver::{Arrival, MessageReceiver};
pub use sender::{MessageSender, SendMessageError};

/// The largest message, in bytes: it fits into one datagram beside an ack.
pub const MAX_MESSAGE_BYTES: usize = 1024;

/// Messages that may wait at a receiver: 256 KiB of the largest, and 8 round trips' worth at 30 a
/// round trip. A message limit is at most this far above what its receiver has read.
pub const MESSAGE_WINDOW: u32 = 256;

/// Bytes of a message frame beside its data: type, number, length.
pub const MESSAGE_FRAME_BYTES: usize = 7;

/// The peer broke a rule of messages: the connection is closed with `protocol`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageViolation {
    /// A message of a number at or above the limit it was given [H-4.4a].
    #[error("a message beyond the limit")]
    BeyondLimit,
    /// A message of more than 1024 bytes.
    #[error("a message of more than 1024 bytes")]
    TooLarge,
    /// A limit that no reader of what was sent so far can have set.
    #[error("a message limit further than one window ahead")]
    BadLimit,
}
