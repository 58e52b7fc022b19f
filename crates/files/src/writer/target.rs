//! The name that a file is to get: what is checked before the first byte is asked for, and the two files
//! beside it while it is unfinished.
//!
//! The invariant: under the name itself there is nothing new until [`Target::give_name`], which is one
//! rename.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;

use super::attributes::{Attributes, settle};
use super::{Replace, WriteSettings};
use crate::errors::WriteError;
use crate::folder::{Folder, Found};
use crate::journal::{FileIdentity, Journal};
use crate::storage::Storage;
use crate::system;
use crate::unfinished::Unfinished;

/// A name, and the names of the unfinished file and its journal, all in one directory, which stays open.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    folder: Arc<Folder>,
    name: OsString,
    data: OsString,
    journal: OsString,
}

impl Target {
    /// A path of the user.
    pub(super) fn new(path: &Path) -> Result<Self, WriteError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        name_of(path)?;
        let no_folder = || WriteError::NoFolder { folder: folder.to_owned() };
        let opened = Folder::open(folder).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => no_folder(),
            _ => WriteError::io(path, error),
        })?;
        Self::inside(Arc::new(opened), path)
    }

    /// The last part of a path, in a directory that was opened.
    pub(super) fn inside(folder: Arc<Folder>, path: &Path) -> Result<Self, WriteError> {
        let name = name_of(path)?;
        let beside = |ending| system::name_with(name, "", ending);
        let (data, journal) = (beside(".haulier-part"), beside(".haulier-journal"));
        Ok(Self { path: path.to_owned(), folder, name: name.to_owned(), data, journal })
    }

    /// Whether the name may be given: nothing has it, or a file that may be replaced.
    pub(super) fn check_name(&self, replace: Replace) -> Result<(), WriteError> {
        let path = self.path.clone();
        match self.find(&self.name)? {
            None => Ok(()),
            Some(found) => match special_kind(found.kind) {
                Some(kind) => Err(WriteError::Special { path, kind }),
                None if replace == Replace::Never => Err(WriteError::NameTaken { path }),
                None => Ok(()),
            },
        }
    }

    /// Whether there is space for what is missing of a file of this length.
    pub(super) fn check_room(&self, length: u64) -> Result<(), WriteError> {
        let here_bytes = self.find(&self.data)?.map_or(0, |found| found.disk_bytes);
        let needed_bytes = length.saturating_sub(here_bytes);
        let free_bytes = self.folder.free_bytes().map_err(|error| self.io(error))?;
        match needed_bytes <= free_bytes {
            true => Ok(()),
            false => Err(WriteError::NoRoom { path: self.path.clone(), needed_bytes, free_bytes }),
        }
    }

    /// Opens the unfinished file, and locks it: another process that writes it is refused. A user that may
    /// not read the finished file may not read the unfinished one.
    pub(super) fn open_data(&self, attributes: Attributes) -> Result<File, WriteError> {
        let in_use = || WriteError::InUse { path: self.path.clone() };
        let file = self.open(&self.data)?;
        if !system::lock(&file).map_err(|error| self.io(error))? {
            return Err(in_use());
        }
        // It may have got its name between being opened and being locked.
        let inode = file.metadata().map_err(|error| self.io(error))?.ino();
        if self.find(&self.data)?.is_none_or(|now| now.inode != inode) {
            return Err(in_use());
        }
        let replaced = self.replaced(Replace::File)?;
        attributes.hide(&file, replaced.as_ref()).map_err(|error| self.io(error))?;
        Ok(file)
    }

    /// The file as it is here, or a new one with its space reserved.
    pub(super) fn unfinished(
        &self,
        data: File,
        has_journal: bool,
        identity: &FileIdentity,
    ) -> Result<Unfinished<File>, WriteError> {
        let journal = has_journal.then(|| self.open(&self.journal)).transpose()?;
        let length = identity.length().unwrap_or_default();
        let is_new = !has_journal || data.length().map_err(|error| self.io(error))? != length;
        let prepare = || {
            if is_new {
                Unfinished::clear(&data, journal.as_ref())?;
                system::reserve(&data, length)?;
            }
            #[cfg(test)]
            crate::moments::reach(crate::moments::Moment::SpaceReserved)?;
            match journal {
                Some(journal) if !is_new => Unfinished::resume(data, journal, identity),
                journal => {
                    let file = Unfinished::create(data, journal, identity)?;
                    Ok(if is_new { file.with_blank_data() } else { file })
                }
            }
        };
        prepare().map_err(|error| {
            let error = self.io(error);
            // A reservation that fails half-way has taken what was free. What was here before stays.
            if is_new && matches!(error, WriteError::DiskFull { .. }) {
                drop(self.remove_all());
            }
            error
        })
    }

    /// Opens one of the two files beside the name: a new one, or one that nobody else can change.
    fn open(&self, name: &OsStr) -> Result<File, WriteError> {
        let fail = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                let source = Arc::new(error);
                WriteError::FolderNotWritable { folder: self.folder.path().to_owned(), source }
            }
            _ => self.io(error),
        };
        match self.folder.create(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map_err(fail),
        }
        let foreign = |what| WriteError::Foreign { path: self.folder.path().join(name), what };
        match self.find(name)?.map(|found| found.kind) {
            Some(FileType::Symlink) => return Err(foreign("a link")),
            Some(kind) if special_kind(kind).is_some() => {
                let kind = special_kind(kind).unwrap_or_default();
                return Err(WriteError::Special { path: self.folder.path().join(name), kind });
            }
            _ => {}
        }
        let file = self.folder.write(name).map_err(|error| match error.kind() {
            // It is there, and only its owner can have said so.
            io::ErrorKind::PermissionDenied => foreign("a file that you may not write"),
            _ => fail(error),
        })?;
        // What was opened, for another file may have the name by now.
        let found = Found::of(&file.metadata().map_err(|error| self.io(error))?);
        if found.kind != FileType::RegularFile {
            return Err(foreign("no file"));
        }
        if found.links != 1 {
            return Err(foreign("a file with several names"));
        }
        let is_ours = found.owner == rustix::process::geteuid().as_raw()
            || found.owner == self.folder.owner_of_new_files().map_err(fail)?;
        if is_ours { Ok(file) } else { Err(foreign("another user's file")) }
    }

    /// Gives the finished file its mode, time and name. It has it for good when the folder is synced.
    pub(super) fn give_name(
        &self,
        data: &File,
        settings: &WriteSettings,
    ) -> Result<(), WriteError> {
        let replaced = self.replaced(settings.replace)?;
        let prepared = settings.attributes.prepare(data, replaced.as_ref());
        let mode = prepared.map_err(|error| self.io(error))?;
        let renamed = match settings.replace {
            Replace::Never => self.folder.rename_to_free_name(&self.data, &self.name),
            Replace::File => {
                self.check_name(Replace::File)?;
                self.folder.rename(&self.data, &self.name)
            }
        };
        renamed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => WriteError::NameTaken { path: self.path.clone() },
            _ => self.io(error),
        })?;
        settle(data, mode).map_err(|error| self.io(error))
    }

    /// Where it is.
    pub(super) const fn folder(&self) -> &Arc<Folder> {
        &self.folder
    }

    /// The file has its name for good: its journal is of no use.
    pub(super) fn remove_journal(&self) -> io::Result<()> {
        self.folder.remove(&self.journal)
    }

    /// The file that loses its name, if there is one.
    fn replaced(&self, replace: Replace) -> Result<Option<Found>, WriteError> {
        if replace == Replace::File { self.find(&self.name) } else { Ok(None) }
    }

    /// Removes a journal without data. If it cannot be, it is in nobody's way.
    pub(super) fn remove_leftover(&self) {
        let is_there = |name: &OsStr| !matches!(self.folder.find(name), Ok(None));
        if !is_there(&self.data) && is_there(&self.name) {
            drop(self.remove_journal());
        }
    }

    /// Whether a journal of this file lies beside it, which this user wrote.
    pub(super) fn has_journal_of(&self, identity: &FileIdentity) -> bool {
        let is_ours = |it: Found| {
            it.owner == rustix::process::geteuid().as_raw()
                && it.links == 1
                && it.kind == FileType::RegularFile
        };
        if !self.folder.find(&self.journal).is_ok_and(|it| it.is_some_and(is_ours)) {
            return false;
        }
        let journal = self.folder.read(&self.journal);
        journal.and_then(|it| Journal::is_of(&it, identity)).unwrap_or(false)
    }

    /// Removes what is unfinished.
    pub(super) fn remove_all(&self) -> io::Result<()> {
        self.remove_journal()?;
        self.folder.remove(&self.data)
    }

    fn find(&self, name: &OsStr) -> Result<Option<Found>, WriteError> {
        self.folder.find(name).map_err(|error| self.io(error))
    }

    pub(super) fn io(&self, error: io::Error) -> WriteError {
        WriteError::io(&self.path, error)
    }
}

fn name_of(path: &Path) -> Result<&OsStr, WriteError> {
    // `folder/` has a file name by the rules of paths, but a person does not read it as the name of a file.
    let is_folder = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let no_name = || WriteError::NoName { path: path.to_owned() };
    path.file_name().filter(|_| !is_folder).ok_or_else(no_name)
}

pub(super) fn check_folder(folder: &Path, bytes: u64) -> Result<(), WriteError> {
    let no_folder = |_| WriteError::NoFolder { folder: folder.to_owned() };
    let opened = Folder::open(folder).map_err(no_folder)?;
    system::check_writable(folder).map_err(|error| WriteError::FolderNotWritable {
        folder: folder.to_owned(),
        source: Arc::new(error),
    })?;
    let free_bytes = opened.free_bytes().map_err(|error| WriteError::io(folder, error))?;
    match bytes <= free_bytes {
        true => Ok(()),
        false => {
            Err(WriteError::NoRoom { path: folder.to_owned(), needed_bytes: bytes, free_bytes })
        }
    }
}

/// What this is, if it is neither a file nor a link. A link is replaced itself, not what it points at.
const fn special_kind(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::RegularFile | FileType::Symlink => None,
        FileType::Directory => Some("folder"),
        FileType::Fifo => Some("pipe"),
        FileType::Socket => Some("socket"),
        _ => Some("device"),
    }
}
