//! `haulier-lab bench fragments`: how many packets are lost when a datagram in a hundred is.

use haulier_lab::fragment_bench::{self, Row};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use serde_json::json;

use super::on_every_core;

/// How far the part lost may be from the formula: half a point.
const TOLERANCE: f64 = 0.005;

/// Each row is cut into as many jobs, so that all cores have work till the end.
const PARTS: u64 = 16;

pub(super) fn run(packets: Option<u64>, seed: u64, report: &Report) -> Result<(), Failure> {
    let rows: Vec<(Row, u64)> = fragment_bench::rows()
        .map(|row| (row, packets.unwrap_or_else(|| row.packets()).div_ceil(PARTS)))
        .collect();
    let part = |index| (0..PARTS).map(move |part| (index, part));
    let jobs: Vec<(usize, u64)> = (0..rows.len()).flat_map(part).collect();
    let parts = on_every_core(&jobs, "parts", report, |&(index, part)| {
        let (row, packets) = rows[index];
        row.lost(packets, seed.wrapping_mul(PARTS).wrapping_add(part))
    });
    interrupt::check()?;
    report.finish_bar();
    let heading = "fragments  datagrams lost  packets lost  by the formula   packets sent";
    report.event("heading", json!({ "seed": seed }), heading);
    let mut off = 0;
    for ((row, packets), parts) in rows.iter().zip(parts.chunks(PARTS as usize)) {
        // Parts are of one size, so the part lost of all is their mean.
        let (lost, packets) = (parts.iter().sum::<f64>() / PARTS as f64, packets * PARTS);
        let expected = row.expected();
        let is_off = (lost - expected).abs() > TOLERANCE;
        off += usize::from(is_off);
        let fields = json!({
            "fragments": row.fragments,
            "loss": row.loss_percent as f64 / 100.0,
            "lost": (lost * 1e6).round() / 1e6,
            "expected": (expected * 1e6).round() / 1e6,
            "packets": packets,
        });
        let text = format!(
            "{:9}  {:12} %  {:10.2} %  {:12.2} %  {packets:13}{}",
            row.fragments,
            row.loss_percent,
            lost * 100.0,
            expected * 100.0,
            if is_off { "  off" } else { "" },
        );
        report.event("row", fields, &text);
    }
    conclude(rows.len(), off, packets.is_some(), report)
}

fn conclude(rows: usize, off: usize, is_chosen: bool, report: &Report) -> Result<(), Failure> {
    let scatter = if is_chosen { " (fewer packets scatter more)" } else { "" };
    let text = format!(
        "{rows} rows{scatter}: {} within half a point of 1 - (1 - loss) ^ fragments, {off} not",
        rows - off
    );
    // With a chosen number of packets a row that is off proves nothing.
    let ok = off == 0 || is_chosen;
    let fields = json!({ "rows": rows, "off": off });
    let what = format!("{off} rows are more than half a point off the formula");
    report.verdict(ok, fields, &text, &what)
}
