//! One cell: a link with a size of its block, or a crowd.

use std::collections::BTreeMap;
use std::time::Duration;

use haulier::Block;
use haulier_lab::random::{self, RandomCrowd, RandomLink};
use haulier_lab::rush::{RushReport, Sender, Servers};
use haulier_shell::units::{in_millis, show_bytes};
use haulier_sim::Rng;
use serde_json::{Map, Value, json};

use super::super::rounded;
use super::Runs;
use crate::args::RandomArgs;

/// The seed of the blocks. They are random bytes; no time depends on which.
const BLOCK_SEED: u64 = 1;

/// Where it is.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// A link, and the bytes of the block.
    Link(RandomLink, u64),
    Crowd(RandomCrowd),
}

/// A cell and its number among those of its seed.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub(super) number: u32,
    pub(super) place: Place,
}

impl Cell {
    pub(super) fn run(&self, sender: Sender, servers: Servers, seed: u64) -> RushReport {
        let seed = random::seed_of(seed, self.number);
        let block = |bytes: u64| Block::new(1, Rng::new(BLOCK_SEED).bytes(bytes as usize));
        match &self.place {
            Place::Link(link, bytes) => random::run_link(link, sender, &block(*bytes), seed),
            Place::Crowd(crowd) => {
                random::run_crowd(crowd, servers, sender, &block(crowd.bytes), seed)
            }
        }
    }

    pub(super) const fn kind(&self) -> &'static str {
        match self.place {
            Place::Link(..) => "link",
            Place::Crowd(_) => "crowd",
        }
    }

    /// The time of each over the physical limit of the link; infinite without a block.
    pub(super) fn ratios(&self, runs: &Runs) -> BTreeMap<Sender, f64> {
        let Place::Link(link, bytes) = &self.place else { return BTreeMap::new() };
        let limit = link.limit(*bytes).as_secs_f64();
        let ratio =
            |time: Option<Duration>| time.map_or(f64::INFINITY, |time| time.as_secs_f64() / limit);
        runs.iter().map(|(&sender, run)| (sender, ratio(run.last()))).collect()
    }

    /// What replays it alone.
    pub(super) fn again(&self, args: &RandomArgs) -> String {
        let (kind, number, seed) = (self.kind(), self.number, args.seed);
        let servers = match (&self.place, args.servers_name()) {
            (Place::Crowd(_), "each") => " --servers each",
            _ => "",
        };
        if let (Place::Crowd(crowd), false) = (&self.place, args.crowds_of.is_empty()) {
            let RandomCrowd { rate_mbit, rtt_ms, queue_kib, joins, bytes, .. } = crowd;
            let crowd = format!("{rate_mbit}:{rtt_ms}:{queue_kib}:{joins}:{bytes}");
            return format!("haulier-lab bench random --seed {seed}{servers} --crowds-of {crowd}");
        }
        format!("haulier-lab bench random --seed {seed}{servers} --only {kind}:{number}")
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        match &self.place {
            Place::Link(link, bytes) => format!("{}: {}, {link}", self.name(), show_bytes(*bytes)),
            Place::Crowd(crowd) => format!("{}: {crowd}", self.name()),
        }
    }

    fn name(&self) -> String {
        format!("{}:{}", self.kind(), self.number)
    }

    /// Its senders, each with its numbers.
    pub(super) fn text(&self, runs: &Runs) -> String {
        let ratios = self.ratios(runs);
        let mut text = self.words();
        for (sender, run) in runs {
            let time = |time: Option<Duration>| {
                time.map_or_else(|| "fails".into(), |time| format!("{:.2} s", time.as_secs_f64()))
            };
            let dropped = run.dropped_part() * 1e2;
            let numbers = match ratios.get(sender) {
                Some(ratio) if ratio.is_infinite() => {
                    let why = run.why.as_deref().unwrap_or("took too long");
                    format!("fails: {why}, {dropped:.1} % dropped")
                }
                Some(ratio) => {
                    format!("{} ({ratio:.2} L), {dropped:.1} % dropped", time(run.last()))
                }
                None => format!(
                    "last {}, mean {}, Jain {:.2}, {dropped:.1} % dropped, {:.1} % before feedback",
                    time(run.last()),
                    time(run.mean()),
                    run.jain(),
                    run.dropped_blind_part() * 1e2,
                ),
            };
            text += &format!("\n  {:10} {numbers}", sender.name());
        }
        text
    }

    pub(super) fn fields(&self, runs: &Runs, args: &RandomArgs) -> Value {
        let ratios = self.ratios(runs);
        let sender = |(sender, run): (&Sender, &RushReport)| {
            let ms = |time: Option<Duration>| time.map(|time| rounded(in_millis(time)));
            let mut fields = json!({
                "last_ms": ms(run.last()),
                "mean_ms": ms(run.mean()),
                "jain": rounded(run.jain()),
                "dropped": rounded(run.dropped_part()),
                "offered_bytes": run.offered_bytes,
                "dropped_before_feedback": rounded(run.dropped_blind_part()),
                "failures": run.failures(),
                "why": run.why,
            });
            if let Some(ratio) = ratios.get(sender).filter(|ratio| ratio.is_finite()) {
                fields["limits"] = rounded(*ratio);
            }
            (sender.name().to_owned(), fields)
        };
        let mut fields = json!({
            "cell": self.name(),
            "words": self.words(),
            "again": self.again(args),
            "senders": runs.iter().map(sender).collect::<Map<String, Value>>(),
        });
        match &self.place {
            Place::Link(link, bytes) => {
                fields["bytes"] = (*bytes).into();
                fields["limit_ms"] = rounded(in_millis(link.limit(*bytes)));
            }
            Place::Crowd(crowd) => {
                fields["bytes"] = crowd.bytes.into();
                fields["joins"] = crowd.joins.into();
            }
        }
        fields
    }
}
