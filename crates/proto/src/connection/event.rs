//! Events of a connection for the application, and how a connection ends.

use alloc::string::String;
use core::time::Duration;

use bytes::Bytes;
use haulier_control::Urgency;

use crate::Sequence;
use crate::channels::{MessageEvent, SendMessageError};
use crate::chunk::MAX_CHUNK_BYTES;
use crate::incoming::IncomingEvent;
use crate::outgoing::ChunkValue;
use crate::wire::answer::RefusalCode;

/// Identifies a block in events; from [`Connection::send_block`](super::Connection::send_block).
///
/// # Examples
/// ```
/// use haulier_proto::connection::{BlockHandle, Event};
/// use std::collections::HashMap;
///
/// /// What is on its way to a player, by what `send_block` returned.
/// fn is_there(on_its_way: &mut HashMap<BlockHandle, String>, event: &Event) -> Option<String> {
///     match event {
///         Event::BlockSent { handle } => on_its_way.remove(handle),
///         _ => None,
///     }
/// }
/// assert_eq!(is_there(&mut HashMap::new(), &Event::Connected), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockHandle(pub(crate) u32);

/// Identifies a block that is received, in events.
///
/// # Examples
/// ```
/// use haulier_proto::connection::{BlockNumber, Event};
///
/// /// Which block to decline: this client takes no more than 1 GB.
/// fn too_large(event: &Event) -> Option<BlockNumber> {
///     match event {
///         Event::BlockAnnounced { block, length, .. } if *length > 1_000_000_000 => Some(*block),
///         _ => None,
///     }
/// }
/// assert_eq!(too_large(&Event::Connected), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockNumber(pub(crate) u32);

/// How a block is sent beside others.
///
/// # Examples
/// ```
/// use haulier_proto::connection::{BlockOptions, Urgency};
///
/// // A texture that is needed now, before the rest of the level.
/// let now = BlockOptions::default().with_priority(1);
/// // A replay in the background, which gives way to the game.
/// let later = BlockOptions::default().with_urgency(Urgency::DuringPlay);
/// assert!(now.priority > later.priority);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockOptions {
    /// Blocks with a higher priority go first, as soon as they are sent. Default 0.
    pub priority: u8,
    /// The share of the bytes beside others of its priority. Default 0: it goes after those that have none
    /// either, and these have one share of weight 1 together.
    pub weight: u16,
    /// How much of the link it may take; `None`, the default, for the connection's setting. While several
    /// blocks are sent, the most urgent one decides.
    pub urgency: Option<Urgency>,
}

impl BlockOptions {
    /// Returns these options with this priority.
    #[must_use]
    pub const fn with_priority(mut self, priority: u8) -> Self {
        self.priority = priority;
        self
    }

    /// Returns these options with this weight.
    #[must_use]
    pub const fn with_weight(mut self, weight: u16) -> Self {
        self.weight = weight;
        self
    }

    /// Returns these options with this urgency.
    #[must_use]
    pub const fn with_urgency(mut self, urgency: Urgency) -> Self {
        self.urgency = Some(urgency);
        self
    }
}

/// An event for the application. Its `Debug` prints lengths, never the application's bytes.
///
/// # Examples
/// ```
/// use haulier_proto::connection::Event;
///
/// /// What a player sees of it.
/// fn screen(event: &Event) -> String {
///     match event {
///         Event::Queued { place: Some(place), .. } => format!("you are number {place} in line"),
///         Event::BlockProgress { received, length, .. } => format!("{} %", 100 * received / length.max(&1)),
///         Event::Block { .. } => "go!".to_owned(),
///         Event::Closed(reason) => reason.to_string(),
///         _ => String::new(), // there will be others
///     }
/// }
/// assert_eq!(screen(&Event::Queued { place: Some(3), estimate: None }), "you are number 3 in line");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// At a client: the server's welcome is verified. At a server: the client's address is validated.
    Connected,
    /// At a client that is not connected yet: the server has no seat for it, and it waits in line.
    Queued {
        /// How many are before it, itself included: 1 is the next. `None` if even the line is full: it asks
        /// for a place now and then.
        place: Option<u32>,
        /// How long it may take, if the server can say.
        estimate: Option<Duration>,
    },
    /// More of a block has arrived. At most once in each round of the loop.
    BlockProgress {
        /// The tag that the sender gave it.
        tag: u64,
        /// Bytes received, in steps of a slice (1024 bytes).
        received: u64,
        /// Its size in bytes.
        length: u64,
        /// How fast it comes, in bit/s: the mean of about a second. 0 if that is not known yet.
        rate_bps: u64,
        /// How long the rest will take at this rate; `None` in the first quarter of a second.
        estimate: Option<Duration>,
    },
    /// The peer announced a block. It can be declined.
    BlockAnnounced {
        /// Which one.
        block: BlockNumber,
        /// The tag that the sender gave it.
        tag: u64,
        /// Its size in bytes.
        length: u64,
        /// Its BLAKE3.
        digest: [u8; 32],
    },
    /// The peer gave a block up that was being received.
    BlockCancelled {
        /// Which one.
        block: BlockNumber,
        /// The tag that the sender gave it.
        tag: u64,
        /// The peer's code.
        code: u32,
    },
    /// The peer announced a block that the application said it has: it is complete.
    BlockHere {
        /// The tag that the sender gave it.
        tag: u64,
    },
    /// The peer does not want a block of this end.
    BlockDeclined {
        /// Which one.
        handle: BlockHandle,
        /// The peer's code.
        code: u32,
    },
    /// A block was received and verified.
    Block {
        /// The tag that the sender gave it.
        tag: u64,
        /// Its bytes.
        data: Bytes,
    },
    /// A chunk of a block was received and verified, with
    /// [`Delivery::Chunks`](super::Delivery::Chunks) and [`Delivery::InOrder`](super::Delivery::InOrder).
    /// Until it is taken it counts against `max_unread_block_bytes`, which is how a slow reader slows the
    /// sender.
    Chunk {
        /// Its block.
        block: BlockNumber,
        /// The tag that the sender gave the block.
        tag: u64,
        /// Where it begins in the block, in bytes.
        offset: u64,
        /// Its bytes: 256 KiB, or less at the end of the block.
        data: Bytes,
        /// Its value in the tree of the block, with which it was compared: a program that keeps the value
        /// need not hash the bytes again.
        value: ChunkValue,
    },
    /// All chunks of a block were handed out, or were here before.
    BlockComplete {
        /// Which one.
        block: BlockNumber,
        /// The tag that the sender gave it.
        tag: u64,
    },
    /// A block of this end was received by the peer: all of it is acknowledged.
    BlockSent {
        /// Which one.
        handle: BlockHandle,
    },
    /// Chunks of blocks from a source are wanted: call [`Connection::want_chunk`] until it returns `None`.
    /// Reported once, and again after that.
    ///
    /// [`Connection::want_chunk`]: super::Connection::want_chunk
    ChunksWanted,
    /// A packet was received. Packets are reported in the order of their arrival.
    Packet {
        /// Its sequence; the newer packet has the higher one.
        sequence: Sequence,
        /// Its bytes.
        data: Bytes,
    },
    /// A packet of this end arrived. This is certain.
    PacketAcked {
        /// Which one.
        sequence: Sequence,
    },
    /// A packet of this end probably did not arrive.
    PacketLost {
        /// Which one.
        sequence: Sequence,
    },
    /// A message was received: the next in order, or an unordered one.
    Message {
        /// Its channel.
        channel: u8,
        /// Its bytes.
        data: Bytes,
    },
    /// A message of this end arrived whole. This is certain.
    MessageAcked {
        /// Its channel.
        channel: u8,
        /// Its number on the channel.
        number: u64,
    },
    /// A channel whose queue was full has room again.
    MessageWritable {
        /// The channel.
        channel: u8,
    },
    /// The client's address has changed, and the new one is validated.
    AddressChanged,
    /// The connection has ended. This is the last event.
    Closed(CloseReason),
}

impl core::fmt::Debug for Event {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Connected => f.write_str("Connected"),
            Self::Queued { place, estimate } => {
                write!(f, "Queued {{ place: {place:?}, estimate: {estimate:?} }}")
            }
            Self::BlockProgress { tag, received, length, .. } => {
                write!(f, "BlockProgress {{ tag: {tag}, received: {received}, length: {length} }}")
            }
            Self::Block { tag, data } => {
                write!(f, "Block {{ tag: {tag}, {} bytes }}", data.len())
            }
            Self::Chunk { block, tag, offset, data, .. } => {
                write!(f, "Chunk({}, tag: {tag}, {} bytes at {offset})", block.0, data.len())
            }
            Self::BlockComplete { block, tag } => {
                write!(f, "BlockComplete({}, tag: {tag})", block.0)
            }
            Self::BlockSent { handle } => write!(f, "BlockSent {{ handle: {} }}", handle.0),
            Self::Packet { sequence, data } => {
                write!(f, "Packet {{ sequence: {}, {} bytes }}", sequence.get(), data.len())
            }
            Self::PacketAcked { sequence } => write!(f, "PacketAcked({})", sequence.get()),
            Self::PacketLost { sequence } => write!(f, "PacketLost({})", sequence.get()),
            Self::Message { channel, data } => {
                write!(f, "Message {{ channel: {channel}, {} bytes }}", data.len())
            }
            Self::MessageAcked { channel, number } => {
                write!(f, "MessageAcked {{ channel: {channel}, number: {number} }}")
            }
            Self::MessageWritable { channel } => write!(f, "MessageWritable({channel})"),
            Self::BlockAnnounced { block, tag, length, .. } => {
                write!(f, "BlockAnnounced({}, tag: {tag}, {length} bytes)", block.0)
            }
            Self::BlockCancelled { block, tag, code } => {
                write!(f, "BlockCancelled({}, tag: {tag}, code: {code})", block.0)
            }
            Self::BlockHere { tag } => write!(f, "BlockHere(tag: {tag})"),
            Self::BlockDeclined { handle, code } => {
                write!(f, "BlockDeclined({}, code: {code})", handle.0)
            }
            Self::ChunksWanted => f.write_str("ChunksWanted"),
            Self::AddressChanged => f.write_str("AddressChanged"),
            Self::Closed(reason) => f.debug_tuple("Closed").field(reason).finish(),
        }
    }
}

impl From<IncomingEvent> for Event {
    fn from(event: IncomingEvent) -> Self {
        match event {
            IncomingEvent::Announced { block, tag, length, root } => {
                Self::BlockAnnounced { block: BlockNumber(block), tag, length, digest: root }
            }
            IncomingEvent::Progress { tag, received, length, rate_bps, estimate, .. } => {
                Self::BlockProgress { tag, received, length, rate_bps, estimate }
            }
            IncomingEvent::Block { tag, data, .. } => Self::Block { tag, data },
            IncomingEvent::Chunk { at, tag, data, value } => {
                let offset = u64::from(at.index) * MAX_CHUNK_BYTES as u64;
                let (block, value) = (BlockNumber(at.block), ChunkValue::from_bytes(value));
                Self::Chunk { block, tag, offset, data, value }
            }
            IncomingEvent::Complete { block, tag } => {
                Self::BlockComplete { block: BlockNumber(block), tag }
            }
            IncomingEvent::Here { tag, .. } => Self::BlockHere { tag },
            IncomingEvent::Cancelled { block, tag, code } => {
                Self::BlockCancelled { block: BlockNumber(block), tag, code }
            }
        }
    }
}

impl From<MessageEvent> for Event {
    fn from(event: MessageEvent) -> Self {
        match event {
            MessageEvent::Acked { channel, number } => Self::MessageAcked { channel, number },
            MessageEvent::Writable { channel } => Self::MessageWritable { channel },
        }
    }
}

/// How a connection ended.
///
/// # Examples
/// ```
/// use haulier_proto::connection::{CloseCode, CloseReason};
///
/// /// Whether it is worth trying again by itself.
/// fn may_come_back(reason: &CloseReason) -> bool {
///     match reason {
///         CloseReason::TimedOut | CloseReason::ConnectionUnknown => true,
///         CloseReason::There { code, .. } => *code == CloseCode::SHUTTING_DOWN,
///         _ => false,
///     }
/// }
/// assert!(may_come_back(&CloseReason::TimedOut));
/// assert_eq!(CloseReason::TimedOut.to_string(), "the peer fell silent");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// This end closed it.
    #[error("closed here: {0}")]
    Here(CloseCode),
    /// The peer closed it.
    #[error("closed by the peer: {code}{}", in_parentheses(.reason))]
    There {
        /// Why, as a number.
        code: CloseCode,
        /// Why, in the peer's words: to be shown, not to be trusted.
        reason: String,
    },
    /// Nothing was received for the idle timeout.
    #[error("the peer fell silent")]
    TimedOut,
    /// The handshake timed out: a firewall, or a wrong address. A server that has another secret reports that
    /// ([`Refused`](Self::Refused)).
    #[error("no answer from the server")]
    NoAnswer,
    /// The host of the server reports that no program listens there.
    #[error("nobody listens at the address of the server")]
    Unreachable,
    /// The server refused the request.
    #[error("refused: {0}")]
    Refused(RefusalCode),
    /// The server does not have this connection any more, and that is all that is known: it was restarted,
    /// or it ended the connection and every close it sent was lost.
    #[error(
        "the server does not have this connection any more: \
         it was restarted, or it ended the connection and that was lost"
    )]
    ConnectionUnknown,
    /// This end must not encrypt more datagrams with its key, and the peer never confirmed it, so that there
    /// could be a key update (STANDARD-1, H-2.3a).
    #[error("the key of this end is used up, and the peer never confirmed it")]
    KeyUsedUp,
}

fn in_parentheses(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { alloc::format!(" ({reason})") }
}

/// Why a connection was closed, as a number (STANDARD-1, 5.4): below 256 the connection's, and from there on
/// the application's, up to 2^32 - 1. A number of the connection that this version does not know is kept as
/// it is.
///
/// # Examples
/// ```
/// use haulier_proto::connection::CloseCode;
///
/// /// A code of the game: the first are the connection's own.
/// const KICKED: CloseCode = CloseCode(CloseCode::FIRST_OF_APPLICATION.0 + 1);
///
/// assert!(KICKED.is_application());
/// assert_eq!(CloseCode::NO_PROGRESS.name(), Some("no progress"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloseCode(pub u32);

impl CloseCode {
    /// No error.
    pub const DONE: Self = Self(0);
    /// The peer violated a rule of the wire.
    pub const PROTOCOL: Self = Self(1);
    /// A block made no progress, or too little.
    pub const NO_PROGRESS: Self = Self(2);
    /// A block is larger than the receiver accepts.
    pub const BLOCK_TOO_LARGE: Self = Self(3);
    /// A block's bytes are not those that were announced.
    pub const BLOCK_DAMAGED: Self = Self(4);
    /// The program is shutting down.
    pub const SHUTTING_DOWN: Self = Self(5);
    /// The application rejected the request.
    pub const NOT_ACCEPTED: Self = Self(6);
    /// The peer's share of memory, or its place among the handshakes, is used up.
    pub const RESOURCES: Self = Self(7);
    /// Nothing was received from the peer for the idle timeout or the handshake timeout.
    pub const TIMED_OUT: Self = Self(8);
    /// So many datagrams were forged that a further one might pass (STANDARD-1, 2.3).
    pub const AEAD_LIMIT: Self = Self(9);
    /// The peer sent more of blocks than it had credit for.
    pub const CREDIT: Self = Self(10);

    /// The first of the application's codes.
    pub const FIRST_OF_APPLICATION: Self = Self(256);

    /// A code chosen by the application; `None` below 256.
    #[must_use]
    pub const fn application(code: u32) -> Option<Self> {
        if code >= Self::FIRST_OF_APPLICATION.0 { Some(Self(code)) } else { None }
    }

    /// Whether it is the application's, and not the connection's.
    #[must_use]
    pub const fn is_application(self) -> bool {
        self.0 >= Self::FIRST_OF_APPLICATION.0
    }

    /// What the connection's codes are called; `None` for the application's, and for those that this version
    /// does not know.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::DONE => "done",
            Self::PROTOCOL => "protocol",
            Self::NO_PROGRESS => "no progress",
            Self::BLOCK_TOO_LARGE => "block too large",
            Self::BLOCK_DAMAGED => "block damaged",
            Self::SHUTTING_DOWN => "shutting down",
            Self::NOT_ACCEPTED => "not accepted",
            Self::RESOURCES => "resources",
            Self::TIMED_OUT => "timed out",
            Self::AEAD_LIMIT => "aead limit",
            Self::CREDIT => "credit",
            Self(_) => return None,
        })
    }
}

impl core::fmt::Display for CloseCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None if self.is_application() => write!(f, "application code {}", self.0),
            None => write!(f, "unknown code {}", self.0),
        }
    }
}

/// Why something cannot be sent.
///
/// # Examples
/// ```
/// use haulier_proto::connection::SendError;
///
/// /// What to do with a chat line that was not taken.
/// fn keep_for_later(error: &SendError) -> bool {
///     // `MessageWritable` will say when there is room. Anything else will not get better.
///     matches!(error, SendError::QueueFull { .. })
/// }
/// assert!(!keep_for_later(&SendError::TooLarge { max: 65_536 }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The connection is not open yet, or closed.
    #[error("the connection is not open")]
    NotOpen,
    /// The block is larger than the peer accepts.
    #[error("larger than the {max} bytes that the peer accepts: raise its `max_block_bytes`")]
    BlockTooLarge {
        /// The peer's limit, in bytes.
        max: u64,
    },
    /// The block's tag does not fit the 62 bits that the wire has for it.
    #[error("the block's tag {tag} is larger than 2^62 - 1")]
    TagTooLarge {
        /// The tag.
        tag: u64,
    },
    /// The packet or message is too large for its kind.
    #[error("larger than {max} bytes: send it as a block")]
    TooLarge {
        /// The limit, in bytes.
        max: u64,
    },
    /// The queue is full. Try again after an event, or raise the limit.
    #[error("too much is waiting to be sent: try again later, or raise `{setting}`")]
    QueueFull {
        /// The field of [`ConnectionConfig`](super::ConnectionConfig) that limits it.
        setting: &'static str,
    },
    /// The peer accepts fewer channels.
    #[error("the peer accepts {accepted} channels, from 0 on: raise its `max_channels`")]
    NoSuchChannel {
        /// How many the peer accepts.
        accepted: u16,
    },
    /// All 2^32 numbers of blocks are used up: a new connection is needed.
    #[error("all numbers of this connection are used up: open a new one")]
    NumbersUsedUp,
}

impl From<SendMessageError> for SendError {
    fn from(error: SendMessageError) -> Self {
        match error {
            SendMessageError::TooLarge => Self::TooLarge { max: 65_536 },
            SendMessageError::NoSuchChannel { accepted } => Self::NoSuchChannel { accepted },
            SendMessageError::QueueFull => Self::QueueFull { setting: "max_queued_message_bytes" },
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn an_unknown_code_is_shown_as_one_and_the_applications_as_its_own() {
        for (code, name, text, is_application) in [
            (0, Some("done"), "done", false),
            (8, Some("timed out"), "timed out", false),
            (9, Some("aead limit"), "aead limit", false),
            (10, Some("credit"), "credit", false),
            (11, None, "unknown code 11", false),
            (255, None, "unknown code 255", false),
            (256, None, "application code 256", true),
            (u32::MAX, None, "application code 4294967295", true),
        ] {
            let code = CloseCode(code);
            assert_eq!((code.name(), code.to_string().as_str()), (name, text));
            assert_eq!(code.is_application(), is_application);
            assert_eq!(CloseCode::application(code.0), is_application.then_some(code));
        }
    }
}
