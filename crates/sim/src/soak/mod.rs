//! The soak test: "setup a test harness that randomly sends chunks across of random sizes under large
//! amounts of packet loss, out of order packets and duplicates" (*Sending Large Blocks of Data*, "The
//! Importance of Soak Testing").
//!
//! A *scenario* is drawn from one seed: links, faults, sizes, readers. It runs in two phases. While the
//! faults last, only safety is required: chunks are delivered unchanged, in order and once, and a chunk
//! reported as sent has arrived. Then the faults stop, and liveness is required: everything must finish. A
//! failure report has the seed, and `haulier-lab soak --scenario SEED` runs exactly that one again.

mod chunk_end;
mod company;
mod connection_ends;
mod connections;
mod door;
mod packets;
mod scenario;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant as WallClock};

pub use connections::ConnectionScenario;
pub use door::DoorScenario;
pub use packets::PacketScenario;
pub use scenario::{Outcome, Scenario, Verdict, draw_link};

use crate::Rng;

/// What a soak tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layers {
    /// Chunks alone.
    Chunks,
    /// Packets alone, on worse links.
    Packets,
    /// The scenarios of [`Chunks`](Self::Chunks) with a game's packets on the same links.
    Both,
    /// The whole connection of haulier/1: clients that join a server, with all its traffic.
    Connection,
    /// The door of a server of haulier/1: honest clients that want in, and hostile ones that are in the way.
    Door,
}

impl Layers {
    /// Every choice.
    pub const ALL: [Self; 5] =
        [Self::Chunks, Self::Packets, Self::Both, Self::Connection, Self::Door];

    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chunks => "chunks",
            Self::Packets => "packets",
            Self::Both => "both",
            Self::Connection => "connection",
            Self::Door => "door",
        }
    }
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// After this many chunks (of packets alone, packets), or a few more: scenarios are not cut short.
    Transfers(u64),
    /// After this much real time.
    Time(Duration),
}

/// The results of a soak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Scenarios run.
    pub scenarios: u64,
    /// Chunks that arrived unchanged.
    pub transfers: u64,
    /// Packets that were accepted at the other end.
    pub packets: u64,
    /// Runs of chunks that both ends restarted after a timeout of one; of packets alone, ends that crashed
    /// and restarted; of connections, those that ended early.
    pub restarts: u64,
    /// Scenarios in which something never finished.
    pub hangs: u64,
    /// Scenarios in which data was wrong, or reported as arrived and had not, or that panicked.
    pub mismatches: u64,
    /// Virtual time of all scenarios together.
    pub virtual_time: Duration,
    /// A hash over the traces of all scenarios.
    pub trace_hash: u64,
    /// What went wrong, each with the seed that replays it.
    pub failures: Vec<Failure>,
}

/// A scenario that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed of the scenario.
    pub scenario: u64,
    /// What went wrong.
    pub what: String,
}

impl Report {
    /// Whether there was no failure.
    #[must_use]
    pub const fn is_ok(&self) -> bool {
        self.hangs == 0 && self.mismatches == 0
    }

    fn add(&mut self, seed: u64, outcome: &Outcome) {
        self.scenarios += 1;
        self.transfers += outcome.transfers;
        self.packets += outcome.packets;
        self.restarts += outcome.restarts;
        self.virtual_time += outcome.virtual_time;
        self.trace_hash = self.trace_hash.rotate_left(1) ^ outcome.trace_hash;
        let what = match &outcome.verdict {
            Verdict::Finished => return,
            Verdict::Hang(what) => {
                self.hangs += 1;
                what
            }
            Verdict::Mismatch(what) => {
                self.mismatches += 1;
                what
            }
        };
        self.failures.push(Failure { scenario: seed, what: what.clone() });
    }
}

/// Draws one scenario and runs it.
#[must_use]
pub fn run_scenario(seed: u64, layers: Layers) -> Outcome {
    match layers {
        Layers::Chunks => Scenario::draw(seed).run(),
        Layers::Packets => PacketScenario::draw(seed).run(),
        Layers::Both => Scenario::draw(seed).with_packets().run(),
        Layers::Connection => ConnectionScenario::draw(seed).run(),
        Layers::Door => DoorScenario::draw(seed).run(),
    }
}

/// Runs a scenario with this seed. If it panics, that is its verdict: an assertion of a machine or of what
/// watches it has failed, and the seed replays it like every other failure.
pub fn judge(seed: u64, run_scenario: impl FnOnce(u64) -> Outcome) -> Outcome {
    // What it broke is dropped with it.
    catch_unwind(AssertUnwindSafe(|| run_scenario(seed))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let verdict = Verdict::Mismatch(format!("panic: {}", text.unwrap_or("without a message")));
        Outcome {
            verdict,
            transfers: 0,
            packets: 0,
            restarts: 0,
            virtual_time: Duration::ZERO,
            trace_hash: 0,
        }
    })
}

/// The seed of the `index`th scenario of a soak with this seed.
#[must_use]
pub fn scenario_seed(seed: u64, index: u64) -> u64 {
    Rng::stream(seed, index).next_u64()
}

/// Runs scenarios until the budget is spent or `on_progress` returns `false`. It is called after each.
pub fn run(
    seed: u64,
    layers: Layers,
    budget: Budget,
    on_progress: impl FnMut(&Report) -> bool,
) -> Report {
    let count = match layers {
        Layers::Packets => |report: &Report| report.packets,
        _ => |report: &Report| report.transfers,
    };
    run_with(seed, budget, count, |scenario| run_scenario(scenario, layers), on_progress)
}

/// Runs scenarios as [`run`] does, but of another kind and with another count for [`Budget::Transfers`].
pub fn run_with(
    seed: u64,
    budget: Budget,
    count: impl Fn(&Report) -> u64,
    mut run_scenario: impl FnMut(u64) -> Outcome,
    mut on_progress: impl FnMut(&Report) -> bool,
) -> Report {
    #[expect(
        clippy::disallowed_methods,
        reason = "the budget alone is in real time; no run sees it"
    )]
    let started = WallClock::now();
    let mut report = Report::default();
    for index in 0.. {
        let spent = match budget {
            Budget::Transfers(transfers) => count(&report) >= transfers,
            Budget::Time(time) => started.elapsed() >= time,
        };
        if spent {
            break;
        }
        let scenario = scenario_seed(seed, index);
        report.add(scenario, &judge(scenario, &mut run_scenario));
        // A sender that finishes nothing would never reach the number of transfers.
        if !on_progress(&report) || report.failures.len() >= 10 {
            break;
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A panic ended the soak, and nothing said which scenario it was.
    #[test]
    fn a_panic_is_a_failure_with_a_seed() {
        let finished = Scenario::draw(1).run();
        let mut run = 0;
        let run_scenario = |seed| {
            run += 1;
            assert!(run != 2, "the second, {seed:#x}");
            finished.clone()
        };
        let one_each = |report: &Report| report.scenarios;
        let report = run_with(7, Budget::Transfers(3), one_each, run_scenario, |_| true);
        let scenario = scenario_seed(7, 1);
        let what = format!("panic: the second, {scenario:#x}");
        assert_eq!(report.failures, [Failure { scenario, what }]);
        assert_eq!((report.scenarios, report.mismatches, report.is_ok()), (3, 1, false));
    }
}
