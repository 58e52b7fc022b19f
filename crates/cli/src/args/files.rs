//! The arguments of the commands that move files: `serve`, `fetch`, `send` and `recv`. The commands that wait
//! for clients share one set of arguments, and those that connect to a server another one.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, ValueEnum, ValueHint};
use haulier::Urgency;
use haulier_files::packing::Packing;
use haulier_shell::look::LookArgs;
use haulier_shell::units;

use super::haulier1::{FilesWireArgs, KeyFilesArgs};
use super::trace::TraceArgs;
use super::{AnnounceArgs, LanArgs, MapArgs, QrArgs};

/// Where a server waits, and which clients are let in: of `serve` and `recv`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Where it waits, and who is let in")]
pub(crate) struct ListenArgs {
    /// The address to wait at.
    ///
    /// With 0.0.0.0 (IPv4) or [::] (IPv6 and IPv4) the ticket holds the addresses that the system would reach
    /// others from, and loopback; with port 0 the system chooses one. By default 0.0.0.0:0, and with --lan
    /// [::]:0 where there is IPv6.
    #[arg(long, value_name = "ADDR", value_parser = haulier_shell::resolve::address)]
    pub(crate) bind: Option<SocketAddr>,

    /// An address to put in the ticket instead of those found, up to 8: a public one, behind a router.
    ///
    /// A connect token has to name one of these, or the one it waits at.
    #[arg(long, value_name = "HOST:PORT", value_parser = haulier_shell::resolve::address)]
    pub(crate) address: Vec<SocketAddr>,

    /// Let everybody in, without encryption: for a network you trust.
    #[arg(long, conflicts_with_all = ["secret_file", "identity_file", "token_key"])]
    pub(crate) open: bool,

    /// The ticket's secret (`haulier keygen --secret`), so that a ticket outlives a restart.
    ///
    /// By default each run has a new one.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,

    /// Write the ticket to this file, which only you may read, instead of standard output: for `fetch
    /// --ticket-file`.
    ///
    /// One of an earlier run is replaced.
    #[arg(long, value_name = "FILE", conflicts_with = "open")]
    pub(crate) ticket_out: Option<PathBuf>,

    /// The server's private key (`haulier keygen --identity`).
    ///
    /// The ticket then holds the public one, and nobody else can stand in for this server.
    #[arg(long, value_name = "FILE")]
    pub(crate) identity_file: Option<PathBuf>,

    /// Let in who has a connect token made with this key (`haulier keygen --token`), and no tickets unless
    /// there is a --secret-file.
    ///
    /// Several while keys are changed.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_key: Vec<PathBuf>,

    /// Let in who has a token that was issued before this start, too: for a server that is started for
    /// clients with tokens.
    ///
    /// After a restart each token may then be used once more.
    #[arg(long, requires = "token_key", hide_short_help = true)]
    pub(crate) earlier_tokens: bool,

    /// Clients at a time; any further client waits in line, and learns its place.
    ///
    /// By default one for each 64 KiB of --max-memory.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=10_000_000),
        hide_short_help = true
    )]
    pub(crate) max_clients: Option<u32>,

    /// Memory that clients may make the server hold, from 1M on.
    ///
    /// Above it the client that holds the most is closed.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1G",
        value_parser = units::memory,
        hide_short_help = true
    )]
    pub(crate) max_memory: u64,

    /// Threads at work for the clients, each with a socket at the same address and its part of them.
    ///
    /// By default as many as there are cores, and at most 8. More than one on Linux only.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=256),
        hide_short_help = true
    )]
    pub(crate) workers: Option<u16>,

    #[command(flatten)]
    pub(crate) announce: AnnounceArgs,

    #[command(flatten)]
    pub(crate) map: MapArgs,

    #[command(flatten)]
    pub(crate) qr: QrArgs,

    #[command(flatten)]
    pub(crate) key_files: KeyFilesArgs,

    #[command(flatten)]
    pub(crate) wire: FilesWireArgs,

    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

/// How to get to a server and be let in, beside what says where it is: of `fetch` and `send`.
#[derive(Debug, clap::Args)]
#[command(
    next_help_heading = "The way to the server, and what lets you in",
    group(ArgGroup::new("access").args(["open", "secret_file", "token_file"]))
)]
pub(crate) struct ConnectArgs {
    /// Give up after this many seconds without an answer, or without progress (then after at least 1).
    ///
    /// By default 10 for the first answer, and 60 in the middle of a file: a link may be away for a while.
    #[arg(long, value_name = "S", value_parser = units::seconds)]
    pub(crate) timeout: Option<Duration>,

    /// How many seconds to wait in line while the server has as many clients as it takes; 0 is not at all.
    #[arg(
        long,
        value_name = "S",
        default_value = "600",
        value_parser = units::seconds_or_none,
        hide_short_help = true
    )]
    pub(crate) max_wait: Duration,

    /// Copies of the request to send at once.
    ///
    /// Each lets the server answer with 3 datagrams more in the first round trip.
    #[arg(
        long,
        value_name = "N",
        default_value = "3",
        value_parser = clap::value_parser!(u8).range(1..=10),
        hide_short_help = true
    )]
    pub(crate) copies: u8,

    /// Read the ticket or token from this file: the arguments of a program are for all to see.
    #[arg(long, value_name = "FILE")]
    pub(crate) ticket_file: Option<PathBuf>,

    /// With an ADDR: the server takes everybody, without encryption.
    #[arg(long)]
    pub(crate) open: bool,

    /// With an ADDR: the secret that the server has, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,

    /// With an ADDR: the connect token.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// With --secret-file: the public key that the server must prove to have the private one of.
    #[arg(long, value_name = "FILE", requires = "secret_file", hide_short_help = true)]
    pub(crate) identity_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) lan: LanArgs,

    #[command(flatten)]
    pub(crate) key_files: KeyFilesArgs,

    #[command(flatten)]
    pub(crate) wire: FilesWireArgs,

    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

/// The time for the first answer, unless --timeout says another: a server that is there gives it in less.
const ANSWER: Duration = Duration::from_secs(10);

/// The time without progress, unless --timeout says another: a router that is restarted, a tunnel, a lift.
const PATIENCE: Duration = Duration::from_secs(60);

/// The shortest silence that ends a connection, by the wire.
const MIN_IDLE: Duration = Duration::from_secs(1);

impl ConnectArgs {
    /// How long the first answer may take.
    pub(crate) fn answer(&self) -> Duration {
        self.timeout.unwrap_or(ANSWER)
    }

    /// The time without progress after which a transfer ends.
    pub(crate) fn patience(&self) -> Duration {
        self.timeout.unwrap_or(PATIENCE).max(MIN_IDLE)
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = SERVE_SHORT, after_long_help = SERVE_HELP)]
pub(crate) struct ServeArgs {
    /// The files to serve, and directories with all that is in them.
    ///
    /// They are read from the disk as they are sent. A pipe, or `-` for standard input, goes to the first
    /// client that asks.
    #[arg(required_unless_present = "inbox", value_name = "FILE|DIR")]
    pub(crate) files: Vec<PathBuf>,

    /// The name that clients see, if it is one file or pipe: by default its own, and "stdin" of a pipe.
    #[arg(long, requires = "files", hide_short_help = true)]
    pub(crate) name: Option<String>,

    /// Hash the files anew, and trust no BLAKE3 that was kept of them.
    ///
    /// By default one is trusted while size, times and inode of the file are those that it had, which shows
    /// all but what a disk damages by itself.
    #[arg(long, requires = "files", hide_short_help = true)]
    pub(crate) checksum: bool,

    /// Let clients send files into this directory (`haulier send`).
    ///
    /// With files to serve there are two tickets, one to fetch and one to send; a client with a connect
    /// token, or of --open, may do both. Files that are there are kept.
    #[arg(long, value_name = "DIR", requires = "most", help_heading = "Inbox")]
    pub(crate) inbox: Option<PathBuf>,

    /// How much the inbox may hold, with what is in it: 500M, 2G.
    ///
    /// Unfinished files count. What is over is refused before a byte of it comes.
    #[arg(long, value_name = "SIZE", requires = "inbox", value_parser = units::size, help_heading = "Inbox")]
    pub(crate) most: Option<u64>,

    /// How much each client may send while this runs: by the client id of a token, otherwise by its address
    /// (/64 of IPv6).
    ///
    /// By default all of --most.
    #[arg(
        long,
        value_name = "SIZE",
        requires = "inbox",
        value_parser = units::size,
        help_heading = "Inbox",
        hide_short_help = true
    )]
    pub(crate) most_each: Option<u64>,

    /// The secret of the ticket to send, as --secret-file is of the one to fetch.
    ///
    /// By default each run has a new one.
    #[arg(
        long,
        value_name = "FILE",
        requires_all = ["inbox", "files"],
        conflicts_with = "open",
        help_heading = "Inbox",
        hide_short_help = true
    )]
    pub(crate) send_secret_file: Option<PathBuf>,

    /// Write the ticket to send to this file, as --ticket-out does with the one to fetch.
    #[arg(
        long,
        value_name = "FILE",
        requires_all = ["inbox", "files"],
        conflicts_with = "open",
        help_heading = "Inbox",
        hide_short_help = true
    )]
    pub(crate) send_ticket_out: Option<PathBuf>,

    /// Let clients overwrite files in the inbox, and take from the old one what is the same.
    #[arg(long, requires = "inbox", help_heading = "Inbox")]
    pub(crate) force: bool,

    /// Do not keep the mode of a client's file, and when it was changed: by the mode it is no more open than
    /// at its client, nor in any case than the umask says, or the file that it replaces.
    #[arg(long, requires = "inbox", help_heading = "Inbox", hide_short_help = true)]
    pub(crate) no_attributes: bool,

    /// End after the first client that has a file, or has sent its files, and said so.
    #[arg(long)]
    pub(crate) once: bool,

    /// The maximum rate to each client in bits per second, headers included.
    ///
    /// Without it there is no limit: the rate of the link is found out. A token may set one, too.
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub(crate) rate: Option<u64>,

    /// The maximum rate to all clients together in bits per second: that of this host's own uplink, or the
    /// share of it that may be used.
    ///
    /// Clients take turns, the one with the least left first. With `auto` a crowd of 16 and more finds it
    /// out; by default there is no limit.
    #[arg(long, value_name = "RATE|auto", value_parser = uplink, hide_short_help = true)]
    pub(crate) uplink: Option<UplinkArg>,

    /// Whether to pack (zstd) the files: a file whose samples shrink by a tenth, if the client's link is
    /// slower than packing; never; or always.
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_short_help = true)]
    pub(crate) pack: PackArg,

    /// What a file may do to the link of its client.
    #[arg(long, value_name = "URGENCY", default_value = "load-screen", hide_short_help = true)]
    pub(crate) urgency: UrgencyArg,

    // A heading holds for what follows: so these are the last.
    #[command(flatten)]
    pub(crate) listen: ListenArgs,

    #[command(flatten)]
    pub(crate) look: LookArgs,
}

/// When files are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PackArg {
    /// Where it saves time.
    Auto,
    /// Send files as they are.
    Never,
    /// Pack all that can be packed, however fast the link is: to save bytes.
    Always,
}

impl From<PackArg> for Packing {
    fn from(when: PackArg) -> Self {
        match when {
            PackArg::Auto => Self::Auto,
            PackArg::Never => Self::Never,
            PackArg::Always => Self::Always,
        }
    }
}

/// How much of the link files may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UrgencyArg {
    /// Fill the link: when the client waits for the file and for nothing else.
    LoadScreen,
    /// Stay behind everything else on the link: when somebody plays or talks over it meanwhile.
    DuringPlay,
}

impl From<UrgencyArg> for Urgency {
    fn from(urgency: UrgencyArg) -> Self {
        match urgency {
            UrgencyArg::LoadScreen => Self::LoadScreen,
            UrgencyArg::DuringPlay => Self::DuringPlay,
        }
    }
}

const SERVE_SHORT: &str = "\
Examples:
  haulier serve world.bin                     one file; the ticket lasts as long as the run
  haulier serve maps/ --lan=kitchen --open    for everybody on a network you trust
  haulier serve --inbox replays/ --most 2G    takes files in";

const SERVE_HELP: &str = "\
The ticket is the one line on standard output, and \"ticket\" with --json. It is made to be handed over, \
and it is a secret: who has it may fetch, or send if there is nothing but an inbox. With both there are two \
lines, `fetch TICKET` and `send TICKET`, and \"send_ticket\": neither ticket lets in for what the other is \
for. Files with keys must be readable by you alone (chmod 600).

Examples:
  haulier serve world.bin                               one file; the ticket lasts as long as the run
  haulier serve maps/*.bin --bind 0.0.0.0:4016 --urgency during-play
  haulier serve world.bin --once | ssh host 'haulier fetch -'
  tar c maps | haulier serve - --name maps.tar          a pipe: for the first client that asks
  haulier serve world.bin --token-key match.key         for a matchmaker's tokens
  haulier serve maps/ --lan=kitchen --open              for everybody on a network you trust
  haulier serve world.bin --qr                          the ticket for a camera, too
  haulier serve world.bin --map-port                    for others than those behind your router
  haulier serve --inbox replays/ --most 2G --most-each 100M";

#[derive(Debug, clap::Args)]
#[command(after_help = FETCH_SHORT, after_long_help = FETCH_HELP)]
pub(crate) struct FetchArgs {
    /// The ticket, a connect token, or the server's HOST:PORT; `-` reads one of them from standard input.
    ///
    /// Left out with --ticket-file or HAULIER_TICKET.
    #[arg(value_name = "TICKET|ADDR")]
    pub(crate) source: Option<String>,

    /// The file or directory to fetch, by its path there. Left out: all there is.
    pub(crate) name: Option<String>,

    /// Where to store it; in a directory each file keeps its path, `-` is standard output.
    ///
    /// A directory is made if it is not there: for several files, and for a name with a `/` at its end. In
    /// one that has other files several get a directory of their own. A file appears under its name only when
    /// it is verified. What an earlier fetch has stored is not fetched, nor what came before it was
    /// interrupted.
    #[arg(short, long, value_name = "FILE", default_value = ".")]
    pub(crate) output: PathBuf,

    /// Say which files there are, and fetch none.
    #[arg(long, conflicts_with_all = ["name", "output", "force", "only", "no_attributes"])]
    pub(crate) list: bool,

    /// Overwrite existing files that differ, and take from them what is the same: nothing that is here is
    /// fetched.
    ///
    /// The server hears which of its files are here.
    #[arg(long)]
    pub(crate) force: bool,

    /// Do not keep a file's mode, and when it was changed: by the mode it is no more open than where it comes
    /// from, nor in any case than the umask says, or the file that it replaces.
    #[arg(long, hide_short_help = true)]
    pub(crate) no_attributes: bool,

    /// Fetch only files whose path is like this, such as `maps/*.bin` or `**/*.map`.
    ///
    /// Several add up.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Vec<String>,

    /// Whether the server may pack what it sends: with `never` it may not; else it chooses.
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_short_help = true)]
    pub(crate) pack: PackArg,

    #[command(flatten)]
    pub(crate) connect: ConnectArgs,

    #[command(flatten)]
    pub(crate) look: LookArgs,
}

const FETCH_SHORT: &str = "\
Examples:
  haulier fetch haulier1:AaB...               the file of the ticket, into this directory
  haulier fetch haulier1:AaB... world.bin -o maps/
  haulier fetch --lan                         which servers are on this network";

const FETCH_HELP: &str = "\
Examples:
  haulier fetch haulier1:AaB...                      the file of the ticket, into this directory
  haulier fetch haulier1:AaB... --list               which files there are
  haulier fetch haulier1:AaB... world.bin -o maps/
  HAULIER_TICKET=haulier1:AaB... haulier fetch       the arguments do not show the secret
  haulier fetch --ticket-file ticket -o - | tar x
  haulier fetch 192.0.2.7:4016 --open                from a server that takes everybody
  haulier fetch 192.0.2.7:4016 --token-file token
  haulier fetch --lan                                which servers are on this network
  haulier fetch --lan=kitchen --open                 all that one of them has
  haulier fetch --lan=kitchen --ticket-file ticket   from there only if it is the ticket's server";

#[derive(Debug, clap::Args)]
#[command(after_help = SEND_SHORT, after_long_help = SEND_HELP)]
pub(crate) struct SendArgs {
    /// The files and directories to send, and last the ticket that `recv` or `serve --inbox` printed, a
    /// connect token, or HOST:PORT.
    ///
    /// `-` is standard input, of any length. The ticket is left out with --ticket-file or HAULIER_TICKET.
    #[arg(required = true, value_name = "FILE|DIR... TICKET|ADDR", value_hint = ValueHint::AnyPath)]
    pub(crate) what: Vec<String>,

    /// The name to send it under, if it is one: by default its own, and "stdin" of a pipe.
    #[arg(long, hide_short_help = true)]
    pub(crate) name: Option<String>,

    /// Hash the files anew, and trust no BLAKE3 that was kept of them.
    ///
    /// By default one is trusted while size, times and inode of the file are those that it had, which shows
    /// all but what a disk damages by itself.
    #[arg(long, hide_short_help = true)]
    pub(crate) checksum: bool,

    /// The most to send in bits per second, headers included.
    ///
    /// Without it there is no limit: what the link has is found out.
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub(crate) rate: Option<u64>,

    /// What a file may do to the link.
    #[arg(long, value_name = "URGENCY", default_value = "load-screen", hide_short_help = true)]
    pub(crate) urgency: UrgencyArg,

    #[command(flatten)]
    pub(crate) connect: ConnectArgs,

    #[command(flatten)]
    pub(crate) look: LookArgs,
}

const SEND_SHORT: &str = "\
Examples:
  haulier send replay.bin haulier1:AaB...
  haulier send maps/ mods/ haulier1:AaB...    directories, with all that is in them";

const SEND_HELP: &str = "\
What is there already is not sent: a file of the same name and content, what came of it before a `send` \
was interrupted, or, if the other end may overwrite (--force there), what the older version there has. \
Said again, the same command goes on where it was.

Examples:
  haulier send replay.bin haulier1:AaB...
  haulier send maps/ mods/ haulier1:AaB...           directories, with all that is in them
  tar c maps | haulier send - haulier1:AaB... --name maps.tar
  HAULIER_TICKET=haulier1:AaB... haulier send world.bin
  haulier send world.bin 192.0.2.7:4016 --open       to a `recv --open`
  haulier send world.bin --lan=kitchen --open        to a `recv --open --lan=kitchen`";

#[derive(Debug, clap::Args)]
#[command(after_help = RECV_SHORT, after_long_help = RECV_HELP)]
pub(crate) struct RecvArgs {
    /// Where to store what comes; in a directory each file keeps its path, `-` is standard output.
    ///
    /// A directory is made if it is not there and its name has a `/` at its end. A file appears under its
    /// name only when it is verified.
    #[arg(short, long, value_name = "FILE", default_value = ".")]
    pub(crate) output: PathBuf,

    /// Overwrite existing files that differ, and take from them what is the same.
    #[arg(long)]
    pub(crate) force: bool,

    /// Do not keep a file's mode, and when it was changed: by the mode it is no more open than where it comes
    /// from, nor in any case than the umask says, or the file that it replaces.
    #[arg(long, hide_short_help = true)]
    pub(crate) no_attributes: bool,

    /// Go on after the first sender, until interrupted, and take from several at once.
    #[arg(long)]
    pub(crate) stay: bool,

    /// How much the directory may hold, with what is in it: 500M, 2G.
    ///
    /// By default what the disk has.
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub(crate) most: Option<u64>,

    /// Give up after this many seconds without a sender.
    ///
    /// By default one is waited for without end.
    #[arg(long, value_name = "S", value_parser = units::seconds)]
    pub(crate) timeout: Option<Duration>,

    #[command(flatten)]
    pub(crate) listen: ListenArgs,

    #[command(flatten)]
    pub(crate) look: LookArgs,
}

const RECV_SHORT: &str = "\
Examples:
  haulier recv                                into this directory, from one sender
  haulier recv -o inbox/ --stay --most 2G     from all who come";

const RECV_HELP: &str = "\
The ticket is the one line on standard output, and \"ticket\" with --json; on standard error with `-o -`. \
It is made to be handed to who sends, and it is a secret: who has it may send. A sender that vanishes is \
waited for, with what came of its files: it goes on with the same ticket.

Examples:
  haulier recv                                       into this directory, from one sender
  haulier recv -o world.bin --bind 0.0.0.0:4016
  haulier recv -o inbox/ --stay --most 2G            from all who come
  haulier recv -o - | tar x";

/// What a server knows of its uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UplinkArg {
    /// Bits per second.
    Rate(u64),
    /// A crowd finds it out.
    Auto,
}

fn uplink(text: &str) -> Result<UplinkArg, String> {
    match text {
        "auto" => Ok(UplinkArg::Auto),
        _ => units::rate(text).map(UplinkArg::Rate),
    }
}
