//! The arguments of `haulier-lab bench crowd`.

use std::time::Duration;

use clap::ArgGroup;
use haulier_lab::crowd::{Cell, Mix};
use haulier_shell::units;

use super::ScopeArgs;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
#[command(group(ArgGroup::new("scope").args(["quick", "full", "cell"])))]
pub(crate) struct CrowdArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    /// Begin no cell after this many seconds. Cells are then taken from all over, so that what was measured
    /// is a sample of what was asked for; exit code 8 if that is not all.
    #[arg(long, value_name = "S", value_parser = units::seconds)]
    pub(crate) budget: Option<Duration>,

    /// Just these: ours, cubic, turnover, slow_up, bbr, upload, codel, marks, steps, bunches, only_cubic,
    /// only_bbr.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = mix)]
    pub(crate) only: Vec<Mix>,

    /// Replay one cell (0 to 5564), and print a line for each flow.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(..i64::from(Cell::ALL)),
        conflicts_with_all = ["only", "tables", "out", "budget"]
    )]
    pub(crate) cell: Option<u32>,

    /// The seed of the runs.
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::seed)]
    pub(crate) seed: u64,
}

const HELP: &str = "\
2, 6, 10, 30 or 100 flows share one bottleneck of 0.2, 1, 10 or 100 Mbit/s for each of them, in virtual \
time, with round trips of 1 to 600 ms and a droptail queue of 0.1 to 8 bandwidth-delay products, at least \
three packets. Flows begin within a second. Mixes:
  ours        haulier/1 alone
  cubic, bbr  half haulier/1, half TCP with CUBIC or BBR
  turnover    haulier/1; of three flows one stays, one joins after a quarter of the run, and one leaves then
  slow_up     haulier/1, and the way up, which has the acks, has a twentieth of the rate
  upload      haulier/1 from clients to servers, and the way down is ten times as fast
  codel       haulier/1, and CoDel drops from the queue
  marks       haulier/1, and CoDel marks, for the link carries ECN
  steps       haulier/1, and the rate is halved and restored in turn
  bunches     haulier/1, and the link delivers in bunches of 8 ms
  only_cubic, only_bbr   TCP alone: what others do on these links
Cells with a bottleneck above 1 Gbit/s, up to 10, are at the end, of ours, cubic and bbr, where path and \
queue hold at most 64 MiB. The quick sample is every 23rd of the cells of at most 20 Mbit/s in all, and \
half of these from upload to bunches. --full takes \
hours, and gigabytes of memory; with --budget it is a sample of all.

A run lasts 15 s and 25 round trips (above 1 Gbit/s 4 s). Shares are of block bytes that arrived in its \
second half; headers take some 3 to 6 % of the link.

Columns: Jain's index of ours (1: all got the same; 1/n: one got everything), at the median and where a \
twentieth of the cells has less; the part of the link that is used, the same; what the queue dropped of \
all that was sent, at the median and where a twentieth has more; the median of the queueing delay's \
median, and its 95th percentile where a twentieth has more; the time that the slowest took for a fair \
share of half the run, over that half; connections of ours that ended before their run, or got nothing; \
what ours got beside TCP, over a fair share. Good cells have a Jain index of 0.9, use 0.8 and drop at \
most 0.1.

Exit codes: 7 if a connection of ours ended or got nothing, which is said at the end; 8 if --budget was \
over before all cells had begun. Unfair or wasteful cells are numbers, and no failure.

Examples:
  haulier-lab bench crowd
  haulier-lab bench crowd --only ours,cubic,bbr --tables
  haulier-lab bench crowd --full --budget 600 --out crowd.json
  haulier-lab bench crowd --cell 1035 --seed 1";

impl CrowdArgs {
    /// The cells to be measured.
    pub(crate) fn cells(&self) -> Vec<Cell> {
        let is_asked = |cell: &Cell| self.only.is_empty() || self.only.contains(&cell.mix);
        let mut cells: Vec<Cell> = if self.scope.full {
            Cell::all().filter(is_asked).collect()
        } else {
            Cell::quick().filter(is_asked).collect()
        };
        if self.budget.is_some() {
            cells.sort_by_key(|cell| scattered(cell.number));
        }
        cells
    }
}

/// A number whose order has nothing to do with that of cells: neighbours are far apart, as with the golden
/// section.
const fn scattered(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b9)
}

fn mix(name: &str) -> Result<Mix, String> {
    Mix::named(name).ok_or_else(|| {
        let names = Mix::ALL.map(Mix::name).join(", ");
        format!("there is no mix called {name}: there are {names}")
    })
}
