//! The tables of `haulier-lab bench crowd`: a line for each mix, where it is good and where not, and the
//! worst cells.

use std::collections::BTreeSet;

use haulier_lab::crowd::{Cell, Mix, Outcome, Summary};
use haulier_shell::report::Report;
use serde_json::{Value, json};

use super::super::rounded;
use super::Run;

/// Cells that are named for each kind of badness.
const NAMED_CELLS: usize = 3;

/// A kind of badness: its name, what it is in words, and a number that is larger where it is worse.
type Kind = (&'static str, fn(&Outcome) -> String, fn(&Outcome) -> Option<f64>);

/// An axis: its name in JSON and in a table, its value as an integer, and that of one of its unit.
type Axis = (&'static str, &'static str, fn(&Cell) -> u64, f64);

const KINDS: [Kind; 6] = [
    ("unfair", |run| format!("Jain {:.3}", run.jain), |run| Some(-run.jain)),
    ("idle", |run| format!("{:.1} % used", run.used * 1e2), |run| Some(-run.used)),
    ("dropping", |run| format!("{:.1} % dropped", run.dropped * 1e2), |run| Some(run.dropped)),
    ("slow", |run| format!("completion {:.2}", run.completion), |run| Some(run.completion)),
    ("starved beside TCP", beside, |run| run.beside_tcp.map(|share| -share)),
    ("greedy beside TCP", beside, |run| run.beside_tcp),
];

fn beside(run: &Outcome) -> String {
    format!("{:.2} of a fair share", run.beside_tcp.unwrap_or_default())
}

/// A summary in JSON.
pub(super) fn fields(summary: &Summary) -> Value {
    json!({
        "cells": summary.cells,
        "good_cells": summary.good_cells,
        "unfair_cells": summary.unfair_cells,
        "idle_cells": summary.idle_cells,
        "dropping_cells": summary.dropping_cells,
        "broken": summary.broken,
        "stalled": summary.stalled,
        "jain_p50": rounded(summary.jain_p50),
        "jain_p5": rounded(summary.jain_p5),
        "used_p50": rounded(summary.used_p50),
        "used_p5": rounded(summary.used_p5),
        "dropped_p50": rounded(summary.dropped_p50),
        "dropped_p95": rounded(summary.dropped_p95),
        "queue_ms_p50": rounded(summary.queue_ms_p50),
        "queue_ms_p95": rounded(summary.queue_ms_p95),
        "completion_p50": rounded(summary.completion_p50),
        "completion_p95": rounded(summary.completion_p95),
        "beside_tcp": summary.beside_tcp.map(|parts| parts.map(rounded)),
    })
}

/// What stands over [`line`].
fn heading(first: &str) -> String {
    format!(
        "{:10}         good        Jain         used %     dropped %       queue ms    \
         completion         beside TCP\n\
         {first:10}  cells  cells    p5   p50    p5   p50   p50   p95    p50     p95  \
         \x20 p50    p95  ended   p5   p50   p95",
        "",
    )
}

/// A line of a table.
fn line(first: &str, summary: &Summary) -> String {
    let beside = summary
        .beside_tcp
        .map_or_else(String::new, |[p5, p50, p95]| format!("  {p5:4.2}  {p50:4.2}  {p95:4.2}"));
    format!(
        "{first:10}  {:5}  {:5}  {:4.2}  {:4.2}  {:4.0}  {:4.0}  {:4.1}  {:4.1}  \
         {:5.0}  {:6.0}  {:5.2}  {:5.1}  {:5}{beside}",
        summary.cells,
        summary.good_cells,
        summary.jain_p5,
        summary.jain_p50,
        summary.used_p5 * 1e2,
        summary.used_p50 * 1e2,
        summary.dropped_p50 * 1e2,
        summary.dropped_p95 * 1e2,
        summary.queue_ms_p50,
        summary.queue_ms_p95,
        summary.completion_p50,
        summary.completion_p95,
        // Most flows that got nothing are flows whose connection ended.
        summary.broken.max(summary.stalled),
    )
}

/// A line for each mix.
pub(super) fn print(summaries: &[(Mix, Summary)], seed: u64, report: &Report) {
    report.event("heading", json!({ "seed": seed }), &heading("mix"));
    for (mix, summary) in summaries {
        let mut fields = fields(summary);
        fields["mix"] = mix.name().into();
        report.event("mix", fields, &line(mix.name(), summary));
    }
}

/// Where a mix is good and where not: a line for each value of each axis.
pub(super) fn print_where(mix: Mix, runs: &[Run], report: &Report) {
    let runs: Vec<&Run> = runs.iter().filter(|(cell, _)| cell.mix == mix).collect();
    let axes: [Axis; 4] = [
        ("flows", "flows", |cell| cell.flows.into(), 1.0),
        ("rate_mbit", "Mbit/s", |cell| cell.rate_kbit, 1e3),
        ("rtt_ms", "RTT ms", |cell| cell.rtt_ms, 1.0),
        ("queue_bdp", "BDP", |cell| cell.queue_permille, 1e3),
    ];
    for (axis, unit, value, scale) in axes {
        let text = format!("\n{}, by {unit}\n{}", mix.name(), heading(unit));
        report.event("heading", json!({ "mix": mix.name(), "by": axis }), &text);
        for at in runs.iter().map(|(cell, _)| value(cell)).collect::<BTreeSet<u64>>() {
            let of = runs.iter().filter(|(cell, _)| value(cell) == at).map(|(_, run)| run);
            let (summary, at) = (Summary::new(of), at as f64 / scale);
            let mut fields = fields(&summary);
            fields["mix"] = mix.name().into();
            fields[axis] = rounded(at);
            report.event("axis", fields, &line(&at.to_string(), &summary));
        }
    }
}

/// The worst cells of each kind of badness, and how to see them again.
pub(super) fn print_worst(runs: &[Run], seed: u64, report: &Report) {
    for (kind, words, badness) in KINDS {
        let mut worst: Vec<(f64, &Run)> =
            runs.iter().filter_map(|run| Some((badness(&run.1)?, run))).collect();
        worst.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        if worst.is_empty() {
            continue;
        }
        report.event("heading", json!({ "worst": kind }), &format!("\nmost {kind}"));
        for (_, (cell, run)) in worst.into_iter().take(NAMED_CELLS) {
            let mut fields = super::fields(cell, run);
            fields["worst"] = kind.into();
            let number = cell.number;
            let text = format!("  {}: {cell} (again: --cell {number} --seed {seed})", words(run));
            report.event("worst", fields, &text);
        }
    }
    report.event("end", json!({}), "");
}
