//! The arguments about the local network: saying there that a server is here, and finding one by its name.

use std::time::Duration;

use haulier_shell::units;

/// The longest name: a label of DNS.
const MAX_NAME_BYTES: usize = 63;

/// Whether a server says on the LAN that it is here: of `serve` and `recv`.
#[derive(Debug, clap::Args)]
pub(crate) struct AnnounceArgs {
    /// Say on the local network that this server is here (mDNS), by this name or that of the host: for
    /// `haulier fetch --lan`.
    ///
    /// Also announced: the port, the number of files, which clients are let in, and the first bytes of the
    /// identity. Neither names of files nor anything secret.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, value_parser = name)]
    pub(crate) lan: Option<Option<String>>,
}

/// Which server on the LAN: of `fetch` and `send`.
#[derive(Debug, clap::Args)]
pub(crate) struct LanArgs {
    /// Find the server of this name on the local network, instead of an ADDR.
    ///
    /// Anybody there can say any name: what lets you in, and says who the server is, is a ticket
    /// (--ticket-file, HAULIER_TICKET), or what goes with an ADDR. `fetch --lan` alone lists the servers.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, value_parser = name)]
    pub(crate) lan: Option<Option<String>>,

    /// How many seconds to look for all servers, or at most for the one of the name.
    #[arg(
        long,
        value_name = "S",
        default_value = "3",
        requires = "lan",
        value_parser = units::seconds,
        hide_short_help = true
    )]
    pub(crate) wait: Duration,
}

/// A name that people can type, and that DNS can say.
fn name(text: &str) -> Result<String, String> {
    let is_odd = |c: char| c.is_control() || c == '.' || c == '\\';
    if !(1..=MAX_NAME_BYTES).contains(&text.len()) || text.contains(is_odd) || text.trim() != text {
        return Err(format!(
            "it is no name for a network: write 1 to {MAX_NAME_BYTES} bytes without dots and backslashes, \
             such as kitchen"
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_label() {
        assert!(["kitchen", "Ana's world", "Welt für alle"].iter().all(|text| name(text).is_ok()));
        let long = "x".repeat(64);
        for bad in ["", " a", "a.b", "a\\b", "a\u{1b}[2J", "a\nb", &long] {
            assert!(name(bad).is_err(), "{bad:?}");
        }
    }
}
