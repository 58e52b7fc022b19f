//! `haulier-lab soak`: random transfers under random faults, in virtual time.

use haulier_lab::transfers::{self, TransferScenario};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use haulier_sim::soak::{
    self, Budget, ConnectionScenario, DoorScenario, Layers, Outcome, PacketScenario,
    Report as Found, Scenario, Verdict,
};
use serde_json::json;

use crate::args::SoakArgs;

/// Transfers when neither a number nor a time is asked for: chunks, or packets where there are no chunks.
const DEFAULT_TRANSFERS: u64 = 1_000;
const DEFAULT_PACKETS: u64 = 100_000;

/// What is soaked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Soaked {
    /// The wire.
    Layers(Layers),
    /// Files from disk to disk.
    Files,
}

impl Soaked {
    /// What has this name on the command line.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let layers = Layers::ALL.into_iter().map(Self::Layers);
        layers.chain([Self::Files]).find(|known| known.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Layers(layers) => layers.name(),
            Self::Files => "files",
        }
    }

    fn run_scenario(self, seed: u64) -> Outcome {
        match self {
            Self::Layers(layers) => soak::run_scenario(seed, layers),
            Self::Files => transfers::run_scenario(seed),
        }
    }

    /// What a budget counts of it.
    const fn count(self, report: &Found) -> u64 {
        match self {
            Self::Layers(Layers::Packets) => report.packets,
            _ => report.transfers,
        }
    }
}

pub(crate) fn run(args: &SoakArgs, report: &Report) -> Result<(), Failure> {
    match args.scenario {
        Some(seed) => replay(seed, args.layers, report),
        None => soak(args, report, |seed| args.layers.run_scenario(seed)),
    }
}

fn soak(
    args: &SoakArgs,
    report: &Report,
    run_scenario: impl FnMut(u64) -> Outcome,
) -> Result<(), Failure> {
    let budget = match (args.transfers, args.seconds) {
        (_, Some(seconds)) => Budget::Time(seconds),
        (Some(transfers), None) => Budget::Transfers(transfers),
        (None, None) if args.layers == Soaked::Layers(Layers::Packets) => {
            Budget::Transfers(DEFAULT_PACKETS)
        }
        (None, None) => Budget::Transfers(DEFAULT_TRANSFERS),
    };
    let (what, seed) = (args.layers, args.seed);
    let mut said = 0;
    let on_progress = |so_far: &Found| {
        // At once: a soak of hours may be interrupted.
        let news = so_far.failures.iter().skip(said);
        news.for_each(|failure| say(failure, what, report));
        said = so_far.failures.len();
        show(so_far, what, budget, report);
        !interrupt::requested()
    };
    let found =
        soak::run_with(seed, budget, |so_far| what.count(so_far), run_scenario, on_progress);
    if found.is_ok() {
        interrupt::check()?;
    }
    conclude(&found, args, report)
}

/// Says how to replay a failure.
fn say(failure: &soak::Failure, what: Soaked, report: &Report) {
    let (layers, scenario) = (what.name(), failure.scenario);
    let line = format!("haulier-lab soak --layers {layers} --scenario {scenario:#018x}");
    let fields = json!({ "replay": line, "what": failure.what });
    report.finding("failure", fields, &format!("replay: {line}   ({})", failure.what));
}

fn show(so_far: &Found, what: Soaked, budget: Budget, report: &Report) {
    let total = match budget {
        Budget::Transfers(transfers) => Some(transfers),
        Budget::Time(_) => None,
    };
    let unit = match what {
        Soaked::Layers(Layers::Packets) => "packets",
        Soaked::Files => "files",
        Soaked::Layers(Layers::Door) => "joins",
        Soaked::Layers(_) => "transfers",
    };
    report.count(what.count(so_far), total, unit);
}

fn conclude(found: &Found, args: &SoakArgs, report: &Report) -> Result<(), Failure> {
    let virtual_seconds = (found.virtual_time.as_secs_f64() * 10.0).round() / 10.0;
    let seed = args.seed;
    let fields = json!({
        "layers": args.layers.name(),
        "transfers": found.transfers,
        "packets": found.packets,
        "hangs": found.hangs,
        "mismatches": found.mismatches,
        "virtual_seconds": virtual_seconds,
        "seed": seed,
        "scenarios": found.scenarios,
        "restarts": found.restarts,
        "trace": format!("{:016x}", found.trace_hash),
    });
    let text = format!(
        "{} transfers and {} packets in {} scenarios and {virtual_seconds} s of virtual time (seed {seed}): \
         {} hangs, {} mismatches",
        found.transfers, found.packets, found.scenarios, found.hangs, found.mismatches,
    );
    let what = "the soak found a fault; the lines above replay it";
    report.verdict(found.is_ok(), fields, &text, what)
}

/// Runs one scenario and reports everything about it.
fn replay(seed: u64, layers: Soaked, report: &Report) -> Result<(), Failure> {
    let scenario = match layers {
        Soaked::Layers(Layers::Chunks) => format!("{:#?}", Scenario::draw(seed)),
        Soaked::Layers(Layers::Packets) => format!("{:#?}", PacketScenario::draw(seed)),
        Soaked::Layers(Layers::Both) => format!("{:#?}", Scenario::draw(seed).with_packets()),
        Soaked::Layers(Layers::Connection) => format!("{:#?}", ConnectionScenario::draw(seed)),
        Soaked::Layers(Layers::Door) => format!("{:#?}", DoorScenario::draw(seed)),
        Soaked::Files => format!("{:#?}", TransferScenario::draw(seed)),
    };
    report.event("scenario", json!({ "seed": seed, "layers": layers.name() }), &scenario);
    let outcome = soak::judge(seed, |seed| layers.run_scenario(seed));
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
                "layers": layers.name(),
                "transfers": outcome.transfers,
                "packets": outcome.packets,
                "hangs": 0,
                "mismatches": 0,
                "virtual_seconds": outcome.virtual_time.as_secs_f64(),
                "seed": seed,
                "restarts": outcome.restarts,
                "trace": format!("{:016x}", outcome.trace_hash),
            });
            let (transfers, packets) = (outcome.transfers, outcome.packets);
            let text = format!("finished: {transfers} transfers, {packets} packets");
            report.done(fields, &text);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haulier_shell::report::Loudness;

    /// Whatever goes wrong in a scenario, and when quiet: a line that replays it, and exit code 1. A panic
    /// ended the program with 101, and `-q` said nothing.
    #[test]
    fn every_failure_says_how_to_replay_it() {
        let layers = Soaked::Layers(Layers::Connection);
        let args = SoakArgs { layers, transfers: Some(1), seconds: None, seed: 5, scenario: None };
        for loudness in [Loudness::Quiet, Loudness::Plain] {
            let report = Report::new("haulier-lab", false, false).with_loudness(loudness);
            let lines = report.divert();
            let mut finished = Scenario::draw(1).run();
            finished.transfers = 0;
            let mut run = 0;
            let ended = soak(&args, &report, |seed| {
                run += 1;
                assert!(run != 1, "it broke: {seed:#018x}");
                let verdict = match run {
                    2 => Verdict::Hang("it stands".into()),
                    3 => Verdict::Mismatch("it is false".into()),
                    _ => Verdict::Finished,
                };
                let transfers = u64::from(run == 4);
                Outcome { verdict, transfers, ..finished.clone() }
            });
            assert_eq!(ended.unwrap_err().exit_code(), 1);
            let said = lines.last(4);
            let of = |index| format!("{:#018x}", soak::scenario_seed(5, index));
            let broke = format!("panic: it broke: {}", of(0));
            for (index, what) in [(0, &*broke), (1, "it stands"), (2, "it is false")] {
                let replay = "replay: haulier-lab soak --layers connection --scenario";
                let line = format!("{replay} {}   ({what})", of(index));
                assert!(said.contains(&line), "{line}: {said:?}");
            }
        }
    }
}
