//! What a server or a client looks like at a moment.
//!
//! The invariant: its size is bounded, whatever is going on.

use std::net::SocketAddr;
use std::time::Duration;

use haulier::proto::connection::BlockMap;
use haulier::{BlockProgress, ConnectionState, ConnectionStats, DropReason, ServerStats};

/// Connections that a snapshot has one by one: what a table can show, and what costs a server of thousands
/// little. Beyond them only totals are counted.
pub const MAX_CONNECTIONS: usize = 200;

/// Chunks on the way that a map has slice by slice: 1 MiB, more than links of up to some 50 Mbit/s have in
/// flight.
pub const MAX_OPEN_CHUNKS: usize = 4;

/// Which end of connections it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// A server with all its clients.
    Server,
    /// A client and its one connection.
    Client,
}

/// A server or a client at a moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The time since watching began.
    pub at: Duration,
    /// Which end it is.
    pub end: End,
    /// Where the server listens; of a client, the server's address.
    pub address: SocketAddr,
    /// What all connections did and hold.
    pub totals: Totals,
    /// What the connections below did since watching began, those that are gone too.
    pub amounts: Amounts,
    /// Bits of datagrams per second that it sent in the last second, without UDP and IP headers.
    pub sent_bps: u64,
    /// Bits of datagrams per second that it received in the last second, without UDP and IP headers.
    pub received_bps: u64,
    /// Datagrams that were not used, by reason; only reasons that occurred.
    pub drops: Vec<(DropReason, u64)>,
    /// Seconds from the request of a client to the end of the first block, to within the time between two
    /// snapshots. Of the connections below.
    pub join_seconds: Histogram,
    /// The first smoothed round trip of each connection, in seconds. Of the connections below.
    pub rtt_seconds: Histogram,
    /// The first [`MAX_CONNECTIONS`].
    pub connections: Vec<ConnectionSnapshot>,
    /// The number of further connections.
    pub unlisted: usize,
}

/// What a server counts and holds. Of a client, what its one connection does.
pub type Totals = ServerStats;

/// What connections did, summed up from the differences between snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amounts {
    /// Datagrams that were sent and declared lost.
    pub datagrams_lost: u64,
    /// Slices sent, of all kinds.
    pub slices_sent: u64,
    /// Slices sent for the second or a later time.
    pub slices_resent: u64,
    /// Repair slices sent.
    pub repair_slices_sent: u64,
}

impl Amounts {
    pub(crate) const fn of(stats: &ConnectionStats) -> Self {
        Self {
            datagrams_lost: stats.datagrams_lost,
            slices_sent: stats.slices_sent,
            slices_resent: stats.slices_resent,
            repair_slices_sent: stats.repair_slices_sent,
        }
    }

    /// Adds what happened from `before` to `now`.
    pub(crate) const fn add(&mut self, before: &Self, now: &Self) {
        self.datagrams_lost += now.datagrams_lost.saturating_sub(before.datagrams_lost);
        self.slices_sent += now.slices_sent.saturating_sub(before.slices_sent);
        self.slices_resent += now.slices_resent.saturating_sub(before.slices_resent);
        self.repair_slices_sent += now.repair_slices_sent.saturating_sub(before.repair_slices_sent);
    }
}

/// One connection at that moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionSnapshot {
    /// The number that its `ConnectionId` prints as; 0 at a client.
    pub id: u64,
    /// What the application calls it; may be empty, and may be chosen by a client.
    pub name: String,
    /// The peer's address.
    pub address: SocketAddr,
    /// Its state.
    pub state: ConnectionState,
    /// Its age at its last activity.
    pub age: Duration,
    /// The block that is being sent.
    pub sending: Option<BlockProgress>,
    /// The block that is being received.
    pub receiving: Option<BlockProgress>,
    /// Bits of datagrams per second that it sent in the last second.
    pub sent_bps: u64,
    /// Bits of datagrams per second that it received in the last second.
    pub received_bps: u64,
    /// Its counters and its measurements of the path.
    pub stats: ConnectionStats,
    /// Bytes that the peer makes this end hold.
    pub memory_bytes: u64,
    /// The map of the block that is being sent, with [`MAX_OPEN_CHUNKS`] chunks at most.
    pub sending_map: Option<BlockMap>,
    /// The map of the block that is being received, with [`MAX_OPEN_CHUNKS`] chunks at most.
    pub receiving_map: Option<BlockMap>,
}

impl ConnectionSnapshot {
    /// The block on its way, and whether it is received: the one that is sent if there are both.
    #[must_use]
    pub const fn block(&self) -> Option<(BlockProgress, bool)> {
        match (self.sending, self.receiving) {
            (Some(block), _) => Some((block, false)),
            (None, Some(block)) => Some((block, true)),
            (None, None) => None,
        }
    }

    /// The map of that block.
    #[must_use]
    pub const fn map(&self) -> Option<&BlockMap> {
        match (&self.sending_map, &self.receiving_map) {
            (Some(map), _) | (None, Some(map)) => Some(map),
            (None, None) => None,
        }
    }
}

/// A histogram of measured values.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Histogram {
    /// The sum of all.
    pub sum: f64,
    /// The number of values.
    pub count: u64,
    /// For each of [`BOUNDS`](Self::BOUNDS) the number of values that were at most that, and above the bound
    /// before.
    pub buckets: [u64; Self::BOUNDS.len()],
    /// Those measured since the snapshot before.
    pub news: Vec<f64>,
}

impl Histogram {
    /// The upper bounds, in seconds: from a local network to a player who gives up. Above is the rest.
    pub const BOUNDS: [f64; 14] =
        [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0];

    pub(crate) const fn new() -> Self {
        Self { sum: 0.0, count: 0, buckets: [0; Self::BOUNDS.len()], news: Vec::new() }
    }

    pub(crate) fn record(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
        let place = Self::BOUNDS.iter().position(|&bound| value <= bound);
        if let Some(bucket) = place.and_then(|place| self.buckets.get_mut(place)) {
            *bucket += 1;
        }
        self.news.push(value);
    }
}
