//! What the application hears of a connection, and how one ends.

use alloc::string::String;

use bytes::Bytes;

use crate::Sequence;
use crate::wire::answer::RefusalCode;

/// Names a block from [`Connection::send_block`](super::Connection::send_block) to its event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockHandle(pub(crate) u32);

/// What the application hears.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// How a connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// This end closed it.
    Here(CloseCode),
    /// The peer closed it.
    There {
        /// Why, as a number.
        code: CloseCode,
        /// Why, in the peer's words: to be shown, not to be believed.
        reason: String,
    },
    /// Nothing came for the idle time-out.
    TimedOut,
    /// No handshake within its time-out: nobody there, or nobody who shares the secret.
    NoAnswer,
    /// The host of the server says that nobody listens there.
    Unreachable,
    /// The server will not.
    Refused(RefusalCode),
    /// The server was restarted and does not know this connection.
    ServerRestarted,
}

impl core::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Here(code) => write!(f, "closed here: {code}"),
            Self::There { code, reason } if reason.is_empty() => {
                write!(f, "closed by the peer: {code}")
            }
            Self::There { code, reason } => write!(f, "closed by the peer: {code} ({reason})"),
            Self::TimedOut => f.write_str("the peer fell silent"),
            Self::NoAnswer => f.write_str("no answer from the server"),
            Self::Unreachable => f.write_str("nobody listens at the address of the server"),
            Self::Refused(code) => f.write_str(match code {
                RefusalCode::Version => "refused: the server speaks another version",
                RefusalCode::Key => "refused: the server has another secret, or another mode",
                RefusalCode::Full => "refused: the server is full",
                RefusalCode::ShuttingDown => "refused: the server is shutting down",
                RefusalCode::TokenExpired => "refused: the token has expired",
                RefusalCode::TokenUsed => "refused: the token was used before",
            }),
            Self::ServerRestarted => f.write_str("the server was restarted"),
        }
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// The connection is not open: not yet, or not any more.
    NotOpen,
    /// It is larger than its kind may be.
    TooLarge {
        /// The most, in bytes.
        max: u64,
    },
    /// Too much waits already. Offer it again after an event.
    QueueFull,
}

impl core::fmt::Display for SendError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotOpen => f.write_str("the connection is not open"),
            Self::TooLarge { max } => write!(f, "larger than {max} bytes"),
            Self::QueueFull => f.write_str("too much waits to be sent: offer it again later"),
        }
    }
}

impl core::error::Error for SendError {}
