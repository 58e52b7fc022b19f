//! `haulier-lab bench grid`: how close to the physical limit a block gets, over many links, by haulier/1 and
//! by what it is measured against.

mod replay;
mod table;

use haulier_lab::figures;
use haulier_lab::grid::{self, CellRuns, Kit, Oddity, Outcome, Strategy, Summary};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use haulier_shell::units::word;
use serde_json::{Map, Value, json};

use super::{on_every_core, rounded, store};
use crate::args::GridArgs;

/// The seed of the blocks. They are random bytes; no time depends on which.
const KIT_SEED: u64 = 1;

/// Hangs that are named for each strategy. The rest is counted.
const NAMED_HANGS: usize = 10;

/// One strategy with all its runs.
struct Measured {
    strategy: Strategy,
    cells: Vec<CellRuns>,
    summary: Summary,
}

pub(super) fn run(args: &GridArgs, report: &Report) -> Result<(), Failure> {
    let kit = Kit::new(KIT_SEED);
    if let Some(cell) = args.cell {
        return replay::run(cell, args.seed.unwrap_or(0), &args.strategies(), &kit, report);
    }
    let all = measure(args, &kit, report)?;
    report.finish_bar();
    let seeds = args.seeds();
    table::print(&all, seeds, report);
    for measured in &all {
        name_hangs(measured, report);
        let is_shown = measured.strategy.is_ours() || !args.only.is_empty();
        if args.scope.tables && is_shown {
            table::print_where(measured, report);
        }
    }
    if let Some(path) = &args.svg {
        let summaries: Vec<_> =
            all.iter().map(|measured| (measured.strategy, measured.summary.clone())).collect();
        store(path, &figures::grid(&summaries))?;
    }
    if let Some(path) = &args.scope.out {
        store(path, &format!("{:#}\n", details(&all, seeds)))?;
    }
    conclude(args, &all, report)
}

fn measure(args: &GridArgs, kit: &Kit, report: &Report) -> Result<Vec<Measured>, Failure> {
    let (strategies, cells, seeds) = (args.strategies(), args.links(), args.seeds());
    let of = |strategy| cells.iter().map(move |&cell| (strategy, cell));
    let jobs: Vec<_> = strategies.iter().flat_map(|&strategy| of(strategy)).collect();
    let runs = on_every_core(&jobs, "cells", report, |(strategy, cell)| {
        (0..seeds).map(|seed| grid::run(*strategy, cell, seed, kit)).collect::<Vec<Outcome>>()
    });
    interrupt::check()?;
    let mut runs = runs.into_iter();
    let measured = strategies.into_iter().map(|strategy| {
        let runs = runs.by_ref().take(cells.len());
        let cells: Vec<CellRuns> =
            cells.iter().zip(runs).map(|(&cell, runs)| CellRuns { cell, runs }).collect();
        let summary = Summary::new(&cells);
        Measured { strategy, cells, summary }
    });
    Ok(measured.collect())
}

/// Which runs never ended, with the command that shows one again.
fn name_hangs(measured: &Measured, report: &Report) {
    let name = measured.strategy.name();
    let runs = measured.cells.iter().flat_map(|cell| {
        cell.runs.iter().enumerate().map(move |(seed, outcome)| (&cell.cell, seed, outcome))
    });
    let hangs: Vec<_> =
        runs.filter_map(|(cell, seed, run)| Some((cell, seed, run.hang.as_ref()?))).collect();
    for &(cell, seed, reason) in hangs.iter().take(NAMED_HANGS) {
        let number = cell.number;
        let fields = json!({ "strategy": name, "cell": number, "seed": seed, "reason": reason });
        let text = format!(
            "{name} hangs in {cell}: {reason} (again: --only {name} --cell {number} --seed {seed})"
        );
        report.event("hang", fields, &text);
    }
    if let Some(more @ 1..) = hangs.len().checked_sub(NAMED_HANGS) {
        let text = format!("{name} hangs {more} times more");
        report.event("more_hangs", json!({ "strategy": name, "runs": more }), &text);
    }
}

fn conclude(args: &GridArgs, all: &[Measured], report: &Report) -> Result<(), Failure> {
    let runs: usize = all.iter().map(|measured| measured.summary.runs).sum();
    let machines = || all.iter().filter(|measured| measured.strategy.is_machine());
    let hangs: usize = machines().map(|measured| measured.summary.hangs).sum();
    let cells = all.first().map_or(0, |measured| measured.summary.cells);
    let mut fields = Map::new();
    for measured in all {
        fields.insert(measured.strategy.name().into(), table::fields(&measured.summary));
    }
    let rest = json!({
        "scope": args.scope.name(),
        "links": word(&args.cells),
        "cells": cells,
        "seeds": args.seeds(),
        "runs": runs,
        "hangs": hangs,
    });
    if let Value::Object(rest) = rest {
        fields.extend(rest);
    }
    let text = format!("{runs} runs: {} seeds in each of {cells} cells", args.seeds());
    let what = format!("{hangs} runs had no block after a minute");
    report.verdict(hangs == 0, fields.into(), &text, &what)
}

/// Everything there is: summaries, and a line for each strategy and cell.
fn details(all: &[Measured], seeds: u64) -> Value {
    let summary = |measured: &Measured| {
        (measured.strategy.name().to_owned(), table::fields(&measured.summary))
    };
    let rows = |measured: &Measured| {
        let rows = measured.cells.iter().map(|runs| {
            let cell = &runs.cell;
            let mut row = json!({
                "cell": cell.number,
                "rate_mbit": cell.rate_mbit,
                "rtt_ms": cell.rtt_ms,
                "loss": cell.loss_permille as f64 / 1e3,
                "burst_length": cell.burst_length,
                "queue_bytes": cell.queue_bytes,
                "oddity": (cell.oddity != Oddity::None).then(|| cell.oddity.to_string()),
            });
            let summary = table::fields(&Summary::new([runs]));
            for key in ["p50", "waste", "dropped_kib", "queue_kib_p50", "wait_ms", "hangs"] {
                row[key] = summary[key].clone();
            }
            row["worst"] = rounded(runs.ratio(1.0));
            row
        });
        (measured.strategy.name().to_owned(), rows.collect())
    };
    json!({
        "seeds": seeds,
        "summaries": all.iter().map(summary).collect::<Map<String, Value>>(),
        "cells": all.iter().map(rows).collect::<Map<String, Value>>(),
    })
}
