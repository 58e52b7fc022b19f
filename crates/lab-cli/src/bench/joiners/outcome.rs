//! What became of a crowd, and how it is shown.

use std::time::Duration;

use haulier_shell::failure::Failure;
use haulier_shell::report::Report;
use haulier_shell::units::show_bytes;
use serde_json::{Value, json};

use super::super::rounded;
use super::swarm::Tally;
use crate::args::JoinersArgs;

/// Bytes of the headers of UDP and IPv4.
const HEADER_BYTES: f64 = 28.0;

/// One run.
pub(super) struct Outcome {
    took: Duration,
    /// The join times of all clients that joined, in order.
    times: Vec<Duration>,
    failed: usize,
    why: Option<String>,
    queued: usize,
    sent_bytes: u64,
    /// What the server used.
    cpu_s: Option<f64>,
    /// Memory of the server's process before the clients joined, and its peak.
    idle_bytes: Option<u64>,
    peak_bytes: Option<u64>,
    datagrams_received: f64,
    datagrams_sent: f64,
    bytes_sent: f64,
    drops: Value,
    /// Datagrams of attackers.
    shots: u64,
}

impl Outcome {
    pub(super) fn new(took: Duration, tallies: Vec<Tally>, before: &Value, after: &Value) -> Self {
        let number = |name: &str| after[name].as_f64();
        let spent = |name: &str| Some(after[name].as_f64()? - before[name].as_f64()?);
        let of = |count: fn(&Tally) -> usize| tallies.iter().map(count).sum();
        let mut times: Vec<Duration> =
            tallies.iter().flat_map(|tally| tally.times.iter().copied()).collect();
        times.sort();
        Self {
            took,
            times,
            failed: of(|tally| tally.failed),
            queued: of(|tally| tally.queued),
            sent_bytes: tallies.iter().map(|tally| tally.sent_bytes).sum(),
            why: tallies.into_iter().find_map(|tally| tally.why),
            cpu_s: spent("cpu_s"),
            idle_bytes: before["memory_bytes"].as_u64(),
            peak_bytes: after["peak_bytes"].as_u64(),
            datagrams_received: number("datagrams_received").unwrap_or_default(),
            datagrams_sent: number("datagrams_sent").unwrap_or_default(),
            bytes_sent: number("bytes_sent").unwrap_or_default(),
            drops: after["drops"].clone(),
            shots: 0,
        }
    }

    pub(super) fn with_shots(self, shots: u64) -> Self {
        Self { shots, ..self }
    }

    /// The join time that this part of the clients that joined did not exceed, in ms.
    fn percentile(&self, part: f64) -> f64 {
        let place = (self.times.len() as f64 * part).ceil() as usize;
        self.times.get(place.saturating_sub(1)).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }

    fn mean(&self) -> f64 {
        self.times.iter().map(Duration::as_secs_f64).sum::<f64>() * 1e3 / self.times.len() as f64
    }

    /// Jain's index of the rates.
    fn jain(&self) -> f64 {
        let rates = || self.times.iter().map(|time| 1.0 / time.as_secs_f64());
        rates().sum::<f64>().powi(2)
            / (rates().map(|rate| rate * rate).sum::<f64>() * self.times.len() as f64)
    }
}

pub(super) fn conclude(
    args: &JoinersArgs,
    unit: &Outcome,
    crowd: &Outcome,
    report: &Report,
) -> Result<(), Failure> {
    let clients = args.clients as usize;
    let bytes = args.bytes as f64;
    let all_bytes = bytes * f64::from(args.clients);
    let unit_bytes = all_bytes.min(super::MAX_UNIT_BYTES as f64);
    let unit_mbit = unit_bytes * 8.0 / unit.took.as_secs_f64() / 1e6;
    let took = crowd.took.as_secs_f64();
    let in_units = took / (all_bytes * 8.0 / unit_mbit / 1e6);
    let wire = (crowd.bytes_sent + crowd.datagrams_sent * HEADER_BYTES) / all_bytes;
    let cpu_us = crowd.cpu_s.map(|cpu| cpu * 1e6 / f64::from(args.clients));
    let grown =
        crowd.peak_bytes.zip(crowd.idle_bytes).map(|(peak, idle)| peak.saturating_sub(idle));
    let joined = crowd.times.len();
    let fields = json!({
        "clients": clients,
        "bytes": args.bytes,
        "workers": args.workers,
        "at_once": args.at_once,
        "seats": args.seats,
        "joined": joined,
        "failed": crowd.failed,
        "queued": crowd.queued,
        "mean_ms": rounded(crowd.mean()),
        "p50_ms": rounded(crowd.percentile(0.5)),
        "p95_ms": rounded(crowd.percentile(0.95)),
        "p99_ms": rounded(crowd.percentile(0.99)),
        "max_ms": rounded(crowd.percentile(1.0)),
        "jain": rounded(crowd.jain()),
        "all_joined_s": rounded(took),
        "joins_per_s": rounded(joined as f64 / took),
        "unit_mbit": rounded(unit_mbit),
        "in_units": rounded(in_units),
        "wire": rounded(wire),
        "server_cpu_us_per_joiner": cpu_us.map(rounded),
        "server_peak_bytes": crowd.peak_bytes,
        "server_grown_bytes": grown,
        "server_datagrams_received": crowd.datagrams_received,
        "clients_sent_bytes": crowd.sent_bytes,
        "attackers_sent": crowd.shots,
        "drops": crowd.drops,
    });
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".into());
    let text = format!(
        "{joined} of {clients} joined, {queued} of them from the line\n\
         join           mean {mean:.1} ms, p50 {p50:.1}, p95 {p95:.1}, p99 {p99:.1}, max {max:.1}; \
         Jain {jain:.3}\n\
         all joined     {took:.2} s, {rate:.0} a second; {in_units:.2} times what one transfer at \
         {unit_mbit:.0} Mbit/s takes\n\
         server memory  {peak} at most, {grown} more than idle\n\
         server CPU     {cpu} for each\n\
         wire           {wire:.3}",
        queued = crowd.queued,
        mean = crowd.mean(),
        p50 = crowd.percentile(0.5),
        p95 = crowd.percentile(0.95),
        p99 = crowd.percentile(0.99),
        max = crowd.percentile(1.0),
        jain = crowd.jain(),
        rate = joined as f64 / took,
        peak = or_unknown(crowd.peak_bytes.map(show_bytes)),
        grown = or_unknown(grown.map(show_bytes)),
        cpu = or_unknown(cpu_us.map(|cpu| format!("{cpu:.0} us"))),
    );
    let why = crowd.why.as_deref().unwrap_or("not done in time");
    let what = format!("{} of {clients} did not join: {why}", clients - joined);
    report.verdict(joined == clients, fields, &text, &what)
}
