//! Repeats one run, and prints its moments and its outcome.

use std::time::Duration;

use haulier_lab::grid::{self, Cell, Kit, Moment, Outcome, Strategy};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use serde_json::{Map, Value, json};

use super::super::rounded;

pub(super) fn run(
    number: u32,
    seed: u64,
    strategies: &[Strategy],
    kit: &Kit,
    report: &Report,
) -> Result<(), Failure> {
    let Some(cell) = Cell::numbered(number) else {
        return Err(Failure::Usage(format!("there is no cell {number}")));
    };
    let fields = json!({ "cell": number, "seed": seed, "link": cell.to_string() });
    report.event("cell", fields, &format!("{cell}, seed {seed}"));
    let (mut fields, mut hangs) = (Map::new(), Vec::new());
    for &strategy in strategies {
        interrupt::check()?;
        let (outcome, moments) = grid::replay(strategy, &cell, seed, kit);
        say(strategy, &outcome, &moments, report);
        if strategy.is_machine() {
            hangs.extend(
                outcome.hang.as_ref().map(|reason| format!("{}: {reason}", strategy.name())),
            );
        }
        fields.insert(strategy.name().into(), json_of(&outcome));
    }
    fields.extend([("cell".into(), number.into()), ("seed".into(), seed.into())]);
    report.verdict(hangs.is_empty(), fields.into(), "", &hangs.join("; "))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

fn say(strategy: Strategy, outcome: &Outcome, moments: &[Moment], report: &Report) {
    let name = strategy.name();
    let heading = format!("\n{name}\n        ms  of limit  slices  dropped  lost  arrived");
    report.event("heading", json!({ "strategy": name }), &heading);
    for moment in moments {
        let ratio = moment.after.as_secs_f64() / outcome.limit.as_secs_f64();
        let fields = json!({
            "strategy": name,
            "after_ms": rounded(ms(moment.after)),
            "slices_sent": moment.slices_sent,
            "dropped": moment.dropped,
            "lost": moment.lost,
            "arrived": moment.arrived,
            "is_whole": moment.is_whole,
        });
        let text = format!(
            "{:10.1}  {ratio:8.2}  {:6}  {:7}  {:4}  {:7}{}",
            ms(moment.after),
            moment.slices_sent,
            moment.dropped,
            moment.lost,
            moment.arrived,
            if moment.is_whole { "  whole" } else { "" },
        );
        report.event("moment", fields, &text);
    }
    let took = match (&outcome.hang, outcome.known_after) {
        (Some(reason), _) => format!("hangs: {reason}"),
        (None, known) => format!(
            "{:.2} of the limit: {:.1} ms of {:.1} ms{}",
            outcome.ratio(),
            ms(outcome.took),
            ms(outcome.limit),
            known.map_or(String::new(), |known| format!(", known after {:.1} ms", ms(known))),
        ),
    };
    let text = format!(
        "{took}; {} slices sent ({:.1} % more than {}), {:.1} KiB dropped; the queue held up to {:.1} KiB, \
         packets waited {:.1} ms on average",
        outcome.slices_sent,
        outcome.waste() * 100.0,
        outcome.slices,
        kib(outcome.dropped_bytes),
        kib(outcome.peak_queue_bytes),
        ms(outcome.mean_wait),
    );
    let mut fields = json_of(outcome);
    fields["strategy"] = name.into();
    report.event("run", fields, &text);
}

fn json_of(outcome: &Outcome) -> Value {
    json!({
        "ratio": rounded(outcome.ratio()),
        "took_ms": rounded(ms(outcome.took)),
        "limit_ms": rounded(ms(outcome.limit)),
        "known_after_ms": outcome.known_after.map(|known| rounded(ms(known))),
        "slices_sent": outcome.slices_sent,
        "waste": rounded(outcome.waste()),
        "dropped_kib": rounded(kib(outcome.dropped_bytes)),
        "queue_kib": rounded(kib(outcome.peak_queue_bytes)),
        "wait_ms": rounded(ms(outcome.mean_wait)),
        "hang": outcome.hang,
    })
}
