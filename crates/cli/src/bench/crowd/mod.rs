//! `haulier bench crowd`: how 2 to 100 flows share a link, and what that does to its queue.

mod replay;
mod table;

use haulier_lab::crowd::{self, Cell, Mix, Outcome, Summary};
use serde_json::{Map, Value, json};

use super::{on_every_core, rounded, store};
use crate::args::CrowdArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::report::Report;

/// A cell with its run.
type Run = (Cell, Outcome);

pub(super) fn run(args: &CrowdArgs, report: &Report) -> Result<(), Failure> {
    if let Some(cell) = args.cell {
        return replay::run(cell, args.seed, report);
    }
    let cells = args.cells();
    let outcomes = on_every_core(&cells, "cells", report, |cell| crowd::run(cell, args.seed));
    interrupt::check()?;
    report.finish_bar();
    let runs: Vec<Run> = cells.into_iter().zip(outcomes).collect();
    let summaries = summaries(&runs);
    table::print(&summaries, args.seed, report);
    if args.tables {
        summaries.iter().for_each(|&(mix, _)| table::print_where(mix, &runs, report));
    }
    table::print_worst(&runs, args.seed, report);
    if let Some(path) = &args.out {
        store(path, &format!("{:#}\n", details(&runs, &summaries, args.seed)))?;
    }
    conclude(args, &runs, &summaries, report);
    Ok(())
}

/// Of each mix that there is.
fn summaries(runs: &[Run]) -> Vec<(Mix, Summary)> {
    let of = |mix| {
        let runs = runs.iter().filter(move |(cell, _)| cell.mix == mix);
        (mix, Summary::new(runs.map(|(_, run)| run)))
    };
    Mix::ALL.into_iter().map(of).filter(|(_, summary)| summary.cells > 0).collect()
}

fn conclude(args: &CrowdArgs, runs: &[Run], summaries: &[(Mix, Summary)], report: &Report) {
    let broken: usize = summaries.iter().map(|(_, summary)| summary.broken).sum();
    let good: usize = summaries.iter().map(|(_, summary)| summary.good_cells).sum();
    let mut fields = json!({
        "ok": true,
        "scope": if args.full { "full" } else { "quick" },
        "cells": runs.len(),
        "good_cells": good,
        "seed": args.seed,
        "broken": broken,
    });
    for (mix, summary) in summaries {
        fields[mix.name()] = table::fields(summary);
    }
    let text = format!(
        "{good} of {} cells are good, {broken} connections ended before their run; seed {}",
        runs.len(),
        args.seed
    );
    report.done(fields, &text);
}

/// Everything there is: the summaries, and a line for each cell.
fn details(runs: &[Run], summaries: &[(Mix, Summary)], seed: u64) -> Value {
    let summary = |(mix, summary): &(Mix, Summary)| (mix.name().to_owned(), table::fields(summary));
    json!({
        "seed": seed,
        "summaries": summaries.iter().map(summary).collect::<Map<String, Value>>(),
        "cells": runs.iter().map(|(cell, run)| fields(cell, run)).collect::<Vec<Value>>(),
    })
}

/// A cell and its run.
fn fields(cell: &Cell, run: &Outcome) -> Value {
    json!({
        "cell": cell.number,
        "mix": cell.mix.name(),
        "flows": cell.flows,
        "rate_mbit": rounded(cell.rate_kbit as f64 / 1e3),
        "rtt_ms": cell.rtt_ms,
        "queue_bdp": rounded(cell.queue_permille as f64 / 1e3),
        "queue_bytes": cell.queue_bytes(),
        "jain": rounded(run.jain),
        "used": rounded(run.used),
        "dropped": rounded(run.dropped),
        "queue_ms_p50": rounded(run.queue_p50.as_secs_f64() * 1e3),
        "queue_ms_p95": rounded(run.queue_p95.as_secs_f64() * 1e3),
        "completion": rounded(run.completion),
        "beside_tcp": run.beside_tcp.map(rounded),
        "broken": run.broken,
    })
}
