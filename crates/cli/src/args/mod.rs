//! The command line: what there is to ask for, and the help that teaches it.

use haulier_shell::Globals;

#[cfg(test)]
mod book;
mod files;
mod haulier1;
mod inspect;
mod lan;
mod port_mapping;
mod qr;
mod shell;
mod trace;

pub(crate) use files::{
    ConnectArgs, FetchArgs, ListenArgs, PackArg, RecvArgs, SendArgs, ServeArgs, UplinkArg,
};
pub(crate) use haulier1::{
    FILES_PROTOCOL_ID, IssueArgs, KeyFilesArgs, KeygenArgs, ShowArgs, TokenArgs, TokenCommand,
};
pub(crate) use inspect::{InspectArgs, KINDS, Layer, Wire};
pub(crate) use lan::{AnnounceArgs, LanArgs};
pub(crate) use port_mapping::MapArgs;
#[cfg(feature = "port-mapping")]
pub(crate) use port_mapping::MapWhen;
pub(crate) use qr::QrArgs;
pub(crate) use shell::{CompletionsArgs, ManArgs};
pub(crate) use trace::TraceArgs;

use clap::{Parser, Subcommand};

/// Large blocks over UDP, quickly and reliably.
#[derive(Debug, Parser)]
#[command(name = "haulier", version, disable_help_flag = true, after_help = HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) globals: Globals,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const HELP: &str = "\
Start here:
  haulier serve world.bin                         on one machine: prints a ticket
  haulier fetch TICKET                            on the other, as often as you like
  haulier recv                                    the other way: wait here, which prints a ticket,
  haulier send world.bin TICKET                   and send from there

Exit codes:
  0    done
  1    `fetch --lan` found no server
  2    usage: the arguments make no sense, or do not fit what the server has
  3    no peer, a peer that refuses or has no such file, a time-out, or a name that does not resolve
  4    verification failed: what arrived is not what was sent
  5    I/O: a file, a disk, a socket
  6    a file with a key, ticket or token that other users can read
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
    /// Say what a datagram is, field by field, or why it is dropped.
    Inspect(InspectArgs),
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
