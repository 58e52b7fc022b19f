//! What goes wrong with files, each as one sentence that says what to do something about.
//!
//! The causes are shared, so that an error can be shown, kept and compared by its kind wherever it is needed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::reason::{Fault, Reason};

/// Why a file cannot be written. Nothing is under its name then; what came stays for the next time, unless
/// it is said otherwise.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The path ends in `..` or `/`, or has no name.
    #[error("{} is not the name of a file", path.display())]
    NoName {
        /// The target.
        path: PathBuf,
    },
    /// Its folder does not exist, or is not a folder.
    #[error("the folder {} does not exist", folder.display())]
    NoFolder {
        /// The folder of the target.
        folder: PathBuf,
    },
    /// No file can be made in its folder.
    #[error("no file can be made in {}: {source}", folder.display())]
    FolderNotWritable {
        /// The folder of the target.
        folder: PathBuf,
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// Something has its name already, and was not to be replaced.
    #[error("{} exists already", path.display())]
    NameTaken {
        /// The target.
        path: PathBuf,
    },
    /// A folder, device, pipe or socket has its name. It is not replaced.
    #[error("{} is a {kind}, not a file", path.display())]
    Special {
        /// The target.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// What lies where its unfinished file or journal goes was not made by this user, or has another name
    /// too: somebody else could change it after it was verified.
    #[error(
        "{} is {what}, so somebody else could change it: remove it, or choose another directory",
        path.display()
    )]
    Foreign {
        /// The unfinished file, or its journal.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// Another process writes the same file.
    #[error("{} is being written by another process", path.display())]
    InUse {
        /// The target.
        path: PathBuf,
    },
    /// It is longer than any file may be.
    #[error("a file of {bytes} bytes is too long")]
    TooLong {
        /// Its length.
        bytes: u64,
    },
    /// There is less space than it needs; nothing was written.
    #[error("{} needs {needed_bytes} bytes, and its disk has {free_bytes} free", path.display())]
    NoRoom {
        /// The target.
        path: PathBuf,
        /// What is missing of it.
        needed_bytes: u64,
        /// What its disk has.
        free_bytes: u64,
    },
    /// The disk became full, or the user's share of it.
    #[error("the disk is full: {} is unfinished, and goes on when there is room", path.display())]
    DiskFull {
        /// The target.
        path: PathBuf,
    },
    /// What came packed does not unpack: the other end is at fault.
    #[error("what came of {} cannot be unpacked", path.display())]
    BadPacked {
        /// The target.
        path: PathBuf,
    },
    /// Anything else.
    #[error("{} cannot be written: {source}", path.display())]
    Io {
        /// The target.
        path: PathBuf,
        /// What the system says.
        source: Arc<io::Error>,
    },
}

impl WriteError {
    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Io { path, source: Arc::new(error) },
        }
    }

    /// The fault that is sent to the other end: it has no paths of this machine.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NoName { .. } => Reason::BadName.into(),
            Self::NameTaken { .. }
            | Self::Special { .. }
            | Self::Foreign { .. }
            | Self::InUse { .. } => Reason::Taken.into(),
            Self::NoRoom { .. } | Self::DiskFull { .. } => Reason::NoRoom.into(),
            Self::FolderNotWritable { source, .. } | Self::Io { source, .. } => {
                Fault::new(Reason::NotStored, &source.to_string())
            }
            Self::NoFolder { .. } | Self::TooLong { .. } | Self::BadPacked { .. } => {
                Reason::NotStored.into()
            }
        }
    }
}

/// Why a file cannot be read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is nothing of this name.
    #[error("{} does not exist", path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// This user may not read it.
    #[error("{} may not be read: {source}", path.display())]
    NotPermitted {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// It is no file: a folder, a device, a socket; or a pipe, where only files can be.
    #[error("{} is a {kind}, not a file", path.display())]
    Special {
        /// The file.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// It is longer than any file may be.
    #[error("{} is too long to be sent: {bytes} bytes", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its length.
        bytes: u64,
    },
    /// It is not what it was when it was opened or hashed.
    #[error("{} has changed while it was served: {change}", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// In what way.
        change: Change,
    },
    /// The program ends, and reading it was given up.
    #[error("{} was being read when it was stopped", path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
    },
    /// Anything else.
    #[error("{} cannot be read: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: Arc<io::Error>,
    },
}

/// In what way a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Change {
    /// It is shorter.
    #[error("it has become shorter")]
    Shorter,
    /// It is longer.
    #[error("it has become longer")]
    Longer,
    /// It was written to.
    #[error("it was written to")]
    Written,
    /// Another file has its name.
    #[error("another file has its name")]
    Replaced,
    /// Its bytes are not those that were hashed.
    #[error("its bytes are not those that were hashed")]
    Bytes,
}

impl ReadError {
    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::PermissionDenied => Self::NotPermitted { path, source: Arc::new(error) },
            _ => Self::Io { path, source: Arc::new(error) },
        }
    }

    /// The fault that is sent to the other end: it has no paths of this machine.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Changed { change, .. } => Fault::new(Reason::Changed, &change.to_string()),
            Self::NotPermitted { source, .. } | Self::Io { source, .. } => {
                Fault::new(Reason::Unreadable, &source.to_string())
            }
            Self::NotFound { .. } | Self::Special { .. } | Self::TooLong { .. } => {
                Reason::Unreadable.into()
            }
            Self::Stopped { .. } => Reason::Interrupted.into(),
        }
    }

    pub(crate) fn changed(path: &Path, change: Change) -> Self {
        Self::Changed { path: path.to_owned(), change }
    }
}
