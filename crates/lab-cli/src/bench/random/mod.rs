//! `haulier-lab bench random`: links and crowds that nobody chose, and what every sender makes of them.

mod cell;
mod table;

use std::collections::BTreeMap;

use haulier_lab::random::{CrowdSummary, LinkSummary, RandomCrowd, RandomLink};
use haulier_lab::rush::{RushReport, Sender};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use serde_json::{Map, Value, json};

use super::{on_every_core, store};
use crate::args::{CellName, RandomArgs};
use cell::{Cell, Place};

/// What each sender made of a cell.
type Runs = BTreeMap<Sender, RushReport>;

pub(super) fn run(args: &RandomArgs, report: &Report) -> Result<(), Failure> {
    let (cells, senders) = (cells(args), args.senders());
    let jobs: Vec<(&Cell, Sender)> =
        cells.iter().flat_map(|cell| senders.iter().map(move |&sender| (cell, sender))).collect();
    let reports = on_every_core(&jobs, "runs", report, |(cell, sender)| {
        cell.run(*sender, args.servers(), args.seed)
    });
    interrupt::check()?;
    report.finish_bar();
    let mut reports = reports.into_iter();
    let runs: Vec<Runs> =
        cells.iter().map(|_| senders.iter().copied().zip(&mut reports).collect()).collect();
    let measured: Vec<(&Cell, &Runs)> = cells.iter().zip(&runs).collect();
    let is_one = args.only.is_some() || !args.crowds_of.is_empty();
    for (cell, runs) in &measured {
        let (fields, text) = (cell.fields(runs, args), cell.text(runs));
        if is_one {
            report.event(cell.kind(), fields, &text);
        } else {
            report.each(cell.kind(), fields, &text);
        }
    }
    let links = link_summaries(args, &measured, &senders);
    let crowds = crowd_summaries(&measured, &senders);
    if !is_one {
        links.iter().for_each(|(bytes, summaries)| table::links(*bytes, summaries, report));
        table::crowds(&crowds, report);
        table::worst(&measured, args, report);
    }
    let fields = fields(args, &measured, &links, &crowds);
    if let Some(path) = &args.out {
        let cells: Vec<Value> =
            measured.iter().map(|(cell, runs)| cell.fields(runs, args)).collect();
        let mut all = fields.clone();
        all["cells"] = cells.into();
        store(path, &format!("{all:#}\n"))?;
    }
    conclude(args, &measured, fields, report)
}

/// All that are asked for, links first.
fn cells(args: &RandomArgs) -> Vec<Cell> {
    if !args.crowds_of.is_empty() {
        let cell = |(number, crowd): (u32, &RandomCrowd)| Cell {
            number,
            place: Place::Crowd(crowd.clone()),
        };
        return (0..).zip(&args.crowds_of).map(cell).collect();
    }
    let mut cells = Vec::new();
    for (number, link) in (0..).zip(RandomLink::draw(args.seed, args.links() as usize)) {
        for &bytes in &args.sizes {
            cells.push(Cell { number, place: Place::Link(link.clone(), bytes) });
        }
    }
    for (number, crowd) in (0..).zip(RandomCrowd::draw(args.seed, args.crowds() as usize)) {
        cells.push(Cell { number, place: Place::Crowd(crowd) });
    }
    if let Some(CellName::Link(only) | CellName::Crowd(only)) = args.only {
        cells.retain(|cell| cell.number == only);
    }
    cells
}

/// The summaries for each size of a block, if there are links.
fn link_summaries(
    args: &RandomArgs,
    measured: &[(&Cell, &Runs)],
    senders: &[Sender],
) -> Vec<(u64, Vec<(Sender, LinkSummary)>)> {
    let of_size = |&bytes: &u64| {
        let ratios: Vec<BTreeMap<Sender, f64>> = measured
            .iter()
            .filter(|(cell, _)| matches!(cell.place, Place::Link(_, size) if size == bytes))
            .map(|(cell, runs)| cell.ratios(runs))
            .collect();
        let summary = |&sender: &Sender| (sender, LinkSummary::new(sender, &ratios));
        (!ratios.is_empty()).then(|| (bytes, senders.iter().map(summary).collect()))
    };
    args.sizes.iter().filter_map(of_size).collect()
}

/// If there are crowds.
fn crowd_summaries(measured: &[(&Cell, &Runs)], senders: &[Sender]) -> Vec<(Sender, CrowdSummary)> {
    let is_crowd = |(cell, _): &&(&Cell, &Runs)| matches!(cell.place, Place::Crowd(_));
    let runs: Vec<Runs> =
        measured.iter().filter(is_crowd).map(|(_, runs)| (*runs).clone()).collect();
    let summary = |&sender: &Sender| (sender, CrowdSummary::new(sender, &runs));
    if runs.is_empty() { Vec::new() } else { senders.iter().map(summary).collect() }
}

fn fields(
    args: &RandomArgs,
    measured: &[(&Cell, &Runs)],
    links: &[(u64, Vec<(Sender, LinkSummary)>)],
    crowds: &[(Sender, CrowdSummary)],
) -> Value {
    let by_sender = |summaries: &[(Sender, LinkSummary)]| -> Map<String, Value> {
        let one = |(sender, summary): &(Sender, LinkSummary)| {
            (sender.name().to_owned(), table::link_fields(summary))
        };
        summaries.iter().map(one).collect()
    };
    let links = links
        .iter()
        .map(|(bytes, summaries)| json!({ "bytes": bytes, "senders": by_sender(summaries) }));
    let crowds: Map<String, Value> = crowds
        .iter()
        .map(|(sender, summary)| (sender.name().to_owned(), table::crowd_fields(summary)))
        .collect();
    json!({
        "seed": args.seed,
        "servers": args.servers_name(),
        "runs": measured.iter().map(|(_, runs)| runs.len()).sum::<usize>(),
        "links": links.collect::<Vec<Value>>(),
        "crowds": crowds,
    })
}

fn conclude(
    args: &RandomArgs,
    measured: &[(&Cell, &Runs)],
    mut fields: Value,
    report: &Report,
) -> Result<(), Failure> {
    let ours = measured.iter().flat_map(|(_, runs)| runs.iter());
    let failures: usize =
        ours.filter(|(sender, _)| sender.is_ours()).map(|(_, report)| report.failures()).sum();
    fields["failures"] = failures.into();
    let seed = args.seed;
    let text = format!("seed {seed}, {failures} joins of ours got no block in time");
    let what = format!("{failures} joins of haulier/1 got no block in time");
    report.verdict(failures == 0, fields, &text, &what)
}
