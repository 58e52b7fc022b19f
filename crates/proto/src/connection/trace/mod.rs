//! The trace of a connection: the events that it records about itself if the configuration asks for them.
//!
//! [`ConnectionConfig::trace`](super::ConnectionConfig::trace) says how much, and a machine's `poll_trace`
//! hands it out, beside the events and independent of them. A viewer reads it: nothing in the protocol does.
//! The values are here, `frame` has what was in a datagram, `queue` keeps them until they are taken, and
//! `notes` is where the connection writes. The invariants: what is off costs one comparison a datagram, the
//! queue is bounded whatever the peer sends, and only [`TraceEvent::Secret`] has a secret.

mod frame;
mod notes;
mod queue;

use alloc::vec::Vec;
use core::net::SocketAddr;
use core::time::Duration;

use super::{BlockHandle, CloseReason, ConnectionState};
use crate::crypto::{Secret, Suite};
use crate::wire::EndParameters;
use crate::{DropReason, Instant};

pub use crate::transit::LossReason;
pub use frame::{SliceSort, TraceFrame};
pub(crate) use queue::Trace;

/// How much a connection writes down. Each level has all of those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TraceLevel {
    /// Nothing.
    #[default]
    Off,
    /// What happens a few times in a connection: its states, addresses, parameters, keys, blocks and end.
    Life,
    /// And the path: its measures whenever they change, datagrams that are lost, and dropped ones.
    Path,
    /// And each datagram: sent with its frames, received, acknowledged.
    Datagrams,
}

/// Something that a connection wrote down.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Traced {
    /// When it was.
    pub at: Instant,
    /// How many events before this one found no room in the queue.
    pub missing: u64,
    /// What it was.
    pub event: TraceEvent,
}

/// What can be written down.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TraceEvent {
    /// A client begins to ask, or a server has let a request in.
    Started {
        /// Which end this is.
        is_client: bool,
        /// The peer's address.
        peer: SocketAddr,
        /// The client's id on the wire.
        client_id: [u8; 8],
    },
    /// The ends have agreed on a connection.
    Agreed {
        /// The server's id on the wire.
        server_id: [u8; 8],
        /// The cipher suite; `None` in mode `open`.
        suite: Option<Suite>,
        /// What this end says of itself.
        here: TraceParameters,
        /// What the peer says of itself.
        there: TraceParameters,
    },
    /// The connection has another state.
    StateChanged(ConnectionState),
    /// The peer has another address, which is validated.
    AddressChanged(SocketAddr),
    /// The largest datagram that the path is known to carry, in bytes of UDP payload, is another one.
    DatagramSizeChanged(u16),
    /// One end has updated its key.
    KeyUpdated {
        /// It is this end.
        is_here: bool,
        /// The number of key updates of that end.
        updates: u64,
    },
    /// A datagram was sent.
    DatagramSent(TraceDatagram),
    /// A datagram was received and verified.
    DatagramReceived(TraceDatagram),
    /// A datagram for this connection was dropped.
    DatagramDropped {
        /// Why. With [`DropReason::NotKept`] it was verified before, and written down as received.
        reason: DropReason,
        /// Its bytes.
        bytes: usize,
    },
    /// A datagram of this end was acknowledged for the first time.
    DatagramAcked {
        /// Its number.
        number: u64,
    },
    /// An ack-eliciting datagram of this end is lost: what was in it is sent again, or reported.
    DatagramLost {
        /// Its number.
        number: u64,
        /// Why it counts as lost.
        why: LossReason,
    },
    /// What is measured of the path has changed.
    Measured(TraceMeasures),
    /// A block was announced.
    BlockAnnounced {
        /// By this end.
        is_here: bool,
        /// Its number on the wire, in its direction.
        number: u32,
        /// The tag that its sender gave it.
        tag: u64,
        /// Its size in bytes.
        length: u64,
    },
    /// A block of this end is acknowledged whole.
    BlockSent {
        /// Which one.
        handle: BlockHandle,
    },
    /// A block of the peer was handed to the application whole.
    BlockReceived {
        /// The tag that its sender gave it.
        tag: u64,
    },
    /// A secret of the connection: only with
    /// [`trace_secrets`](super::ConnectionConfig::trace_secrets).
    Secret(TraceSecret),
    /// The connection has ended.
    Closed(CloseReason),
}

impl TraceEvent {
    /// The lowest level at which it is written down; [`TraceLevel::Off`] for a secret, which has a setting of
    /// its own.
    #[must_use]
    pub const fn level(&self) -> TraceLevel {
        match self {
            Self::Secret(_) => TraceLevel::Off,
            Self::DatagramDropped { .. } | Self::DatagramLost { .. } | Self::Measured(_) => {
                TraceLevel::Path
            }
            Self::DatagramSent(_) | Self::DatagramReceived(_) | Self::DatagramAcked { .. } => {
                TraceLevel::Datagrams
            }
            _ => TraceLevel::Life,
        }
    }
}

/// A datagram that was sent or received.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceDatagram {
    /// Its sort.
    pub kind: DatagramKind,
    /// Its packet number. Requests have none on the wire; here they are counted from 0.
    pub number: u64,
    /// Bytes of UDP payload.
    pub bytes: usize,
    /// Whether it asks for an ack.
    pub is_ack_eliciting: bool,
    /// What is in it: at most 32, and then [`TraceFrame::Others`]. Pings that follow each other are one.
    pub frames: Vec<TraceFrame>,
}

/// The sorts of datagrams of a connection (STANDARD-1, 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DatagramKind {
    /// A client asks for a connection.
    Request,
    /// A server's first datagrams, each with the whole welcome.
    Response,
    /// All others.
    Data,
}

/// What is measured of the path to the peer. What is not known yet is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TraceMeasures {
    /// The last round trip.
    pub latest_rtt: Option<Duration>,
    /// The shortest one.
    pub min_rtt: Option<Duration>,
    /// The smoothed one, as in RFC 9002.
    pub smoothed_rtt: Option<Duration>,
    /// The variation of the round trip.
    pub rtt_variation: Option<Duration>,
    /// The bandwidth, in bits per second including UDP and IP headers.
    pub bandwidth_bps: Option<u64>,
    /// The rate at which blocks are sent, in the same unit.
    pub pacing_rate_bps: Option<u64>,
    /// What stands for a congestion window: what the path is believed to hold, its bandwidth times the round
    /// trip and the queue before its bottleneck, in bytes.
    pub window_bytes: Option<u64>,
    /// Bytes of ack-eliciting datagrams that are neither acknowledged nor lost, without UDP and IP headers.
    /// Probes for larger datagrams do not count.
    pub bytes_in_flight: u64,
    /// The datagrams that these are.
    pub datagrams_in_flight: u32,
}

/// What an end says of itself in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceParameters {
    /// The idle timeout that it proposes.
    pub idle_timeout: Duration,
    /// The largest block that it accepts, in bytes.
    pub max_block_bytes: u64,
    /// The largest datagram that it accepts, in bytes.
    pub max_datagram_bytes: u16,
    /// By how much it may delay an ack.
    pub max_ack_delay: Duration,
    /// Chunks that may be opened before its first progress frame.
    pub credit: u64,
    /// Bytes that wait for its program before its system drops; 0 if it does not know.
    pub receive_buffer_bytes: u64,
    /// Channels of messages that it accepts.
    pub channels: u16,
    /// Bytes that each channel may hold unread.
    pub channel_bytes: u64,
    /// Blocks that may be announced to it and not finished.
    pub announced_blocks: u8,
}

impl From<EndParameters> for TraceParameters {
    fn from(end: EndParameters) -> Self {
        Self {
            idle_timeout: end.idle_timeout,
            max_block_bytes: end.max_block_bytes,
            max_datagram_bytes: end.max_datagram_bytes,
            max_ack_delay: end.max_ack_delay,
            credit: end.credit,
            receive_buffer_bytes: end.receive_buffer_bytes,
            channels: end.channels,
            channel_bytes: end.channel_bytes,
            announced_blocks: end.announced_blocks,
        }
    }
}

/// A secret of a connection, as a key log has it. Whoever has all of them reads the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TraceSecret {
    /// Opens the hello in the client's requests: ChaCha20-Poly1305 with nonce 0.
    Hello {
        /// The client's id on the wire.
        client_id: [u8; 8],
        /// The key.
        key: Secret,
        /// The associated data: the hash of the handshake so far.
        associated_data: [u8; 32],
    },
    /// Opens the welcome in the server's responses, in the same way.
    Welcome {
        /// The client's id on the wire.
        client_id: [u8; 8],
        /// The key.
        key: Secret,
        /// The associated data: the hash of the handshake so far.
        associated_data: [u8; 32],
    },
    /// The first secret of one direction: later ones follow from it (STANDARD-1, 2.3).
    Traffic {
        /// It is of what the client sends.
        is_clients: bool,
        /// The client's id on the wire.
        client_id: [u8; 8],
        /// The server's id on the wire.
        server_id: [u8; 8],
        /// The cipher suite.
        suite: Suite,
        /// The secret.
        secret: Secret,
    },
}
