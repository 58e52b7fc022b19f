//! The command line: the commands with their options, and the help that teaches them.

#[cfg(test)]
#[path = "../../../cli/src/args/book.rs"]
mod book;
#[cfg(feature = "measure")]
mod measure;

#[cfg(feature = "measure")]
pub(crate) use measure::*;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use haulier_shell::look::LookArgs;
use haulier_shell::{Globals, units};

/// Watch haulier's joins, measure them beside others, and look for faults.
#[derive(Debug, Parser)]
#[command(name = "haulier-lab", version, disable_help_flag = true, after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) globals: Globals,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[cfg(feature = "measure")]
const HELP: &str = "\
Start here:
  haulier-lab demo                                one command, no set-up: watch a world cross a bad link
  haulier-lab demo --compare --slow               three senders side by side, in slow motion
  haulier-lab bench links                         joins over seventeen links, beside others
  haulier-lab soak --seconds 60                   look for hangs under every fault there is

Exit codes:
  0    done
  1    a soak or a bench found something wrong
  2    usage: the arguments make no sense
  3    a time-out: a demo's transfer, or one end of a join
  4    verification failed: what arrived is not what was sent
  5    I/O: a file, a disk, a socket
  7    a bench's connections ended before their run, or got nothing
  8    a bench's --budget was over before all was measured
  130  interrupted

Files are moved by the program `haulier`.";

#[cfg(not(feature = "measure"))]
const HELP: &str = "\
This program was built for the demonstration alone. `cargo run --release -- --help` has benches, soaks and \
the playground as well.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send a world over real sockets through an emulated bad link, and watch.
    Demo(DemoArgs),
    /// Run random transfers and a game's packets under random faults in virtual time; all must finish.
    #[cfg(feature = "measure")]
    Soak(SoakArgs),
    /// Measure what a join, a strategy or a packet size costs, beside what it should.
    #[cfg(feature = "measure")]
    Bench(BenchArgs),
    /// Watch senders cross a link that you make, datagram by datagram, in a browser.
    #[cfg(feature = "measure")]
    Playground(PlaygroundArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// The file to send; by default a made-up world of 256 KiB.
    pub(crate) file: Option<PathBuf>,

    /// Show three senders side by side on the same link, each alone: haulier/1, the article's, and a slow
    /// start as TCP does it. They are computed in virtual time and played with the map of their slices; a
    /// pipe gets the numbers. Of a file only the size counts, of up to 1 MiB.
    #[cfg(feature = "measure")]
    #[arg(long, conflicts_with_all = ["wire", "tui", "view", "burst", "no_burst", "timeout"])]
    pub(crate) compare: bool,

    /// As --compare, in slow motion: this many times slower, by default 10.
    #[cfg(feature = "measure")]
    #[arg(
        long,
        value_name = "TIMES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "10",
        conflicts_with_all = ["wire", "tui", "view", "burst", "no_burst", "timeout"],
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub(crate) slow: Option<u32>,

    /// What the two ends speak: `haulier1` is a player who joins a server, with a handshake and encryption;
    /// `article` is a bare run of chunks, with a map of its slices.
    #[arg(long, default_value = "haulier1")]
    pub(crate) wire: Wire,

    /// The link: fiber, cable, wifi, mobile, ocean, bad, awful, bloat, shallow or burst.
    #[arg(long, value_name = "PROFILE", default_value = "mobile", value_parser = profile)]
    pub(crate) link: &'static haulier_sim::Profile,

    /// The link's rate in bits per second, instead of the profile's.
    #[arg(long, value_parser = units::rate)]
    pub(crate) rate: Option<u64>,

    /// The link's round trip in milliseconds, instead of the profile's.
    #[arg(long, value_name = "MS", value_parser = units::millis)]
    pub(crate) rtt: Option<Duration>,

    /// The link's loss each way, as 0.05 or 5%, instead of the profile's.
    #[arg(long, value_parser = units::loss)]
    pub(crate) loss: Option<u64>,

    /// The link's queue in bytes (k, M), instead of the profile's.
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    pub(crate) queue: Option<u64>,

    /// The maximum rate of the sender in bits per second. By default there is no limit for `haulier1`, which
    /// finds out the link's rate; for `article` it is 1M after a burst, and without a burst nine tenths of
    /// the link's rate.
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub(crate) budget: Option<u64>,

    /// With `--wire article`: burst also when the file is larger than a chunk.
    #[arg(long, overrides_with = "no_burst")]
    pub(crate) burst: bool,

    /// With `--wire article`: obey the budget from the first slice on.
    #[arg(long)]
    pub(crate) no_burst: bool,

    /// The seed of the link's faults and of the made-up world.
    #[arg(long, default_value = "1", value_parser = units::seed)]
    pub(crate) seed: u64,

    /// Give up after this many seconds without progress.
    #[arg(long, value_name = "S", default_value = "15", value_parser = units::seconds)]
    pub(crate) timeout: Duration,

    #[command(flatten)]
    pub(crate) look: LookArgs,
}

#[cfg(feature = "measure")]
impl DemoArgs {
    /// Whether senders are shown side by side.
    pub(crate) const fn is_compared(&self) -> bool {
        self.compare || self.slow.is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wire {
    /// The connection of docs/STANDARD-1.md.
    Haulier1,
    /// The wire of the articles, docs/STANDARD.md.
    Article,
}

fn profile(name: &str) -> Result<&'static haulier_sim::Profile, String> {
    haulier_sim::Profile::named(name).ok_or_else(|| {
        let names = haulier_sim::Profile::ALL.map(|profile| profile.name).join(", ");
        format!("there is no link called {name}: there are {names}")
    })
}
