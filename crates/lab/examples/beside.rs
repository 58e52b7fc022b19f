//! What transfers of ours get beside TCP on one link, over a fair share, and what CUBIC gets beside BBR: 144
//! cells of a minute, in virtual time.
//!
//! ```sh
//! cargo run --release -p haulier-lab --example beside             # all cells, a summary: five minutes
//! cargo run --release -p haulier-lab --example beside -- 2 -v     # every second cell, a line for each
//! ```
//!
//! One beside one, one beside four and four beside one; 10 and 50 Mbit/s, 20 and 100 ms, a queue of 0.5 to 4
//! bandwidth-delay products; beside CUBIC and beside BBR, begun a tenth of a second apart. Fair is from half
//! to twice a fair share, and in the first ten seconds from 0.3 to 3 times one.

use std::time::Duration;

use haulier_lab::share::{Competitor, Share, config};
use haulier_proto::Instant;
use haulier_sim::LinkConfig;

const LASTS: Duration = Duration::from_secs(60);
const EARLY: Duration = Duration::from_secs(10);

/// The flows on a link, and the link.
#[derive(Clone, Copy)]
struct Cell {
    ours: usize,
    theirs: usize,
    mbit: u64,
    rtt_ms: u64,
    /// Of a bandwidth-delay product.
    queue_permille: u64,
}

impl Cell {
    fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for (ours, theirs) in [(1, 1), (1, 4), (4, 1)] {
            for (mbit, rtt_ms) in [(10, 20), (10, 100), (50, 20), (50, 100)] {
                let cell = |queue_permille| Self { ours, theirs, mbit, rtt_ms, queue_permille };
                cells.extend([500, 1_000, 2_000, 4_000].map(cell));
            }
        }
        cells
    }

    /// What the first kind got in the mean over a fair share, in all of the run and early in it.
    fn run(&self, mine: &Competitor, rival: &Competitor, seed: u64) -> [f64; 2] {
        let queue_bytes = self.mbit * self.rtt_ms * self.queue_permille / 8;
        let link = LinkConfig::new(self.mbit * 1_000_000, Duration::ZERO).with_queue(queue_bytes);
        let flows = self.ours + self.theirs;
        let rtt = Duration::from_millis(self.rtt_ms);
        let flow = |n: usize| {
            let flow = if n < self.ours { mine.clone() } else { rival.clone() };
            // Ours are neither the first nor the last.
            let place = (3 * n + 1) % flows;
            flow.with_extra_rtt(rtt).starting_at(Instant::from_millis(100 * place as u64))
        };
        let report = Share::new(link, (0..flows).map(flow).collect(), LASTS).run(seed);
        [LASTS, EARLY].map(|until| {
            let mbits = report.mbit(Instant::ZERO, Instant::ZERO + until);
            let mean = |mbits: &[f64]| mbits.iter().sum::<f64>() / mbits.len() as f64;
            mean(&mbits[..self.ours]) / mean(&mbits)
        })
    }
}

/// The distribution of shares, and how many are within these bounds.
fn summary(mut shares: Vec<f64>, fair: std::ops::RangeInclusive<f64>) -> String {
    shares.sort_by(f64::total_cmp);
    let count = shares.iter().filter(|share| fair.contains(share)).count();
    let at = |percent: usize| shares[percent * (shares.len() - 1) / 100];
    format!(
        "{count} of {} fair; least {:.2}, p10 {:.2}, p50 {:.2}, p90 {:.2}, most {:.2}",
        shares.len(),
        at(0),
        at(10),
        at(50),
        at(90),
        at(100)
    )
}

fn main() {
    let (mut step, mut is_verbose) = (1, false);
    for arg in std::env::args().skip(1) {
        match arg.parse() {
            Ok(number) if number > 0 => step = number,
            _ if arg == "-v" => is_verbose = true,
            _ => {
                eprintln!("{arg:?} is neither -v nor a number: 2 runs every second cell");
                std::process::exit(2);
            }
        }
    }
    let (cubic, bbr) = (Competitor::cubic(), Competitor::bbr());
    let ours = Competitor::haulier(config());
    let pairs = [
        ("ours beside CUBIC", &ours, &cubic),
        ("ours beside BBR", &ours, &bbr),
        ("CUBIC beside BBR", &cubic, &bbr),
    ];
    for (name, mine, rival) in pairs {
        let (mut all, mut early) = (Vec::new(), Vec::new());
        for (seed, cell) in (1..).zip(Cell::all()).skip(step - 1).step_by(step) {
            let [whole, first] = cell.run(mine, rival, seed);
            if is_verbose {
                let Cell { ours, theirs, mbit, rtt_ms, queue_permille } = cell;
                println!(
                    "{name}, {ours} and {theirs}, {mbit} Mbit/s, {rtt_ms} ms, a queue of \
                     {queue_permille} permille: {whole:.2}, early {first:.2}"
                );
            }
            all.push(whole);
            early.push(first);
        }
        println!("{name}, a minute:   {}", summary(all, 0.5..=2.0));
        println!("{name}, ten seconds: {}", summary(early, 0.3..=3.0));
    }
}
