//! What goes wrong with messages: at the application, and at the peer.

use super::MAX_MESSAGE_BYTES;

/// Why a message cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SendMessageError {
    /// It has more than 65,536 bytes.
    #[error("larger than {MAX_MESSAGE_BYTES} bytes: send it as a block")]
    TooLarge,
    /// The peer accepts fewer channels.
    #[error("the peer accepts {accepted} channels, from 0 on: raise its `max_channels`")]
    NoSuchChannel {
        /// How many the peer accepts.
        accepted: u16,
    },
    /// Too many bytes wait on this channel to be sent or acknowledged.
    #[error(
        "too much is waiting to be sent on this channel: try again when it is writable, or raise \
         `max_queued_message_bytes`"
    )]
    QueueFull,
}

/// A violation by the peer: the connection is closed with `protocol` (H-4.4a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageViolation {
    /// A message or a limit of a channel that is not accepted.
    NoSuchChannel,
    /// A message beyond the limits of its channel.
    BeyondLimit,
    /// Parts of a message that contradict each other.
    Contradiction,
    /// A limit above the amount sent plus the initial limit: the peer cannot have read more than was sent.
    BadLimit,
}
