//! The commands that measure: soaks, benches, the playground. A program that was built for the demo alone
//! does not have them.

mod crowd;
mod grid;
mod join;
mod joiners;
mod links;
mod playground;
mod random;
mod recorded;
mod scope;

pub(crate) use crowd::CrowdArgs;
pub(crate) use grid::GridArgs;
pub(crate) use join::{
    CallArgs, EndArgs, JoinArgs, JoinKind, PeerArgs, PeerCommand, PeerCredentials,
};
pub(crate) use joiners::JoinersArgs;
pub(crate) use links::LinksArgs;
pub(crate) use playground::PlaygroundArgs;
pub(crate) use random::{CellName, RandomArgs};
pub(crate) use recorded::RecordedArgs;
pub(crate) use scope::ScopeArgs;

use std::time::Duration;

use clap::{ArgGroup, Subcommand};
use haulier_shell::units;

use crate::soak::Soaked;

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("budget").args(["transfers", "seconds", "scenario"])))]
pub(crate) struct SoakArgs {
    /// What crosses the links: `chunks`, a game's `packets` (on links of up to 99 % loss and 10 s),
    /// `both` on one link, or a whole `connection` with everything it carries, where liars may be behind the
    /// addresses of honest clients, clocks step, and the server's memory and work stay within bounds. Or
    /// `files` from disk to disk over such a connection, where disks and programs fail too.
    #[arg(long, default_value = "both", value_parser = soaked)]
    pub(crate) layers: Soaked,

    /// Stop after this many chunks or files (by default 1000), or a few more: no scenario is cut short. With
    /// packets alone, N is the number of packets (by default 100,000).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) transfers: Option<u64>,

    /// Stop after this many seconds.
    #[arg(long, value_name = "S", value_parser = units::seconds)]
    pub(crate) seconds: Option<Duration>,

    /// The seed that everything is drawn from.
    #[arg(long, default_value = "1", value_parser = units::seed)]
    pub(crate) seed: u64,

    /// Run just this scenario: the line that a failure prints.
    #[arg(long, value_name = "SEED", value_parser = units::seed)]
    pub(crate) scenario: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = join::BENCH_HELP)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) bench: Bench,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// The article's strategy in virtual time, on the links it was measured on before.
    Article {
        /// Runs that each median is taken over. With fewer than the default the medians scatter, and a
        /// row that is off its reference is no failure.
        #[arg(
            long,
            default_value_t = haulier_lab::article_bench::SEEDS,
            value_parser = clap::value_parser!(u64).range(1..)
        )]
        seeds: u64,
    },
    /// 2 to 100 transfers on one link: how fairly they share it, and what that costs its queue.
    Crowd(CrowdArgs),
    /// A block of 256 KiB over up to 2144 links, by haulier/1 and by others, against the physical limit.
    Grid(GridArgs),
    /// Joins over seventeen simulated links, beside the article's sender and TCP: the README's figure.
    Links(LinksArgs),
    /// Links and crowds that nobody chose, drawn from a seed, beside TCP: what is likely, and what is worst.
    Random(RandomArgs),
    /// Long transfers over recorded cellular links: what is used, and how long the queue is.
    Recorded(RecordedArgs),
    /// Joins over real sockets through emulated links, by haulier/1 and by the article's sender.
    Join(JoinArgs),
    /// Thousands who join one server at once, over real sockets.
    Joiners(JoinersArgs),
    /// One end of a join, for emulators outside of this program.
    #[command(hide = true)]
    Peer(PeerArgs),
    /// How many packets of 1 to 256 fragments are lost when a datagram in a hundred is.
    Fragments {
        /// Packets sent a row. By default as many as the outcome needs to be within half a point of the
        /// formula: up to 100,000, some 20 million datagrams in all.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        packets: Option<u64>,

        /// The seed that the losses are drawn from.
        #[arg(long, default_value = "1", value_parser = units::seed)]
        seed: u64,
    },
}

fn soaked(text: &str) -> Result<Soaked, String> {
    Soaked::named(text).ok_or_else(|| {
        format!("{text} is nothing to soak: write chunks, packets, both, connection or files")
    })
}
