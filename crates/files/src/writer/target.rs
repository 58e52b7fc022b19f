//! The name that a file is to get: what is checked before the first byte is asked for, and the two files
//! beside it while it is unfinished.
//!
//! The invariant: under the name itself there is nothing new until [`Target::give_name`], which is one
//! rename.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use super::attributes::{Attributes, settle};
use super::{Replace, WriteSettings};
use crate::errors::WriteError;
use crate::journal::FileIdentity;
use crate::storage::Storage;
use crate::system;
use crate::unfinished::Unfinished;

/// A name, and the names of the unfinished file and its journal.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) path: PathBuf,
    folder: PathBuf,
    data: PathBuf,
    journal: PathBuf,
}

impl Target {
    pub(super) fn new(path: &Path) -> Result<Self, WriteError> {
        let no_name = || WriteError::NoName { path: path.to_owned() };
        let name = path.file_name().ok_or_else(no_name)?;
        // `folder/` has a name by the rules of paths, and is none to a reader.
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            return Err(no_name());
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        let beside = |ending| folder.join(system::name_with(name, "", ending));
        let (data, journal) = (beside(".haulier-part"), beside(".haulier-journal"));
        Ok(Self { path: path.to_owned(), folder, data, journal })
    }

    /// Whether the name may be given: nothing has it, or a file that may be replaced.
    pub(super) fn check_name(&self, replace: Replace) -> Result<(), WriteError> {
        let path = self.path.clone();
        match self.path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => is_folder(&self.folder),
            // A part of the path is a file.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => is_folder(&self.folder),
            Err(error) => Err(self.io(error)),
            Ok(metadata) => match special_kind(metadata.file_type()) {
                Some(kind) => Err(WriteError::Special { path, kind }),
                None if replace == Replace::Never => Err(WriteError::NameTaken { path }),
                None => Ok(()),
            },
        }
    }

    /// Whether there is space for what is missing of a file of this length.
    pub(super) fn check_room(&self, length: u64) -> Result<(), WriteError> {
        // Blocks of 512 bytes, on every file system.
        let here_bytes = self.data.symlink_metadata().map_or(0, |metadata| metadata.blocks() * 512);
        let needed_bytes = length.saturating_sub(here_bytes);
        let free_bytes = system::free_bytes(&self.folder).map_err(|error| self.io(error))?;
        match needed_bytes <= free_bytes {
            true => Ok(()),
            false => Err(WriteError::NoRoom { path: self.path.clone(), needed_bytes, free_bytes }),
        }
    }

    /// Opens the unfinished file, and locks it: another process that writes it is refused. It is for nobody
    /// who may not read it in the end.
    pub(super) fn open_data(&self, attributes: Attributes) -> Result<File, WriteError> {
        let in_use = || WriteError::InUse { path: self.path.clone() };
        let file = self.open(&self.data)?;
        let metadata = file.metadata().map_err(|error| self.io(error))?;
        if let Some(kind) = special_kind(metadata.file_type()) {
            return Err(WriteError::Special { path: self.data.clone(), kind });
        }
        if !system::lock(&file).map_err(|error| self.io(error))? {
            return Err(in_use());
        }
        // It may have got its name between being opened and being locked.
        let is_same = self.data.symlink_metadata().is_ok_and(|now| now.ino() == metadata.ino());
        if !is_same {
            return Err(in_use());
        }
        let replaced = self.replaced(Replace::File);
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
        let prepare = || {
            let is_new = !has_journal || data.length()? != length;
            if is_new {
                data.set_len(0)?;
                system::reserve(&data, length)?;
            }
            match journal {
                // A journal without its data is of no use.
                Some(journal) if !is_new => Unfinished::resume(data, journal, identity),
                journal => {
                    let file = Unfinished::create(data, journal, identity)?;
                    Ok(if is_new { file.with_blank_data() } else { file })
                }
            }
        };
        prepare().map_err(|error| {
            let error = self.io(error);
            // A reservation that fails half-way has taken what was left.
            if matches!(error, WriteError::DiskFull { .. }) {
                drop(self.remove_all());
            }
            error
        })
    }

    fn open(&self, path: &Path) -> Result<File, WriteError> {
        // Whoever can make a link here must not have another file written.
        let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).custom_flags(flags);
        options.open(path).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                let source = Arc::new(error);
                WriteError::FolderNotWritable { folder: self.folder.clone(), source }
            }
            _ => self.io(error),
        })
    }

    /// Gives the finished file its mode, time and name. It has it for good when the folder is synced.
    pub(super) fn give_name(
        &self,
        data: &File,
        settings: &WriteSettings,
    ) -> Result<(), WriteError> {
        let replaced = self.replaced(settings.replace);
        let prepared = settings.attributes.prepare(data, replaced.as_ref());
        let mode = prepared.map_err(|error| self.io(error))?;
        let renamed = match settings.replace {
            Replace::Never => system::rename_to_free_name(&self.data, &self.path),
            Replace::File => {
                self.check_name(Replace::File)?;
                std::fs::rename(&self.data, &self.path)
            }
        };
        renamed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => WriteError::NameTaken { path: self.path.clone() },
            _ => self.io(error),
        })?;
        settle(data, mode).map_err(|error| self.io(error))
    }

    /// Where it is.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file has its name for good: its journal is of no use.
    pub(super) fn remove_journal(&self) -> io::Result<()> {
        remove(&self.journal)
    }

    /// The file that loses its name, if there is one.
    fn replaced(&self, replace: Replace) -> Option<Metadata> {
        (replace == Replace::File).then(|| self.path.symlink_metadata().ok())?
    }

    /// Removes a journal without data. If it cannot be, it is in nobody's way.
    pub(super) fn remove_leftover(&self) {
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        if !is_there(&self.data) && is_there(&self.path) {
            drop(remove(&self.journal));
        }
    }

    /// Removes what is unfinished.
    pub(super) fn remove_all(&self) -> io::Result<()> {
        remove(&self.journal)?;
        remove(&self.data)
    }

    pub(super) fn io(&self, error: io::Error) -> WriteError {
        WriteError::io(&self.path, error)
    }
}

pub(super) fn check_folder(folder: &Path, bytes: u64) -> Result<(), WriteError> {
    is_folder(folder)?;
    system::check_writable(folder).map_err(|error| WriteError::FolderNotWritable {
        folder: folder.to_owned(),
        source: Arc::new(error),
    })?;
    let free_bytes = system::free_bytes(folder).map_err(|error| WriteError::io(folder, error))?;
    match bytes <= free_bytes {
        true => Ok(()),
        false => {
            Err(WriteError::NoRoom { path: folder.to_owned(), needed_bytes: bytes, free_bytes })
        }
    }
}

fn is_folder(folder: &Path) -> Result<(), WriteError> {
    match folder.is_dir() {
        true => Ok(()),
        false => Err(WriteError::NoFolder { folder: folder.to_owned() }),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// What this is, if it is neither a file nor a link. A link is replaced itself, not what it points at.
fn special_kind(kind: FileType) -> Option<&'static str> {
    system::special_kind(kind).filter(|_| !kind.is_symlink())
}
