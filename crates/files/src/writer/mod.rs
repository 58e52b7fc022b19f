//! Write-behind: verified chunks go to a few threads, which write and note them; the last one gives the file its name.
//!
//! ```text
//! push(index, bytes) -> at most 32 chunks -> write, note, each second a checkpoint
//! finish(length, root) -> hashed again what the journal said -> root compared -> synced -> renamed
//! ```
//!
//! Nothing here blocks but [`FileWriter::open`], which checks the target, and reads the journal. A full queue says
//! [`Full`]: then the caller takes no more events of its connection, and credit slows the sender. Everything that
//! goes wrong on the threads comes out of [`FileWriter::poll`].
//!
//! The invariant: under the target's name there is the file that was promised, or what was there before. What is
//! unfinished lies beside it, as `NAME.haulier-part` and `NAME.haulier-journal`, and goes on from there the next time; what
//! could not, because it is short or has no known length, is removed.

mod target;

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use target::Target;

use crate::errors::WriteError;
use crate::journal::FileIdentity;
use crate::pool::PoolHandle;
use crate::storage::Storage;
use crate::system;
use crate::unfinished::{FinishError, Unfinished};
use crate::values::{CHUNK_BYTES, FileTree, MAX_FILE_BYTES, Root};

/// Files below this length, in bytes, have no journal: to fetch four chunks again takes less than to sync two files.
pub const MIN_JOURNAL_BYTES: u64 = 4 * CHUNK_BYTES as u64;

/// Between two checkpoints: what is in between is hashed again after a kill. More often would cost the disk's time, which
/// syncs of 5 to 50 ms take.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);

/// Chains of chunks that are hashed again at the same time, when the threads have nothing better to do.
const CHECKS_AT_ONCE: usize = 2;

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
    is_executable: bool,
    modified_ns: Option<i64>,
    checkpoint_interval: Duration,
}

impl Default for WriteSettings {
    fn default() -> Self {
        Self {
            replace: Replace::Never,
            is_executable: false,
            modified_ns: None,
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

    /// It can be run.
    pub const fn with_executable(mut self, is_executable: bool) -> Self {
        self.is_executable = is_executable;
        self
    }

    /// Its time of change, in nanoseconds since 1970.
    pub const fn with_modified_ns(mut self, nanoseconds: i64) -> Self {
        self.modified_ns = Some(nanoseconds);
        self
    }

    /// Time between two checkpoints; a second if nothing is said. For tests.
    #[doc(hidden)]
    pub const fn with_checkpoint_interval(mut self, interval: Duration) -> Self {
        self.checkpoint_interval = interval;
        self
    }
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteState {
    /// It takes chunks.
    Writing,
    /// All of it came; what is left to do is on the disk.
    Finishing,
    /// It was to be finished, and [`FileWriter::missing`] is still missing: what the journal said was not there. It
    /// takes chunks.
    Missing,
    /// It has its name.
    Stored,
}

/// No room now. The chunk is given back, to be pushed again after the pool's wake.
#[derive(Clone, PartialEq, Eq)]
pub struct Full(pub Bytes);

impl std::fmt::Debug for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Full({} bytes)", self.0.len())
    }
}

/// A file that is written. Dropped, it is left for the next time.
#[derive(Debug)]
pub struct FileWriter {
    inner: Arc<Inner>,
    resumed_chunks: usize,
}

#[derive(Debug)]
struct Inner {
    target: Target,
    settings: WriteSettings,
    file: Unfinished<File>,
    has_journal: bool,
    pool: PoolHandle,
    /// The clock of the checkpoints.
    opened: Instant,
    status: Mutex<Status>,
    changed: Condvar,
}

#[derive(Debug)]
struct Status {
    state: WriteState,
    /// Chunks that wait or are being written.
    pending: usize,
    /// Length and root, when it is to be finished.
    wanted: Option<(u64, Root)>,
    tree: Option<FileTree>,
    error: Option<WriteError>,
    /// What is beside the target is not ours any more.
    is_removed: bool,
}

impl FileWriter {
    /// Checks the target, makes room, and goes on with what is here of the same file. It waits for the disk: for a
    /// journal of 100 GB some 50 ms.
    pub fn open(
        pool: &PoolHandle,
        path: &Path,
        identity: &FileIdentity,
        settings: WriteSettings,
    ) -> Result<Self, WriteError> {
        let target = Target::new(path)?;
        target.remove_leftover();
        target.check_name(settings.replace)?;
        let length = identity.length();
        if let Some(bytes) = length.filter(|length| *length > MAX_FILE_BYTES) {
            return Err(WriteError::TooLong { bytes });
        }
        target.check_room(length.unwrap_or_default())?;
        let data = target.open_data()?;
        // What could not be gone on with needs no journal.
        let has_journal = identity.is_same_content(identity)
            && length.is_some_and(|length| length >= MIN_JOURNAL_BYTES);
        let file = unfinished(&target, data, has_journal, identity)?;
        let resumed_chunks = file.unchecked();
        let status = Status {
            state: WriteState::Writing,
            pending: 0,
            wanted: None,
            tree: None,
            error: None,
            is_removed: false,
        };
        let inner = Arc::new(Inner {
            target,
            settings,
            file,
            has_journal,
            pool: pool.clone(),
            opened: Instant::now(),
            status: Mutex::new(status),
            changed: Condvar::new(),
        });
        for _ in 0..CHECKS_AT_ONCE.min(resumed_chunks) {
            Inner::check_when_idle(Arc::clone(&inner));
        }
        Ok(Self { inner, resumed_chunks })
    }

    /// Takes a verified chunk to be written: 256 KiB at its index, the last one the rest.
    pub fn push(&self, index: u32, bytes: Bytes) -> Result<(), Full> {
        let Some(claim) = self.inner.pool.claim_write() else { return Err(Full(bytes)) };
        self.inner.status().pending += 1;
        let inner = Arc::clone(&self.inner);
        self.inner.pool.run(move || {
            inner.write(index, &bytes);
            drop((bytes, claim));
            inner.on_written();
        });
        Ok(())
    }

    /// All chunks that are wanted were pushed: the file gets its name once it is whole, and is this one.
    pub fn finish(&self, length: u64, root: Root) {
        let mut status = self.inner.status();
        if status.state != WriteState::Stored {
            status.wanted = Some((length, root));
            status.state = WriteState::Finishing;
        }
        drop(status);
        Inner::advance(&self.inner);
    }

    /// What has become of it.
    pub fn poll(&self) -> Result<WriteState, WriteError> {
        let status = self.inner.status();
        status.error.clone().map_or(Ok(status.state), Err)
    }

    /// Waits until its threads have nothing left to do, and says what has become of it. For programs without an
    /// event loop.
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

    /// The chunks that are missing, as far as is known now, in runs. A chunk that waits to be written is missing.
    pub fn missing(&self) -> Vec<Range<u32>> {
        self.inner.file.missing()
    }

    /// Chunks of the journal that were not hashed again yet.
    pub fn unchecked(&self) -> usize {
        self.inner.file.unchecked()
    }

    /// The values of its chunks, when it is stored: to be kept for who serves it on.
    pub fn tree(&self) -> Option<FileTree> {
        self.inner.status().tree.clone()
    }

    /// Removes what came of it: it is not to be gone on with.
    pub fn abandon(self) -> Result<(), WriteError> {
        let target = &self.inner.target;
        let mut status = self.inner.status();
        if status.state != WriteState::Stored {
            status.error = Some(target.io(std::io::ErrorKind::Interrupted.into()));
            status.is_removed = true;
            target.remove_all().map_err(|error| target.io(error))?;
        }
        Ok(())
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if self.inner.has_journal && self.poll().is_ok_and(|state| state != WriteState::Stored) {
            let inner = Arc::clone(&self.inner);
            self.inner.pool.run(move || drop(inner.file.checkpoint()));
        }
    }
}

/// Removes the journal of a file that has its name already: what a process leaves that is killed between the last two
/// steps. For files that are found to be here; [`FileWriter::open`] does it too.
pub fn remove_leftover(path: &Path) -> Result<(), WriteError> {
    Target::new(path).map(|target| target.remove_leftover())
}

/// The file as it is here, or a new one with its space reserved.
fn unfinished(
    target: &Target,
    data: File,
    has_journal: bool,
    identity: &FileIdentity,
) -> Result<Unfinished<File>, WriteError> {
    let journal = has_journal.then(|| target.open_journal()).transpose()?;
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
            journal => Unfinished::create(data, journal, identity),
        }
    };
    prepare().map_err(|error| {
        // A reservation that fails half-way has taken what was left.
        let error = target.io(error);
        if matches!(error, WriteError::DiskFull { .. }) {
            drop(target.remove_all());
        }
        error
    })
}

impl Inner {
    fn write(&self, index: u32, bytes: &[u8]) {
        if self.status().error.is_some() {
            return;
        }
        let written = self.file.write(index, bytes).and_then(|()| {
            self.file.checkpoint_if_due(self.opened.elapsed(), self.settings.checkpoint_interval)
        });
        if let Err(error) = written {
            self.fail(self.target.io(error));
        }
    }

    fn on_written(self: Arc<Self>) {
        self.status().pending -= 1;
        self.changed.notify_all();
        Self::advance(&self);
    }

    fn check_when_idle(inner: Arc<Self>) {
        let pool = inner.pool.clone();
        pool.run_when_idle(move || {
            if inner.status().error.is_some() {
                return;
            }
            let Some(index) = inner.file.next_to_check() else { return };
            match inner.file.check(index) {
                Ok(_) => Self::check_when_idle(Arc::clone(&inner)),
                Err(error) => inner.fail(inner.target.io(error)),
            }
            Self::advance(&inner);
        });
    }

    /// Goes on to the end, when nothing is left to write or to hash.
    fn advance(inner: &Arc<Self>) {
        let mut status = inner.status();
        let is_idle = status.pending == 0 && inner.file.unchecked() == 0 && status.error.is_none();
        let wanted = if is_idle { status.wanted.take() } else { None };
        drop(status);
        if let Some((length, root)) = wanted {
            let inner = Arc::clone(inner);
            inner.pool.clone().run(move || inner.conclude(length, &root));
        }
    }

    fn conclude(&self, length: u64, root: &Root) {
        let named = |tree| {
            self.target.give_name(self.file.data(), &self.settings)?;
            self.status().tree = Some(tree);
            Ok(())
        };
        match self.file.finish(length, root).map(named) {
            Ok(Ok(())) => self.become_state(WriteState::Stored),
            Ok(Err(error)) => self.fail(error),
            Err(FinishError::Missing) => self.become_state(WriteState::Missing),
            Err(FinishError::Io(error)) => self.fail(self.target.io(error)),
            Err(FinishError::WrongRoot) => {
                self.status().is_removed = true;
                drop(self.target.remove_all());
                self.fail(WriteError::WrongRoot { path: self.target.path.clone() });
            }
        }
    }

    fn become_state(&self, state: WriteState) {
        self.status().state = state;
        self.changed.notify_all();
        self.pool.wake();
    }

    /// The first error is the one that is told.
    fn fail(&self, error: WriteError) {
        self.status().error.get_or_insert(error);
        self.changed.notify_all();
        self.pool.wake();
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    /// What cannot be gone on with is litter.
    fn drop(&mut self) {
        let status = self.status();
        let is_ours = status.state != WriteState::Stored && !status.is_removed;
        drop(status);
        if is_ours && (!self.has_journal || self.file.has_nothing()) {
            drop(self.target.remove_all());
        }
    }
}

#[cfg(test)]
mod tests;
