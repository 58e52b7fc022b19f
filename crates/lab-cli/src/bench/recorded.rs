//! `haulier-lab bench recorded`: long transfers over links whose rate was recorded.

use std::path::Path;
use std::time::Duration;

use haulier_lab::recorded::{Outcome, RecordedLink, Sender};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use haulier_shell::units::in_millis;
use haulier_sim::Record;
use serde_json::{Value, json};

use super::{on_every_core, rounded};
use crate::args::RecordedArgs;

/// The largest record that is read, in bytes: a day of LTE.
const MAX_RECORD_BYTES: u64 = 1 << 30;

const HEADING: &str = "\
link         sender  used %   Mbit/s of   queue p50 ms     p95  empty  dropped %";

pub(super) fn run(args: &RecordedArgs, report: &Report) -> Result<(), Failure> {
    let (links, senders) = (links(args)?, args.senders());
    let of = |link| {
        senders
            .iter()
            .flat_map(move |&sender| (1..=args.seeds).map(move |seed| (link, sender, seed)))
    };
    let jobs: Vec<(&RecordedLink, Sender, u64)> = links.iter().flat_map(of).collect();
    let outcomes = on_every_core(&jobs, "runs", report, |&(link, sender, seed)| {
        link.run(sender, args.seconds.unwrap_or_else(|| link.lasts()), seed)
    });
    interrupt::check()?;
    report.finish_bar();
    report.event("heading", json!({ "seeds": args.seeds }), HEADING);
    let (mut rows, mut broken) = (Vec::new(), 0);
    for (jobs, runs) in jobs.chunks(args.seeds as usize).zip(outcomes.chunks(args.seeds as usize)) {
        let Some(&(link, sender, _)) = jobs.first() else { continue };
        broken += runs.iter().map(|run| run.broken).sum::<usize>();
        rows.push(say(link, sender, runs, report));
    }
    let text = format!("{} runs, seeds 1 to {}", outcomes.len(), args.seeds);
    let ended = format!("{broken} connections ended before their run");
    let failure = (broken > 0).then_some(Failure::Ended(ended));
    report.conclude(failure, json!({ "rows": rows, "seeds": args.seeds, "broken": broken }), &text)
}

fn links(args: &RecordedArgs) -> Result<Vec<RecordedLink>, Failure> {
    let Some(down) = &args.down else {
        let is_asked = |name: &&str| args.links.is_empty() || args.links.contains(name);
        let names = RecordedLink::NAMES.into_iter().filter(is_asked);
        return Ok(names.filter_map(RecordedLink::named).collect());
    };
    let name =
        down.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let (up, down) = (read(args.up.as_ref().unwrap_or(down))?, read(down)?);
    let (rtt, queue_bytes) = (args.rtt, args.queue);
    Ok(vec![RecordedLink { name, down, up, rtt, queue_bytes }])
}

fn read(path: &Path) -> Result<Record, Failure> {
    let length = std::fs::metadata(path).map_err(|error| Failure::file(path, &error))?.len();
    if length > MAX_RECORD_BYTES {
        return Err(Failure::Usage(format!("{}: too large for a record", path.display())));
    }
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
    Record::parse(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// A line of the table; returns it in JSON.
fn say(link: &RecordedLink, sender: Sender, runs: &[Outcome], report: &Report) -> Value {
    let of = |value: fn(&Outcome) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    let ms = |value: fn(&Outcome) -> Duration| {
        let mut values: Vec<Duration> = runs.iter().map(value).collect();
        values.sort();
        in_millis(values.get(values.len() / 2).copied().unwrap_or_default())
    };
    let (used, mbit, link_mbit) = (of(|run| run.used), of(|run| run.mbit), of(|run| run.link_mbit));
    let (p50, p95, empty) =
        (ms(|run| run.queue_p50), ms(|run| run.queue_p95), ms(|run| run.link_p95));
    let dropped = of(|run| run.dropped);
    let fields = json!({
        "link": link.name,
        "sender": sender.name(),
        "used": rounded(used),
        "mbit": rounded(mbit),
        "link_mbit": rounded(link_mbit),
        "queue_ms_p50": rounded(p50),
        "queue_ms_p95": rounded(p95),
        "empty_queue_ms_p95": rounded(empty),
        "dropped": rounded(dropped),
        "runs": runs.len(),
    });
    let text = format!(
        "{:11}  {:6}  {:6.1}  {mbit:7.2} {link_mbit:5.2}  {p50:13.0}  {p95:6.0}  {empty:5.0}  {:9.1}",
        link.name,
        sender.name(),
        used * 1e2,
        dropped * 1e2,
    );
    report.event("row", fields.clone(), &text);
    fields
}
