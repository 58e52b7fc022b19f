//! What can be read: files, at any place and for as long as they stay as they are; and pipes, once, from
//! the start.
//!
//! The invariant: a [`SourceFile`] is a regular file, and [`SourceFile::check`] finds every change of its
//! length or its time of change since it was opened. A file that was replaced by a rename goes on being
//! served as it was.

use std::borrow::Borrow;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, OFlags};

use crate::chunks::MAX_TREE_BYTES;
use crate::errors::{Change, ReadError};
use crate::folder::Folder;
use crate::mode::Mode;
use crate::pool;
use crate::storage::Storage;
use crate::system;

/// Which version of a file this is: what differs after every change that a system shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileVersion {
    /// Its length.
    pub bytes: u64,
    /// Its time of change, in nanoseconds since 1970. Programs can set it back.
    pub modified_ns: i64,
    /// When the system last changed anything of it, its bytes or its times (ctime): nobody can set that.
    pub changed_ns: i64,
    /// Its number on its disk.
    pub inode: u64,
}

impl FileVersion {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified_ns: in_nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: in_nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
        }
    }

    /// What another version differs in, if it does. A file that only got another name, mode or link has
    /// another `changed_ns`, and is the same: whether its bytes are, their hashes say.
    pub fn change_to(&self, now: &Self) -> Option<Change> {
        if now.bytes != self.bytes {
            return Some(if now.bytes < self.bytes { Change::Shorter } else { Change::Longer });
        }
        if now.inode != self.inode {
            return Some(Change::Replaced);
        }
        (now.modified_ns != self.modified_ns).then_some(Change::Written)
    }
}

fn in_nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    let all = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    i64::try_from(all).unwrap_or_default()
}

/// What a path leads to.
#[derive(Debug)]
#[non_exhaustive]
pub enum Source {
    /// A file.
    File(SourceFile),
    /// A pipe (FIFO): served once, without a length. It is not opened yet; see
    /// [`PipeReader`](super::PipeReader).
    Pipe(PathBuf),
}

impl Source {
    /// Opens the file or the pipe at this path. Folders, devices such as `/dev/zero`, and sockets are
    /// refused: they have no end, or no bytes.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        // Looked at before it is opened: opening a device may do something.
        let metadata = std::fs::metadata(path).map_err(|error| ReadError::io(path, error))?;
        match system::special_kind(metadata.file_type()) {
            Some("pipe") => Ok(Self::Pipe(path.to_owned())),
            _ => SourceFile::open(path).map(Self::File),
        }
    }
}

/// A file that is open to be read.
#[derive(Debug)]
pub struct SourceFile {
    path: PathBuf,
    file: File,
    version: FileVersion,
    opened_ns: i64,
    mode: Mode,
    has_holes: bool,
}

impl SourceFile {
    /// Opens a file. A path to anything else is refused, also a pipe.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let io = |error| ReadError::io(path, error);
        let refuse = |metadata: &Metadata| match system::special_kind(metadata.file_type()) {
            Some(kind) => Err(ReadError::Special { path: path.to_owned(), kind }),
            None => Ok(()),
        };
        refuse(&std::fs::metadata(path).map_err(io)?)?;
        // It may have become a pipe in between, whose opening would wait for a writer.
        let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(io)?;
        Self::of(file, path)
    }

    /// Opens a file by the last part of its path, in a directory that was opened. A link is refused, too.
    pub(crate) fn open_inside(folder: &Folder, path: &Path) -> Result<Self, ReadError> {
        let name = path.file_name().unwrap_or_default();
        let io = |error| ReadError::io(path, error);
        // Looked at before it is opened: opening a device may do something.
        match folder.find(name).map_err(io)?.map(|found| found.kind) {
            Some(FileType::RegularFile) => {}
            Some(_) => {
                return Err(ReadError::Special { path: path.to_owned(), kind: "link or device" });
            }
            None => return Err(io(io::ErrorKind::NotFound.into())),
        }
        Self::of(folder.read(name).map_err(io)?, path)
    }

    fn of(file: File, path: &Path) -> Result<Self, ReadError> {
        let io = |error| ReadError::io(path, error);
        let metadata = file.metadata().map_err(io)?;
        if let Some(kind) = system::special_kind(metadata.file_type()) {
            return Err(ReadError::Special { path: path.to_owned(), kind });
        }
        let opened = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let opened_ns = i64::try_from(opened.as_nanos()).unwrap_or_default();
        let version = FileVersion::of(&metadata);
        if version.bytes > MAX_TREE_BYTES {
            return Err(ReadError::TooLong { path: path.to_owned(), bytes: version.bytes });
        }
        let mode = Mode::of_unix(metadata.permissions().mode());
        // Blocks of 512 bytes, on every file system.
        let has_holes = metadata.blocks().saturating_mul(512) < version.bytes;
        Ok(Self { path: path.to_owned(), file, version, opened_ns, mode, has_holes })
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file.
    pub(crate) const fn handle(&self) -> &File {
        &self.file
    }

    /// What it was when it was opened.
    pub const fn version(&self) -> &FileVersion {
        &self.version
    }

    /// What it is now.
    pub(crate) fn version_now(&self) -> Result<FileVersion, ReadError> {
        let metadata = self.file.metadata().map_err(|error| ReadError::io(&self.path, error))?;
        Ok(FileVersion::of(&metadata))
    }

    /// When it was opened, by the system's clock, in nanoseconds since 1970.
    pub(crate) const fn opened_ns(&self) -> i64 {
        self.opened_ns
    }

    /// The file as if it had been opened later by this time.
    #[cfg(test)]
    pub(crate) fn opened_later(mut self, by: std::time::Duration) -> Self {
        self.opened_ns += i64::try_from(by.as_nanos()).unwrap();
        self
    }

    /// The permissions to read, write and run it.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether all of this is a hole. A file that ends before has holes behind its end, which
    /// [`check`](Self::check) finds.
    pub(crate) fn is_hole(&self, range: &Range<u64>) -> bool {
        let data = || system::next_data(&self.file, range.start);
        self.has_holes && data().is_none_or(|data| data >= range.end)
    }

    /// Fills the buffer from this place on; a hole is not read. A file that ends before has changed. On a
    /// thread of a pool that ends nothing is read any more.
    pub fn read_exact(&self, buffer: &mut [u8], offset: u64) -> Result<(), ReadError> {
        if pool::is_ending() {
            return Err(ReadError::Stopped { path: self.path.clone() });
        }
        if self.is_hole(&(offset..offset + buffer.len() as u64)) {
            buffer.fill(0);
            return Ok(());
        }
        match self.file.read_at(buffer, offset) {
            Ok(count) if count == buffer.len() => Ok(()),
            Ok(_) => Err(ReadError::changed(&self.path, Change::Shorter)),
            Err(error) => Err(ReadError::io(&self.path, error)),
        }
    }

    /// Whether it is still what it was when it was opened.
    pub fn check(&self) -> Result<(), ReadError> {
        match self.version.change_to(&self.version_now()?) {
            Some(change) => Err(ReadError::changed(&self.path, change)),
            None => Ok(()),
        }
    }
}

/// A file, read from its start to the length that it had when it was opened.
pub(crate) struct Stream<F> {
    file: F,
    offset: u64,
}

impl<F: Borrow<SourceFile>> Stream<F> {
    /// Reads all of it in order.
    pub(crate) const fn new(file: F) -> Self {
        Self { file, offset: 0 }
    }
}

impl<F: Borrow<SourceFile>> io::Read for Stream<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let file: &SourceFile = self.file.borrow();
        let left = file.version.bytes - self.offset;
        let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if pool::is_ending() {
            return Err(io::Error::other("stopped"));
        }
        let count = file.file.read_at(&mut buffer[..wanted], self.offset)?;
        self.offset += count as u64;
        if count < wanted { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(count) }
    }
}
