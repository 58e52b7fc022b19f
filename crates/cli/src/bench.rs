//! `haulier bench`: measurements that are commands.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haulier_sim::article_bench::{self, Row};
use serde_json::json;

use crate::args::{Bench, BenchArgs};
use crate::failure::Failure;
use crate::interrupt;
use crate::report::Report;

pub(crate) fn run(args: &BenchArgs, report: &Report) -> Result<(), Failure> {
    match args.bench {
        Bench::Article { seeds } => article(seeds, report),
    }
}

/// How far a median may be from its reference, which is printed to 10 ms.
const TOLERANCE: f64 = 0.10;
const ROUNDING: f64 = 0.005;

fn article(seeds: u64, report: &Report) -> Result<(), Failure> {
    let rows: Vec<(Row, f64)> = article_bench::rows().collect();
    let medians = measure(&rows, seeds, report);
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
    let fields = json!({ "ok": ok, "rows": rows.len(), "off": off, "seeds": seeds });
    if ok {
        report.done(fields, &text);
        return Ok(());
    }
    report.event("summary", fields, &text);
    Err(Failure::Negative(format!("{off} rows are more than 10 % off their reference")))
}

/// The medians of all rows, on every core.
fn measure(rows: &[(Row, f64)], seeds: u64, report: &Report) -> Vec<Duration> {
    let medians = Mutex::new(vec![Duration::ZERO; rows.len()]);
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((row, _)) = rows.get(at) else { return };
            if interrupt::requested() {
                return;
            }
            let median = row.median(seeds);
            if let Ok(mut medians) = medians.lock() {
                medians[at] = median;
            }
            finished.fetch_add(1, Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            let done = finished.load(Ordering::Relaxed) as u64;
            report.count(done, Some(rows.len() as u64), "rows");
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    medians.into_inner().unwrap_or_default()
}
