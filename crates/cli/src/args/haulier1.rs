//! The arguments about secrets and tokens: `keygen` and `token`, and what the others have of these.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Subcommand, ValueHint};
use haulier_shell::units;

use super::QrArgs;

/// The application's number of `serve`, `fetch`, `send` and `recv`, which both ends must know: "haulfile".
pub(crate) const FILES_PROTOCOL_ID: u64 = 0x6861_756c_6669_6c65;

/// How files that hold secrets are read.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct KeyFilesArgs {
    /// Take key, ticket and token files that other users can read: for mounts on which modes cannot be set.
    #[arg(long, hide_short_help = true)]
    pub(crate) allow_exposed_keys: bool,
}

/// What both ends must agree on.
#[derive(Debug, clap::Args)]
pub(crate) struct FilesWireArgs {
    /// The number of the application, never sent; both ends must have the same.
    ///
    /// Tickets and tokens hold it.
    #[arg(
        long,
        value_name = "ID",
        default_value = "0x6861756c66696c65",
        value_parser = units::wide_id,
        hide_short_help = true
    )]
    pub(crate) protocol_id: u64,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = KEYGEN_HELP,
    // Without it the usage that an error shows has only what is required.
    override_usage = "haulier keygen [--secret|--token|--identity] --output <FILE>",
    group(ArgGroup::new("kind").args(["secret", "token", "identity"]))
)]
pub(crate) struct KeygenArgs {
    /// A new file for the key, which only you may read; `-` is standard output, and not with --json.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// The secret of tickets: for `serve --secret-file`.
    ///
    /// The default.
    #[arg(long)]
    pub(crate) secret: bool,

    /// A key to make connect tokens with: for `token issue` and `serve --token-key`.
    #[arg(long)]
    pub(crate) token: bool,

    /// A server's private key: for `serve --identity-file`.
    ///
    /// The public key is printed, too.
    #[arg(long)]
    pub(crate) identity: bool,
}

const KEYGEN_HELP: &str = "\
A key stays where it is made, and on the servers that use it. It is printed only with `-o -`. What is made \
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

    /// The application's number for the client: 64 bits.
    #[arg(long, value_name = "N", value_parser = units::wide_id)]
    pub(crate) client_id: u64,

    /// The server that the token is for.
    #[arg(long, value_name = "ADDR", value_parser = haulier_shell::resolve::address)]
    pub(crate) server: Vec<SocketAddr>,

    /// Each --server, up to 8, lets the client in once; or every server with the key, if none is named.
    #[arg(long)]
    pub(crate) once_at_each: bool,

    /// How long the token is good for, in seconds.
    #[arg(long, value_name = "S", value_parser = units::seconds)]
    pub(crate) expires: Duration,

    /// Where the client is known to be.
    ///
    /// It gets more in its first round trip from there, and is let in from anywhere.
    #[arg(long, value_name = "IP[:PORT]", value_parser = units::place)]
    pub(crate) client_address: Option<SocketAddr>,

    /// Words for the server, up to 256 bytes.
    #[arg(long, value_name = "TEXT")]
    pub(crate) user_data: Option<String>,

    /// The maximum rate to this client, in bits per second.
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    pub(crate) rate: Option<u64>,

    /// The least rate to this client, in bits per second.
    #[arg(long = "least-rate", value_name = "RATE", value_parser = units::rate)]
    pub(crate) min_rate: Option<u64>,

    /// The servers' identity or its public key: the client then takes no server without it.
    #[arg(long, value_name = "FILE")]
    pub(crate) identity_file: Option<PathBuf>,

    /// A new file for the token, which only you may read.
    ///
    /// By default it goes to standard output, or into the JSON.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) qr: QrArgs,

    #[command(flatten)]
    pub(crate) key_files: KeyFilesArgs,

    #[command(flatten)]
    pub(crate) wire: FilesWireArgs,
}

const ISSUE_HELP: &str = "\
The token is the one line on standard output, and \"token\" with --json. It is made to be handed to one \
client, and it is a secret until that has joined. The key is never printed.

Example:
  haulier token issue --token-key match.key --client-id 42 --server 192.0.2.7:4016 --expires 60s -o token";

const SHOW_HELP: &str = "\
Examples:
  haulier token show token                            a file that only you can read
  haulier token show token --token-key match.key      with what is sealed in it
  haulier token issue ... | haulier token show -";

#[derive(Debug, clap::Args)]
#[command(after_help = SHOW_HELP)]
pub(crate) struct ShowArgs {
    /// The token, or a file that holds it; `-` reads it from standard input.
    #[arg(value_name = "TOKEN|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token: String,

    /// Open the sealed part, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_key: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) key_files: KeyFilesArgs,
}
