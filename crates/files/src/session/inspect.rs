//! Finding the parts of a file that are on the disk, before any part is asked for. It runs on a thread of the
//! pool, because it reads.
//!
//! The invariant: nothing is made but directories that the offer has, and the unfinished file.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::FileType;

use crate::errors::WriteError;
use crate::folder::Folder;
use crate::journal::FileIdentity;
use crate::offer::{Content, Entry, Root, empty_root};
use crate::pool::PoolHandle;
use crate::reader::{HashProgress, SourceFile, hash_file};
use crate::reason::{Fault, Reason};
use crate::taker::Local;
use crate::writer::attributes::Attributes;
use crate::writer::{FileWriter, Replace, WriteSettings, has_journal_of, remove_leftover_inside};

/// An older version is compared from this size on, in bytes, as in the taker.
const MIN_OLDER_BYTES: u64 = 1 << 20;

/// What was found.
pub(super) struct Inspection {
    pub(super) local: Local,
    /// None if it is here, or refused.
    pub(super) writer: Option<FileWriter>,
    pub(super) older: Option<Arc<SourceFile>>,
    /// Why it is refused, in words for the user of this end.
    pub(super) words: Option<String>,
    /// It is refused because another writer has it open, which may soon be done.
    pub(super) is_in_use: bool,
}

impl Inspection {
    const fn of(local: Local) -> Self {
        Self { local, writer: None, older: None, words: None, is_in_use: false }
    }

    /// It could not be looked at.
    pub(super) fn failed(fault: Fault) -> Self {
        Self { words: Some(fault.to_string()), ..Self::of(Local::Refused(fault)) }
    }

    fn refused(error: &WriteError) -> Self {
        let words = Some(error.to_string());
        let is_in_use = matches!(error, WriteError::InUse { .. });
        Self { words, is_in_use, ..Self::of(Local::Refused(error.fault())) }
    }
}

/// What may be done with a file that has the name.
#[derive(Clone, Copy)]
pub(super) struct Leave {
    pub(super) replace: Replace,
    pub(super) keeps_attributes: bool,
    /// It may be compared with what is offered, which the giver hears of. A file that was not fetched is not,
    /// unless the user said that it may be replaced.
    pub(super) compares: bool,
}

/// Looks, and makes the file ready to be written. `is_again` if a writer had it open last time: then nothing
/// else is read before it is free.
pub(super) fn inspect(
    pool: &PoolHandle,
    base: Option<&Path>,
    path: &Path,
    (entry, root): (&Entry, Option<Root>),
    Leave { replace, keeps_attributes, compares }: Leave,
    is_again: bool,
) -> Inspection {
    let folder = match base.map(|base| make_folders(base, path)).transpose() {
        Ok(folder) => folder,
        Err(fault) => {
            // The giver hears nothing of the paths here.
            let (words, fault) = (Some(fault.to_string()), Fault::from(fault.reason));
            return Inspection { words, ..Inspection::of(Local::Refused(fault)) };
        }
    };
    let folder = match folder.map_or_else(|| folder_of(path), Ok) {
        Ok(folder) => Arc::new(folder),
        Err(error) => return Inspection::refused(&error),
    };
    let mut identity = FileIdentity::new(entry.path.as_str()).with_modified_ns(entry.modified_ns);
    if let Some(bytes) = entry.size() {
        identity = identity.with_length(bytes);
    }
    if let Some(root) = root {
        identity = identity.with_root(root);
    }
    let attributes = if keeps_attributes { of_entry(entry) } else { Attributes::default() };
    let settings = WriteSettings::default().with_replace(replace).with_attributes(attributes);
    // A process that was killed between a file's name and the end of its journal fetched it.
    let compares = compares || has_journal_of(&folder, path, &identity);
    let open = || FileWriter::open_inside(pool, &folder, path, &identity, settings.clone());
    // It is opened once: the jobs that a dropped writer has begun hold the file a little longer.
    let opened = match is_again.then(open) {
        Some(Err(error @ WriteError::InUse { .. })) => return Inspection::refused(&error),
        opened => opened,
    };
    let older = compares.then(|| SourceFile::open_inside(&folder, path).ok()).flatten();
    let likeness = older.as_ref().map_or(Likeness::Other, |older| compare(older, entry, root));
    if likeness == Likeness::Unproven {
        return Inspection::of(Local::Unproven);
    }
    if let Some(older) = older.as_ref().filter(|_| likeness == Likeness::Same) {
        drop(opened);
        if replace == Replace::File {
            // The bytes are those that were asked for, whatever becomes of this.
            drop(attributes.set(older.handle(), None));
        }
        // A journal that a process left between the last two steps, or a name that it gave and did not sync.
        drop(folder.sync());
        drop(remove_leftover_inside(&folder, path));
        return Inspection::of(Local::Here);
    }
    let writer = match opened.unwrap_or_else(open) {
        Ok(writer) => writer,
        Err(error) => return Inspection::refused(&error),
    };
    let older = older.filter(|older| older.version().bytes >= MIN_OLDER_BYTES).map(Arc::new);
    let local = match &older {
        _ if writer.resumed_chunks() > 0 => Local::Partial { chunks: writer.here() },
        Some(_) => Local::Older,
        None => Local::Absent,
    };
    Inspection { local, writer: Some(writer), older, words: None, is_in_use: false }
}

/// The giver's attributes that a file is to have. A time of 0 means no time: that of a pipe is always 0.
fn of_entry(entry: &Entry) -> Attributes {
    let modified_ns = (entry.modified_ns != 0).then_some(entry.modified_ns);
    Attributes { mode: Some(entry.mode), modified_ns }
}

/// Whether what has the name is what is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Likeness {
    /// All of its bytes were hashed now, and they are those.
    Same,
    /// Size and time are the same, which any program can set: only the root can tell.
    Unproven,
    Other,
}

fn compare(here: &SourceFile, entry: &Entry, root: Option<Root>) -> Likeness {
    let size = here.version().bytes;
    if entry.size() != Some(size) || entry.content == Content::Directory {
        return Likeness::Other;
    }
    match root.or_else(|| (size == 0).then(empty_root)) {
        Some(root) => match hash_file(here, 2, &HashProgress::default()) {
            Ok(tree) if *tree.digest() == root => Likeness::Same,
            _ => Likeness::Other,
        },
        None if here.version().modified_ns == entry.modified_ns => Likeness::Unproven,
        None => Likeness::Other,
    }
}

/// Opens the directory of a path that the user named.
fn folder_of(path: &Path) -> Result<Folder, WriteError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    Folder::open(folder).map_err(|_| WriteError::NoFolder { folder: folder.to_owned() })
}

/// Makes the directories between the base and the file, for good, and opens the last. One that is a link,
/// or no directory, is not gone through: it could lead out of the base.
pub(super) fn make_folders(base: &Path, path: &Path) -> Result<Folder, Fault> {
    let not_stored = |error: io::Error| Fault::new(Reason::NotStored, &error.to_string());
    let inner = path.parent().and_then(|folder| folder.strip_prefix(base).ok());
    let mut folder = Folder::open(base).map_err(not_stored)?;
    for part in inner.into_iter().flat_map(Path::components) {
        let part = part.as_os_str();
        folder = folder.make(part).map_err(|error| match folder.find(part) {
            Ok(Some(found)) if found.kind != FileType::Directory => {
                let what = format!("{} is no directory", folder.path().join(part).display());
                Fault::new(Reason::Taken, &what)
            }
            _ => not_stored(error),
        })?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn directories_are_made_below_the_base_and_not_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("base");
        fs::create_dir(&base).unwrap();
        make_folders(&base, &base.join("a/b/file")).unwrap();
        assert!(base.join("a/b").is_dir());
        std::os::unix::fs::symlink(dir.path(), base.join("out")).unwrap();
        let fault = make_folders(&base, &base.join("out/x/file")).unwrap_err();
        assert_eq!(fault.reason, Reason::Taken);
        assert!(!dir.path().join("x").exists());
    }
}
