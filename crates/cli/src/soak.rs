//! `haulier soak`: random transfers under random faults, in virtual time.

use haulier_sim::soak::{self, Budget, Outcome, Report as Found, Scenario, Verdict};
use serde_json::json;

use crate::args::SoakArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::report::Report;

/// Transfers when neither a number nor a time is asked for.
const DEFAULT_TRANSFERS: u64 = 1_000;

pub(crate) fn run(args: &SoakArgs, report: &Report) -> Result<(), Failure> {
    if let Some(seed) = args.scenario {
        return replay(seed, report);
    }
    let budget = match (args.transfers, args.seconds) {
        (_, Some(seconds)) => Budget::Time(seconds),
        (transfers, None) => Budget::Transfers(transfers.unwrap_or(DEFAULT_TRANSFERS)),
    };
    let found = soak::run(args.seed, budget, |so_far| {
        show(so_far, budget, report);
        !interrupt::requested()
    });
    interrupt::check()?;
    for failure in &found.failures {
        let line = format!("haulier soak --scenario {:#018x}", failure.scenario);
        let fields = json!({ "replay": line, "what": failure.what });
        report.event("failure", fields, &format!("replay: {line}   ({})", failure.what));
    }
    conclude(&found, args.seed, report)
}

fn show(so_far: &Found, budget: Budget, report: &Report) {
    let total = match budget {
        Budget::Transfers(transfers) => Some(transfers),
        Budget::Time(_) => None,
    };
    report.count(so_far.transfers, total, "transfers");
}

fn conclude(found: &Found, seed: u64, report: &Report) -> Result<(), Failure> {
    let virtual_seconds = (found.virtual_time.as_secs_f64() * 10.0).round() / 10.0;
    let fields = json!({
        "ok": found.is_ok(),
        "transfers": found.transfers,
        "hangs": found.hangs,
        "mismatches": found.mismatches,
        "virtual_seconds": virtual_seconds,
        "seed": seed,
        "scenarios": found.scenarios,
        "restarts": found.restarts,
        "trace": format!("{:016x}", found.trace_hash),
    });
    let text = format!(
        "{} transfers in {} scenarios and {virtual_seconds} s of virtual time (seed {seed}): {} hangs, \
         {} mismatches",
        found.transfers, found.scenarios, found.hangs, found.mismatches,
    );
    if found.is_ok() {
        report.done(fields, &text);
        return Ok(());
    }
    report.event("summary", fields, &text);
    Err(Failure::Negative("the soak found a fault; the lines above replay it".into()))
}

/// Runs one scenario and tells everything about it.
fn replay(seed: u64, report: &Report) -> Result<(), Failure> {
    let scenario = Scenario::draw(seed);
    report.event("scenario", json!({ "seed": seed }), &format!("{scenario:#?}"));
    let outcome: Outcome = scenario.run();
    let what = match &outcome.verdict {
        Verdict::Finished => None,
        Verdict::Hang(what) => Some(format!("hang: {what}")),
        Verdict::Mismatch(what) => Some(format!("mismatch: {what}")),
    };
    match what {
        Some(what) => Err(Failure::Negative(what)),
        None => {
            let fields = json!({
                "ok": true,
                "transfers": outcome.transfers,
                "hangs": 0,
                "mismatches": 0,
                "virtual_seconds": outcome.virtual_time.as_secs_f64(),
                "seed": seed,
                "restarts": outcome.restarts,
                "trace": format!("{:016x}", outcome.trace_hash),
            });
            let text = format!("finished: {} transfers", outcome.transfers);
            report.done(fields, &text);
            Ok(())
        }
    }
}
