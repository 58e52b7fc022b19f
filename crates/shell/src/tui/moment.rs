//! What the screen shows of a snapshot: names, numbers and maps, and nothing of the library's types.

use std::time::Duration;

use haulier::{ConnectionState, SliceState};
use haulier_view::{ConnectionSnapshot, Snapshot};

use crate::units::show_words;

/// A moment of a server or a client.
#[derive(Clone, Debug, Default)]
pub(super) struct Moment {
    pub(super) sent_bps: u64,
    pub(super) received_bps: u64,
    pub(super) connections: usize,
    pub(super) in_line: usize,
    pub(super) memory_bytes: u64,
    pub(super) lost: u64,
    /// The most frequent reason for drops, and the number of drops for all reasons.
    pub(super) drops: (String, u64),
    pub(super) rows: Vec<Row>,
    pub(super) unlisted: usize,
}

/// A transfer.
#[derive(Clone, Debug, Default)]
pub(super) struct Row {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) state: &'static str,
    pub(super) age: Duration,
    /// Bytes done and in all, while a block is on its way.
    pub(super) block: Option<(u64, u64)>,
    pub(super) is_received: bool,
    pub(super) rate_bps: u64,
    pub(super) rtt: Option<Duration>,
    pub(super) loss: f64,
    pub(super) in_flight: u64,
    pub(super) memory_bytes: u64,
    /// Slices sent, again, and repair slices.
    pub(super) slices: [u64; 3],
    pub(super) map: Option<Map>,
}

/// A block: the number of its chunks and of those done, and the slices of the chunks on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Map {
    pub(super) chunks: u32,
    pub(super) done: u32,
    pub(super) open: Vec<(u32, Vec<Cell>)>,
}

/// A slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    Waiting,
    OnTheWay,
    Missing,
    Arrived,
}

impl Moment {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let most = snapshot.drops.iter().max_by_key(|(_, count)| *count);
        let most = most.map_or_else(String::new, |(reason, _)| reason.name().replace('_', " "));
        Self {
            sent_bps: snapshot.sent_bps,
            received_bps: snapshot.received_bps,
            connections: snapshot.totals.connections,
            in_line: snapshot.totals.in_line,
            memory_bytes: snapshot.totals.memory_bytes as u64,
            lost: snapshot.amounts.datagrams_lost,
            drops: (most, snapshot.drops.iter().map(|(_, count)| count).sum()),
            rows: snapshot.connections.iter().map(Row::of).collect(),
            unlisted: snapshot.unlisted,
        }
    }
}

impl Row {
    fn of(it: &ConnectionSnapshot) -> Self {
        let block = it.block();
        let name = if it.name.is_empty() { it.address.to_string() } else { show_words(&it.name) };
        Self {
            id: it.id,
            name,
            state: match it.state {
                ConnectionState::Connected => "connected",
                ConnectionState::Closing | ConnectionState::Closed => "closed",
                _ => "handshake",
            },
            age: it.age,
            block: block.map(|(block, _)| (block.done, block.length)),
            is_received: block.is_some_and(|(_, is_received)| is_received),
            rate_bps: it.sent_bps.max(it.received_bps),
            rtt: it.stats.rtt,
            loss: it.stats.loss,
            in_flight: it.stats.datagrams_in_flight,
            memory_bytes: it.memory_bytes,
            slices: [it.stats.slices_sent, it.stats.slices_resent, it.stats.repair_slices_sent],
            map: it.map().map(|map| Map {
                chunks: map.chunks,
                done: map.first + u32::try_from(map.done_ahead.len()).unwrap_or_default(),
                open: map
                    .open
                    .iter()
                    .map(|chunk| (chunk.index, chunk.states().map(cell).collect()))
                    .collect(),
            }),
        }
    }
}

const fn cell(state: SliceState) -> Cell {
    match state {
        SliceState::Arrived => Cell::Arrived,
        SliceState::Missing => Cell::Missing,
        SliceState::InFlight => Cell::OnTheWay,
        _ => Cell::Waiting,
    }
}
