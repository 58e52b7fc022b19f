//! Keys in files: 32 bytes as text, behind a prefix that says what they are for, so that one cannot be
//! taken for another. No error quotes what it could not read: it may be a secret with one letter wrong.
//!
//! One rule for all secrets. A file that holds one, be it a key, a ticket or a token, is made for its owner
//! alone, and refused if others can read it. A key is printed only if the user says `-o -`. A ticket or a
//! token is made to be handed over, so it is what `serve` and `token issue` print.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, ErrorKind, Read as _, Write as _};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use haulier::proto::internals::kdf;
use haulier::{Identity, Secret, TokenKey};
use haulier_shell::failure::{Failure, plain};
use haulier_shell::interrupt;
use zeroize::Zeroizing;

use crate::args::KeyFilesArgs;

/// The longest text that is read as a key, a ticket or a token. Tokens have some 1400 bytes.
const MAX_TEXT_BYTES: u64 = 8192;

/// How often a wait for standard input checks for Ctrl-C: too short to be noticed.
const LOOK_UP: Duration = Duration::from_millis(20);

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The secret of tickets.
    Secret,
    /// What connect tokens are sealed with.
    Token,
    /// A server's private key.
    Identity,
    /// Its public one.
    Public,
    /// What `serve` makes its reset key of.
    Reset,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Secret, Self::Token, Self::Identity, Self::Public, Self::Reset];

    pub(crate) const fn prefix(self) -> &'static str {
        match self {
            Self::Secret => "haulier-secret1:",
            Self::Token => "haulier-token-key1:",
            Self::Identity => "haulier-identity1:",
            Self::Public => "haulier-public1:",
            Self::Reset => "haulier-reset1:",
        }
    }

    /// Its name, as `keygen` has it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Token => "token",
            Self::Identity => "identity",
            Self::Public => "public",
            Self::Reset => "reset",
        }
    }

    /// The key as a line of text.
    pub(crate) fn to_text(self, bytes: &[u8; 32]) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(128));
        text.push_str(self.prefix());
        text.push_str(&blake3::Hash::from_bytes(*bytes).to_hex());
        text
    }

    fn parse(self, text: &str) -> Result<Secret, String> {
        let text = text.trim();
        let Some(hex) = text.strip_prefix(self.prefix()) else {
            let other = Self::ALL.into_iter().find(|kind| text.starts_with(kind.prefix()));
            let found = other.map_or("is no key".into(), |kind| {
                format!("holds a key of another kind, `{}`", kind.prefix())
            });
            let hint = match self {
                Self::Public => "it is told by `haulier keygen --identity`".into(),
                Self::Reset => "`haulier serve` makes one by itself".into(),
                _ => format!("make one with `haulier keygen --{} -o FILE`", self.name()),
            };
            return Err(format!("{found}; what is needed begins with `{}`: {hint}", self.prefix()));
        };
        // Constant in time or not: the text is the caller's own.
        let bytes = blake3::Hash::from_hex(hex).map_err(|_| {
            format!("is damaged: after {} there must be 64 hex digits", self.prefix())
        })?;
        Ok(Secret::from_bytes(*bytes.as_bytes()))
    }
}

/// Reads a key of this kind.
pub(crate) fn read(path: &Path, kind: Kind, args: KeyFilesArgs) -> Result<Secret, Failure> {
    let text = read_text(path, args)?;
    kind.parse(&text).map_err(|why| Failure::Usage(format!("{} {why}", path.display())))
}

/// Reads the key that connect tokens are sealed with. Its id is derived from it, so only the key is kept.
pub(crate) fn read_token_key(path: &Path, args: KeyFilesArgs) -> Result<TokenKey, Failure> {
    let key = read(path, Kind::Token, args)?;
    let id = kdf("haulier/1 2026 token key id", &[key.as_bytes()]);
    let [a, b, c, d, ..] = *id.as_bytes();
    Ok(TokenKey { id: u32::from_le_bytes([a, b, c, d]), key })
}

/// Reads a server's public key, or finds it out from the private one.
pub(crate) fn read_public(path: &Path, args: KeyFilesArgs) -> Result<[u8; 32], Failure> {
    let (text, exposed) = read_any(path)?;
    if let Ok(private) = Kind::Identity.parse(&text) {
        refuse(exposed, args)?;
        return Ok(Identity::new(private).public());
    }
    let public = Kind::Public.parse(&text);
    public
        .map(|key| *key.as_bytes())
        .map_err(|why| Failure::Usage(format!("{} {why}", path.display())))
}

/// A secret text from a file that nobody else can read.
pub(crate) fn read_text(path: &Path, args: KeyFilesArgs) -> Result<Zeroizing<String>, Failure> {
    let (text, exposed) = read_any(path)?;
    refuse(exposed, args)?;
    Ok(text)
}

fn refuse(exposed: Option<Failure>, args: KeyFilesArgs) -> Result<(), Failure> {
    exposed.filter(|_| !args.allow_exposed_keys).map_or(Ok(()), Err)
}

/// A text from a file, and the failure that it is if the text is secret.
fn read_any(path: &Path) -> Result<(Zeroizing<String>, Option<Failure>), Failure> {
    let fail = |error: &io::Error| Failure::file(path, error);
    let file = File::open(path).map_err(|error| fail(&error))?;
    let exposed = exposed(path, &file);
    let text = text_of(|text| file.take(MAX_TEXT_BYTES + 1).read_to_string(text));
    Ok((text.map_err(|error| fail(&error))?, exposed))
}

/// Why a secret in this file is refused: other users may read or write the file. A pipe is never refused.
#[cfg(unix)]
fn exposed(path: &Path, file: &File) -> Option<Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = file.metadata().ok().filter(|metadata| metadata.is_file())?;
    let mode = metadata.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| {
        Failure::Exposed(format!(
            "{path} can be read or changed by others than its owner (mode {mode:03o}): say \
             `chmod 600 {path}`, and make a new secret if others were here; where modes cannot be \
             set there is --allow-exposed-keys",
            path = path.display(),
        ))
    })
}

/// Other systems have no modes.
#[cfg(not(unix))]
fn exposed(_: &Path, _: &File) -> Option<Failure> {
    None
}

/// A text that may be secret: the first line of standard input, and no more, for `haulier serve` prints its
/// ticket into a pipe and keeps that open. A thread of its own waits for it, so that Ctrl-C does not.
pub(crate) fn read_stdin() -> Result<Zeroizing<String>, Failure> {
    let (sender, line) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let line = text_of(|text| io::stdin().lock().take(MAX_TEXT_BYTES + 1).read_line(text));
        // After Ctrl-C the receiver is gone.
        let _gone = sender.send(line);
    });
    let line = loop {
        interrupt::check()?;
        match line.recv_timeout(LOOK_UP) {
            Ok(line) => break line,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                break Err(io::Error::other("the reader broke down"));
            }
        }
    };
    line.map_err(|error| Failure::Io(format!("standard input: {}", plain(&error))))
}

fn text_of(read: impl FnOnce(&mut String) -> io::Result<usize>) -> io::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::with_capacity(MAX_TEXT_BYTES as usize + 1));
    read(&mut text).map_err(|error| {
        if error.kind() != ErrorKind::InvalidData {
            return error;
        }
        let what = "a key, ticket or token is one line of text, and this is none";
        io::Error::new(ErrorKind::InvalidData, what)
    })?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        let what = "a key, ticket or token is one line, and this is longer";
        return Err(io::Error::new(ErrorKind::InvalidData, what));
    }
    Ok(text)
}

/// Writes a secret line to a new file that only its owner may read, or to standard output.
pub(crate) fn write_private(path: Option<&Path>, line: &str) -> Result<(), Failure> {
    let Some(path) = path else {
        let mut out = io::stdout().lock();
        return writeln!(out, "{line}")
            .and_then(|()| out.flush())
            .map_err(|error| Failure::Io(format!("standard output: {}", plain(&error))));
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::Io(format!(
            "{} exists, and what it holds may still be needed: choose another name",
            path.display()
        )),
        _ => Failure::file(path, &error),
    })?;
    let written = writeln!(file, "{line}").and_then(|()| file.sync_all());
    written.map_err(|error| {
        // Half a key is worse than none.
        let _gone = fs::remove_file(path);
        Failure::file(path, &error)
    })
}

/// Writes a secret line to a file that only its owner may read, in place of a file that has the name. Who
/// looks finds the old one or all of the new one.
pub(crate) fn replace_private(path: &Path, line: &str) -> Result<(), Failure> {
    let fail = |error: &io::Error| Failure::file(path, error);
    if path.metadata().is_ok_and(|about| !about.is_file()) {
        return Err(Failure::Io(format!("{} is no file: choose another name", path.display())));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Its mode is 600.
    let file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")));
    let mut file = file.map_err(|error| fail(&error))?;
    writeln!(file, "{line}").map_err(|error| fail(&error))?;
    file.persist(path).map(drop).map_err(|error| fail(&error.error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_and_are_not_mixed_up() {
        for kind in Kind::ALL {
            let text = kind.to_text(&[7; 32]);
            assert_eq!(kind.parse(&format!(" {}\n", *text)), Ok(Secret::from_bytes([7; 32])));
            for other in Kind::ALL.into_iter().filter(|&other| other != kind) {
                let why = other.parse(&text).unwrap_err();
                assert!(why.contains(kind.prefix()) && why.contains(other.prefix()), "{why}");
                assert!(!why.contains("0707"), "{why}");
            }
        }
    }

    #[test]
    fn a_damaged_key_is_not_quoted() {
        let mut text = Kind::Secret.to_text(&[0xab; 32]);
        text.push('a');
        let why = Kind::Secret.parse(&text).unwrap_err();
        assert!(why.contains("64 hex digits") && !why.contains("abab"), "{why}");
    }
}
