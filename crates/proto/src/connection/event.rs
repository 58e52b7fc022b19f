//! What the application hears of a connection, and how one ends.

use alloc::string::String;

use bytes::Bytes;

use crate::Sequence;
use crate::wire::answer::RefusalCode;

/// Names a block from [`Connection::send_block`](super::Connection::send_block) to its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockHandle(pub(crate) u32);

/// What the application hears. Its `Debug` prints lengths, never the bytes of the application.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A client: the server's welcome is verified. A server: the client's address is proven.
    Connected,
    /// More of a block is here. Once in a round of the loop at most.
    BlockProgress {
        /// The sender's name for it.
        tag: u64,
        /// Bytes that are here, up to a kilobyte.
        received: u64,
        /// Bytes it has.
        length: u64,
    },
    /// A block is here, whole and verified.
    Block {
        /// The sender's name for it.
        tag: u64,
        /// Its bytes.
        data: Bytes,
    },
    /// A block of ours is with the peer, every slice of it acknowledged.
    BlockSent {
        /// Which one.
        handle: BlockHandle,
    },
    /// A packet is here. They come in the order of arrival.
    Packet {
        /// Its number; higher is newer.
        sequence: Sequence,
        /// Its bytes.
        data: Bytes,
    },
    /// A packet of ours arrived: certain.
    PacketAcked {
        /// Which one.
        sequence: Sequence,
    },
    /// A packet of ours probably did not arrive.
    PacketLost {
        /// Which one.
        sequence: Sequence,
    },
    /// A message is here, the next in order.
    Message(Bytes),
    /// The client is at another address now, and has proven it.
    AddressChanged,
    /// The connection is over. The last event.
    Closed(CloseReason),
}

impl core::fmt::Debug for Event {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Connected => f.write_str("Connected"),
            Self::BlockProgress { tag, received, length } => {
                write!(f, "BlockProgress {{ tag: {tag}, received: {received}, length: {length} }}")
            }
            Self::Block { tag, data } => {
                write!(f, "Block {{ tag: {tag}, {} bytes }}", data.len())
            }
            Self::BlockSent { handle } => write!(f, "BlockSent {{ handle: {} }}", handle.0),
            Self::Packet { sequence, data } => {
                write!(f, "Packet {{ sequence: {}, {} bytes }}", sequence.get(), data.len())
            }
            Self::PacketAcked { sequence } => write!(f, "PacketAcked({})", sequence.get()),
            Self::PacketLost { sequence } => write!(f, "PacketLost({})", sequence.get()),
            Self::Message(data) => write!(f, "Message({} bytes)", data.len()),
            Self::AddressChanged => f.write_str("AddressChanged"),
            Self::Closed(reason) => f.debug_tuple("Closed").field(reason).finish(),
        }
    }
}

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// This end closed it.
    #[error("closed here: {0}")]
    Here(CloseCode),
    /// The peer closed it.
    #[error("closed by the peer: {code}{}", in_brackets(.reason))]
    There {
        /// Why, as a number.
        code: CloseCode,
        /// Why, in the peer's words: to be shown, not to be believed.
        reason: String,
    },
    /// Nothing came for the idle time-out.
    #[error("the peer fell silent")]
    TimedOut,
    /// No handshake within its time-out: nobody there, or nobody who shares the secret.
    #[error("no answer from the server")]
    NoAnswer,
    /// The host of the server says that nobody listens there.
    #[error("nobody listens at the address of the server")]
    Unreachable,
    /// The server refuses.
    #[error("refused: {0}")]
    Refused(RefusalCode),
    /// The server was restarted and does not know this connection.
    #[error("the server was restarted")]
    ServerRestarted,
    /// This end may seal no more datagrams with its key, and the peer never confirmed a newer one
    /// (STANDARD-1, H-2.3a).
    #[error("the key of this end is used up, and the peer confirmed no newer one")]
    KeyUsedUp,
}

fn in_brackets(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { alloc::format!(" ({reason})") }
}

/// Why a connection was closed, as a number (STANDARD-1, 5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CloseCode(pub u16);

impl CloseCode {
    /// All is well.
    pub const DONE: Self = Self(0);
    /// The peer broke a rule of the wire.
    pub const PROTOCOL: Self = Self(1);
    /// A block stood still, or crawled.
    pub const NO_PROGRESS: Self = Self(2);
    /// A block is above what the receiver takes.
    pub const BLOCK_TOO_LARGE: Self = Self(3);
    /// A block's bytes are not those that were announced.
    pub const BLOCK_DAMAGED: Self = Self(4);
    /// The program goes away.
    pub const SHUTTING_DOWN: Self = Self(5);
    /// The application did not like the request.
    pub const NOT_ACCEPTED: Self = Self(6);
    /// The peer's share of memory is used up.
    pub const RESOURCES: Self = Self(7);

    /// A code of the application, from 256 on.
    #[must_use]
    pub const fn application(code: u16) -> Option<Self> {
        if code >= 256 { Some(Self(code)) } else { None }
    }
}

impl core::fmt::Display for CloseCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match *self {
            Self::DONE => "done",
            Self::PROTOCOL => "protocol",
            Self::NO_PROGRESS => "no progress",
            Self::BLOCK_TOO_LARGE => "block too large",
            Self::BLOCK_DAMAGED => "block damaged",
            Self::SHUTTING_DOWN => "shutting down",
            Self::NOT_ACCEPTED => "not accepted",
            Self::RESOURCES => "resources",
            Self(code) => return write!(f, "code {code}"),
        })
    }
}

/// Why something was not taken to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The connection is not open: not yet, or not any more.
    #[error("the connection is not open")]
    NotOpen,
    /// A block above what the peer takes.
    #[error("larger than the {max} bytes that the peer takes: raise its `max_block_bytes`")]
    BlockTooLarge {
        /// The peer's limit, in bytes.
        max: u64,
    },
    /// A packet or a message above what its kind may have.
    #[error("larger than {max} bytes: send it as a block")]
    TooLarge {
        /// The limit, in bytes.
        max: u64,
    },
    /// Too much waits already. Offer it again after an event, or raise the limit.
    #[error("too much waits to be sent: offer it again later, or raise `{setting}`")]
    QueueFull {
        /// The field of [`ConnectionConfig`](super::ConnectionConfig) that limits it.
        setting: &'static str,
    },
    /// All numbers of this kind are used up, after 2^32 messages or blocks: connect anew.
    #[error("all numbers of this connection are used up: connect anew")]
    NumbersUsedUp,
}
