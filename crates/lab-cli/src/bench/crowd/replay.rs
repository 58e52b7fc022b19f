//! One cell again, with a line for each flow.

use haulier_lab::crowd::{self, Cell, FlowOutcome, Outcome};
use haulier_shell::failure::Failure;
use haulier_shell::report::Report;
use serde_json::json;

use super::super::rounded;

pub(super) fn run(number: u32, seed: u64, report: &Report) -> Result<(), Failure> {
    let Some(cell) = Cell::numbered(number) else {
        return Err(Failure::Usage(format!("there is no cell {number}")));
    };
    let [from, to] = cell.measured().map(|at| at.as_secs_f64());
    let fields = json!({ "cell": number, "seed": seed, "link": cell.to_string() });
    let text = format!(
        "{cell} ({} bytes), seed {seed}, measured from {from:.1} to {to:.1} s\n\n\
         flow  what    begins s  of a fair share  completion     KiB",
        cell.queue_bytes(),
    );
    report.event("cell", fields, &text);
    let run = crowd::run(&cell, seed);
    run.flows.iter().enumerate().for_each(|(number, flow)| say(number, flow, report));
    conclude(&cell, &run, seed, report)
}

fn say(number: usize, flow: &FlowOutcome, report: &Report) {
    let role = flow.role.name();
    let starts = flow.starts.as_secs_f64();
    let fields = json!({
        "flow": number,
        "role": role,
        "starts_s": rounded(starts),
        "share": rounded(flow.share),
        "completion": flow.completion.map(rounded),
        "bytes": flow.bytes,
    });
    let completion = flow.completion.map_or_else(|| "-".into(), |over| format!("{over:.2}"));
    let text = format!(
        "{number:4}  {role:6}  {starts:8.2}  {:15.2}  {completion:>10}  {:6}",
        flow.share,
        flow.bytes / 1024,
    );
    report.event("flow", fields, &text);
}

fn conclude(cell: &Cell, run: &Outcome, seed: u64, report: &Report) -> Result<(), Failure> {
    let mut fields = super::fields(cell, run);
    fields["seed"] = seed.into();
    let text = format!(
        "\nJain {:.3}, {:.1} % of the link used, {:.1} % dropped, queue {:.1} ms p50 and {:.1} ms p95, the \
         slowest took {:.2} times a fair share's time{}, {} connections ended, {} got nothing",
        run.jain,
        run.used * 1e2,
        run.dropped * 1e2,
        run.queue_p50.as_secs_f64() * 1e3,
        run.queue_p95.as_secs_f64() * 1e3,
        run.completion,
        run.beside_tcp.map_or_else(String::new, |share| format!(", {share:.2} of one beside TCP")),
        run.broken,
        run.stalled,
    );
    report.conclude(super::failure([run.broken, run.stalled], [1, 1]), fields, &text)
}
