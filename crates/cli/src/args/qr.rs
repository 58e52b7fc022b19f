//! The argument for a QR code, of what prints a ticket or a token.

#[cfg(feature = "qr")]
use std::path::PathBuf;

/// Whether a QR code is wanted, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct QrArgs {
    /// Draw the ticket, or the token, as a QR code on standard error, too; or write it to a new file, which
    /// only you may read.
    ///
    /// Anybody with the picture has the ticket.
    #[cfg(feature = "qr")]
    #[arg(long, value_name = "FILE.svg", num_args = 0..=1, require_equals = true)]
    pub(crate) qr: Option<Option<PathBuf>>,
}

impl QrArgs {
    /// Whether one is wanted.
    pub(crate) const fn is_wanted(&self) -> bool {
        #[cfg(feature = "qr")]
        return self.qr.is_some();
        #[cfg(not(feature = "qr"))]
        false
    }
}
