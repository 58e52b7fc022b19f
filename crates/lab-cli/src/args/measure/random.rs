//! The arguments of `haulier-lab bench random`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;
use haulier_lab::random::RandomCrowd;
use haulier_lab::rush::{Sender, Servers};
use haulier_shell::units;

/// Links or crowds of a run at most.
const MAX_CELLS: i64 = 100_000;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct RandomArgs {
    /// The seed that the cells are drawn from.
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::seed)]
    pub(crate) seed: u64,

    /// How many links, and how many crowds.
    #[arg(long, value_name = "K", default_value = "20", value_parser = count())]
    pub(crate) cells: u32,

    /// How many links, if not as many as --cells.
    #[arg(long, value_name = "K", value_parser = count())]
    links: Option<u32>,

    /// How many crowds, if not as many as --cells.
    #[arg(long, value_name = "K", value_parser = count())]
    crowds: Option<u32>,

    /// Bytes of the block over links (k, M), up to 64M; several are measured one after the other.
    #[arg(
        long,
        value_name = "BYTES,...",
        value_delimiter = ',',
        default_value = "256k,4M",
        value_parser = super::links::block_bytes
    )]
    pub(crate) sizes: Vec<u64>,

    /// A server for the whole crowd, which knows of it, or one for each join.
    #[arg(long, value_enum, default_value_t)]
    servers: ServersArg,

    /// Just these: token, ticket, tcp_bbr, tcp_cubic; without it all of them.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = sender)]
    senders: Vec<Sender>,

    /// These crowds in place of drawn cells, each at once, Mbit/s:ms:KiB:joins:bytes, as
    /// 10:50:64:10:1048576.
    #[arg(
        long,
        value_name = "CROWD,...",
        value_delimiter = ',',
        conflicts_with_all = ["cells", "links", "crowds", "only"]
    )]
    pub(crate) crowds_of: Vec<RandomCrowd>,

    /// Replay one cell, link:N or crowd:N.
    #[arg(long, value_name = "CELL", conflicts_with_all = ["cells", "links", "crowds"])]
    pub(crate) only: Option<CellName>,

    /// Store the summaries and every cell in this file, as JSON.
    #[arg(long, value_name = "FILE.json")]
    pub(crate) out: Option<PathBuf>,
}

/// How many servers there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ServersArg {
    #[default]
    One,
    Each,
}

/// One of the cells of a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CellName {
    Link(u32),
    Crowd(u32),
}

impl FromStr for CellName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cell = text.split_once(':').and_then(|(kind, number)| {
            let number = number.parse().ok().filter(|&number| i64::from(number) < MAX_CELLS)?;
            match kind {
                "link" => Some(Self::Link(number)),
                "crowd" => Some(Self::Crowd(number)),
                _ => None,
            }
        });
        cell.ok_or_else(|| format!("{text} is no cell: link:N or crowd:N, as crowd:7"))
    }
}

const HELP: &str = "\
Links and crowds that nobody chose, in virtual time: drawn from the seed as the lab's scripts \
`random_links.py` and `random_crowds.py` draw them, the same cells for the same seed. A seed of the day \
cannot be tuned to.
  links   one join over 1 to 400 Mbit/s, 2 to 400 ms, a queue of 0.15 to 6 bandwidth-delay products, and up \
to three of: loss, bursts of it, jitter, reordering, bunches, a rate in steps, CoDel, a thin way up, lost \
acks, duplicates
  crowds  2 to 40 joins on one bottleneck of 3 to 80 Mbit/s, 8 to 200 ms, a queue of 0.4 to 4 \
bandwidth-delay products, three in ten with CoDel, at once or begun within 1 or 4 s; all clients at one \
address
By haulier/1 with a token and with a ticket, and by models of TCP BBR and CUBIC, with the handshake of TCP \
and without TLS; each alone in the same cell. There is no model of QUIC.

Columns of links: on which part a sender is first, or within a twentieth of the first; its time over the \
physical limit, at the median and where a tenth and a twentieth of the links have more; joins without a \
block after a minute. Of crowds: what the bottleneck dropped, at the median, where a tenth has more and at \
the worst; of this the part that was sent before a join's first feedback; when the last was done and the \
mean join, over CUBIC's in the same cell, at the median and the worst; Jain's index of the mean rates, at \
the median and the worst; crowds that are not done after 90 s.

With --json, a line for each cell (with --verbose in the text, too), and what replays it alone.

Exit code 1 if a join of haulier/1 got no block in time.

Examples:
  haulier-lab bench random --seed 20261125 --cells 100
  haulier-lab bench random --seed 7 --links 0 --crowds 40 --servers each
  haulier-lab bench random --seed 7 --only crowd:7
  haulier-lab bench random --crowds-of 10:50:64:10:1048576,5:60:64:50:262144";

impl RandomArgs {
    /// The senders that are measured, each once, in the order of the library.
    pub(crate) fn senders(&self) -> Vec<Sender> {
        let is_asked = |sender: &Sender| self.senders.is_empty() || self.senders.contains(sender);
        Sender::ALL.into_iter().filter(is_asked).collect()
    }

    pub(crate) const fn servers(&self) -> Servers {
        match self.servers {
            ServersArg::One => Servers::One,
            ServersArg::Each => Servers::Each,
        }
    }

    /// As on the command line.
    pub(crate) const fn servers_name(&self) -> &'static str {
        match self.servers {
            ServersArg::One => "one",
            ServersArg::Each => "each",
        }
    }

    /// How many links are drawn.
    pub(crate) fn links(&self) -> u32 {
        match self.only {
            Some(CellName::Link(number)) => number + 1,
            Some(CellName::Crowd(_)) => 0,
            None if !self.crowds_of.is_empty() => 0,
            None => self.links.unwrap_or(self.cells),
        }
    }

    /// How many crowds are drawn.
    pub(crate) fn crowds(&self) -> u32 {
        match self.only {
            Some(CellName::Crowd(number)) => number + 1,
            Some(CellName::Link(_)) => 0,
            None => self.crowds.unwrap_or(self.cells),
        }
    }
}

fn count() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(0..=MAX_CELLS)
}

fn sender(name: &str) -> Result<Sender, String> {
    Sender::named(name).ok_or_else(|| {
        let names = Sender::ALL.map(Sender::name).join(", ");
        format!("nobody is called {name}: there are {names}")
    })
}
