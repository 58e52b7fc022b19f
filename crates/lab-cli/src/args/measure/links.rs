//! The arguments of `haulier-lab bench links`.

use std::path::PathBuf;

use haulier_lab::joins::{JoinLink, Joiner};
use haulier_shell::units;

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct LinksArgs {
    /// Bytes of the block (k, M), up to 64M; several are measured one after the other.
    #[arg(
        long,
        value_name = "BYTES,...",
        value_delimiter = ',',
        default_value = "256k,16M",
        value_parser = block_bytes
    )]
    pub(crate) sizes: Vec<u64>,

    /// Joins of each kind over each link.
    #[arg(
        long,
        value_name = "N",
        default_value = "10",
        value_parser = clap::value_parser!(u64).range(1..=10_000)
    )]
    pub(crate) seeds: u64,

    /// Just these: token, ticket, article, tcp_bbr, tcp_cubic.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = joiner)]
    pub(crate) only: Vec<Joiner>,

    /// Just these links.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = link)]
    pub(crate) links: Vec<String>,

    /// Draw the medians into this file: the figure of the README.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Store every join in this file, as JSON.
    #[arg(long, value_name = "FILE.json")]
    pub(crate) out: Option<PathBuf>,
}

const HELP: &str = "\
Cold joins in virtual time, from before the first datagram to the whole block, over seventeen links: the \
ten of `haulier-lab demo --link`, and seven of a second kind:
  lte, evdo  recorded, as in `haulier-lab bench recorded`
  airtime    30 Mbit/s, 25 ms, 1 % loss, and bunches of 8 ms as on Wi-Fi
  policer    20 Mbit/s, 60 ms, behind a bucket of 64 KiB that drops
  ethernet   500 Mbit/s, 1 ms
  roaming    12 Mbit/s, 45 ms, 1 % loss, up to 20 ms of jitter each way, which reorders
  mess       40 Mbit/s, 20 ms, up to 8 ms of jitter each way, which reorders, and 1 % twice
By haulier/1 with a token that says where the client is, and with a ticket; by the article's sender (one \
chunk at most); by models of TCP, with its handshake and without TLS. Nothing computes in virtual time: on \
fast links real sockets take longer.

A cell is the median and the 95th percentile of the time, as multiples of the physical limit: a round \
trip, and the bytes in full datagrams at the link's rate, with lost ones sent again. The tables are \
Markdown. Wire is what the server sent over the block, headers included, at the median link by link; the \
mean is geometric, of the medians.

Exit code 1 if a join of haulier/1 took longer than a minute and five limits.

Examples:
  haulier-lab bench links
  haulier-lab bench links --sizes 16M --only token,tcp_bbr --links ocean,lte
  haulier-lab bench links --svg docs/lab/links.svg";

impl LinksArgs {
    /// The joiners that are measured, each once, in the order of the library.
    pub(crate) fn joiners(&self) -> Vec<Joiner> {
        let is_asked = |joiner: &Joiner| self.only.is_empty() || self.only.contains(joiner);
        Joiner::ALL.into_iter().filter(is_asked).collect()
    }

    /// The links that are measured, each once, in the order of the library.
    pub(crate) fn links(&self) -> Vec<JoinLink> {
        let is_asked = |link: &JoinLink| {
            self.links.is_empty() || self.links.iter().any(|name| name == link.name)
        };
        JoinLink::all().into_iter().filter(is_asked).collect()
    }
}

fn joiner(name: &str) -> Result<Joiner, String> {
    Joiner::named(name).ok_or_else(|| {
        let names = Joiner::ALL.map(Joiner::name).join(", ");
        format!("nobody is called {name}: there are {names}")
    })
}

fn link(name: &str) -> Result<String, String> {
    match JoinLink::named(name) {
        Some(_) => Ok(name.into()),
        None => {
            let names: Vec<&str> = JoinLink::all().iter().map(|link| link.name).collect();
            Err(format!("there is no link called {name}: there are {}", names.join(", ")))
        }
    }
}

pub(super) fn block_bytes(text: &str) -> Result<u64, String> {
    let bytes = units::bytes(text)?;
    match bytes {
        1..=0x0400_0000 => Ok(bytes),
        _ => Err(format!("{text} is no size of a block: from 1 to 64M bytes")),
    }
}
