//! The ledger's record of messages: which part of which message, and which limit, was in a datagram.
//!
//! Both are as small as they can be, because a game has many of them in flight. What is unique among the
//! things in flight is enough: their owner knows the rest.

/// A part of a message in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentPart {
    /// The low 32 bits of the message's number on its channel.
    pub(crate) number: u32,
    /// Where the part begins, in bytes.
    pub(crate) offset: u16,
    /// Its length in bytes; 1 for the only part of an empty message.
    pub(crate) units: u16,
    /// The channel.
    pub(crate) channel: u8,
}

/// A limit of a channel in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentLimit {
    /// The channel.
    pub(crate) channel: u8,
    /// Which of its limits, counted from the first one sent; wraps.
    pub(crate) serial: u16,
}
