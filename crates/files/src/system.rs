//! The disk calls that the standard library lacks: space, holes, locks. The calls on names are in
//! [`folder`](crate::folder).
//!
//! The invariant: where a system or a file system lacks a call, its replacement has the same result, only
//! slower or in more space.

use std::ffi::{OsStr, OsString};
use std::fs::{File, FileType};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The longest name of a file, in bytes, on the systems there are.
const MAX_NAME_BYTES: usize = 255;

/// The name of what is kept beside a file. Of a long name its BLAKE3, of which 16 digits tell apart what is
/// in one folder.
pub(crate) fn name_with(name: &OsStr, beginning: &str, ending: &str) -> OsString {
    let mut long = OsString::from(beginning);
    long.push(name);
    long.push(ending);
    if long.len() <= MAX_NAME_BYTES {
        return long;
    }
    let hash = blake3::hash(name.as_encoded_bytes()).to_hex();
    format!("{beginning}{}{ending}", &hash[..16]).into()
}

/// Reserves the space of a file, so that the disk is found full before the first byte, and not after the
/// last. A file system that cannot do it gets a file of holes.
pub(crate) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return file.set_len(0);
    }
    match allocate(file, bytes) {
        Err(error) if is_unsupported(error) => file.set_len(bytes),
        done => Ok(done?),
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn allocate(file: &File, bytes: u64) -> Result<(), Errno> {
    rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn allocate(_file: &File, _bytes: u64) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// See [`Storage::punch_hole`](crate::storage::Storage::punch_hole).
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn punch_hole(file: &File, offset: u64, bytes: u64) -> io::Result<bool> {
    use rustix::fs::FallocateFlags;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(file, flags, offset, bytes) {
        Ok(()) => {}
        Err(error) if is_unsupported(error) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    // A hole behind the end leaves the length as it was.
    let end = offset + bytes;
    if file.metadata()?.len() < end {
        file.set_len(end)?;
    }
    Ok(true)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn punch_hole(_file: &File, _offset: u64, _bytes: u64) -> io::Result<bool> {
    Ok(false)
}

/// The offset of the first byte from `offset` on that is not in a hole; `None` if every byte is in one. Where
/// the system cannot say, no byte is in a hole.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn next_data(file: &File, offset: u64) -> Option<u64> {
    // What is read is read at a place, so moving the cursor is nothing to anybody.
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(data) => Some(data),
        Err(Errno::NXIO) => None,
        Err(_) => Some(offset),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn next_data(_file: &File, offset: u64) -> Option<u64> {
    Some(offset)
}

pub(crate) fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL)
}

/// Whether this user may make files in this folder.
pub(crate) fn check_writable(folder: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Takes the lock of a file that is held as long as the file is open; `false` if another process has it.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        // A file system without locks: two programs at one file are found by the root at the end.
        Err(error) if is_unsupported(error) || error == Errno::NOLCK => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Whether something can be read, or the end has come, within this time.
pub(crate) fn is_readable(file: impl AsFd, wait: Duration) -> io::Result<bool> {
    let mut one = [PollFd::new(&file, PollFlags::IN)];
    let wait = Timespec::try_from(wait).unwrap_or_default();
    match poll(&mut one, Some(&wait)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What this is in a word, if it is not a file.
pub(crate) fn special_kind(kind: FileType) -> Option<&'static str> {
    let kinds = [
        (kind.is_dir(), "folder"),
        (kind.is_symlink(), "link"),
        (kind.is_fifo(), "pipe"),
        (kind.is_socket(), "socket"),
        (kind.is_char_device() || kind.is_block_device(), "device"),
    ];
    kinds.into_iter().find_map(|(is_it, name)| is_it.then_some(name))
}
