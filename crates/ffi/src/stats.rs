//! What connections and servers count.

use haulier::{BlockProgress, ConnectionState, ConnectionStats, ServerStats};

use crate::memory::Versioned;

/// The state of a connection.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum haulier_state {
    /// There is no connection yet, or it is not known any more.
    HAULIER_STATE_NONE = 0,
    /// At a server: it has answered, and the client's address is not validated yet.
    HAULIER_STATE_RESPONDING = 1,
    /// At a client: the server has let it in, and does not know yet that the client knows.
    HAULIER_STATE_CONFIRMING = 2,
    /// Both ends have received data from each other.
    HAULIER_STATE_CONNECTED = 3,
    /// It has ended, and the close is being sent.
    HAULIER_STATE_CLOSING = 4,
    /// It has ended, and nothing is sent any more.
    HAULIER_STATE_CLOSED = 5,
}

impl From<Option<ConnectionState>> for haulier_state {
    fn from(state: Option<ConnectionState>) -> Self {
        match state {
            Some(ConnectionState::Responding) => Self::HAULIER_STATE_RESPONDING,
            Some(ConnectionState::Confirming) => Self::HAULIER_STATE_CONFIRMING,
            Some(ConnectionState::Connected) => Self::HAULIER_STATE_CONNECTED,
            Some(ConnectionState::Closing) => Self::HAULIER_STATE_CLOSING,
            Some(ConnectionState::Closed) => Self::HAULIER_STATE_CLOSED,
            _ => Self::HAULIER_STATE_NONE,
        }
    }
}

/// The progress of the block that is being sent or received.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct haulier_progress {
    /// Its tag.
    pub tag: u64,
    /// Bytes received or acknowledged.
    pub done_bytes: u64,
    /// Its length, in bytes.
    pub length_bytes: u64,
}

impl From<BlockProgress> for haulier_progress {
    fn from(progress: BlockProgress) -> Self {
        let BlockProgress { tag, done, length, .. } = progress;
        Self { tag, done_bytes: done, length_bytes: length }
    }
}

/// What one end of a connection counts, and what it has measured of the path.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct haulier_connection_stats {
    /// What the program gave as sizeof(haulier_connection_stats).
    pub struct_size: usize,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Bytes in them, without UDP and IP.
    pub bytes_sent: u64,
    /// Datagrams received and verified.
    pub datagrams_received: u64,
    /// Bytes in them, without UDP and IP.
    pub bytes_received: u64,
    /// Datagrams received that could not be verified, were duplicates, or violated a rule of the wire.
    pub datagrams_refused: u64,
    /// Datagrams sent and declared lost.
    pub datagrams_lost: u64,
    /// Ack-eliciting datagrams in flight.
    pub datagrams_in_flight: u64,
    /// Slices of blocks sent, with those below.
    pub slices_sent: u64,
    /// Repair slices among them.
    pub repair_slices_sent: u64,
    /// Slices sent for the second or a later time.
    pub slices_resent: u64,
    /// Packets received and dropped because the program did not read them.
    pub packets_dropped: u64,
    /// Acks that reported congestion by ECN.
    pub congestion_marks: u64,
    /// The bandwidth of the path to the peer, in bit/s; 0: not known.
    pub bandwidth_bps: u64,
    /// The smoothed round trip, in microseconds; 0: not measured.
    pub rtt_us: u64,
    /// The shortest round trip, in microseconds; 0: not measured.
    pub min_rtt_us: u64,
    /// The variation of the round trip, in microseconds; 0: not measured.
    pub rtt_variation_us: u64,
    /// The share of datagrams lost on that path, 0 to 0.6; 0.02 before anything was measured.
    pub loss: f64,
    /// The largest datagram that the path is known to carry, in bytes of UDP payload.
    pub max_datagram_bytes: u32,
    /// 1 if the connection is encrypted.
    pub is_encrypted: u32,
}

// SAFETY: repr(C), the size is first, and all fields are numbers.
unsafe impl Versioned for haulier_connection_stats {
    const NAME: &str = "haulier_connection_stats";
    const FIRST_BYTES: usize = size_of::<Self>();

    fn defaults() -> Self {
        ConnectionStats::default().into()
    }
}

impl From<ConnectionStats> for haulier_connection_stats {
    fn from(stats: ConnectionStats) -> Self {
        let us = |time: Option<core::time::Duration>| {
            time.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
        };
        Self {
            struct_size: size_of::<Self>(),
            datagrams_sent: stats.datagrams_sent,
            bytes_sent: stats.bytes_sent,
            datagrams_received: stats.datagrams_received,
            bytes_received: stats.bytes_received,
            datagrams_refused: stats.datagrams_refused,
            datagrams_lost: stats.datagrams_lost,
            datagrams_in_flight: stats.datagrams_in_flight,
            slices_sent: stats.slices_sent,
            repair_slices_sent: stats.repair_slices_sent,
            slices_resent: stats.slices_resent,
            packets_dropped: stats.packets_dropped,
            congestion_marks: stats.congestion_marks,
            bandwidth_bps: stats.bandwidth_bps.unwrap_or(0),
            rtt_us: us(stats.rtt),
            min_rtt_us: us(stats.min_rtt),
            rtt_variation_us: us(stats.rtt_variation),
            loss: stats.loss,
            max_datagram_bytes: stats.max_datagram_bytes.into(),
            is_encrypted: stats.suite.is_some().into(),
        }
    }
}

/// What a server counts since it was started, and what it holds now.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct haulier_server_counters {
    /// What the program gave as sizeof(haulier_server_counters).
    pub struct_size: usize,
    /// Connections now, handshakes among them.
    pub connections: u64,
    /// Handshakes in progress.
    pub handshakes: u64,
    /// Clients that wait in line for a seat, now.
    pub in_line: u64,
    /// Bytes that clients make it hold now.
    pub memory_bytes: u64,
    /// Requests that became a connection.
    pub requests: u64,
    /// Of these, handshakes that were completed.
    pub accepted: u64,
    /// Connections that have ended.
    pub closed: u64,
    /// Refusals sent.
    pub refused: u64,
    /// Datagrams received, from clients and strangers.
    pub datagrams_received: u64,
    /// Bytes in them.
    pub bytes_received: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
}

// SAFETY: repr(C), the size is first, and all fields are numbers.
unsafe impl Versioned for haulier_server_counters {
    const NAME: &str = "haulier_server_counters";
    const FIRST_BYTES: usize = size_of::<Self>();

    fn defaults() -> Self {
        ServerStats::default().into()
    }
}

impl From<ServerStats> for haulier_server_counters {
    fn from(stats: ServerStats) -> Self {
        Self {
            struct_size: size_of::<Self>(),
            connections: stats.connections as u64,
            handshakes: stats.handshakes as u64,
            in_line: stats.in_line as u64,
            memory_bytes: stats.memory_bytes as u64,
            requests: stats.requests,
            accepted: stats.accepted,
            closed: stats.closed,
            refused: stats.refused,
            datagrams_received: stats.datagrams_received,
            bytes_received: stats.bytes_received,
            datagrams_sent: stats.datagrams_sent,
            bytes_sent: stats.bytes_sent,
        }
    }
}
