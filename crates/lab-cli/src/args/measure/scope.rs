//! The arguments that all benches over many cells have: which cells they measure, and where the results go.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct ScopeArgs {
    /// A sample of the cells: seconds. The default.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Every cell: minutes, or hours.
    #[arg(long)]
    pub(crate) full: bool,

    /// Say where it is good and where not, by each axis of the cells.
    #[arg(long)]
    pub(crate) tables: bool,

    /// Store the summaries and each cell's numbers in this file, as JSON.
    #[arg(long, value_name = "FILE.json")]
    pub(crate) out: Option<PathBuf>,
}

impl ScopeArgs {
    /// Its name in JSON.
    pub(crate) const fn name(&self) -> &'static str {
        if self.full { "full" } else { "quick" }
    }
}
