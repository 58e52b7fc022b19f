//! What the threads do with a file that is written.
//!
//! The invariant: each task that was started ends, and is counted until it has; the file is finished only
//! while none runs and nothing is left to be hashed again.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::Bytes;

use super::target::Target;
use super::{Assembly, WriteSettings, WriteState};
use crate::errors::{ReadError, WriteError};
use crate::offer::Root;
use crate::packing::Unpacker;
use crate::pool::{PoolHandle, WriteClaim};
use crate::reader::SourceFile;
use crate::unfinished::{FinishError, Unfinished};
use haulier_proto::connection::{BlockTree, ChunkValue};

/// Chains of chunks that are hashed again at the same time, when the threads have nothing better to do.
const CHECKS_AT_ONCE: usize = 2;

/// What is said of a task that panicked.
const FAILED: &str = "a part of this program failed";

/// A file that is written, as its threads see it.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) target: Target,
    settings: WriteSettings,
    pub(super) file: Unfinished<File>,
    has_journal: bool,
    pub(super) pool: PoolHandle,
    /// The clock of the checkpoints.
    opened: Instant,
    /// What was pushed before the file was discarded does not count.
    discards: AtomicU32,
    /// The names of the file and its journal are on the disk.
    has_synced_names: AtomicBool,
    status: Mutex<Status>,
    pub(super) changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct Status {
    pub(super) state: WriteState,
    /// Tasks that wait or are being done.
    pub(super) pending: usize,
    /// Length and root, when it is to be finished.
    pub(super) wanted: Option<(u64, Root)>,
    pub(super) written: VecDeque<Range<u64>>,
    /// Chunks that could not be put together.
    pub(super) unread: VecDeque<(Range<u64>, ReadError)>,
    pub(super) tree: Option<BlockTree>,
    pub(super) error: Option<WriteError>,
    /// What is beside the target is not ours any more.
    is_removed: bool,
}

/// Something to write.
pub(super) enum Task {
    Write { offset: u64, bytes: Bytes, value: Option<ChunkValue>, claim: WriteClaim },
    Unpack { offset: u64, max_bytes: u64, packed: Vec<Bytes>, claim: WriteClaim },
    Assemble { older: Arc<SourceFile>, assembly: Assembly, claim: WriteClaim },
}

impl Inner {
    pub(super) fn new(
        target: Target,
        settings: WriteSettings,
        file: Unfinished<File>,
        has_journal: bool,
        pool: PoolHandle,
    ) -> Arc<Self> {
        let checks = CHECKS_AT_ONCE.min(file.unchecked());
        let inner = Arc::new(Self {
            target,
            settings,
            file,
            has_journal,
            pool,
            opened: Instant::now(),
            discards: AtomicU32::new(0),
            has_synced_names: AtomicBool::new(false),
            status: Mutex::default(),
            changed: Condvar::new(),
        });
        (0..checks).for_each(|_| Self::check_next(&inner));
        inner
    }

    pub(super) fn start(inner: &Arc<Self>, task: Task) {
        let discards = inner.discards.load(Ordering::Relaxed);
        let (this, pool) = (Pending::begin(inner), &inner.pool);
        match task {
            Task::Write { offset, bytes, value, claim } => pool.run(move || {
                this.attempt(discards, || this.write(offset, &bytes, value));
                let range = offset..offset + bytes.len() as u64;
                drop((bytes, claim));
                this.end(|status| status.written.push_back(range));
            }),
            Task::Unpack { offset, max_bytes, packed, claim } => pool.run(move || {
                let mut end = offset;
                this.attempt(discards, || this.unpack(&mut end, max_bytes, &packed));
                drop((packed, claim));
                this.end(|status| status.written.push_back(offset..end));
            }),
            Task::Assemble { older, assembly, claim } => pool.run(move || {
                let range = assembly.range.clone();
                let bytes = assembly.bytes(&older);
                if let Ok(bytes) = &bytes {
                    this.attempt(discards, || this.write(range.start, bytes, None));
                }
                drop((assembly, claim));
                this.end(|status| match bytes {
                    Ok(_) => status.written.push_back(range),
                    Err(error) => status.unread.push_back((range, error)),
                });
            }),
        }
    }

    /// Does this, unless it is of no use any more.
    fn attempt(&self, discards: u32, write: impl FnOnce() -> Result<(), WriteError>) {
        let is_void =
            self.discards.load(Ordering::Relaxed) != discards || self.status().error.is_some();
        if is_void {
            return;
        }
        if let Err(error) = write() {
            self.fail(error);
        }
    }

    fn write(
        &self,
        offset: u64,
        bytes: &[u8],
        value: Option<ChunkValue>,
    ) -> Result<(), WriteError> {
        let written = match value {
            Some(value) => self.file.write_chunk(offset, bytes, value),
            None => self.file.write_at(offset, bytes),
        };
        let written = written.and_then(|()| self.checkpoint_if_due());
        written.map(drop).map_err(|error| self.target.io(error))
    }

    fn unpack(&self, end: &mut u64, max_bytes: u64, packed: &[Bytes]) -> Result<(), WriteError> {
        let damaged = || WriteError::BadPacked { path: self.target.path.clone() };
        let mut unpacker = Unpacker::new(max_bytes).map_err(|error| self.target.io(error))?;
        for bytes in packed {
            unpacker.give(bytes);
            while let Some(chunk) = unpacker.next_chunk().map_err(|_| damaged())? {
                self.write(*end, &chunk, None)?;
                *end += chunk.len() as u64;
            }
        }
        if unpacker.is_done() { Ok(()) } else { Err(damaged()) }
    }

    fn end_task(self: &Arc<Self>, report: impl FnOnce(&mut Status)) {
        let mut status = self.status();
        status.pending -= 1;
        report(&mut status);
        let is_first = status.written.len() + status.unread.len() == 1;
        drop(status);
        self.changed.notify_all();
        // A program that has not taken the earlier reports yet finds this one with them.
        if is_first {
            self.pool.wake();
        }
        Self::advance(self);
    }

    /// Hashes a chunk again, and then the next, when nothing is urgent.
    fn check_next(inner: &Arc<Self>) {
        let this = Arc::clone(inner);
        inner.pool.run_when_idle(move || {
            let check = || Arc::clone(&this).check_one();
            if catch_unwind(AssertUnwindSafe(check)).is_err() {
                this.fail(this.target.io(io::Error::other(FAILED)));
            }
        });
    }

    fn check_one(self: Arc<Self>) {
        if self.status().error.is_some() {
            return;
        }
        let Some(index) = self.file.next_to_check() else { return };
        // Nothing may be written meanwhile that makes a checkpoint due.
        match self.file.check(index).and_then(|_| self.checkpoint_if_due()) {
            Ok(_) => Self::check_next(&self),
            Err(error) => self.fail(self.target.io(error)),
        }
        Self::advance(&self);
    }

    /// Makes a checkpoint if one is due.
    fn checkpoint_if_due(&self) -> io::Result<bool> {
        let (elapsed, interval) = (self.opened.elapsed(), self.settings.checkpoint_interval);
        let is_made = self.file.checkpoint_if_due(elapsed, interval)?;
        if is_made {
            self.sync_names()?;
        }
        Ok(is_made)
    }

    /// What a checkpoint covers is there after a loss of power only if the file and its journal have their
    /// names then: once for all checkpoints. A file that is done sooner costs no such sync.
    fn sync_names(&self) -> io::Result<()> {
        match self.has_synced_names.swap(true, Ordering::Relaxed) {
            true => Ok(()),
            false => self.target.folder().sync(),
        }
    }

    /// Goes on to the end, when nothing is left to write or to hash.
    pub(super) fn advance(inner: &Arc<Self>) {
        let mut status = inner.status();
        let is_idle = status.pending == 0 && inner.file.unchecked() == 0 && status.error.is_none();
        let wanted = if is_idle { status.wanted.take() } else { None };
        drop(status);
        if let Some((length, root)) = wanted {
            let this = Pending::begin(inner);
            inner.pool.run(move || {
                this.conclude(length, &root);
                this.end(|_| ());
            });
        }
    }

    fn conclude(self: &Arc<Self>, length: u64, root: &Root) {
        let tree = match self.file.finish(length, root) {
            Ok(tree) => tree,
            Err(FinishError::Missing) => return self.become_state(WriteState::Missing),
            Err(FinishError::Io(error)) => return self.fail(self.target.io(error)),
            Err(FinishError::WrongRoot) => {
                self.discard();
                return self.become_state(WriteState::WrongRoot);
            }
        };
        if let Err(error) = self.target.give_name(self.file.data(), &self.settings) {
            return self.fail(error);
        }
        let this = Arc::clone(self);
        // Others that get their names meanwhile are in the same sync.
        let folder = Arc::clone(self.target.folder());
        let sync = move |_: &Path| folder.sync();
        self.pool.sync_together(self.target.folder().path(), sync, move |synced| {
            match synced.and_then(|()| this.target.remove_journal()) {
                Ok(()) => {
                    this.status().tree = Some(tree);
                    this.become_state(WriteState::Stored);
                }
                Err(error) => this.fail(this.target.io(error)),
            }
        });
    }

    pub(super) fn discard(&self) {
        self.discards.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = self.file.discard() {
            self.fail(self.target.io(error));
        }
    }

    fn become_state(&self, state: WriteState) {
        self.status().state = state;
        self.changed.notify_all();
        self.pool.wake();
    }

    /// The first error is the one that is reported.
    fn fail(&self, error: WriteError) {
        self.status().error.get_or_insert(error);
        self.changed.notify_all();
        self.pool.wake();
    }

    pub(super) fn abandon(&self) -> Result<(), WriteError> {
        let mut status = self.status();
        if status.state == WriteState::Stored {
            return Ok(());
        }
        status.error = Some(self.target.io(io::ErrorKind::Interrupted.into()));
        status.is_removed = true;
        self.target.remove_all().map_err(|error| self.target.io(error))
    }

    /// The writer is dropped: the bytes that came are made safe for the next time.
    pub(super) fn leave(inner: &Arc<Self>) {
        let status = inner.status();
        let is_unfinished = status.error.is_none() && status.state != WriteState::Stored;
        drop(status);
        if inner.has_journal && is_unfinished {
            let (inner, pool) = (Arc::clone(inner), inner.pool.clone());
            // If it fails, what no checkpoint covers is hashed again the next time.
            let checkpoint = move || inner.file.checkpoint().and_then(|()| inner.sync_names());
            pool.run(move || drop(checkpoint()));
        }
    }

    pub(super) fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that was started, and counts until it has ended: also one that panics, or that the pool drops
/// because it ends. Then the file fails, and does not stay pending.
struct Pending {
    inner: Arc<Inner>,
    has_ended: bool,
}

impl Pending {
    fn begin(inner: &Arc<Inner>) -> Self {
        inner.status().pending += 1;
        Self { inner: Arc::clone(inner), has_ended: false }
    }

    fn end(mut self, report: impl FnOnce(&mut Status)) {
        self.has_ended = true;
        self.inner.end_task(report);
    }
}

impl Deref for Pending {
    type Target = Arc<Inner>;

    fn deref(&self) -> &Arc<Inner> {
        &self.inner
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.has_ended {
            let error = self.inner.target.io(io::Error::other(FAILED));
            // In one step: whoever waits for the error finds the task ended.
            self.inner.end_task(|status| {
                status.error.get_or_insert(error);
            });
        }
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
