//! `haulier-lab bench article`: the article's strategy beside the reference it was measured with before.

use haulier_lab::article_bench::{self, Row};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use serde_json::json;

use super::on_every_core;

/// How far a median may be from its reference, which is printed to 10 ms.
const TOLERANCE: f64 = 0.10;
const ROUNDING: f64 = 0.005;

pub(super) fn run(seeds: u64, report: &Report) -> Result<(), Failure> {
    let rows: Vec<(Row, f64)> = article_bench::rows().collect();
    let medians = on_every_core(&rows, "rows", report, |(row, _)| row.median(seeds));
    interrupt::check()?;
    report.finish_bar();
    let heading =
        "link Mbit/s  budget kbit/s  RTT ms  loss   queue KiB  burst   median s  reference s";
    report.event("heading", json!({ "seeds": seeds }), heading);
    let mut off = 0;
    for ((row, reference), median) in rows.iter().zip(&medians) {
        let median = median.as_secs_f64();
        let is_off = (median - reference).abs() > TOLERANCE * reference + ROUNDING;
        off += usize::from(is_off);
        let fields = json!({
            "rate_mbit": row.rate_mbit,
            "budget_kbit": row.budget_kbit,
            "rtt_ms": row.rtt_ms,
            "loss": row.loss_percent as f64 / 100.0,
            "queue_kib": row.queue_kib,
            "burst": row.burst,
            "median_s": (median * 1e4).round() / 1e4,
            "reference_s": reference,
        });
        let text = format!(
            "{:11}  {:13}  {:6}  {:3} %  {:>9}  {:5}  {median:9.3}  {reference:11.2}{}",
            row.rate_mbit,
            row.budget_kbit,
            row.rtt_ms,
            row.loss_percent,
            row.queue_kib.map_or("none".into(), |kib| kib.to_string()),
            if row.burst { "yes" } else { "no" },
            if is_off { "  off" } else { "" },
        );
        report.event("row", fields, &text);
    }
    let scatter = if seeds < article_bench::SEEDS { " (so few runs scatter)" } else { "" };
    let text = format!(
        "{} rows, medians of {seeds} runs{scatter}: {} within 10 % of the reference, {off} not",
        rows.len(),
        rows.len() - off
    );
    // With fewer seeds a median scatters, and a row that is off says nothing.
    let ok = off == 0 || seeds < article_bench::SEEDS;
    let fields = json!({ "rows": rows.len(), "off": off, "seeds": seeds });
    let what = format!("{off} rows are more than 10 % off their reference");
    report.verdict(ok, fields, &text, &what)
}
