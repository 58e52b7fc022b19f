//! The arguments of what can be written down about connections: of `serve`, `fetch`, `send` and `recv`.

use std::path::PathBuf;

use tracing_subscriber::filter::Targets;

/// What is written down about connections.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What can be seen of it")]
pub(crate) struct TraceArgs {
    /// Append the keys of each connection to this file, to open captures with (`inspect --pcap`).
    ///
    /// DANGEROUS: whoever has it can read all that is sent and received. It is made for you alone (mode 600).
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) keylog: Option<PathBuf>,

    /// Write what the connections do, datagram by datagram, to this file, in qlog: the format of QUIC's
    /// viewers, such as qvis.
    ///
    /// A server's has all of its connections. What is in it is replaced, and it takes some 300 bytes a
    /// datagram.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) qlog: Option<PathBuf>,

    /// Log connections to standard error: `info` (connected, files, closed), `debug` (the path: round trips,
    /// rates, losses) or `trace` (each datagram).
    #[arg(long, value_name = "FILTER", value_parser = log_filter, hide_short_help = true)]
    pub(crate) log: Option<Targets>,
}

/// A level, or levels of targets as in `RUST_LOG`.
fn log_filter(text: &str) -> Result<Targets, String> {
    text.parse().map_err(|_| "use info, debug or trace; or TARGET=LEVEL, with commas".into())
}
