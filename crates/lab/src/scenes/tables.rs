//! The tables of the articles, measured: what they compute, packets and chunks here really do.

use std::time::Duration;

use super::{Scene, Sender};
use crate::fragment_bench::{Row, rows};

/// Packets of a row: enough for a standard deviation of 1.3 points at most.
const PACKETS: u64 = 1_500;

/// Of *Sending Large Blocks of Data*: the budgets that it lists, in bits per second, and the seconds that it
/// says 256 KiB take.
const BUDGETS: [(u64, u64); 3] = [(1_000_000, 2), (512_000, 4), (256_000, 8)];

/// What each budget of the article's sender makes of 256 KiB.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Bits per second.
    pub bps: u64,
    /// The article's number, in seconds.
    pub article_s: u64,
    /// The time of the run, if it came to its end.
    pub took: Option<Duration>,
}

/// Both tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Tables {
    /// Fragments a packet, the share that is lost by the formula, and the measured one.
    pub fragments: Vec<(usize, f64, f64)>,
    /// The budgets.
    pub budgets: Vec<Budget>,
}

impl Tables {
    /// How often a packet with the maximum number of fragments is sent until it arrives, by the formula. The
    /// article says 10; `1 / (1 - 0.924)` is 13.1.
    pub fn sends(&self) -> f64 {
        self.fragments.last().map_or(1.0, |(_, lost, _)| 1.0 / (1.0 - lost))
    }
}

/// Measures them, some tenths of a second.
pub fn tables(seed: u64) -> Tables {
    let lost = |row: Row| (row.fragments, row.expected(), row.lost(PACKETS, seed));
    let budget = |(bps, article_s)| {
        let scene = Scene {
            senders: vec![Sender::ArticlePaced],
            rate_bps: 100_000_000,
            rtt_ms: 20,
            loss: 0,
            budget_bps: Some(bps),
            seed,
            ..Scene::default()
        };
        Budget { bps, article_s, took: scene.play().remove(0).whole }
    };
    Tables { fragments: rows().map(lost).collect(), budgets: BUDGETS.map(budget).into() }
}
