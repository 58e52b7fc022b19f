//! A snapshot as JSON: what the page draws, and what a script reads.

use std::time::Duration;

use haulier::proto::connection::{BlockMap, ChunkMap, SliceState};
use haulier::{BlockProgress, ConnectionState};
use serde_json::{Map, Value, json};

use crate::snapshot::{ConnectionSnapshot, End, Histogram, Snapshot};

impl Snapshot {
    /// The snapshot as one object. Times are in milliseconds and end in `_ms`, rates in bits per second and
    /// end in `_bps`; a map has a character for each slice: `.` waiting, `s` sent and on the way, `m`
    /// missing, `a` arrived.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let totals = &self.totals;
        let drops: Map<String, Value> = self
            .drops
            .iter()
            .map(|(reason, count)| (reason.name().to_owned(), (*count).into()))
            .collect();
        json!({
            "at_ms": millis(self.at),
            "end": if self.end == End::Server { "server" } else { "client" },
            "address": self.address.to_string(),
            "sent_bps": self.sent_bps,
            "received_bps": self.received_bps,
            "totals": {
                "connections": totals.connections,
                "handshakes": totals.handshakes,
                "in_line": totals.in_line,
                "lingering": totals.lingering,
                "memory_bytes": totals.memory_bytes,
                "requests": totals.requests,
                "joins": totals.accepted,
                "closed": totals.closed,
                "refused": totals.refused,
                "resets": totals.resets,
                "strays": totals.strays,
                "datagrams_sent": totals.datagrams_sent,
                "datagrams_received": totals.datagrams_received,
                "bytes_sent": totals.bytes_sent,
                "bytes_received": totals.bytes_received,
                "datagrams_lost": self.amounts.datagrams_lost,
                "slices_sent": self.amounts.slices_sent,
                "slices_resent": self.amounts.slices_resent,
                "repair_slices_sent": self.amounts.repair_slices_sent,
            },
            "join": mean(&self.join_seconds),
            "rtt": mean(&self.rtt_seconds),
            "drops": drops,
            "connections": self.connections.iter().map(connection).collect::<Vec<_>>(),
            "unlisted": self.unlisted,
        })
    }
}

fn connection(it: &ConnectionSnapshot) -> Value {
    let stats = &it.stats;
    json!({
        "id": it.id.to_string(),
        "name": it.name,
        "address": it.address.to_string(),
        "state": state(it.state),
        "age_ms": millis(it.age),
        "sending": it.sending.map(progress),
        "receiving": it.receiving.map(progress),
        "sent_bps": it.sent_bps,
        "received_bps": it.received_bps,
        "rtt_ms": stats.rtt.map(millis),
        "min_rtt_ms": stats.min_rtt.map(millis),
        "loss": rounded(stats.loss, 1e6),
        "bandwidth_bps": stats.bandwidth_bps,
        "datagrams_in_flight": stats.datagrams_in_flight,
        "datagrams_lost": stats.datagrams_lost,
        "bytes_sent": stats.bytes_sent,
        "bytes_received": stats.bytes_received,
        "slices_sent": stats.slices_sent,
        "slices_resent": stats.slices_resent,
        "repair_slices_sent": stats.repair_slices_sent,
        "memory_bytes": it.memory_bytes,
        "suite": stats.suite.map(|suite| format!("{suite:?}")),
        "sending_map": it.sending_map.as_ref().map(map),
        "receiving_map": it.receiving_map.as_ref().map(map),
    })
}

fn progress(block: BlockProgress) -> Value {
    json!({ "tag": block.tag.to_string(), "done": block.done, "length": block.length })
}

fn map(map: &BlockMap) -> Value {
    json!({
        "chunks": map.chunks,
        "first": map.first,
        "done_ahead": map.done_ahead,
        "open_chunks": map.open_chunks,
        "open": map.open.iter().map(chunk).collect::<Vec<_>>(),
    })
}

fn chunk(chunk: &ChunkMap) -> Value {
    let letter = |state| match state {
        SliceState::Arrived => 'a',
        SliceState::Missing => 'm',
        SliceState::InFlight => 's',
        _ => '.',
    };
    json!({
        "index": chunk.index,
        "slices": chunk.states().map(letter).collect::<String>(),
        "repairs_sent": chunk.repairs_sent,
        "repairs_arrived": chunk.repairs_arrived,
    })
}

/// A word for it.
const fn state(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::Responding | ConnectionState::Confirming => "handshake",
        ConnectionState::Connected => "connected",
        ConnectionState::Closing => "closing",
        ConnectionState::Closed => "closed",
        _ => "other",
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people: far below 2^53")]
fn mean(histogram: &Histogram) -> Value {
    let mean = histogram.sum / histogram.count.max(1) as f64;
    json!({ "count": histogram.count, "mean_ms": rounded(mean * 1e3, 1e3) })
}

fn millis(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3, 1e3)
}

fn rounded(value: f64, parts: f64) -> f64 {
    (value * parts).round() / parts
}
