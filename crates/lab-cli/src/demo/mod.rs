//! `haulier-lab demo`: two ends on real loopback sockets, with an emulated link between them in the same
//! process. One command, no set-up, and the result beside the physical limit.
//!
//! `haulier1` is a player that joins a server, `article` the bare run of chunks of the articles' wire; here
//! is what both have in common. `compare` sends nothing: it plays what three senders do in virtual time.

mod article;
#[cfg(feature = "measure")]
mod compare;
mod haulier1;
mod map;

use std::fs;
use std::time::Duration;

use bytes::Bytes;
use haulier_article::chunk::MAX_CHUNK_BYTES;
use haulier_shell::failure::Failure;
use haulier_shell::look;
use haulier_shell::report::Report;
use haulier_shell::units::{in_millis, show_bytes};
use haulier_sim::{LinkConfig, Loss, Probability, Rng};
use serde_json::json;

use crate::args::{DemoArgs, Wire};
use crate::relay;

const TURN: Duration = Duration::from_millis(5);

/// How long the demo stays after everything has arrived, for the acks under way.
const LAST_ACKS: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &DemoArgs, report: &Report) -> Result<(), Failure> {
    look::check(&args.look, false, report)?;
    let data = data(args)?;
    let link = link(args);
    announce(args, &link, data.len(), report);
    #[cfg(feature = "measure")]
    if args.is_compared() {
        return compare::run(args, &link, data.len(), report);
    }
    match args.wire {
        Wire::Haulier1 => haulier1::run(args, &link, &data, report),
        Wire::Article if args.look.has_screen() || args.look.view.is_some() => Err(Failure::Usage(
            "the wire of the articles is no connection to look at: leave --tui and --view out, its map is \
             drawn anyway"
                .into(),
        )),
        Wire::Article => article::run(args, &link, &data, report),
    }
}

/// The file, or a made-up world of 256 KiB.
fn data(args: &DemoArgs) -> Result<Bytes, Failure> {
    let Some(path) = &args.file else {
        return Ok(Rng::new(args.seed).bytes(MAX_CHUNK_BYTES).into());
    };
    if path.is_dir() {
        let what = "is a directory: the demo sends one file";
        return Err(Failure::Usage(format!("{} {what}", path.display())));
    }
    let data = fs::read(path).map_err(|error| Failure::file(path, &error))?;
    if data.is_empty() {
        return Err(Failure::Usage(format!(
            "{} is empty: there is nothing to show",
            path.display()
        )));
    }
    Ok(data.into())
}

/// The profile's link, with what the arguments say instead.
fn link(args: &DemoArgs) -> LinkConfig {
    let mut link = args.link.link();
    link.rate_bps = args.rate.or(link.rate_bps);
    link.queue_bytes = args.queue.or(link.queue_bytes);
    link.delay = args.rtt.map_or(link.delay, |rtt| rtt / 2);
    link.loss = args.loss.map_or(link.loss, |ppm| Loss::Independent(Probability::ppm(ppm)));
    link
}

/// The article's aggressive budget, for what the burst leaves over.
const AFTER_BURST: u64 = 1_000_000;

/// The budget of the article's sender: the user's choice, or the article's after a burst, or nine tenths of
/// what the demo knows the link to have.
fn budget(args: &DemoArgs, link: &LinkConfig, bytes: usize) -> u64 {
    let own = if bursts(args, bytes) { None } else { link.rate_bps.map(|rate| rate / 10 * 9) };
    args.budget.or(own).unwrap_or(AFTER_BURST)
}

fn bursts(args: &DemoArgs, bytes: usize) -> bool {
    args.burst || (bytes <= MAX_CHUNK_BYTES && !args.no_burst)
}

fn announce(args: &DemoArgs, link: &LinkConfig, bytes: usize, report: &Report) {
    let mbit = link.rate_bps.unwrap_or(0) as f64 / 1e6;
    let rtt = in_millis(2 * link.delay);
    let loss = link.loss.mean().as_f64();
    let budget = match args.wire {
        Wire::Haulier1 => args.budget,
        Wire::Article => Some(budget(args, link, bytes)),
    };
    let fields = json!({
        "profile": args.link.name,
        "rate_mbit": mbit,
        "rtt_ms": rtt,
        "loss": (loss * 1e6).round() / 1e6,
        "queue_kib": link.queue_bytes.map(|bytes| bytes / 1024),
        "budget_mbit": budget.map(|budget| budget as f64 / 1e6),
        "burst": args.wire == Wire::Article && bursts(args, bytes),
        "bytes": bytes,
        "seed": args.seed,
    });
    let text = format!(
        "{} over {mbit} Mbit/s, {rtt} ms round trip, {:.1} % loss ({}, seed {})",
        show_bytes(bytes as u64),
        loss * 100.0,
        args.link.name,
        args.seed,
    );
    report.event("start", fields, &text);
}
