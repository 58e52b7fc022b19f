//! The command line: what there is to ask for, and the help that teaches it.

#[cfg(test)]
mod book;
mod crowd;
mod files;
mod grid;
mod haulier1;
mod inspect;
mod join;
mod joiners;
mod lan;
mod links;
mod look;
mod playground;
mod port_mapping;
mod qr;
mod random;
mod recorded;
mod scope;
mod shell;
mod trace;

pub(crate) use crowd::CrowdArgs;
pub(crate) use files::{
    ConnectArgs, FetchArgs, ListenArgs, PackArg, RecvArgs, SendArgs, ServeArgs, UplinkArg,
};
pub(crate) use grid::GridArgs;
pub(crate) use haulier1::{
    FILES_PROTOCOL_ID, IssueArgs, KeyFilesArgs, KeygenArgs, ShowArgs, TokenArgs, TokenCommand,
};
pub(crate) use inspect::{InspectArgs, KINDS, Layer};
pub(crate) use join::{
    CallArgs, EndArgs, JoinArgs, JoinKind, PeerArgs, PeerCommand, PeerCredentials,
};
pub(crate) use joiners::JoinersArgs;
pub(crate) use lan::{AnnounceArgs, LanArgs};
pub(crate) use links::LinksArgs;
pub(crate) use look::LookArgs;
pub(crate) use playground::PlaygroundArgs;
pub(crate) use port_mapping::{MapArgs, MapWhen};
pub(crate) use qr::QrArgs;
pub(crate) use random::{CellName, RandomArgs};
pub(crate) use recorded::RecordedArgs;
pub(crate) use scope::ScopeArgs;
pub(crate) use shell::{CompletionsArgs, ManArgs};
pub(crate) use trace::TraceArgs;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Parser, Subcommand, ValueEnum};

use crate::soak::Soaked;
use crate::units;

/// Large blocks over UDP, quickly and reliably.
#[derive(Debug, Parser)]
#[command(name = "haulier", version, after_help = HELP)]
pub(crate) struct Args {
    /// Print one JSON object a line; the last has "event":"done" or "event":"error". (`inspect HEX`
    /// prints one object a datagram and nothing else.)
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,

    /// Say nothing but errors, and what was asked for: a ticket, a list, a table.
    #[arg(
        short,
        long,
        global = true,
        help_heading = GLOBAL,
        conflicts_with_all = ["json", "verbose"]
    )]
    pub(crate) quiet: bool,

    /// Say on standard error what is decided, too: addresses, keys, sizes, rates, what is resumed or packed.
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub(crate) verbose: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command has is behind what it has for itself.
const GLOBAL: &str = "All commands";

const HELP: &str = "\
Start here:
  haulier demo                                    one command, no set-up: watch a world cross a bad link
  haulier serve world.bin                         on one machine: prints a ticket
  haulier fetch TICKET                            on the other, as often as you like
  haulier recv                                    the other way: wait here, which prints a ticket,
  haulier send world.bin TICKET                   and send from there
  haulier soak --seconds 60                       look for hangs under every fault there is

Exit codes:
  0    done
  1    a soak or a bench found something wrong; `fetch --lan` found no server
  2    usage: the arguments make no sense, or do not fit what the server has
  3    no peer, a peer that refuses or has no such file, a time-out, or a name that does not resolve
  4    verification failed: what arrived is not what was sent
  5    I/O: a file, a disk, a socket
  6    a file with a key, ticket or token that other users can read
  7    a bench's connections ended before their run, or got nothing
  8    a bench's --budget was over before all was measured
  130  interrupted

`serve`, `fetch`, `send` and `recv` encrypt, unless --open: use that on networks you trust.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve files to everybody who has the ticket that this prints, and take files in with --inbox.
    Serve(ServeArgs),
    /// Fetch files from a `haulier serve`, verify them, store them.
    Fetch(FetchArgs),
    /// Make a key: of tickets, of connect tokens, of a server.
    Keygen(KeygenArgs),
    /// Make and look at connect tokens.
    Token(TokenArgs),
    /// Send files to a waiting `haulier recv`, or to a `haulier serve --inbox`.
    Send(SendArgs),
    /// Wait for files that others send, verify them, store them.
    Recv(RecvArgs),
    /// Send a world over real sockets through an emulated bad link, and watch.
    Demo(DemoArgs),
    /// Run random transfers and a game's packets under random faults in virtual time; all must finish.
    Soak(SoakArgs),
    /// Measure what a join, a strategy or a packet size costs, beside what it should.
    Bench(BenchArgs),
    /// Say what a datagram is, field by field, or why it is dropped.
    Inspect(InspectArgs),
    /// Watch senders cross a link that you make, datagram by datagram, in a browser.
    Playground(PlaygroundArgs),
    /// Print what completes commands and options in a shell.
    Completions(CompletionsArgs),
    /// Print a manual page, or write those of all commands.
    Man(ManArgs),
}

impl Command {
    /// Whether standard output carries the file itself, so that nothing else may go there.
    pub(crate) fn prints_data(&self, json: bool) -> bool {
        match self {
            Self::Fetch(args) => args.output.as_os_str() == "-",
            // The ticket, the key, the token.
            Self::Serve(_) => !json,
            Self::Recv(args) => !json || args.output.as_os_str() == "-",
            Self::Keygen(args) => !json || args.output.as_os_str() == "-",
            Self::Token(TokenArgs { token: TokenCommand::Issue(_) }) => !json,
            Self::Completions(_) => !json,
            Self::Man(args) => !json && args.out.is_none(),
            _ => false,
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// The file to send; by default a made-up world of 256 KiB.
    pub(crate) file: Option<PathBuf>,

    /// Show three senders side by side on the same link, each alone: haulier/1, the article's, and a slow
    /// start as TCP does it. They are computed in virtual time and played with the map of their slices; a
    /// pipe gets the numbers. Of a file only the size counts, of up to 1 MiB.
    #[arg(long, conflicts_with_all = ["wire", "tui", "view", "burst", "no_burst", "timeout"])]
    pub(crate) compare: bool,

    /// The same in slow motion: so many times slower, by default 10.
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

    /// The most that the sender may use in bits per second. By default there is no limit for `haulier1`,
    /// which finds out what the link has; for `article` it is 1M after a burst, and without one nine tenths
    /// of the link's rate.
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

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("budget").args(["transfers", "seconds", "scenario"])))]
pub(crate) struct SoakArgs {
    /// What crosses the links: `chunks`, a game's `packets` (on links of up to 99 % loss and 10 s),
    /// `both` on one link, or a whole `connection` with everything it carries, where liars may be behind the
    /// addresses of honest clients, clocks step, and the server's memory and work stay within bounds. Or
    /// `files` from disk to disk over such a connection, where disks and programs fail too.
    #[arg(long, default_value = "both", value_parser = units::soaked)]
    pub(crate) layers: Soaked,

    /// Stop after this many chunks or files (by default 1000), or a few more: no scenario is cut short. Of
    /// packets alone it is so many packets (by default 100,000).
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

fn profile(name: &str) -> Result<&'static haulier_sim::Profile, String> {
    haulier_sim::Profile::named(name).ok_or_else(|| {
        let names = haulier_sim::Profile::ALL.map(|profile| profile.name).join(", ");
        format!("there is no link called {name}: there are {names}")
    })
}
