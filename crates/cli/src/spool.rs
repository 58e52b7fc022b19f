//! Where the bytes of a stream are until all of them are verified: a folder of its own among the temporary
//! files, removed when the program ends.
//!
//! A program that is killed removes nothing. So a program that makes a spool removes those without an owner.
//!
//! The invariant: a spool in use is locked by the program that uses it, and the system drops the lock with
//! that program; so a spool that can be locked has no owner.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use tempfile::TempDir;

/// The beginning of its name, by which others know it.
const PREFIX: &str = "haulier-spool-";

/// Another program may take a new spool for one without an owner, in the moment before it is locked. To meet
/// that moment three times takes intent.
const ATTEMPTS: usize = 3;

/// A folder for one file.
#[derive(Debug)]
pub(crate) struct Spool {
    // Removed before it is unlocked.
    folder: TempDir,
    _lock: Option<File>,
}

impl Spool {
    /// A new one among the temporary files. Those without an owner are removed before.
    pub(crate) fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(base: &Path) -> io::Result<Self> {
        remove_abandoned(base);
        for _ in 0..ATTEMPTS {
            let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base)?;
            match lock(folder.path()) {
                // It may have been removed between being opened and being locked.
                Ok(lock) if folder.path().is_dir() => {
                    return Ok(Self { folder, _lock: Some(lock) });
                }
                // A file system without locks: no program can take the spool for abandoned either.
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::NOLCK) => {
                    return Ok(Self { folder, _lock: None });
                }
                Err(Errno::WOULDBLOCK | Errno::NOENT) | Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::other("another program removes the temporary files of this one"))
    }

    /// The file in it.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("stream")
    }
}

/// Removes the spools of killed programs of this user. A spool that cannot be removed does no harm.
fn remove_abandoned(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    let is_spool = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(PREFIX.as_bytes());
    for entry in entries.flatten().filter(|entry| is_spool(&entry.file_name())) {
        if let Ok(_lock) = lock(&entry.path()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}

/// Locks a folder of this user, which is no link to one.
fn lock(path: &Path) -> Result<File, Errno> {
    let flags = i32::try_from((OFlags::DIRECTORY | OFlags::NOFOLLOW).bits()).unwrap_or_default();
    let code = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let folder = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(code)?;
    if folder.metadata().map_err(code)?.uid() != geteuid().as_raw() {
        return Err(Errno::PERM);
    }
    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(base: &Path) -> Vec<String> {
        let entries = fs::read_dir(base).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_program_left_is_removed_and_what_another_one_uses_is_not() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path();
        let used = Spool::new_in(base).unwrap();
        fs::write(used.file(), "in use").unwrap();
        fs::create_dir(base.join("haulier-spool-left")).unwrap();
        fs::write(base.join("haulier-spool-left/stream.haulier-part"), "left").unwrap();
        fs::create_dir(base.join("of-another-program")).unwrap();
        let new = Spool::new_in(base).unwrap();
        assert_eq!(fs::read(used.file()).unwrap(), b"in use");
        assert_eq!(names(base).len(), 3, "{:?}", names(base));
        assert!(!base.join("haulier-spool-left").exists());
        drop((used, new));
        assert_eq!(names(base), ["of-another-program"]);
    }

    #[test]
    fn a_link_that_looks_like_a_spool_is_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path();
        fs::create_dir(base.join("precious")).unwrap();
        fs::write(base.join("precious/file"), "kept").unwrap();
        std::os::unix::fs::symlink("precious", base.join("haulier-spool-link")).unwrap();
        fs::write(base.join("haulier-spool-file"), "kept").unwrap();
        drop(Spool::new_in(base).unwrap());
        assert_eq!(names(base), ["haulier-spool-file", "haulier-spool-link", "precious"]);
        assert_eq!(fs::read(base.join("precious/file")).unwrap(), b"kept");
    }
}
