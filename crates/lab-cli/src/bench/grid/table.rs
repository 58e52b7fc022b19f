//! The tables of `haulier-lab bench grid`: a line for each strategy, and where one is good and where not.

use std::collections::BTreeSet;

use haulier_lab::grid::{Cell, CellRuns, Oddity, Summary};
use haulier_shell::report::Report;
use serde_json::{Value, json};

use super::super::rounded;
use super::Measured;

/// A summary in JSON.
pub(super) fn fields(summary: &Summary) -> Value {
    json!({
        "cells": summary.cells,
        "runs": summary.runs,
        "hangs": summary.hangs,
        "p50": rounded(summary.p50),
        "p95": rounded(summary.p95),
        "p99": rounded(summary.p99),
        "good_cells": rounded(summary.good_cells),
        "steady_cells": rounded(summary.steady_cells),
        "worst_cell": rounded(summary.worst_cell),
        "waste": rounded(summary.waste),
        "waste_p95": rounded(summary.waste_p95),
        "dropped_kib": rounded(summary.dropped_kib),
        "dropped_kib_p95": rounded(summary.dropped_kib_p95),
        "queue_kib_p50": rounded(summary.queue_kib_p50),
        "queue_kib_p95": rounded(summary.queue_kib_p95),
        "wait_ms": rounded(summary.wait_ms),
        "wait_ms_p95": rounded(summary.wait_ms_p95),
    })
}

/// A line for each strategy.
pub(super) fn print(all: &[Measured], seeds: u64, report: &Report) {
    let groups = "                ratio to the limit cells at most   worst      \
                  \x20\x20\x20waste   dropped KiB  queue KiB     wait ms";
    let heading = "strategy         p50    p95    p99   1.10   1.25    cell   mean    p95   mean    p95  \
                   p50   p95  mean   p95  hangs";
    report.event("heading", json!({ "seeds": seeds }), &format!("{groups}\n{heading}"));
    for measured in all {
        let summary = &measured.summary;
        let name = measured.strategy.name();
        let percent = |part: f64| format!("{:.0} %", part * 100.0);
        let text = format!(
            "{name:12}  {:6.2} {:6.2} {:>6}  {:>5}  {:>5}  {:>6}  {:>5}  {:>5}  {:5.0}  {:5.0}  {:3.0}  \
             {:4.0}  {:4.0}  {:4.0}  {:5}",
            summary.p50,
            summary.p95,
            short(summary.p99),
            percent(summary.good_cells),
            percent(summary.steady_cells),
            short(summary.worst_cell),
            percent(summary.waste),
            percent(summary.waste_p95),
            summary.dropped_kib,
            summary.dropped_kib_p95,
            summary.queue_kib_p50,
            summary.queue_kib_p95,
            summary.wait_ms,
            summary.wait_ms_p95,
            summary.hangs,
        );
        let mut fields = fields(summary);
        fields["strategy"] = name.into();
        report.event("strategy", fields, &text);
    }
}

/// A ratio in at most six characters.
fn short(ratio: f64) -> String {
    if ratio < 100.0 { format!("{ratio:.2}") } else { format!("{ratio:.1}") }
}

/// Where it is good and where not.
pub(super) fn print_where(measured: &Measured, report: &Report) {
    let name = measured.strategy.name();
    let axis = |value: fn(&Cell) -> u64| {
        measured.cells.iter().map(|runs| value(&runs.cell)).collect::<BTreeSet<u64>>()
    };
    let (rates, rtts) = (axis(|cell| cell.rate_mbit), axis(|cell| cell.rtt_ms));
    let of = |is_it: &dyn Fn(&Cell) -> bool| {
        let cells: Vec<&CellRuns> =
            measured.cells.iter().filter(|runs| is_it(&runs.cell)).collect();
        (!cells.is_empty()).then(|| Summary::new(cells))
    };

    let mut heading = format!("\n{name}, p50/p95\n  Mbit/s");
    rtts.iter().for_each(|rtt| heading += &format!("  {:>11}", format!("{rtt} ms")));
    report.event("heading", json!({ "strategy": name, "by": "rate_rtt" }), &heading);
    for rate in rates {
        let mut text = format!("  {rate:6}");
        let mut row = Vec::new();
        for &rtt in &rtts {
            let of = of(&|cell| cell.rate_mbit == rate && cell.rtt_ms == rtt);
            let Some(summary) = of else {
                text += &format!("  {:>11}", "");
                continue;
            };
            let (p50, p95) = (short(summary.p50), short(summary.p95));
            text += &format!("  {:>11}", format!("{p50}/{p95}"));
            row.push(json!({
                "rtt_ms": rtt,
                "p50": rounded(summary.p50),
                "p95": rounded(summary.p95),
            }));
        }
        let fields = json!({ "strategy": name, "rate_mbit": rate, "by_rtt": row });
        report.event("rate", fields, text.trim_end());
    }

    let heading = format!("\n{name}, by loss\n  loss  bursts     p50     p95  waste  dropped KiB");
    report.event("heading", json!({ "strategy": name, "by": "loss" }), &heading);
    let loss = |cell: &Cell| (cell.burst_length, cell.loss_permille);
    let losses: BTreeSet<_> = measured.cells.iter().map(|runs| loss(&runs.cell)).collect();
    for (length, permille) in losses {
        let Some(summary) = of(&|cell| loss(cell) == (length, permille)) else { continue };
        let text = format!(
            "{:4.1} %  {:>6}  {:>6}  {:>6}  {:3.0} %  {:11.1}",
            permille as f64 / 10.0,
            if length > 0 { format!("of {length}") } else { "-".into() },
            short(summary.p50),
            short(summary.p95),
            summary.waste * 100.0,
            summary.dropped_kib,
        );
        let mut fields = fields(&summary);
        fields["strategy"] = name.into();
        fields["loss"] = rounded(permille as f64 / 1e3);
        fields["burst_length"] = length.into();
        report.event("loss", fields, &text);
    }
    print_odd(measured, report);
    report.event("end", json!({ "strategy": name }), "");
}

/// What each oddity does, if there are odd links.
fn print_odd(measured: &Measured, report: &Report) {
    let name = measured.strategy.name();
    let oddities: BTreeSet<Oddity> = measured.cells.iter().map(|runs| runs.cell.oddity).collect();
    if oddities.iter().all(|oddity| *oddity == Oddity::None) {
        return;
    }
    let heading =
        format!("\n{name}, by oddity\n                       p50     p95  waste  dropped KiB");
    report.event("heading", json!({ "strategy": name, "by": "oddity" }), &heading);
    for oddity in oddities {
        let summary = Summary::new(measured.cells.iter().filter(|runs| runs.cell.oddity == oddity));
        let what = if oddity == Oddity::None { "none".into() } else { oddity.to_string() };
        let text = format!(
            "{what:19}  {:>6}  {:>6}  {:3.0} %  {:11.1}",
            short(summary.p50),
            short(summary.p95),
            summary.waste * 100.0,
            summary.dropped_kib,
        );
        let mut fields = fields(&summary);
        fields["strategy"] = name.into();
        fields["oddity"] = what.into();
        report.event("oddity", fields, &text);
    }
}
