//! The table of the metrics: one for the facade, the text at `/metrics`, the documentation and the dashboard.
//!
//! The invariant: no label names a client. The reasons of drops are a fixed set.

use haulier::DropReason;

use crate::snapshot::{Histogram, Snapshot};

/// What kind of number a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// It only grows, from 0 at the start.
    Counter,
    /// As it is now.
    Gauge,
    /// A histogram: for each bound the number of values that were at most as large.
    Histogram,
}

/// The units of metrics: base units, as OpenMetrics wants them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Something countable, which the name says.
    None,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// A fraction of 1.
    Ratio,
}

impl Unit {
    /// The word at the end of the name; empty for a metric without a unit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Bytes => "bytes",
            Self::Seconds => "seconds",
            Self::Ratio => "ratio",
        }
    }
}

/// A number that is published.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Metric {
    /// Its name, with its unit at the end. OpenMetrics adds `_total` to that of a counter.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: MetricKind,
    /// Its unit.
    pub unit: Unit,
    /// A sentence for people.
    pub help: &'static str,
    pub(crate) read: Read,
}

/// How it is read from a snapshot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Read {
    Count(fn(&Snapshot) -> u64),
    Value(fn(&Snapshot) -> f64),
    /// One for each reason, as the label `reason`.
    ByReason(fn(&Snapshot, DropReason) -> u64),
    Times(fn(&Snapshot) -> &Histogram),
}

const fn counter(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    read: fn(&Snapshot) -> u64,
) -> Metric {
    Metric { name, kind: MetricKind::Counter, unit, help, read: Read::Count(read) }
}

const fn gauge(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    read: fn(&Snapshot) -> f64,
) -> Metric {
    Metric { name, kind: MetricKind::Gauge, unit, help, read: Read::Value(read) }
}

const fn times(
    name: &'static str,
    help: &'static str,
    read: fn(&Snapshot) -> &Histogram,
) -> Metric {
    Metric { name, kind: MetricKind::Histogram, unit: Unit::Seconds, help, read: Read::Times(read) }
}

/// Every metric, in the order in which they are printed.
pub const METRICS: &[Metric] = &[
    gauge(
        "haulier_connections",
        Unit::None,
        "Connections now, handshakes in progress among them.",
        |it| float(it.totals.connections as u64),
    ),
    gauge("haulier_handshakes", Unit::None, "Handshakes in progress now.", |it| {
        float(it.totals.handshakes as u64)
    }),
    gauge(
        "haulier_transfers",
        Unit::None,
        "Connections with a block on its way now, of the first 200.",
        |it| float(it.connections.iter().filter(|it| it.block().is_some()).count() as u64),
    ),
    gauge("haulier_clients_in_line", Unit::None, "Clients who wait for a seat now.", |it| {
        float(it.totals.in_line as u64)
    }),
    gauge(
        "haulier_lingering_connections",
        Unit::None,
        "Connections that have ended and whose clients may not have heard it, now.",
        |it| float(it.totals.lingering as u64),
    ),
    gauge("haulier_memory_bytes", Unit::Bytes, "Bytes that peers make this end hold now.", |it| {
        float(it.totals.memory_bytes as u64)
    }),
    gauge(
        "haulier_loss_ratio",
        Unit::Ratio,
        "The estimated loss of the paths with a block on its way now, their mean, of the first 200.",
        mean_loss,
    ),
    counter("haulier_requests", Unit::None, "Requests that became a connection.", |it| {
        it.totals.requests
    }),
    counter("haulier_joins", Unit::None, "Handshakes that were completed.", |it| {
        it.totals.accepted
    }),
    counter("haulier_closed_connections", Unit::None, "Connections that have ended.", |it| {
        it.totals.closed
    }),
    counter("haulier_refusals", Unit::None, "Refusals sent.", |it| it.totals.refused),
    counter("haulier_resets", Unit::None, "Resets sent.", |it| it.totals.resets),
    counter(
        "haulier_strays",
        Unit::None,
        "Datagrams that reached another worker than theirs, and were handed over.",
        |it| it.totals.strays,
    ),
    counter("haulier_datagrams_sent", Unit::None, "Datagrams sent.", |it| it.totals.datagrams_sent),
    counter("haulier_datagrams_received", Unit::None, "Datagrams received.", |it| {
        it.totals.datagrams_received
    }),
    counter(
        "haulier_sent_bytes",
        Unit::Bytes,
        "Bytes of the datagrams sent, without UDP and IP headers.",
        |it| it.totals.bytes_sent,
    ),
    counter(
        "haulier_received_bytes",
        Unit::Bytes,
        "Bytes of the datagrams received, without UDP and IP headers.",
        |it| it.totals.bytes_received,
    ),
    counter(
        "haulier_datagrams_lost",
        Unit::None,
        "Datagrams sent and declared lost, of the first 200 connections.",
        |it| it.amounts.datagrams_lost,
    ),
    counter(
        "haulier_slices_sent",
        Unit::None,
        "Slices sent, of the first 200 connections.",
        |it| it.amounts.slices_sent,
    ),
    counter(
        "haulier_slices_resent",
        Unit::None,
        "Slices sent for the second or a later time, of the first 200 connections.",
        |it| it.amounts.slices_resent,
    ),
    counter(
        "haulier_repair_slices_sent",
        Unit::None,
        "Repair slices sent, of the first 200 connections.",
        |it| it.amounts.repair_slices_sent,
    ),
    Metric {
        name: "haulier_drops",
        kind: MetricKind::Counter,
        unit: Unit::None,
        help: "Datagrams, or frames in them, that were not used, by reason.",
        read: Read::ByReason(drops),
    },
    times(
        "haulier_join_seconds",
        "From the request of a client to the end of its first block, of the first 200 connections.",
        |it| &it.join_seconds,
    ),
    times(
        "haulier_rtt_seconds",
        "The first round trip of each connection, smoothed, of the first 200.",
        |it| &it.rtt_seconds,
    ),
];

fn drops(snapshot: &Snapshot, reason: DropReason) -> u64 {
    let found = snapshot.drops.iter().find(|(known, _)| *known == reason);
    found.map_or(0, |&(_, count)| count)
}

fn mean_loss(snapshot: &Snapshot) -> f64 {
    let all = snapshot.connections.iter().filter(|it| it.block().is_some());
    let (sum, count) = all.fold((0.0, 0), |(sum, count), it| (sum + it.stats.loss, count + 1));
    sum / float(count.max(1))
}

#[expect(clippy::cast_precision_loss, reason = "below 2^53")]
const fn float(number: u64) -> f64 {
    number as f64
}
