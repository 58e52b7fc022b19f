//! `haulier-lab bench joiners --simulated`: the same in virtual time, each client behind a link of its own.

use std::time::{Duration, Instant};

use haulier_lab::figures;
use haulier_lab::joiners::{Joiners, JoinersReport, Told};
use haulier_shell::failure::Failure;
use haulier_shell::report::Report;
use haulier_shell::units::show_bytes;
use haulier_sim::Profile;
use serde_json::{Value, json};

use super::super::{rounded, store};
use crate::args::JoinersArgs;

/// The uplink unless another one is asked for.
const UPLINK_BPS: u64 = 1_000_000_000;

pub(super) fn run(args: &JoinersArgs, report: &Report) -> Result<(), Failure> {
    let uplink_bps = args.uplink.unwrap_or(UPLINK_BPS);
    let crowd = Joiners {
        clients: args.clients,
        bytes: args.bytes,
        uplink_bps,
        told: match (args.unknown_uplink, args.find_uplink) {
            (true, _) => Told::Nothing,
            (_, true) => Told::ToFindOut,
            _ => Told::Rate,
        },
        seats: args.seats.map(|seats| seats as usize),
        by: args.by(),
        hostile: args.hostile(),
        junk_per_s: args.junk_per_s(),
        seed: args.seed,
    };
    let began = Instant::now();
    let outcome = crowd.run(args.timeout, |done| {
        report.count(done as u64, Some(args.clients.into()), "joined");
    });
    report.finish_bar();
    if let Some(path) = &args.svg {
        store(path, &figures::joiners(&crowd, &outcome))?;
    }
    conclude(args, &crowd, &outcome, began.elapsed(), report)
}

fn conclude(
    args: &JoinersArgs,
    crowd: &Joiners,
    outcome: &JoinersReport,
    took: Duration,
    report: &Report,
) -> Result<(), Failure> {
    let clients = args.clients as usize;
    let in_ms = |times: &[Duration]| times.iter().map(|at| at.as_secs_f64() * 1e3).collect();
    let times: Vec<Duration> = outcome.times.iter().flatten().copied().collect();
    let joined = times.len();
    let [ours, allowed, in_turn] =
        [&times, &outcome.limits, &outcome.in_turn].map(|times| Sorted::new(in_ms(times)));
    let pairs = outcome.times.iter().zip(&outcome.limits);
    let over = Sorted::new(
        pairs.flat_map(|(&time, limit)| Some(time?.as_secs_f64() / limit.as_secs_f64())).collect(),
    );
    let wire = outcome.sent_bytes as f64 / (args.bytes as f64 * f64::from(args.clients));
    let to_turn = ours.mean() / in_turn.mean();
    let to_equal = ours.mean() / allowed.mean();
    let links = by_link(outcome);
    let fields = json!({
        "clients": clients,
        "bytes": args.bytes,
        "uplink_bps": crowd.uplink_bps,
        "by": args.by,
        "is_known": crowd.told == Told::Rate,
        "hostile": crowd.hostile,
        "junk_per_s": crowd.junk_per_s,
        "seed": crowd.seed,
        "joined": joined,
        "mean_ms": rounded(ours.mean()),
        "p50_ms": rounded(ours.at(0.5)),
        "p95_ms": rounded(ours.at(0.95)),
        "p99_ms": rounded(ours.at(0.99)),
        "max_ms": rounded(ours.at(1.0)),
        "equal_mean_ms": rounded(allowed.mean()),
        "equal_p95_ms": rounded(allowed.at(0.95)),
        "in_turn_mean_ms": rounded(in_turn.mean()),
        "in_turn_p95_ms": rounded(in_turn.at(0.95)),
        "p50_over_allowed": rounded(over.at(0.5)),
        "p95_over_allowed": rounded(over.at(0.95)),
        "p95_over_p95": rounded(ours.at(0.95) / allowed.at(0.95)),
        "mean_over_equal": rounded(to_equal),
        "mean_over_in_turn": rounded(to_turn),
        "wire": rounded(wire),
        "dropped_bytes": outcome.dropped_bytes,
        "most_connections": outcome.most_connections,
        "datagrams_at_server": outcome.datagrams,
        "steps": outcome.steps,
        "links": links.iter().map(OfLink::fields).collect::<Vec<_>>(),
    });
    let line = |name: &str, of: &Sorted| {
        let [p50, p95, p99, max] = [0.5, 0.95, 0.99, 1.0].map(|part| of.at(part));
        format!("{name:14} {:8.0} {p50:8.0} {p95:8.0} {p99:8.0} {max:8.0}", of.mean())
    };
    let text = format!(
        "join, ms           mean      p50      p95      p99      max\n{}\n{}\n{}\n\
         {joined} of {clients} joined; of what link and equal share allow: p50 {p50:.2}, p95 {p95:.2}; \
         mean {to_equal:.2} of equal shares, {to_turn:.2} of first come, first served\n\
         wire {wire:.3}, {dropped} dropped at the uplink, {most} connections at most; \
         {steps} steps in {took:.1} s\n\
         link        clients  allowed, ms   of it: p50      p95\n{by_link}",
        line("measured", &ours),
        line("equal shares", &allowed),
        line("one by one", &in_turn),
        p50 = over.at(0.5),
        p95 = over.at(0.95),
        dropped = show_bytes(outcome.dropped_bytes),
        most = outcome.most_connections,
        steps = outcome.steps,
        took = took.as_secs_f64(),
        by_link = links.iter().map(OfLink::line).collect::<Vec<_>>().join("\n"),
    );
    let why = outcome.why.as_deref().unwrap_or("not done in time");
    let what = format!("{} of {clients} did not join: {why}", clients - joined);
    report.verdict(joined == clients, fields, &text, &what)
}

/// The clients behind one kind of link.
struct OfLink {
    name: &'static str,
    clients: usize,
    /// Mean of what link and equal share allow.
    allowed_ms: f64,
    over: Sorted,
}

impl OfLink {
    fn fields(&self) -> Value {
        json!({
            "link": self.name,
            "clients": self.clients,
            "joined": self.over.0.len(),
            "allowed_ms": rounded(self.allowed_ms),
            "p50_over_allowed": rounded(self.over.at(0.5)),
            "p95_over_allowed": rounded(self.over.at(0.95)),
        })
    }

    fn line(&self) -> String {
        let Self { name, clients, allowed_ms, over } = self;
        let [p50, p95] = [0.5, 0.95].map(|part| over.at(part));
        format!("{name:10} {clients:8} {allowed_ms:12.0} {p50:13.2} {p95:8.2}")
    }
}

/// The clients by their kind of link, in the order of the profiles.
fn by_link(outcome: &JoinersReport) -> Vec<OfLink> {
    let of = |profile: &Profile| {
        let all = outcome.profiles.iter().zip(outcome.times.iter().zip(&outcome.limits));
        let these: Vec<_> =
            all.filter(|(name, _)| **name == profile.name).map(|(_, it)| it).collect();
        let allowed_s: f64 = these.iter().map(|(_, limit)| limit.as_secs_f64()).sum();
        let ratio = |time: Duration, limit: &Duration| time.as_secs_f64() / limit.as_secs_f64();
        let over = these.iter().filter_map(|(time, limit)| Some(ratio((**time)?, limit)));
        OfLink {
            name: profile.name,
            clients: these.len(),
            allowed_ms: allowed_s * 1e3 / these.len() as f64,
            over: Sorted::new(over.collect()),
        }
    };
    Profile::ALL.iter().map(of).filter(|link| link.clients > 0).collect()
}

/// Numbers in order.
struct Sorted(Vec<f64>);

impl Sorted {
    fn new(mut numbers: Vec<f64>) -> Self {
        numbers.sort_by(f64::total_cmp);
        Self(numbers)
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The number that this part of them does not exceed.
    fn at(&self, part: f64) -> f64 {
        let place = (self.0.len() as f64 * part).ceil() as usize;
        self.0.get(place.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }
}
