//! What a server counts, for all its clients together.

use core::ops::AddAssign;

use super::worker::Worker;
use crate::work::Work;

/// Counters of a server since it was created, and what it holds now.
///
/// # Examples
/// ```
/// use haulier_proto::server::ServerStats;
///
/// let stats = ServerStats::default(); // of a server: `Server::stats`
/// println!("{} play, {} join, {} wait in line", stats.connections, stats.handshakes, stats.in_line);
/// assert_eq!(stats.refused, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerStats {
    /// Connections now, including handshakes in progress.
    pub connections: usize,
    /// Of these, handshakes in progress.
    pub handshakes: usize,
    /// Connections that have ended and whose clients may not have heard it, now.
    pub lingering: usize,
    /// Bytes that clients make it hold now: data that is incomplete or not read, and the closes of
    /// connections that have ended.
    pub memory_bytes: usize,
    /// Clients who wait in line for a seat, now.
    pub in_line: usize,
    /// Requests and tokens remembered now, to detect replays.
    pub remembered: usize,
    /// Requests that became a connection.
    pub requests: u64,
    /// Of these, handshakes that were completed.
    pub accepted: u64,
    /// Connections that have ended.
    pub closed: u64,
    /// Refusals sent.
    pub refused: u64,
    /// Resets sent.
    pub resets: u64,
    /// Closes sent again, to clients that had not heard them.
    pub closes_repeated: u64,
    /// Datagrams that reached another worker than the one that has their connection, and were handed over.
    pub strays: u64,
    /// Of these, those that found no room there.
    pub strays_dropped: u64,
    /// Datagrams received, from clients and strangers.
    pub datagrams_received: u64,
    /// Bytes in them.
    pub bytes_received: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
}

/// The counters of two workers.
impl AddAssign for ServerStats {
    fn add_assign(&mut self, more: Self) {
        self.connections += more.connections;
        self.handshakes += more.handshakes;
        self.lingering += more.lingering;
        self.memory_bytes += more.memory_bytes;
        self.remembered += more.remembered;
        self.requests += more.requests;
        self.accepted += more.accepted;
        self.closed += more.closed;
        self.refused += more.refused;
        self.resets += more.resets;
        self.closes_repeated += more.closes_repeated;
        self.strays += more.strays;
        self.strays_dropped += more.strays_dropped;
        self.datagrams_received += more.datagrams_received;
        self.bytes_received += more.bytes_received;
        self.datagrams_sent += more.datagrams_sent;
        self.bytes_sent += more.bytes_sent;
    }
}

impl Worker {
    /// The work that it has done since its start, for clients and strangers.
    #[doc(hidden)]
    #[must_use]
    pub fn work(&self) -> Work {
        let mut work = self.work;
        self.slots.ids().filter_map(|id| self.connection(id)).for_each(|it| work += it.work());
        work
    }
}
