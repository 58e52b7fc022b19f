//! `haulier-lab bench links`: cold joins over seventeen links in virtual time, and the README's figure.

use haulier::Block;
use haulier_lab::figures::{self, Panel};
use haulier_lab::joins::{self, Join, JoinLink, Joiner, percentile};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use haulier_shell::units::{in_millis, show_bytes};
use haulier_sim::Rng;
use serde_json::{Value, json};

use super::{on_every_core, rounded, store};
use crate::args::LinksArgs;

/// The seed of the blocks. They are random bytes; no time depends on which.
const BLOCK_SEED: u64 = 1;

/// The joins of one kind over one link, with one size of the block.
struct Cell {
    bytes: u64,
    joiner: Joiner,
    link: usize,
    joins: Vec<Join>,
}

pub(super) fn run(args: &LinksArgs, report: &Report) -> Result<(), Failure> {
    let (links, joiners) = (args.links(), args.joiners());
    let all: Vec<&str> = links.iter().map(|link| link.name).collect();
    let blocks: Vec<Block> = args
        .sizes
        .iter()
        .map(|&bytes| Block::new(1, Rng::new(BLOCK_SEED).bytes(bytes as usize)))
        .collect();
    let mut jobs = Vec::new();
    for (block, &bytes) in blocks.iter().zip(&args.sizes) {
        for &joiner in joiners.iter().filter(|joiner| joiner.can_send(bytes)) {
            jobs.extend((0..links.len()).map(|link| (block, bytes, joiner, link)));
        }
    }
    let joins = on_every_core(&jobs, "cells", report, |&(block, _, joiner, link)| {
        let join = |seed| joins::join(&links[link], joiner, block, seed);
        (1..=args.seeds).map(join).collect::<Vec<Join>>()
    });
    interrupt::check()?;
    report.finish_bar();
    let cells = jobs.into_iter().zip(joins);
    let cells: Vec<Cell> = cells
        .map(|((_, bytes, joiner, link), joins)| Cell { bytes, joiner, link, joins })
        .collect();
    for &bytes in &args.sizes {
        print(bytes, &cells, &links, report);
    }
    if let Some(path) = &args.svg {
        let panels: Vec<Panel> =
            args.sizes.iter().map(|&bytes| panel(bytes, &cells, &links)).collect();
        store(path, &figures::links(&panels))?;
    }
    if let Some(path) = &args.out {
        let rows: Vec<Value> = cells.iter().flat_map(|cell| details(cell, &links)).collect();
        store(path, &format!("{:#}\n", json!({ "seeds": args.seeds, "joins": rows })))?;
    }
    let ours = cells.iter().filter(|cell| cell.joiner.is_ours());
    let hangs = ours.flat_map(|cell| &cell.joins).filter(|join| join.time.is_none()).count();
    let fields = json!({
        "links": all,
        "seeds": args.seeds,
        "cells": cells.iter().map(|cell| fields(cell, &links)).collect::<Vec<Value>>(),
        "hangs": hangs,
    });
    let text =
        format!("{} links, seeds 1 to {}, {hangs} joins of ours hung", links.len(), args.seeds);
    report.verdict(hangs == 0, fields, &text, &format!("{hangs} joins of haulier/1 hung"))
}

/// A table for one size: a row for each kind of join.
fn print(bytes: u64, cells: &[Cell], links: &[JoinLink], report: &Report) {
    let names: Vec<&str> = links.iter().map(|link| link.name).collect();
    let heading = format!(
        "\n{}\n| median / p95, in L | mean | wire | {} |\n|---|--:|--:|{}",
        show_bytes(bytes),
        names.join(" | "),
        "--:|".repeat(links.len()),
    );
    report.event("heading", json!({ "bytes": bytes }), &heading);
    for joiner in Joiner::ALL {
        let of: Vec<&Cell> =
            cells.iter().filter(|cell| cell.bytes == bytes && cell.joiner == joiner).collect();
        if of.is_empty() {
            continue;
        }
        let ratio =
            |ratio: f64| if ratio.is_finite() { format!("{ratio:.2}") } else { "fails".into() };
        let text: Vec<String> = of
            .iter()
            .map(|cell| format!("{} / {}", ratio(cell.median()), ratio(cell.p95())))
            .collect();
        let mean = mean(&of);
        let wires: Vec<f64> = of.iter().filter_map(|cell| cell.wire()).collect();
        let wire = wires.iter().copied().fold(f64::INFINITY, f64::min)
            ..wires.iter().copied().fold(0.0, f64::max);
        let wire_text = if wires.is_empty() {
            String::new()
        } else {
            format!("{:.2}-{:.2}", wire.start, wire.end)
        };
        let text =
            format!("| {} | {mean:.2} | {wire_text} | {} |", joiner.name(), text.join(" | "));
        let fields = json!({ "bytes": bytes, "joiner": joiner.name(), "mean": rounded(mean) });
        report.event("joiner", fields, &text);
    }
}

/// The geometric mean of the medians, a failure counted as a hundred limits.
fn mean(cells: &[&Cell]) -> f64 {
    let sum: f64 = cells.iter().map(|cell| cell.median().min(100.0).ln()).sum();
    (sum / cells.len() as f64).exp()
}

impl Cell {
    fn median(&self) -> f64 {
        percentile(&self.joins, 0.5, Join::in_limits)
    }

    fn p95(&self) -> f64 {
        percentile(&self.joins, 0.95, Join::in_limits)
    }

    fn wire(&self) -> Option<f64> {
        let wire = |join: &Join| join.wire.unwrap_or(f64::NAN);
        self.joins.first()?.wire.map(|_| percentile(&self.joins, 0.5, wire))
    }
}

/// The medians of one size over all links, those that were not asked for left out.
fn panel(bytes: u64, cells: &[Cell], links: &[JoinLink]) -> Panel {
    let all = JoinLink::all();
    let median = |joiner, name: &str| {
        let is_it = |cell: &&Cell| {
            cell.bytes == bytes && cell.joiner == joiner && links[cell.link].name == name
        };
        cells.iter().find(is_it).map(Cell::median)
    };
    let series = |joiner| {
        let medians: Vec<Option<f64>> = all.iter().map(|link| median(joiner, link.name)).collect();
        medians.iter().any(Option::is_some).then_some((joiner, medians))
    };
    Panel {
        title: show_bytes(bytes),
        medians: Joiner::ALL.into_iter().filter_map(series).collect(),
    }
}

/// A cell in JSON; what hung has no number.
fn fields(cell: &Cell, links: &[JoinLink]) -> Value {
    let ratio = |ratio: f64| if ratio.is_finite() { rounded(ratio) } else { Value::Null };
    let hangs = cell.joins.iter().filter(|join| join.time.is_none()).count();
    json!({
        "bytes": cell.bytes,
        "joiner": cell.joiner.name(),
        "link": links[cell.link].name,
        "p50": ratio(cell.median()),
        "p95": ratio(cell.p95()),
        "wire": cell.wire().map(rounded),
        "dropped": rounded(percentile(&cell.joins, 0.5, |join| join.dropped)),
        "hangs": hangs,
    })
}

fn details(cell: &Cell, links: &[JoinLink]) -> Vec<Value> {
    let detail = |(seed, join): (u64, &Join)| {
        json!({
            "bytes": cell.bytes,
            "joiner": cell.joiner.name(),
            "link": links[cell.link].name,
            "seed": seed,
            "ms": join.time.map(|time| rounded(in_millis(time))),
            "limit_ms": rounded(in_millis(join.limit)),
            "wire": join.wire.map(rounded),
            "dropped": rounded(join.dropped),
        })
    };
    (1..).zip(&cell.joins).map(detail).collect()
}
