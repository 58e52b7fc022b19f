//! Cells drawn at random: links and crowds from a seed, by the distributions of the lab's scripts
//! `random_links.py` and `random_crowds.py`, in virtual time.
//!
//! A sender that is tuned on cells which people chose is tuned to these people. A seed that is drawn on the
//! day cannot be tuned to, and a summary is a distribution and not a choice of rows. The same seed draws the
//! same cells here as there (`python.rs`), so that each can be looked at over real sockets too.
//!
//! * [`RandomLink`]: one join over a link of 1 to 400 Mbit/s, 2 to 400 ms, and up to three of ten oddities;
//! * [`RandomCrowd`]: 2 to 40 joins on one bottleneck, at once or within some seconds;
//! * [`run_link`], [`run_crowd`]: every [`Sender`] in the same cell, as a [`Rush`] each;
//! * [`LinkSummary`], [`CrowdSummary`]: the distributions.

mod crowd;
mod link;
mod python;
mod summary;

pub use crowd::RandomCrowd;
pub use link::RandomLink;
pub use summary::{Beside, CrowdSummary, LinkSummary};

use std::time::Duration;

use haulier_proto::Instant;
use haulier_proto::connection::Block;
use haulier_sim::{Probability, Rng};

use crate::rush::{Rush, RushReport, Sender, Servers};

/// A join over a link has failed after this, as in `run.py`.
const LINK_PATIENCE: Duration = Duration::from_secs(60);

/// Crowds that are not done by then have failed, as in `random_crowds.py`.
const CROWD_PATIENCE: Duration = Duration::from_secs(90);

/// Programs that are started at once begin within this time for each of them: about the time that the
/// script's shell takes to start one on the lab's machine. No real crowd begins within one nanosecond.
const STARTING: Duration = Duration::from_millis(5);

/// The joins over a link begin at `LINK_BEGINS` or up to `PHASE` later: rates that change have gone on for a
/// while, and bunches fall anywhere.
const LINK_BEGINS: Duration = Duration::from_secs(1);
const PHASE: Duration = Duration::from_millis(100);

/// The seed of the runs in a cell with this number: the same for all senders.
pub fn seed_of(seed: u64, number: u32) -> u64 {
    Rng::stream(seed, 1 + u64::from(number)).next_u64()
}

/// One join over this link. Every sender begins at the same time, and the same packets of those that pass
/// the queue are lost.
pub fn run_link(link: &RandomLink, sender: Sender, block: &Block, seed: u64) -> RushReport {
    let phase = Rng::stream(seed, 76).below(PHASE.as_nanos() as u64);
    let begins = LINK_BEGINS + Duration::from_nanos(phase);
    let rush = Rush {
        access: link.access(Instant::ZERO + begins + LINK_PATIENCE),
        begins: vec![begins],
        servers: Servers::One,
        patience: LINK_PATIENCE,
    };
    rush.run(sender, block, seed)
}

/// A crowd with this sender alone.
pub fn run_crowd(
    crowd: &RandomCrowd,
    servers: Servers,
    sender: Sender,
    block: &Block,
    seed: u64,
) -> RushReport {
    let mut rng = Rng::stream(seed, 75);
    let within = crowd.within.max(STARTING * crowd.joins).as_nanos() as u64;
    let begins = (0..crowd.joins).map(|_| Duration::from_nanos(rng.below(within)));
    let rush = Rush {
        access: crowd.access(),
        begins: begins.collect(),
        servers,
        patience: CROWD_PATIENCE,
    };
    rush.run(sender, block, seed)
}

/// Rounds to `places` decimal places, as Python's `round` does.
fn rounded(number: f64, places: usize) -> f64 {
    format!("{number:.places$}").parse().unwrap_or(number)
}

fn ms(millis: f64) -> Duration {
    Duration::from_nanos((millis * 1e6).round() as u64)
}

fn bps(mbit: f64) -> u64 {
    (mbit * 1e6).round() as u64
}

fn in_bytes(kib: f64) -> u64 {
    (kib * 1024.0) as u64
}

fn part(part: f64) -> Probability {
    Probability::ppm((part * 1e6).round() as u64)
}
