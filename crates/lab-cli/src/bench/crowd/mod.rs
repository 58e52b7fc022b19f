//! `haulier-lab bench crowd`: how 2 to 100 flows share a link, and what that does to its queue.

mod replay;
mod table;

use std::time::Instant;

use haulier_lab::crowd::{self, Cell, Mix, Outcome, Summary};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use serde_json::{Map, Value, json};

use super::{on_every_core_while, rounded, store};
use crate::args::CrowdArgs;

/// A cell with its run.
type Run = (Cell, Outcome);

pub(super) fn run(args: &CrowdArgs, report: &Report) -> Result<(), Failure> {
    if let Some(cell) = args.cell {
        return replay::run(cell, args.seed, report);
    }
    let (cells, began) = (args.cells(), Instant::now());
    let has_time = || args.budget.is_none_or(|budget| began.elapsed() < budget);
    let measure = |cell: &Cell| crowd::run(cell, args.seed);
    let outcomes = on_every_core_while(has_time, &cells, "cells", report, measure);
    interrupt::check()?;
    report.finish_bar();
    let asked = cells.len();
    let runs = cells.into_iter().zip(outcomes);
    let mut runs: Vec<Run> = runs.filter_map(|(cell, run)| Some((cell, run?))).collect();
    runs.sort_by_key(|(cell, _)| cell.number);
    let summaries = summaries(&runs);
    table::print(&summaries, args.seed, report);
    if args.scope.tables {
        summaries.iter().for_each(|&(mix, _)| table::print_where(mix, &runs, report));
    }
    table::print_worst(&runs, args.seed, report);
    if let Some(path) = &args.scope.out {
        store(path, &format!("{:#}\n", details(&runs, &summaries, args.seed)))?;
    }
    conclude(args, asked, &runs, &summaries, report)
}

/// A summary for each mix that was run.
fn summaries(runs: &[Run]) -> Vec<(Mix, Summary)> {
    let of = |mix| {
        let runs = runs.iter().filter(move |(cell, _)| cell.mix == mix);
        (mix, Summary::new(runs.map(|(_, run)| run)))
    };
    Mix::ALL.into_iter().map(of).filter(|(_, summary)| summary.cells > 0).collect()
}

fn conclude(
    args: &CrowdArgs,
    asked: usize,
    runs: &[Run],
    summaries: &[(Mix, Summary)],
    report: &Report,
) -> Result<(), Failure> {
    let sum = |of: fn(&Summary) -> usize| summaries.iter().map(|(_, summary)| of(summary)).sum();
    let good: usize = sum(|summary| summary.good_cells);
    let (broken, stalled) = (sum(|summary| summary.broken), sum(|summary| summary.stalled));
    let mut fields = json!({
        "scope": args.scope.name(),
        "cells": runs.len(),
        "asked_cells": asked,
        "good_cells": good,
        "seed": args.seed,
        "broken": broken,
        "stalled": stalled,
    });
    for (mix, summary) in summaries {
        fields[mix.name()] = table::fields(summary);
    }
    let seed = args.seed;
    let text = format!(
        "{good} of {} cells are good, {broken} connections ended before their run, {stalled} got nothing; \
         seed {seed}",
        runs.len(),
    );
    report.conclude(failure([broken, stalled], [runs.len(), asked]), fields, &text)
}

/// What is wrong with runs, the worst first.
fn failure([broken, stalled]: [usize; 2], [measured, asked]: [usize; 2]) -> Option<Failure> {
    if broken + stalled > 0 {
        let what =
            format!("{broken} connections ended before their run, and {stalled} got nothing");
        return Some(Failure::Ended(what));
    }
    let what = || format!("the budget was over after {measured} of {asked} cells");
    (measured < asked).then(|| Failure::Incomplete(what()))
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
        "stalled": run.stalled,
    })
}
