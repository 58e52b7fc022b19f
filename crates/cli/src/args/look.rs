//! How to look at what is going on: of every command with a connection.

use std::net::SocketAddr;

/// A page or a screen of what is going on.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What can be seen of it")]
pub(crate) struct LookArgs {
    /// Show what is going on in a browser, at this address: 127.0.0.1:8080, or port 0 for any. Also
    /// /snapshot.json, and /metrics for Prometheus. Whoever reaches the address sees who is there.
    #[arg(long, value_name = "ADDR", value_parser = crate::resolve::address)]
    pub(crate) view: Option<SocketAddr>,

    /// Show it in this terminal: transfers, rates, the map of slices. q or Ctrl-C ends the command.
    #[arg(long)]
    pub(crate) tui: bool,
}
