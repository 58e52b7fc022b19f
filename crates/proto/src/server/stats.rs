//! What a server counts, of all its clients together.

/// Counters of a server, since it was made, and what it holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerStats {
    /// Connections now, those in their handshake included.
    pub connections: usize,
    /// Of these, whose first data has not come.
    pub handshakes: usize,
    /// Bytes that clients make it hold: what is half received, or not read.
    pub memory_bytes: usize,
    /// Requests and tokens remembered against replay.
    pub remembered: usize,
    /// Requests that became a connection.
    pub requests: u64,
    /// Of these, whose address was proven.
    pub accepted: u64,
    /// Connections that are over.
    pub closed: u64,
    /// Refusals sent.
    pub refused: u64,
    /// Resets sent.
    pub resets: u64,
    /// Datagrams handed in, of clients and strangers.
    pub datagrams_received: u64,
    /// Bytes in them.
    pub bytes_received: u64,
    /// Datagrams handed out.
    pub datagrams_sent: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
}
