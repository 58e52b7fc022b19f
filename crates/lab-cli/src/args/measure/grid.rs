//! The arguments of `haulier-lab bench grid`.

use std::path::PathBuf;

use clap::{ArgGroup, ValueEnum};
use haulier_lab::grid::{Cell, Strategy};
use haulier_shell::units;

use super::ScopeArgs;

/// Seeds of a cell, where nothing else is said.
const QUICK_SEEDS: u64 = 2;
const FULL_SEEDS: u64 = 10;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
#[command(group(ArgGroup::new("scope").args(["quick", "full", "cell"])))]
pub(crate) struct GridArgs {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,

    /// Runs of each cell, instead of 2 or 10.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: Option<u64>,

    /// The links: the 1080 that senders are tuned on, 768 others, 296 odd ones, or all.
    #[arg(long, default_value = "tuned")]
    pub(crate) cells: Cells,

    /// Just these: warm, cold_ticket, cold_token, article, burst_resend, slow_start.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = strategy)]
    pub(crate) only: Vec<Strategy>,

    /// Draw the ratios into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Replay one run in this cell (0 to 2143), and say what happened.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(..i64::from(Cell::ALL)),
        conflicts_with_all = ["seeds", "cells", "tables", "svg", "out"]
    )]
    pub(crate) cell: Option<u32>,

    /// The seed of the run to replay; those measured are 0, 1, 2 and so on. By default 0.
    #[arg(long, value_name = "N", value_parser = units::seed, requires = "cell")]
    pub(crate) seed: Option<u64>,
}

const HELP: &str = "\
One block of 256 KiB crosses a link with one bottleneck, in virtual time, until the client has all of it:
  warm          haulier/1, over a connection that carried 64 KiB and then was quiet for 2 s
  cold_ticket   haulier/1, a join with a secret, from before the first datagram on
  cold_token    haulier/1, a join with a token that says where the client is
  article       the article's sender: a burst, then 1 Mbit/s
  burst_resend  a model: a burst, then exactly what is missing
  slow_start    a model of TCP

The ratio is the time over the physical limit of the link: half a round trip (a whole one for a join), and \
256 slices at the bottleneck's rate, replaced where they are lost; half of what an odd link's jitter or \
bunch can add. 1.00 is perfect.

The quick sample is every seventh cell with 2 seeds; --full has 10. --tables are of haulier/1, or of those \
asked for by --only.

Columns: the ratio that 50, 95 and 99 of 100 runs are not above; the cells whose median is at most 1.10, \
and whose worst run is at most 1.25; the median of the worst cell; slices sent beyond those of the block, \
those that replace lost ones counted; what the bottleneck's full queue dropped; the peak of that queue; \
how long packets waited in it. After 60 s without the block a run hangs; exit code 1 if one of haulier/1 \
or of the article does.

Examples:
  haulier-lab bench grid
  haulier-lab bench grid --full --cells all --only warm,cold_ticket,cold_token --tables
  haulier-lab bench grid --cells odd --only warm,cold_token --tables
  haulier-lab bench grid --only warm --cell 1079 --seed 3";

/// Which links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cells {
    /// 2 to 100 Mbit/s, 20 to 300 ms, up to 30 % loss.
    Tuned,
    /// 3 to 150 Mbit/s, 30 to 250 ms, up to 25 % loss.
    Others,
    /// 296 that reorder, deliver in bunches, or are fast: 250 Mbit/s to 10 Gbit/s.
    Odd,
    /// All of them.
    All,
}

impl GridArgs {
    /// Runs of each cell.
    pub(crate) fn seeds(&self) -> u64 {
        self.seeds.unwrap_or(if self.scope.full { FULL_SEEDS } else { QUICK_SEEDS })
    }

    /// What is to be measured, each once, in the order of the library.
    pub(crate) fn strategies(&self) -> Vec<Strategy> {
        let is_asked = |strategy: &Strategy| self.only.is_empty() || self.only.contains(strategy);
        Strategy::ALL.into_iter().filter(is_asked).collect()
    }

    /// The links to be measured on.
    pub(crate) fn links(&self) -> Vec<Cell> {
        let cells = Cell::tuned().chain(Cell::others()).chain(Cell::odd());
        let is_asked = |cell: &Cell| {
            let is_of_kind = match self.cells {
                Cells::Tuned => cell.number < Cell::TUNED,
                Cells::Others => (Cell::TUNED..Cell::ODD).contains(&cell.number),
                Cells::Odd => cell.number >= Cell::ODD,
                Cells::All => true,
            };
            is_of_kind && (self.scope.full || cell.is_quick())
        };
        cells.filter(is_asked).collect()
    }
}

fn strategy(name: &str) -> Result<Strategy, String> {
    Strategy::named(name).ok_or_else(|| {
        let names = Strategy::ALL.map(Strategy::name).join(", ");
        format!("there is no strategy called {name}: there are {names}")
    })
}
