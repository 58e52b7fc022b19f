//! What a file on disk can do, as far as the journal and an unfinished file need it.
//!
//! An interface, so that the same code runs on [`std::fs::File`] and on the disk in memory that is slow,
//! full, failing or lying ([`model`](crate::model)). All calls take a place: no two threads share a cursor.

use std::fs::File;
use std::io;

use crate::system;

/// Bytes at places, which are safe from a loss of power only after [`Storage::sync`].
pub trait Storage: Send + Sync {
    /// Writes all of these bytes.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Reads until the buffer is full or the file ends, and returns the number of bytes read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Makes this range zeros without storing any; `false` if it cannot, and nothing is changed.
    fn punch_hole(&self, offset: u64, bytes: u64) -> io::Result<bool>;

    /// Returns when all that was written before is on the disk: `fdatasync`.
    fn sync(&self) -> io::Result<()>;

    /// The length of the file.
    fn length(&self) -> io::Result<u64>;

    /// Cuts the file off, or extends it with zeros.
    fn set_length(&self, bytes: u64) -> io::Result<()>;
}

impl Storage for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            match std::os::unix::fs::FileExt::read_at(self, &mut buffer[filled..], at) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn punch_hole(&self, offset: u64, bytes: u64) -> io::Result<bool> {
        system::punch_hole(self, offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }
}
