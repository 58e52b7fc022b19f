//! An open directory, and the operations on the names in it.
//!
//! A path is looked up anew each time it is used, and since it was checked somebody may have put a link in
//! its way. An open directory stays the same one. So a path that the user named is opened once, links
//! included, for they are the user's; below it each part is opened by its name in the directory before it.
//!
//! The invariant: no call here follows a link, and none leaves the directory, for a name is one part of a
//! path.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::system;

/// An open directory.
#[derive(Debug)]
pub(crate) struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
    /// Without permission to read a directory it can be gone through, and not synced alone: all disks are.
    is_readable: bool,
    #[cfg(test)]
    pub(crate) syncs: std::sync::atomic::AtomicU32,
}

/// What has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) kind: FileType,
    /// The permission bits, and the three bits above.
    pub(crate) mode: u32,
    pub(crate) owner: u32,
    pub(crate) inode: u64,
    pub(crate) links: u64,
    /// What it takes on the disk, in bytes.
    pub(crate) disk_bytes: u64,
}

impl Found {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            kind: FileType::from_raw_mode(metadata.mode() as _),
            mode: metadata.mode() & 0o7777,
            owner: metadata.uid(),
            inode: metadata.ino(),
            links: metadata.nlink(),
            disk_bytes: metadata.blocks().saturating_mul(512),
        }
    }
}

impl Folder {
    /// Opens a directory by a path of the user, which may lead through links. The empty one is where the
    /// program runs.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Self::open_at(CWD, path, path, OFlags::empty())
    }

    fn open_at(
        at: impl std::os::fd::AsFd,
        name: &Path,
        path: &Path,
        flags: OFlags,
    ) -> io::Result<Self> {
        let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = |more| rustix::fs::openat(&at, name, flags | more, Mode::empty());
        let (descriptor, is_readable) = match open(OFlags::RDONLY) {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Err(Errno::ACCESS) => (open(OFlags::PATH)?, false),
            opened => (opened?, true),
        };
        let path = path.to_owned();
        Ok(Self {
            descriptor,
            path,
            is_readable,
            #[cfg(test)]
            syncs: std::sync::atomic::AtomicU32::new(0),
        })
    }

    /// Where it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of this name in it.
    pub(crate) fn inner(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.path.join(name);
        Self::open_at(&self.descriptor, Path::new(name), &path, OFlags::NOFOLLOW)
    }

    /// The directory of this name in it. If it does not exist, it is made, and survives a loss of power.
    pub(crate) fn make(&self, name: &OsStr) -> io::Result<Self> {
        match self.inner(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        match rustix::fs::mkdirat(&self.descriptor, name, Mode::from_raw_mode(0o777)) {
            // Another file of this transfer has made it, which may not have synced it yet.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        self.sync()?;
        self.inner(name)
    }

    /// What has this name.
    pub(crate) fn find(&self, name: &OsStr) -> io::Result<Option<Found>> {
        let stat = match rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            stat => stat?,
        };
        #[allow(
            clippy::useless_conversion,
            clippy::unnecessary_cast,
            clippy::cast_sign_loss,
            clippy::allow_attributes,
            reason = "the fields have other types on other systems"
        )]
        Ok(Some(Found {
            kind: FileType::from_raw_mode(stat.st_mode),
            mode: u32::from(stat.st_mode) & 0o7777,
            owner: stat.st_uid,
            inode: stat.st_ino as u64,
            links: stat.st_nlink as u64,
            disk_bytes: (stat.st_blocks as u64).saturating_mul(512),
        }))
    }

    /// Opens what has this name to be read. A pipe is not waited for.
    pub(crate) fn read(&self, name: &OsStr) -> io::Result<File> {
        self.open_file(name, OFlags::RDONLY)
    }

    /// Opens what has this name to be read and written.
    pub(crate) fn write(&self, name: &OsStr) -> io::Result<File> {
        self.open_file(name, OFlags::RDWR)
    }

    /// A new file. There must be nothing of this name, no link either.
    pub(crate) fn create(&self, name: &OsStr) -> io::Result<File> {
        self.open_file(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    fn open_file(&self, name: &OsStr, flags: OFlags) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        Ok(File::from(rustix::fs::openat(&self.descriptor, name, flags, mode)?))
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives a file another name, and replaces a file that has that name.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// Gives a file another name; fails with [`io::ErrorKind::AlreadyExists`] if that name is taken.
    pub(crate) fn rename_to_free_name(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match self.rename_without_replacing(from, to) {
            Err(error) if system::is_unsupported(error) => {}
            done => return Ok(done?),
        }
        match self.find(to)? {
            Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
            None => self.rename(from, to),
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    fn rename_without_replacing(&self, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        use rustix::fs::{RenameFlags, renameat_with};
        renameat_with(&self.descriptor, from, &self.descriptor, to, RenameFlags::NOREPLACE)
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    fn rename_without_replacing(&self, _from: &OsStr, _to: &OsStr) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    /// Makes the names that were given or taken in it survive a loss of power, where directories can be
    /// synced.
    pub(crate) fn sync(&self) -> io::Result<()> {
        #[cfg(test)]
        self.syncs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if !self.is_readable {
            rustix::fs::sync();
            return Ok(());
        }
        match rustix::fs::fsync(&self.descriptor) {
            Err(error) if !system::is_unsupported(error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Bytes that this user may still write on its disk; no limit if it does not say.
    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        let disk = rustix::fs::fstatvfs(&self.descriptor)?;
        let is_known = disk.f_blocks > 0;
        Ok(if is_known { disk.f_bavail.saturating_mul(disk.f_frsize) } else { u64::MAX })
    }

    /// Whose files are those that this user makes in it: of some file systems all are one user's.
    pub(crate) fn owner_of_new_files(&self) -> io::Result<u32> {
        let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let name = format!(".{random:016x}.haulier-part");
        let file = self.create(name.as_ref())?;
        let owner = file.metadata().map(|metadata| metadata.uid());
        self.remove(name.as_ref())?;
        owner
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    /// A directory that is made has its name for good, and one that is there costs no sync.
    #[test]
    fn who_makes_a_directory_syncs_the_one_that_it_is_in() {
        let dir = tempfile::tempdir().unwrap();
        let base = Folder::open(dir.path()).unwrap();
        for _ in 0..2 {
            assert_eq!(base.make("a".as_ref()).unwrap().path(), dir.path().join("a"));
            assert_eq!(base.syncs.load(Ordering::Relaxed), 1);
        }
    }

    /// Between two looks at a path somebody may put a link in its way. An open directory stays what it is.
    #[test]
    fn a_link_that_appears_later_leads_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let (outside, inside) = (dir.path().join("outside"), dir.path().join("base/in"));
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::write(outside.join("x"), "theirs").unwrap();
        let base = Folder::open(&dir.path().join("base")).unwrap();
        let folder = base.inner("in".as_ref()).unwrap();
        std::fs::rename(&inside, dir.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(&outside, &inside).unwrap();
        for name in ["x", "y"] {
            drop(folder.create(name.as_ref()).unwrap());
            assert!(dir.path().join("moved").join(name).exists());
        }
        folder.rename("x".as_ref(), "z".as_ref()).unwrap();
        folder.remove("y".as_ref()).unwrap();
        assert_eq!(std::fs::read(outside.join("x")).unwrap(), b"theirs");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
        assert!(base.inner("in".as_ref()).is_err() && base.make("in".as_ref()).is_err());
    }

    #[test]
    fn a_file_is_created_where_nothing_is() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("link")).unwrap();
        for name in ["link", "file"] {
            let is_free = name == "file";
            assert_eq!(folder.create(name.as_ref()).is_ok(), is_free, "{name}");
            assert!(folder.create(name.as_ref()).is_err(), "{name}");
        }
        assert!(folder.read("link".as_ref()).is_err() && folder.write("link".as_ref()).is_err());
        let taken = folder.rename_to_free_name("file".as_ref(), "link".as_ref());
        assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        folder.rename_to_free_name("file".as_ref(), "free".as_ref()).unwrap();
        assert!(folder.find("free".as_ref()).unwrap().is_some());
    }
}
