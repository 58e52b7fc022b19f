//! The arguments of `haulier bench crowd`.

use std::path::PathBuf;

use clap::ArgGroup;
use haulier_lab::crowd::{Cell, Mix};

use crate::units;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
#[command(group(ArgGroup::new("scope").args(["quick", "full", "cell"])))]
pub(crate) struct CrowdArgs {
    /// Every 23rd of the cells of at most 20 Mbit/s in all: seconds. The default.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Every cell: hours, and gigabytes.
    #[arg(long)]
    pub(crate) full: bool,

    /// Just these: ours, cubic, turnover, slow_up, bbr.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = mix)]
    pub(crate) only: Vec<Mix>,

    /// Say where it is good and where not: by flows, rate, round trip and queue.
    #[arg(long)]
    pub(crate) tables: bool,

    /// Store the summaries and each cell's numbers in this file, as JSON.
    #[arg(long, value_name = "FILE.json")]
    pub(crate) out: Option<PathBuf>,

    /// Replay one cell (0 to 2249), and print a line for each flow.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(..i64::from(Cell::ALL)),
        conflicts_with_all = ["only", "tables", "out"]
    )]
    pub(crate) cell: Option<u32>,

    /// The seed of the runs.
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::seed)]
    pub(crate) seed: u64,
}

const HELP: &str = "\
2, 6, 10, 30 or 100 flows share one bottleneck of 0.2, 1, 10 or 100 Mbit/s for each of them, in virtual time,
with round trips of 1 to 600 ms and a droptail queue of 0.1 to 8 bandwidth-delay products, at least three
packets. Above 1 Gbit/s in all there is no cell. Flows begin within a second. Five mixes:
  ours      haulier/1 alone
  cubic     half haulier/1, half TCP CUBIC
  turnover  haulier/1; of three flows one stays, one joins after a quarter of the run, and one leaves then
  slow_up   haulier/1, and the way up, which has the acks, has a twentieth of the rate
  bbr       half haulier/1, half TCP BBR

A run lasts 15 s and 25 round trips. Shares are of block bytes that arrived in its second half; headers take
some 6 % of the link.

Columns: Jain's index of ours (1: all got the same; 1/n: one got everything), at the median and where a
twentieth of the cells has less; the part of the link that is used, the same; what the full queue dropped of
all that was sent, at the median and where a twentieth has more; the median of the queueing delay's median,
and its 95th percentile where a twentieth has more; the time that the slowest took for a fair share of half
the run, over that half; what ours got beside TCP, over a fair share. Good cells have a Jain index of 0.9,
use 0.8 and drop at most 0.1. Ended are the connections of ours that were over before their run was: that is
counted and said, as all else here, and no failure of the command.

Examples:
  haulier bench crowd
  haulier bench crowd --only ours,cubic --tables
  haulier bench crowd --full --out crowd.json
  haulier bench crowd --cell 1035 --seed 1";

impl CrowdArgs {
    /// The cells to be measured.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        let is_asked = |cell: &Cell| self.only.is_empty() || self.only.contains(&cell.mix);
        if self.full {
            Cell::all().filter(is_asked).collect()
        } else {
            Cell::quick().filter(is_asked).collect()
        }
    }
}

fn mix(name: &str) -> Result<Mix, String> {
    Mix::named(name).ok_or_else(|| {
        let names = Mix::ALL.map(Mix::name).join(", ");
        format!("there is no mix called {name}: there are {names}")
    })
}
