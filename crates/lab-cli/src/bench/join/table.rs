//! The table of `haulier-lab bench join`, and its numbers in JSON.

use std::time::Duration;

use haulier_shell::report::Report;
use haulier_shell::units::{in_millis, show_bytes, word};
use serde_json::{Value, json};

use super::{Joined, Joins};
use crate::args::JoinArgs;

/// A line for each link and kind of join.
pub(super) fn print(cells: &[Joins], args: &JoinArgs, report: &Report) {
    let heading = format!(
        "{} a join, {} seeds\n\
         link         L ms  join       p50 ms    p95 ms   p50/L   p95/L  sent/N  dropped  failed",
        show_bytes(args.bytes),
        args.seeds,
    );
    report.event("heading", json!({ "bytes": args.bytes, "seeds": args.seeds }), &heading);
    for cell in cells {
        let (join, p50, p95) = (word(&cell.kind), cell.quantile(0.5), cell.quantile(0.95));
        let ms = |time: Option<Duration>| match time {
            Some(time) => format!("{:.1}", in_millis(time)),
            None => "fail".into(),
        };
        let ratio = |time| match cell.ratio(time) {
            Some(ratio) => format!("{ratio:.2}"),
            None => "fail".into(),
        };
        let text = format!(
            "{:8}  {:7.1}  {:7}  {:>8}  {:>8}  {:>6}  {:>6}  {:>6}  {:7}  {:6}",
            cell.profile.name,
            in_millis(cell.limit),
            join,
            ms(p50),
            ms(p95),
            ratio(p50),
            ratio(p95),
            cell.sent(args.bytes).map_or("-".into(), |sent| format!("{sent:.2}")),
            cell.dropped(),
            cell.failed(),
        );
        let mut fields = fields(cell, args.bytes);
        fields["profile"] = cell.profile.name.into();
        fields["join"] = join.as_str().into();
        report.event("cell", fields, &text);
        let reason = cell.outcomes.iter().find_map(|outcome| outcome.joined.as_ref().err());
        if let Some(reason) = reason {
            report.warning(&format!("{join} over {}: {reason}", cell.profile.name));
        }
    }
}

/// The numbers of a cell. A time that is `null` is that of a join that failed.
pub(super) fn fields(cell: &Joins, bytes: u64) -> Value {
    let (p50, p95) = (cell.quantile(0.5), cell.quantile(0.95));
    json!({
        "limit_ms": in_millis(cell.limit),
        "p50_ms": p50.map(in_millis),
        "p95_ms": p95.map(in_millis),
        "p50": cell.ratio(p50).map(rounded),
        "p95": cell.ratio(p95).map(rounded),
        "sent": cell.sent(bytes).map(rounded),
        "dropped": cell.dropped(),
        "failed": cell.failed(),
    })
}

/// To three places, which is more than a run is worth.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

impl Joins {
    /// The time that this share of the joins needed at most; `None` if one of them failed.
    fn quantile(&self, share: f64) -> Option<Duration> {
        let time = |joined: &Result<Joined, String>| {
            joined.as_ref().map_or(Duration::MAX, |joined: &Joined| joined.total)
        };
        let mut times: Vec<Duration> =
            self.outcomes.iter().map(|outcome| time(&outcome.joined)).collect();
        times.sort_unstable();
        let rank = (share * times.len() as f64).ceil() as usize;
        times.get(rank.saturating_sub(1)).copied().filter(|&time| time < Duration::MAX)
    }

    fn ratio(&self, time: Option<Duration>) -> Option<f64> {
        time.map(|time| time.as_secs_f64() / self.limit.as_secs_f64())
    }

    /// The median of what the server put on the link, headers counted, as a multiple of the block.
    fn sent(&self, bytes: u64) -> Option<f64> {
        let joined = self.outcomes.iter().filter(|outcome| outcome.joined.is_ok());
        let mut sent: Vec<u64> = joined.map(|outcome| outcome.down.offered_bytes).collect();
        sent.sort_unstable();
        sent.get(sent.len().saturating_sub(1) / 2).map(|&sent| sent as f64 / bytes as f64)
    }

    /// The median of the server's packets that the full queue dropped.
    fn dropped(&self) -> u64 {
        let mut dropped: Vec<u64> =
            self.outcomes.iter().map(|outcome| outcome.down.queue_full).collect();
        dropped.sort_unstable();
        dropped.get(dropped.len().saturating_sub(1) / 2).copied().unwrap_or_default()
    }
}
