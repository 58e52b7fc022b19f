//! The secret by which a server that was killed and started again tells the clients of its last run that it
//! does not know them (STANDARD-1, 3.7), so that they join anew at once instead of waiting for the dead run.
//!
//! It is in a file of its own beside the server's keys, because clients have the ticket's secret, and other
//! servers may have the token keys and the identity: whoever has this secret can end every connection whose
//! id it sees. The invariant: two servers that share the folder of their keys, or a copy of it, have
//! different reset keys, because the host's name and the address go into them.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use haulier::Secret;
use haulier::proto::internals::kdf;
use haulier_shell::failure::Failure;
use haulier_shell::report::Report;

use crate::args::{KeyFilesArgs, ListenArgs};
use crate::keygen::new_secret;
use crate::keys::{self, Kind};

/// What the file's name has behind that of the key file.
const ENDING: &str = ".reset";

/// The secret of the server that listens at `local`. `None` if no client could find its next run: it has no
/// keys in a file, or a port that the system chose; or if there can be no such file.
pub(super) fn secret(
    args: &ListenArgs,
    local: SocketAddr,
    report: &Report,
) -> Result<Option<Secret>, Failure> {
    let Some(keys) = args.secret_file.as_ref().or(args.token_key.first()) else {
        return Ok(None);
    };
    if args.bind.is_none_or(|at| at.port() == 0) {
        return Ok(None);
    }
    let Some(own) = read_or_make(&beside(keys), args.key_files, report)? else { return Ok(None) };
    Ok(Some(of_server(&own, gethostname::gethostname().as_encoded_bytes(), local)))
}

fn beside(keys: &Path) -> PathBuf {
    let mut path = OsString::from(keys);
    path.push(ENDING);
    path.into()
}

/// The secret in the file, which is made if it is not there, or is damaged by a loss of power.
fn read_or_make(
    path: &Path,
    args: KeyFilesArgs,
    report: &Report,
) -> Result<Option<Secret>, Failure> {
    if path.exists() {
        match keys::read(path, Kind::Reset, args) {
            Err(Failure::Usage(_)) => {}
            read => return read.map(Some),
        }
    }
    let own = new_secret()?;
    match keys::replace_private(path, &Kind::Reset.to_text(own.as_bytes())) {
        Ok(()) => Ok(Some(own)),
        Err(failure) => {
            let text = format!("after a restart clients notice it by its silence only: {failure}");
            report.detail(&text);
            Ok(None)
        }
    }
}

fn of_server(own: &Secret, host: &[u8], local: SocketAddr) -> Secret {
    let (length, local) = ((host.len() as u64).to_le_bytes(), local.to_string());
    kdf("haulier/1 2026 serve reset", &[own.as_bytes(), &length, host, local.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T16: servers that share the folder of their keys end no connections of each other.
    #[test]
    fn the_same_file_gives_each_host_and_address_another_key() {
        let own = Secret::from_bytes([7; 32]);
        let of = |host: &str, at: &str| of_server(&own, host.as_bytes(), at.parse().unwrap());
        let here = of("kitchen", "0.0.0.0:4016");
        assert_eq!(here, of("kitchen", "0.0.0.0:4016"));
        assert_ne!(here, of("cellar", "0.0.0.0:4016"));
        assert_ne!(here, of("kitchen", "0.0.0.0:4017"));
        assert_ne!(here, of("kitchen", "192.0.2.7:4016"));
        assert_ne!(
            here,
            of_server(&Secret::from_bytes([8; 32]), b"kitchen", "0.0.0.0:4016".parse().unwrap())
        );
    }
}
