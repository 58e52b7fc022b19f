//! The arguments of what can be written down about connections: of `serve`, `fetch`, `send` and `recv`.

use std::path::PathBuf;

/// What is written down about connections.
#[derive(Debug, clap::Args)]
pub(crate) struct TraceArgs {
    /// Append the keys of each connection to this file, to open captures with (`inspect --pcap`). DANGEROUS:
    /// whoever has it can read all that is sent and received. It is made for you alone (mode 600).
    #[arg(long, value_name = "FILE")]
    pub(crate) keylog: Option<PathBuf>,
}
