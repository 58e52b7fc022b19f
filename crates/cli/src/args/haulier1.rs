//! The arguments of what speaks haulier/1: `serve`, `fetch`, `keygen` and `token`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Subcommand, ValueEnum};
use haulier::Urgency;

use crate::units;

/// The application's number of `serve` and `fetch`, which both must know: "haulfile".
pub(crate) const FILES_PROTOCOL_ID: u64 = 0x6861_756c_6669_6c65;

#[derive(Debug, clap::Args)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct ServeArgs {
    /// The files to serve, and directories with all that is in them. They are read from the disk as they are
    /// sent. A pipe, or `-` for standard input, goes to the first client that asks.
    #[arg(required = true, value_name = "FILE|DIR")]
    pub(crate) files: Vec<PathBuf>,

    /// The address to wait at. With 0.0.0.0 or [::] the ticket holds the address that the system would
    /// reach others from, and loopback; with port 0 the system chooses one.
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:0", value_parser = units::address)]
    pub(crate) bind: SocketAddr,

    /// An address to put in the ticket instead of those found, up to 8: a public one, behind a router. A
    /// connect token has to name one of these, or the one it waits at.
    #[arg(long, value_name = "HOST:PORT", value_parser = units::address)]
    pub(crate) address: Vec<SocketAddr>,

    /// Let everybody in, without encryption: for a network you trust.
    #[arg(long, conflicts_with_all = ["secret_file", "identity_file", "token_key"])]
    pub(crate) open: bool,

    /// The ticket's secret (`haulier keygen --secret`), so that a ticket outlives a restart. By default
    /// each run has a new one.
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,

    /// The server's private key (`haulier keygen --identity`). The ticket then holds the public one, and
    /// nobody else can stand in for this server.
    #[arg(long, value_name = "FILE")]
    pub(crate) identity_file: Option<PathBuf>,

    /// Let in who has a connect token made with this key (`haulier keygen --token`), and no tickets unless
    /// there is a --secret-file. Several while keys are changed.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_key: Vec<PathBuf>,

    /// Let in who has a token that was issued before this start, too: for a server that is started for
    /// clients with tokens. After a restart each token may then be used once more.
    #[arg(long, requires = "token_key")]
    pub(crate) earlier_tokens: bool,

    /// Clients at a time; one more is told that the server is full.
    #[arg(
        long,
        value_name = "N",
        default_value = "1024",
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub(crate) max_clients: u16,

    /// End after the first client that has a file and said so.
    #[arg(long)]
    pub(crate) once: bool,

    /// The most that each client is sent in bits per second, headers included. Without it there is no limit:
    /// what the link has is found out. A token may set one, too.
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub(crate) rate: Option<u64>,

    /// The most that all clients together are sent in bits per second: what this host's own uplink has, or
    /// may be used of it. They take turns.
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub(crate) uplink: Option<u64>,

    /// What a file may do to the link of its client.
    #[arg(long, value_name = "URGENCY", default_value = "load-screen")]
    pub(crate) urgency: UrgencyArg,

    #[command(flatten)]
    pub(crate) key_files: KeyFilesArgs,

    #[command(flatten)]
    pub(crate) wire: FilesWireArgs,
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

const SERVE_HELP: &str = "\
The ticket is the one line on standard output, and \"ticket\" with --json. It is made to be handed over, and
it is a secret: who has it may fetch. Files with keys must be readable by you alone (chmod 600).

Examples:
  haulier serve world.bin                               one file; the ticket lasts as long as the run
  haulier serve maps/*.bin --bind 0.0.0.0:4016 --urgency during-play
  haulier serve world.bin --once | ssh host 'haulier fetch -'
  haulier serve world.bin --token-key match.key         for a matchmaker's tokens";

/// How files that hold secrets are read.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct KeyFilesArgs {
    /// Take key, ticket and token files that other users can read: for mounts on which modes cannot be set.
    #[arg(long)]
    pub(crate) allow_exposed_keys: bool,
}

/// What both ends must agree on.
#[derive(Debug, clap::Args)]
pub(crate) struct FilesWireArgs {
    /// The number of the application, never sent; both ends must have the same. Tickets and tokens hold it.
    #[arg(
        long,
        value_name = "ID",
        default_value = "0x6861756c66696c65",
        value_parser = units::wide_id
    )]
    pub(crate) protocol_id: u64,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = FETCH_HELP,
    group(ArgGroup::new("access").args(["open", "secret_file", "token_file"]))
)]
pub(crate) struct FetchArgs {
    /// The ticket, a connect token, or the server's HOST:PORT; `-` reads one of them from standard input.
    /// Left out with --ticket-file or HAULIER_TICKET.
    #[arg(value_name = "TICKET|ADDR")]
    pub(crate) source: Option<String>,

    /// The file or directory to fetch, by its path there. Left out: all there is.
    pub(crate) name: Option<String>,

    /// Where to store it; in a directory each file keeps its path, `-` is standard output. A file appears
    /// under its name only when it is verified. What is here already is not fetched: all of it, what came
    /// before an earlier fetch was interrupted, or, with --force, what an older version has.
    #[arg(short, long, value_name = "FILE", default_value = ".")]
    pub(crate) output: PathBuf,

    /// Say which files there are, and fetch none.
    #[arg(long, conflicts_with_all = ["name", "output", "force", "only"])]
    pub(crate) list: bool,

    /// Overwrite existing files that differ, and take from them what is the same.
    #[arg(long)]
    pub(crate) force: bool,

    /// Fetch only files whose path is like this, such as `maps/*.bin` or `**/*.map`. Several add up.
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Vec<String>,

    /// Give up after this many seconds without an answer, or without progress (then after at least 1). By
    /// default 10 for the first answer, and 60 in the middle of a file: a link may be away for a while.
    #[arg(long, value_name = "S", value_parser = units::seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Copies of the request to send at once. Each lets the server answer with 3 datagrams more in the
    /// first round trip.
    #[arg(
        long,
        value_name = "N",
        default_value = "3",
        value_parser = clap::value_parser!(u8).range(1..=10)
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
    #[arg(long, value_name = "FILE", requires = "secret_file")]
    pub(crate) identity_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) key_files: KeyFilesArgs,

    #[command(flatten)]
    pub(crate) wire: FilesWireArgs,
}

const FETCH_HELP: &str = "\
Examples:
  haulier fetch haulier1:AaB...                      the file of the ticket, into this directory
  haulier fetch haulier1:AaB... --list               which files there are
  haulier fetch haulier1:AaB... world.bin -o maps/
  HAULIER_TICKET=haulier1:AaB... haulier fetch       the arguments do not show the secret
  haulier fetch --ticket-file ticket -o - | tar x
  haulier fetch 192.0.2.7:4016 --open                from a server that takes everybody
  haulier fetch 192.0.2.7:4016 --token-file token";

#[derive(Debug, clap::Args)]
#[command(
    after_help = KEYGEN_HELP,
    group(ArgGroup::new("kind").args(["secret", "token", "identity"]))
)]
pub(crate) struct KeygenArgs {
    /// A new file for the key, which only you may read; `-` is standard output, and not with --json.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// The secret of tickets: for `serve --secret-file`. The default.
    #[arg(long)]
    pub(crate) secret: bool,

    /// A key to make connect tokens with: for `token issue` and `serve --token-key`.
    #[arg(long)]
    pub(crate) token: bool,

    /// A server's private key: for `serve --identity-file`. The public one is told, too.
    #[arg(long)]
    pub(crate) identity: bool,
}

const KEYGEN_HELP: &str = "\
A key stays where it is made, and on the servers that use it. It is printed only with `-o -`. What is made
to be handed over, a ticket or a token, is printed by `serve` and `token issue`.

Examples:
  haulier keygen --secret -o ticket.secret
  haulier keygen --token -o match.key
  haulier keygen --identity -o server.identity";

#[derive(Debug, clap::Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) token: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a connect token for one client, as a matchmaker does.
    Issue(IssueArgs),
    /// Say what a connect token holds, without its secrets.
    Show(ShowArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = ISSUE_HELP)]
pub(crate) struct IssueArgs {
    /// The key that the servers have, too (`haulier keygen --token`).
    #[arg(long, value_name = "FILE")]
    pub(crate) token_key: PathBuf,

    /// Who the client is to the application: a number of 64 bits.
    #[arg(long, value_name = "N", value_parser = units::wide_id)]
    pub(crate) client_id: u64,

    /// The server that the token is for.
    #[arg(long, value_name = "ADDR", value_parser = units::address)]
    pub(crate) server: Vec<SocketAddr>,

    /// Each --server, up to 8, lets the client in once; or every server with the key, if none is named.
    #[arg(long)]
    pub(crate) once_at_each: bool,

    /// How long the token is good for, in seconds.
    #[arg(long, value_name = "S", value_parser = units::seconds)]
    pub(crate) expires: Duration,

    /// Where the client is known to be. It gets more in its first round trip from there, and is let in
    /// from anywhere.
    #[arg(long, value_name = "IP[:PORT]", value_parser = units::place)]
    pub(crate) client_address: Option<SocketAddr>,

    /// Words for the server, up to 256 bytes.
    #[arg(long, value_name = "TEXT")]
    pub(crate) user_data: Option<String>,

    /// The most that this client is to be sent, in bits per second.
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub(crate) rate: Option<u64>,

    /// The least that this client is to be sent, in bits per second.
    #[arg(long = "least-rate", value_name = "RATE", value_parser = units::rate)]
    pub(crate) min_rate: Option<u64>,

    /// The servers' identity or its public key: the client then takes no server without it.
    #[arg(long, value_name = "FILE")]
    pub(crate) identity_file: Option<PathBuf>,

    /// A new file for the token, which only you may read. By default it goes to standard output, or into the
    /// JSON.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) key_files: KeyFilesArgs,

    #[command(flatten)]
    pub(crate) wire: FilesWireArgs,
}

const ISSUE_HELP: &str = "\
The token is the one line on standard output, and \"token\" with --json. It is made to be handed to one
client, and it is a secret until that has joined. The key is never printed.

Example:
  haulier token issue --token-key match.key --client-id 42 --server 192.0.2.7:4016 --expires 60s -o token";

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The token; `-` reads it from standard input.
    pub(crate) token: String,

    /// Open the sealed part, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_key: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) key_files: KeyFilesArgs,
}
