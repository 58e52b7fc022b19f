//! The tables of `haulier-lab bench random`, in Markdown: the distributions, and the worst cells.

use haulier_lab::random::{CrowdSummary, LinkSummary};
use haulier_lab::rush::{RushReport, Sender};
use haulier_shell::report::Report;
use haulier_shell::units::show_bytes;
use serde_json::{Value, json};

use super::super::rounded;
use super::Runs;
use super::cell::{Cell, Place};
use crate::args::RandomArgs;

/// Cells that are named for each kind of badness.
const NAMED_CELLS: usize = 5;

/// A kind of badness: its name, and a number that is larger where it is worse.
type Kind = (&'static str, fn(&Cell, &Runs) -> Option<f64>);

const KINDS: [Kind; 3] = [
    ("links where the token is most behind the first of TCP", behind_on_link),
    ("crowds where the token drops most", drops),
    ("crowds where the token is done latest beside CUBIC", behind_in_crowd),
];

/// A table for one size: a row for each sender.
pub(super) fn links(bytes: u64, summaries: &[(Sender, LinkSummary)], report: &Report) {
    let links = summaries.first().map_or(0, |(_, summary)| summary.links);
    let heading = format!(
        "\n| {links} links, {} | first % | p50 L | p90 L | p95 L | failed |\n|---|--:|--:|--:|--:|--:|",
        show_bytes(bytes),
    );
    report.event("heading", json!({ "bytes": bytes }), &heading);
    for (sender, summary) in summaries {
        let ratio =
            |ratio: f64| if ratio.is_finite() { format!("{ratio:.2}") } else { "fails".into() };
        let text = format!(
            "| {} | {:.0} | {} | {} | {} | {} |",
            sender.name(),
            summary.first * 1e2,
            ratio(summary.p50),
            ratio(summary.p90),
            ratio(summary.p95),
            summary.failures,
        );
        let mut fields = link_fields(summary);
        (fields["bytes"], fields["sender"]) = (bytes.into(), sender.name().into());
        report.event("links", fields, &text);
    }
}

/// A row for each sender, if there are crowds.
pub(super) fn crowds(summaries: &[(Sender, CrowdSummary)], report: &Report) {
    let Some((_, first)) = summaries.first() else { return };
    let heading = format!(
        "\n| {} crowds | dropped % p50, p90, worst | before feedback % of these | last s | \
         over CUBIC, worst | mean s | over CUBIC, worst | Jain p50, worst | not done |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|",
        first.crowds,
    );
    report.event("heading", json!({ "crowds": first.crowds }), &heading);
    for (sender, summary) in summaries {
        let text = format!(
            "| {} | {:.1}, {:.1}, {:.1} | {:.0} | {:.2} | {:.2}, {:.2} | {:.2} | {:.2}, {:.2} | \
             {:.2}, {:.2} | {} |",
            sender.name(),
            summary.dropped_p50 * 1e2,
            summary.dropped_p90 * 1e2,
            summary.dropped_worst * 1e2,
            summary.blind * 1e2,
            summary.last_s,
            summary.last.p50,
            summary.last.worst,
            summary.mean_s,
            summary.mean.p50,
            summary.mean.worst,
            summary.jain_p50,
            summary.jain_worst,
            summary.not_done,
        );
        let mut fields = crowd_fields(summary);
        fields["sender"] = sender.name().into();
        report.event("crowds", fields, &text);
    }
}

/// A summary in JSON; what is infinite has no number.
pub(super) fn link_fields(summary: &LinkSummary) -> Value {
    let ratio = |ratio: f64| if ratio.is_finite() { rounded(ratio) } else { Value::Null };
    json!({
        "links": summary.links,
        "first": rounded(summary.first),
        "p50": ratio(summary.p50),
        "p90": ratio(summary.p90),
        "p95": ratio(summary.p95),
        "failures": summary.failures,
    })
}

pub(super) fn crowd_fields(summary: &CrowdSummary) -> Value {
    json!({
        "crowds": summary.crowds,
        "dropped_p50": rounded(summary.dropped_p50),
        "dropped_p90": rounded(summary.dropped_p90),
        "dropped_worst": rounded(summary.dropped_worst),
        "before_feedback": rounded(summary.blind),
        "last_s": rounded(summary.last_s),
        "mean_s": rounded(summary.mean_s),
        "last_over_cubic_p50": rounded(summary.last.p50),
        "last_over_cubic_worst": rounded(summary.last.worst),
        "mean_over_cubic_p50": rounded(summary.mean.p50),
        "mean_over_cubic_worst": rounded(summary.mean.worst),
        "jain_p50": rounded(summary.jain_p50),
        "jain_worst": rounded(summary.jain_worst),
        "not_done": summary.not_done,
    })
}

/// The worst cells of each kind of badness, and what replays them.
pub(super) fn worst(measured: &[(&Cell, &Runs)], args: &RandomArgs, report: &Report) {
    for (kind, badness) in KINDS {
        let bad =
            measured.iter().filter_map(|(cell, runs)| Some((badness(cell, runs)?, cell, runs)));
        let mut worst: Vec<_> = bad.collect();
        worst.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
        if worst.is_empty() {
            continue;
        }
        report.event("heading", json!({ "worst": kind }), &format!("\n{kind}"));
        for (_, cell, runs) in worst.into_iter().take(NAMED_CELLS) {
            let mut fields = cell.fields(runs, args);
            fields["worst"] = kind.into();
            let text = format!("{}\n  again: {}", cell.text(runs), cell.again(args));
            report.event("worst", fields, &text);
        }
    }
    report.event("end", json!({}), "");
}

fn behind_on_link(cell: &Cell, runs: &Runs) -> Option<f64> {
    let ratios = cell.ratios(runs);
    let others = ratios.iter().filter(|(sender, _)| !sender.is_ours()).map(|(_, &ratio)| ratio);
    Some(ratios.get(&Sender::Token)? / others.reduce(f64::min)?)
}

fn drops(cell: &Cell, runs: &Runs) -> Option<f64> {
    let is_crowd = matches!(cell.place, Place::Crowd(_));
    runs.get(&Sender::Token).filter(|_| is_crowd).map(RushReport::dropped_part)
}

fn behind_in_crowd(cell: &Cell, runs: &Runs) -> Option<f64> {
    let last = |sender| {
        let run = runs.get(&sender).filter(|_| matches!(cell.place, Place::Crowd(_)))?;
        Some(run.last().map_or(f64::INFINITY, |last| last.as_secs_f64()))
    };
    Some(last(Sender::Token)? / last(Sender::Cubic)?.min(f64::MAX))
}
