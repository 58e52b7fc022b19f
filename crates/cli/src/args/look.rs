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

    /// A name by which browsers may ask for --view: of this host, or of a proxy in front of it. Several add
    /// up. Others are refused, for anybody can point a name here and have a page read what is shown.
    #[arg(long, value_name = "NAME", requires = "view", value_parser = host_name)]
    pub(crate) view_host: Vec<String>,

    /// Show it in this terminal: transfers, rates, the map of slices. q or Ctrl-C ends the command.
    #[arg(long)]
    pub(crate) tui: bool,
}

/// A host's name, without a port: a browser names one only where it is not the usual one.
fn host_name(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("a host's name has letters, digits, hyphens and dots, and no port".into()),
    }
}
