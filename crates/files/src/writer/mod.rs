//! Write-behind: verified bytes go to a few threads, which write and note them; the last one gives the file
//! its name.
//!
//! ```text
//! push(offset, bytes) -> at most 32 wait -> write, note, each second a checkpoint -> take_written()
//! finish(length, root) -> hashed again what the journal said -> root compared -> synced -> renamed
//! ```
//!
//! Nothing here blocks but [`FileWriter::open`], which checks the target and reads the journal. A full
//! queue says [`Full`]: then the caller takes no more events of its connection, and credit slows the
//! sender. Everything that goes wrong on the threads comes out of [`FileWriter::poll`].
//!
//! The invariant: under the target's name there is the file that was promised, or what was there before.
//! What is unfinished lies beside it, as `NAME.haulier-part` and `NAME.haulier-journal`, and goes on from
//! there the next time; what could not, because it is short or has no known length, is removed.

pub(crate) mod attributes;
mod target;
mod work;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use attributes::Attributes;
use bytes::Bytes;
use target::Target;
use work::{Inner, Status, Task};

use crate::chunks::{CHUNK_BYTES, MAX_TREE_BYTES};
use crate::errors::{ReadError, WriteError};
use crate::folder::Folder;
use crate::journal::FileIdentity;
use crate::mode::Mode;
use crate::offer::Root;
use crate::pieces::Copied;
use crate::pool::PoolHandle;
use crate::ranges::Ranges;
use crate::reader::SourceFile;
use haulier_proto::connection::{BlockTree, ChunkValue};

/// Files below this length, in bytes, have no journal: to fetch four chunks again takes less than to sync
/// two files.
pub const MIN_JOURNAL_BYTES: u64 = 4 * CHUNK_BYTES as u64;

/// Between two checkpoints: what is in between is hashed again after a kill. More often would cost the
/// disk's time, which syncs of 5 to 50 ms take.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// What happens to a file that has the name already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replace {
    /// It stays, and the new one is refused.
    #[default]
    Never,
    /// The new one takes its place, at the end.
    File,
}

/// How a file is written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriteSettings {
    replace: Replace,
    attributes: Attributes,
    checkpoint_interval: Duration,
}

impl Default for WriteSettings {
    fn default() -> Self {
        Self {
            replace: Replace::Never,
            attributes: Attributes::default(),
            checkpoint_interval: CHECKPOINT_INTERVAL,
        }
    }
}

impl WriteSettings {
    /// What happens to a file that has the name already.
    pub const fn with_replace(mut self, replace: Replace) -> Self {
        self.replace = replace;
        self
    }

    /// What of its mode is left of the umask's, or of the mode of the file that it replaces. If nothing is
    /// said that is all, and a new one cannot be run.
    pub const fn with_mode(mut self, mode: Mode) -> Self {
        self.attributes.mode = Some(mode);
        self
    }

    /// Its time of change, in nanoseconds since 1970.
    pub const fn with_modified_ns(mut self, nanoseconds: i64) -> Self {
        self.attributes.modified_ns = Some(nanoseconds);
        self
    }

    pub(crate) const fn with_attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes;
        self
    }

    /// Time between two checkpoints; a second by default. For tests.
    #[doc(hidden)]
    pub const fn with_checkpoint_interval(mut self, interval: Duration) -> Self {
        self.checkpoint_interval = interval;
        self
    }
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteState {
    /// It takes bytes.
    #[default]
    Writing,
    /// All of it came; only work on the disk is left.
    Finishing,
    /// It was to be finished, and [`FileWriter::missing`] is still missing: what the journal said was not
    /// there. It takes bytes.
    Missing,
    /// It was to be finished, and is another file than was promised. What came of it is void; it takes
    /// bytes, as at the beginning.
    WrongRoot,
    /// It has its name.
    Stored,
}

/// No room now. What was to be written is given back, to be pushed again after the pool's wake.
#[derive(Clone, PartialEq, Eq)]
pub struct Full<T>(pub T);

impl<T> std::fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Full")
    }
}

/// A chunk, from an older version and from what came.
#[derive(Clone, PartialEq, Eq)]
pub struct Assembly {
    /// Its place in the file, in bytes.
    pub range: Range<u64>,
    /// What is copied to where.
    pub copies: Vec<Copied>,
    /// What came, with its place in the file.
    pub came: Vec<(u64, Bytes)>,
}

impl std::fmt::Debug for Assembly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Assembly({:?}, {} copies, {} that came)",
            self.range,
            self.copies.len(),
            self.came.len()
        )
    }
}

impl Assembly {
    /// The chunk. What lies beside its range is left out, and what nothing covers is zeros: then the root
    /// is wrong.
    fn bytes(&self, older: &SourceFile) -> Result<Vec<u8>, ReadError> {
        let length = self.range.end.saturating_sub(self.range.start).min(CHUNK_BYTES as u64);
        let mut chunk = vec![0; length as usize];
        for copy in &self.copies {
            if let Some(place) = self.place(copy.to, copy.length).and_then(|it| chunk.get_mut(it)) {
                older.read_exact(place, copy.from)?;
            }
        }
        for (to, bytes) in &self.came {
            let place = self.place(*to, bytes.len() as u64);
            if let Some(place) = place.and_then(|it| chunk.get_mut(it)) {
                place.copy_from_slice(bytes);
            }
        }
        older.check()?;
        Ok(chunk)
    }

    fn place(&self, to: u64, length: u64) -> Option<Range<usize>> {
        let start = usize::try_from(to.checked_sub(self.range.start)?).ok()?;
        Some(start..start.checked_add(usize::try_from(length).ok()?)?)
    }
}

/// A file that is written. Dropped, it is left for the next time.
#[derive(Debug)]
pub struct FileWriter {
    inner: Arc<Inner>,
    resumed_chunks: usize,
}

impl FileWriter {
    /// Checks the target, makes room, and continues the unfinished file of the same identity. It waits for
    /// the disk: for the journal of a file of 100 GB some 50 ms.
    ///
    /// # Errors
    /// [`WriteError`]: before a byte was asked for.
    pub fn open(
        pool: &PoolHandle,
        path: &Path,
        identity: &FileIdentity,
        settings: WriteSettings,
    ) -> Result<Self, WriteError> {
        Self::open_target(pool, Target::new(path)?, identity, settings)
    }

    /// Opens a target as [`Self::open`] does, in a directory that was opened: only the last part of the path
    /// is looked up.
    pub(crate) fn open_inside(
        pool: &PoolHandle,
        folder: &Arc<Folder>,
        path: &Path,
        identity: &FileIdentity,
        settings: WriteSettings,
    ) -> Result<Self, WriteError> {
        let target = Target::inside(Arc::clone(folder), path)?;
        Self::open_target(pool, target, identity, settings)
    }

    fn open_target(
        pool: &PoolHandle,
        target: Target,
        identity: &FileIdentity,
        settings: WriteSettings,
    ) -> Result<Self, WriteError> {
        target.remove_leftover();
        target.check_name(settings.replace)?;
        let length = identity.length();
        if let Some(bytes) = length.filter(|length| *length > MAX_TREE_BYTES) {
            return Err(WriteError::TooLong { bytes });
        }
        target.check_room(length.unwrap_or_default())?;
        let data = target.open_data(settings.attributes)?;
        // What could not be gone on with needs no journal.
        let has_journal = identity.is_same_content(identity)
            && length.is_some_and(|length| length >= MIN_JOURNAL_BYTES);
        let file = target.unfinished(data, has_journal, identity)?;
        let resumed_chunks = usize::try_from(file.here().count()).unwrap_or(usize::MAX);
        let inner = Inner::new(target, settings, file, has_journal, pool.clone());
        Ok(Self { inner, resumed_chunks })
    }

    /// Takes verified bytes to be written at this place, 256 KiB of them at most. The next
    /// [`FileWriter::take_written`] has their range.
    ///
    /// # Errors
    /// [`Full`], if too much waits for the disk.
    pub fn push(&self, offset: u64, bytes: Bytes) -> Result<(), Full<Bytes>> {
        self.push_any(offset, bytes, None)
    }

    /// Takes a verified chunk of the file to be written. Its value in the file's tree is known, so it is not
    /// hashed again.
    ///
    /// # Errors
    /// [`Full`], if too much waits for the disk.
    pub fn push_chunk(
        &self,
        offset: u64,
        bytes: Bytes,
        value: ChunkValue,
    ) -> Result<(), Full<Bytes>> {
        self.push_any(offset, bytes, Some(value))
    }

    fn push_any(
        &self,
        offset: u64,
        bytes: Bytes,
        value: Option<ChunkValue>,
    ) -> Result<(), Full<Bytes>> {
        let Some(claim) = self.inner.pool.claim_write() else { return Err(Full(bytes)) };
        Inner::start(&self.inner, Task::Write { offset, bytes, value, claim });
        Ok(())
    }

    /// Takes verified packed bytes of one run, to be unpacked and written: at most `max_bytes` unpacked.
    ///
    /// # Errors
    /// [`Full`], if too much waits for the disk.
    pub fn push_packed(
        &self,
        offset: u64,
        max_bytes: u64,
        packed: Vec<Bytes>,
    ) -> Result<(), Full<Vec<Bytes>>> {
        let Some(claim) = self.inner.pool.claim_write() else { return Err(Full(packed)) };
        Inner::start(&self.inner, Task::Unpack { offset, max_bytes, packed, claim });
        Ok(())
    }

    /// Takes a chunk that is put together from an older version and from received bytes, to be written. If
    /// the older version cannot be read, [`FileWriter::take_unread`] has the range.
    ///
    /// # Errors
    /// [`Full`], if too much waits for the disk.
    pub fn push_assembly(
        &self,
        older: &Arc<SourceFile>,
        assembly: Assembly,
    ) -> Result<(), Full<Assembly>> {
        let Some(claim) = self.inner.pool.claim_write() else { return Err(Full(assembly)) };
        let older = Arc::clone(older);
        Inner::start(&self.inner, Task::Assemble { older, assembly, claim });
        Ok(())
    }

    /// What was pushed and is written now: each range once, of packed bytes what came out of them.
    pub fn take_written(&self) -> Option<Range<u64>> {
        self.inner.status().written.pop_front()
    }

    /// A chunk that could not be put together, and why: the older version has changed, or is gone.
    pub fn take_unread(&self) -> Option<(Range<u64>, ReadError)> {
        self.inner.status().unread.pop_front()
    }

    /// All that is wanted was pushed: the file gets its name once it is whole, and is this one.
    pub fn finish(&self, length: u64, root: Root) {
        let mut status = self.inner.status();
        if status.state != WriteState::Stored {
            status.wanted = Some((length, root));
            status.state = WriteState::Finishing;
        }
        drop(status);
        Inner::advance(&self.inner);
    }

    /// The bytes that came are wrong: none of them counts. Bytes that are pushed after this call count.
    pub fn discard(&self) {
        self.inner.discard();
    }

    /// What has become of it.
    ///
    /// # Errors
    /// [`WriteError`], from the first failure on. The bytes that came stay on the disk for the next time.
    pub fn poll(&self) -> Result<WriteState, WriteError> {
        let status = self.inner.status();
        status.error.clone().map_or(Ok(status.state), Err)
    }

    /// Waits until its threads have nothing left to do, and says what has become of it. For programs
    /// without an event loop.
    ///
    /// # Errors
    /// As of [`FileWriter::poll`].
    pub fn settle(&self) -> Result<WriteState, WriteError> {
        let is_busy = |status: &mut Status| {
            let is_at_work = status.pending > 0 || status.state == WriteState::Finishing;
            is_at_work && status.error.is_none()
        };
        let status = self.inner.status();
        drop(self.inner.changed.wait_while(status, is_busy));
        self.poll()
    }

    /// Chunks that were here from an earlier transfer when it was opened, as its journal says.
    pub const fn resumed_chunks(&self) -> usize {
        self.resumed_chunks
    }

    /// Whether a chunk is here, as far as is known now.
    pub fn is_here(&self, index: u32) -> bool {
        self.inner.file.is_here(index)
    }

    /// The chunks that are missing, as far as is known now, in runs. A chunk that waits to be written is
    /// missing.
    pub fn missing(&self) -> Vec<Range<u32>> {
        self.inner.file.missing()
    }

    /// The chunks that are here, as far as is known now, by index: what a taker says of a file that goes on.
    pub fn here(&self) -> Ranges {
        self.inner.file.here()
    }

    /// Chunks of the journal that were not hashed again yet.
    pub fn unchecked(&self) -> usize {
        self.inner.file.unchecked()
    }

    /// The values of its chunks, when it is stored: for a program that serves the file to others.
    pub fn tree(&self) -> Option<BlockTree> {
        self.inner.status().tree.clone()
    }

    /// Removes what came of it: it is not to be gone on with.
    ///
    /// # Errors
    /// [`WriteError`], if it cannot be removed.
    pub fn abandon(self) -> Result<(), WriteError> {
        self.inner.abandon()
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        Inner::leave(&self.inner);
    }
}

/// Checks whether files of `bytes` bytes in all can be written into this folder, before one is asked for.
///
/// # Errors
/// [`WriteError`]: there is no such folder, it cannot be written, or there is no room.
pub fn check_folder(folder: &Path, bytes: u64) -> Result<(), WriteError> {
    target::check_folder(folder, bytes)
}

/// Makes this directory in one that is there, unless it is there itself. A loss of power does not take it.
///
/// # Errors
/// What the system says; a file of the name is [`NotADirectory`](io::ErrorKind::NotADirectory).
pub fn make_folder(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let parent = Folder::open(path.parent().unwrap_or(Path::new("")))?;
    match parent.make(path.file_name().ok_or(io::ErrorKind::NotADirectory)?) {
        Err(_) if path.symlink_metadata().is_ok() => Err(io::ErrorKind::NotADirectory.into()),
        made => made.map(drop),
    }
}

/// Removes the journal of a file that has its name already: what a process leaves that is killed between
/// the last two steps. For files that are found to be here; [`FileWriter::open`] does it too.
///
/// # Errors
/// [`WriteError::NoName`].
pub fn remove_leftover(path: &Path) -> Result<(), WriteError> {
    Target::new(path).map(|target| target.remove_leftover())
}

/// Removes the journal of a file that has its name already, in a directory that was opened.
pub(crate) fn remove_leftover_inside(folder: &Arc<Folder>, path: &Path) -> Result<(), WriteError> {
    Target::inside(Arc::clone(folder), path).map(|target| target.remove_leftover())
}

/// Whether a process that wrote this file was killed before it had removed the journal.
pub(crate) fn has_journal_of(folder: &Arc<Folder>, path: &Path, identity: &FileIdentity) -> bool {
    Target::inside(Arc::clone(folder), path).is_ok_and(|target| target.has_journal_of(identity))
}

#[cfg(test)]
mod tests;
