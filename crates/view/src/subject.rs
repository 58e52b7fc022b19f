//! What can be looked at, and one look: each connection under the lock of its worker, one after the other.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use haulier::proto::connection::Connection;
use haulier::{Client, ConnectionState, DropReason, Server, ServerStats};

use crate::names::{Names, number};
use crate::snapshot::{ConnectionSnapshot, End, MAX_CONNECTIONS, MAX_OPEN_CHUNKS, Totals};

/// A server or a client to look at. It holds it open.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Subject {
    /// A server with all its clients.
    Server(Server),
    /// A client.
    Client(Client),
}

impl From<Server> for Subject {
    fn from(server: Server) -> Self {
        Self::Server(server)
    }
}

impl From<Client> for Subject {
    fn from(client: Client) -> Self {
        Self::Client(client)
    }
}

/// What was seen, without what needs an earlier look.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) end: End,
    pub(crate) address: SocketAddr,
    pub(crate) totals: Totals,
    pub(crate) drops: Vec<(DropReason, u64)>,
    pub(crate) connections: Vec<ConnectionSnapshot>,
    pub(crate) unlisted: usize,
}

impl Subject {
    pub(crate) fn look(&self, names: &Names) -> Look {
        match self {
            Self::Server(server) => look_at_server(server, names),
            Self::Client(client) => look_at_client(client),
        }
    }
}

fn look_at_server(server: &Server, names: &Names) -> Look {
    // A name that is given while this looks is of a connection that came after the list was made.
    let named = names.ids();
    let mut ids = server.connections();
    // The order in which they came to their worker, so that a table does not jump.
    ids.sort_unstable();
    let look = |id| {
        let name = names.of(number(id));
        server.with_connection(id, |connection| one(number(id), name, connection))
    };
    let connections: Vec<_> = ids.iter().take(MAX_CONNECTIONS).filter_map(|&id| look(id)).collect();
    let here: BTreeSet<u64> = ids.iter().map(|&id| number(id)).collect();
    named.into_iter().filter(|id| !here.contains(id)).for_each(|id| names.forget(id));
    Look {
        end: End::Server,
        address: server.local_addr(),
        totals: server.stats(),
        drops: server.drops().iter().collect(),
        unlisted: ids.len().saturating_sub(connections.len()),
        connections,
    }
}

fn look_at_client(client: &Client) -> Look {
    let connection = client.with_connection(|it| one(0, String::new(), it));
    let connections: Vec<_> = connection.into_iter().collect();
    let is_open = |it: &&ConnectionSnapshot| it.state != ConnectionState::Closed;
    let wire = client.wire_bytes();
    let mut totals = ServerStats::default();
    totals.connections = connections.iter().filter(is_open).count();
    (totals.bytes_sent, totals.bytes_received) = (wire.sent, wire.received);
    for it in &connections {
        totals.datagrams_sent = it.stats.datagrams_sent;
        totals.datagrams_received = it.stats.datagrams_received;
        totals.memory_bytes = usize::try_from(it.memory_bytes).unwrap_or(usize::MAX);
    }
    let (end, address) = (End::Client, client.server());
    Look { end, address, totals, drops: Vec::new(), connections, unlisted: 0 }
}

fn one(id: u64, name: String, connection: &Connection) -> ConnectionSnapshot {
    ConnectionSnapshot {
        id,
        name,
        address: connection.address(),
        state: connection.state(),
        age: connection.age(),
        sending: connection.sending(),
        receiving: connection.receiving(),
        sent_bps: 0,
        received_bps: 0,
        stats: connection.stats(),
        memory_bytes: connection.memory_bytes() as u64,
        sending_map: connection.sending_map(MAX_OPEN_CHUNKS),
        receiving_map: connection.receiving_map(MAX_OPEN_CHUNKS),
    }
}

/// The bits per second of a counter of bytes that grew from `before` to `now` in the time `elapsed`.
pub(crate) fn rate_bps(before: u64, now: u64, elapsed: Duration) -> u64 {
    let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX).max(1);
    let bits = u128::from(now.saturating_sub(before)) * 8 * 1_000_000;
    u64::try_from(bits / u128::from(micros)).unwrap_or(u64::MAX)
}
