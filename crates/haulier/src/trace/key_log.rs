//! The key log: the secrets of connections as lines of text, one for each.
//!
//! **Whoever has it can read those connections, and forge what is said on them.** The form is in
//! `docs/VIEWS.md`; `haulier inspect --pcap FILE --keylog FILE` reads it.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use haulier_proto::connection::Suite;
use haulier_proto::connection::trace::{TraceEvent, TraceSecret, Traced};
use haulier_proto::server::ConnectionId;

use super::TraceSink;

/// A sink for the secrets of connections. It writes only those, each line at once, so that a capture can be
/// read even after a crash.
///
/// It has something to write only if the connections are configured to hand their secrets out
/// ([`ConnectionConfig::trace_secrets`](crate::ConnectionConfig::trace_secrets)).
#[derive(Debug)]
pub struct KeyLog<W> {
    out: W,
}

impl<W: Write + Send> KeyLog<W> {
    /// One that writes there.
    pub const fn new(out: W) -> Self {
        Self { out }
    }

    /// Writes a secret.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_secret(&mut self, secret: &TraceSecret) -> io::Result<()> {
        self.out.write_all(key_log_line(secret).as_bytes())?;
        self.out.flush()
    }
}

impl KeyLog<File> {
    /// One that appends to this file, which is made if it is not there. On Unix it is made with mode 0600.
    ///
    /// # Errors
    /// Those of the system; [`PermissionDenied`](io::ErrorKind::PermissionDenied) also for a file that is
    /// there and that other users can read.
    pub fn append(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let out = options.open(path)?;
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::MetadataExt::mode(&out.metadata()?);
            if out.metadata()?.is_file() && mode & 0o077 != 0 {
                let what = "other users can read it: chmod 600, or another file";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
            }
        }
        Ok(Self { out })
    }
}

impl<W: Write + Send> TraceSink for KeyLog<W> {
    /// A secret that cannot be written, on a full disk say, is left out: the connection goes on.
    fn write(&mut self, _: Option<ConnectionId>, traced: &Traced) {
        if let TraceEvent::Secret(secret) = &traced.event {
            let _left_out = self.write_secret(secret);
        }
    }
}

/// The line of a key log for a secret, with its end.
#[must_use]
pub fn key_log_line(secret: &TraceSecret) -> String {
    // Room for the longest, so that no part of a secret is left behind where the line was before it grew.
    let mut line = String::with_capacity(256);
    match secret {
        TraceSecret::Hello { client_id, key, associated_data } => {
            put(&mut line, "HELLO", &[client_id, key.as_bytes(), associated_data]);
        }
        TraceSecret::Welcome { client_id, key, associated_data } => {
            put(&mut line, "WELCOME", &[client_id, key.as_bytes(), associated_data]);
        }
        TraceSecret::Traffic { is_clients, client_id, server_id, suite, secret } => {
            put(&mut line, if *is_clients { "CLIENT" } else { "SERVER" }, &[client_id, server_id]);
            line.push(' ');
            // As in a welcome.
            line.push(if *suite == Suite::Aes256Gcm { '1' } else { '0' });
            put(&mut line, "", &[secret.as_bytes()]);
        }
        _ => return line,
    }
    line.push('\n');
    line
}

/// A word, and fields in hex, each after a space.
fn put(line: &mut String, word: &str, fields: &[&[u8]]) {
    line.push_str(word);
    for field in fields {
        line.push(' ');
        for byte in *field {
            // A `String` takes anything.
            let _ = write!(line, "{byte:02x}");
        }
    }
}
