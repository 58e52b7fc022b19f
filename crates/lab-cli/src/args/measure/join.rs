//! The arguments of `haulier-lab bench join` and `haulier-lab bench peer`.

use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use haulier_shell::units;

use crate::args::Wire;

/// What `haulier-lab bench --help` says besides its list.
pub(super) const BENCH_HELP: &str = "\
`haulier-lab bench peer` is not in the list: it is one end of a join, for an emulator that runs two programs \
with a link between them (docs/lab/haulier.toml is a table for one):
  haulier-lab bench peer serve --bytes 262144                        serves until it is killed
  haulier-lab bench peer fetch --bytes 262144 --credentials token    one join; the last line is its result
  haulier-lab bench peer fetch --bytes 262144 --frame-hz 60          as a game that polls once a frame
  haulier-lab bench peer fetch --bytes 262144 --frame-hz 60 --inline the same, without a network thread
The server is at SERVER_ADDR, the client at CLIENT_ADDR, both from the environment. The keys are in the \
program, for all to read: such a server is for measurements, and protects nothing.";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct JoinArgs {
    /// Bytes of the block (k, M).
    #[arg(long, value_name = "BYTES", default_value = "256k", value_parser = block_bytes)]
    pub(crate) bytes: u64,

    /// Joins of each kind over each link.
    #[arg(
        long,
        value_name = "N",
        default_value = "3",
        value_parser = clap::value_parser!(u64).range(1..=10_000)
    )]
    pub(crate) seeds: u64,

    /// Just these links: fiber, cable, wifi, mobile, ocean, bad, awful, bloat, shallow, burst.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = crate::args::profile)]
    pub(crate) profiles: Vec<&'static haulier_sim::Profile>,

    /// Just these kinds of join.
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    pub(crate) only: Vec<JoinKind>,

    /// A join that takes longer has failed, in seconds.
    #[arg(long, value_name = "S", default_value = "60", value_parser = units::seconds)]
    pub(crate) timeout: Duration,
}

const HELP: &str = "\
Two real sockets, with an emulated link between them; the real clock. A join begins before the client's \
first datagram, and ends when it has the block and has verified it.

  token    haulier/1, with a token that says where the client is
  ticket   haulier/1, with a secret
  article  the article's sender: a burst, then 1 Mbit/s; it sends to whoever sends it a chunk of one byte

L, the physical limit: one round trip, and the block in packets of 1200 bytes at the link's rate, lost \
ones replaced. `sent/N`: bytes that the server put on the link, headers counted, over those of the block. \
A join that failed took forever; exit code 1 if there is one.

What else this machine does shows in the times: on a busy one they are too long.

Examples:
  haulier-lab bench join
  haulier-lab bench join --profiles wifi,mobile --only token,article --seeds 10
  haulier-lab bench join --bytes 16M --profiles fiber --only token";

/// The kinds of join that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum JoinKind {
    /// haulier/1, with a token that says where the client is.
    Token,
    /// haulier/1, with a secret.
    Ticket,
    /// The article's sender.
    Article,
}

impl JoinArgs {
    /// What is to be measured, each once, in the order of the tables.
    pub(crate) fn kinds(&self) -> Vec<JoinKind> {
        let is_asked = |kind: &JoinKind| self.only.is_empty() || self.only.contains(kind);
        JoinKind::value_variants().iter().copied().filter(is_asked).collect()
    }

    /// The links to be measured on, each once, from friendly to hostile.
    pub(crate) fn profiles(&self) -> Vec<&'static haulier_sim::Profile> {
        let is_asked = |profile: &&haulier_sim::Profile| {
            self.profiles.is_empty() || self.profiles.contains(profile)
        };
        haulier_sim::Profile::ALL.iter().filter(is_asked).collect()
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct PeerArgs {
    #[command(subcommand)]
    pub(crate) peer: PeerCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PeerCommand {
    /// Give a block of random bytes to each client, until killed. The first line says that it listens.
    Serve {
        #[command(flatten)]
        end: EndArgs,

        #[command(flatten)]
        calls: CallArgs,
    },
    /// Join once. The last line is the result, as JSON.
    Fetch {
        #[command(flatten)]
        end: EndArgs,

        /// What lets the client in: a token that holds CLIENT_ADDR, or the ticket's secret.
        #[arg(long, default_value = "token")]
        credentials: PeerCredentials,

        /// The join has failed after this many seconds.
        #[arg(long, value_name = "S", default_value = "60", value_parser = units::seconds)]
        timeout: Duration,

        #[command(flatten)]
        calls: CallArgs,
    },
}

/// When an end calls the library. By default it waits for events, and a network thread does the work.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(crate) struct CallArgs {
    /// Call the library N times a second, as a game does once a frame, instead of waiting for events.
    /// haulier/1 only, as --inline.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) frame_hz: Option<u16>,

    /// Without a network thread: datagrams are sent and received only while the library is called.
    #[arg(long)]
    pub(crate) inline: bool,
}

/// What both ends must agree on.
#[derive(Debug, clap::Args)]
pub(crate) struct EndArgs {
    /// The port of the server.
    #[arg(long, default_value = "7777")]
    pub(crate) port: u16,

    /// Bytes of the block (k, M); the client compares them with what it expects.
    #[arg(long, value_name = "BYTES", default_value = "256k", value_parser = block_bytes)]
    pub(crate) bytes: u64,

    /// The connection, or the article's sender, which takes one client at a time.
    #[arg(long, default_value = "haulier1")]
    pub(crate) wire: Wire,
}

/// What lets a client of `bench peer` in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PeerCredentials {
    /// A token that says where the client is.
    Token,
    /// The secret of a ticket.
    Ticket,
}

/// The size of a block; what is smaller than a packet measures nothing but the handshake.
fn block_bytes(text: &str) -> Result<u64, String> {
    let bytes = units::bytes(text).ok().filter(|&bytes| bytes <= 1 << 30);
    bytes.ok_or_else(|| format!("{text} is no size: write bytes from 1200 to 1024M, such as 256k"))
}
