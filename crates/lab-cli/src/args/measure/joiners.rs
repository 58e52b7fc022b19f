//! The arguments of `haulier-lab bench joiners`.

use std::path::PathBuf;
use std::time::Duration;

use haulier_lab::joiners::JoinBy;
use haulier_shell::units;

#[derive(Clone, Debug, clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct JoinersArgs {
    /// Clients that join.
    #[arg(
        long,
        value_name = "N",
        default_value = "1000",
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub(crate) clients: u32,

    /// Bytes of the block that each of them gets (k, M), up to 1024M.
    #[arg(long, value_name = "BYTES", default_value = "256k", value_parser = block_bytes)]
    pub(crate) bytes: u64,

    /// Clients that join at the same time: the next begins when one has its block. By default all.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) at_once: Option<u32>,

    /// Threads of the server, each with its socket.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = clap::value_parser!(u16).range(1..=256)
    )]
    pub(crate) workers: u16,

    /// Connections that the server has at a time; a client without a seat waits in line. By default all.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seats: Option<u32>,

    /// What the server may send in all, in bits per second (M, G). By default there is no limit.
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub(crate) uplink: Option<u64>,

    /// Sockets of the clients, on Linux each at an address of its own (127.0.0.1, 127.0.0.2, ...). By default
    /// 8, and one for each 500 clients that join at once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=250))]
    pub(crate) sockets: Option<u16>,

    /// Give up after this many seconds.
    #[arg(long, value_name = "S", default_value = "300", value_parser = units::seconds)]
    pub(crate) timeout: Duration,

    /// In virtual time: each client behind one of the ten links of `haulier-lab demo --link`, drawn by the
    /// seed, and the server behind --uplink, by default 1G.
    #[arg(long, conflicts_with_all = ["at_once", "sockets", "workers"])]
    pub(crate) simulated: bool,

    /// With --simulated: the server does not know the rate of its uplink.
    #[arg(long, requires = "simulated")]
    pub(crate) unknown_uplink: bool,

    /// The server does not know the rate of its uplink, and finds it out.
    #[arg(long, conflicts_with = "unknown_uplink")]
    pub(crate) find_uplink: bool,

    /// With --simulated: what clients join by: a token that has their address, as a matchmaker gives it, or a
    /// ticket.
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "token",
        value_parser = ["token", "ticket"],
        requires = "simulated"
    )]
    pub(crate) by: String,

    /// With --simulated: the seed of the links and of all else.
    #[arg(long, value_name = "N", default_value = "1", value_parser = units::seed)]
    pub(crate) seed: u64,

    /// With --simulated: draw how many have joined over time, beside what links and uplink allow.
    #[arg(long, value_name = "FILE", requires = "simulated")]
    pub(crate) svg: Option<PathBuf>,

    /// With 10,000 junk and forged datagrams a second, and a tenth as many hostile clients with the key as
    /// others.
    #[arg(long)]
    pub(crate) attack: bool,

    /// Be the server: a line for each that is read, until there are no more.
    #[arg(long, hide = true)]
    pub(crate) serve: bool,
}

const HELP: &str = "\
Clients in one thread, each a machine of its own with its keys, and a server that is another process of \
this program, over loopback. All begin at the same moment; each has joined when it has its block, \
verified, and then closes. Their machines are made before (with --at-once after): players have computers \
of their own. Both ends share this machine, so the clients' work is in the times, but not in the server's \
memory and time.

Before it, one client gets as many bytes as all together, 256 MiB at most, from a server of its own: what \
it takes at that rate is the unit of `all joined`. A wire of 1 is a byte sent, headers counted, for each \
of the blocks. Jain's index is of the clients' rates.

The server has seats for all, unless --seats says how many, and its limits for one address are raised to \
all clients, for they have few: `connections_per_prefix` and `handshakes_per_prefix` of `ServerLimits`. \
Its line takes 1,024 of one address, as ever.

With --simulated, `equal shares` is when each would have its block if all shared the uplink equally, and \
what a slow link cannot take went to the others; `one by one` if who comes first took all that its link \
has. Both are computed, without packets.

Exit code 1 if not all joined.

Examples:
  haulier-lab bench joiners --clients 10000 --bytes 256k
  haulier-lab bench joiners --clients 10000 --seats 24
  haulier-lab bench joiners --clients 1000 --at-once 1          one after the other
  haulier-lab bench joiners --clients 10000 --simulated --uplink 10G
  haulier-lab bench joiners --clients 1000 --attack";

impl JoinersArgs {
    /// The number of the clients' sockets if `at_once` clients join at the same time.
    pub(crate) fn sockets(&self, at_once: usize) -> usize {
        self.sockets.map_or((at_once / 500).clamp(8, 250), usize::from).min(at_once)
    }

    /// What clients join by in virtual time.
    pub(crate) fn by(&self) -> JoinBy {
        if self.by == "token" { JoinBy::Token } else { JoinBy::Ticket }
    }

    /// Hostile clients.
    pub(crate) const fn hostile(&self) -> u32 {
        if self.attack { self.clients.div_ceil(10) } else { 0 }
    }

    /// Junk and forged datagrams a second.
    pub(crate) const fn junk_per_s(&self) -> u32 {
        if self.attack { 10_000 } else { 0 }
    }
}

fn block_bytes(text: &str) -> Result<u64, String> {
    let bytes = units::bytes(text)?;
    match bytes {
        1..=0x4000_0000 => Ok(bytes),
        _ => Err(format!("{text} is no size of a block: from 1 to 1024M bytes")),
    }
}
