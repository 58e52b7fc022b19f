//! A file in the making: chunks are written in any order, noted, hashed again where that is due, and in the
//! end the whole is compared with its root.
//!
//! No thread, no clock, no name: [`writer`](crate::writer) adds those. All calls may come from several
//! threads.
//!
//! The invariant: [`Unfinished::finish`] succeeds only if every chunk was either written by this object or
//! read back by it, the values of these bytes join to the root that was promised, and the data was synced
//! after the last write. So a journal that is wrong, or a disk that lied before a crash, costs time and
//! never a wrong file.

mod chunk_states;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::chunk_states::{Chunks, State};
use crate::chunks::{CHUNK_BYTES, chunk_count, chunk_range, zeros};
use crate::journal::{Belief, FileIdentity, Journal};
use crate::offer::Root;
use crate::ranges::Ranges;
use crate::storage::Storage;
use haulier_proto::connection::{BlockTree, ChunkValue};

/// A file of which some chunks are here.
#[derive(Debug)]
pub struct Unfinished<S> {
    data: S,
    /// None of a file that is so short that it would rather come again.
    journal: Option<Journal<S>>,
    length: Option<u64>,
    chunks: Mutex<Chunks>,
    /// When the last checkpoint began; locked while one is made.
    last_checkpoint: Mutex<Option<Duration>>,
    /// Notes that the last checkpoint of this object covers.
    covered: AtomicU32,
    /// Whether what was not written by this object is zeros, in the whole length.
    is_blank: AtomicBool,
    syncing: Mutex<()>,
    /// After a sync that failed nothing is known of what is on the disk: Linux reports it only once.
    is_broken: AtomicBool,
}

/// Why a file cannot be finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinishError {
    /// Some chunks are not here, or not yet hashed again.
    #[error("some of it is missing")]
    Missing,
    /// All is here, and it is another file.
    #[error("what was received is not what was promised: its BLAKE3 differs")]
    WrongRoot,
    /// The disk failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl<S: Storage> Unfinished<S> {
    /// Begins a file; without a journal it cannot be gone on with later.
    pub fn create(data: S, journal: Option<S>, identity: &FileIdentity) -> io::Result<Self> {
        let journal = journal.map(|storage| Journal::create(storage, identity)).transpose()?;
        Ok(Self::new(data, journal, identity))
    }

    /// Before a file is begun where another one was: nothing is left of that. Its journal is gone for good
    /// before its data: killed or without power between the two, it would vouch for what is blank.
    ///
    /// # Errors
    /// What the disk says.
    pub fn clear(data: &S, journal: Option<&S>) -> io::Result<()> {
        // Also an empty journal beside data: the sync that was to make it empty may have failed.
        if let Some(journal) = journal
            && (journal.length()? > 0 || data.length()? > 0)
        {
            journal.set_length(0)?;
            journal.sync()?;
        }
        data.set_length(0)
    }

    /// Goes on with a file, if the journal is one of it; else begins it. What no checkpoint covers, a
    /// second's worth, is hashed again and written again at once: a loss of power may have taken some of it,
    /// and whoever asks for the rest has to know; and of what a failed sync left in the system's memory no
    /// later sync would write anything, though it reads as if it were there. So the journal is written again,
    /// too, and the length is set once more: without them no checkpoint is worth anything.
    pub fn resume(data: S, journal: S, identity: &FileIdentity) -> io::Result<Self> {
        let (journal, recovered) = match Journal::open(journal, identity)? {
            Ok(opened) => opened,
            Err((storage, _)) => return Self::create(data, Some(storage), identity),
        };
        let data_bytes = data.length()?;
        data.set_length(data_bytes)?;
        let file = Self::new(data, Some(journal), identity);
        let length = identity.length().unwrap_or_default();
        for (index, value, belief) in recovered.chunks() {
            if chunk_range(length, index).end > data_bytes {
                continue;
            }
            match belief {
                Belief::Written => file.write_again(index, value)?,
                Belief::Synced => {
                    let mut chunks = file.chunks();
                    chunks.set(index, value, State::Unchecked);
                    chunks.to_check.push_back(index);
                }
            }
        }
        Ok(file)
    }

    fn write_again(&self, index: u32, value: ChunkValue) -> io::Result<()> {
        match self.read(index)?.filter(|bytes| self.value(index, bytes) == value) {
            Some(bytes) => {
                self.store(index, &bytes, true)?;
                self.chunks().set(index, value, State::Here);
                Ok(())
            }
            // No checkpoint may vouch for it.
            None => self.journal.as_ref().map_or(Ok(()), |journal| journal.note_missing(index)),
        }
    }

    /// A chunk as it is in the file now, if all of it is there.
    fn read(&self, index: u32) -> io::Result<Option<Vec<u8>>> {
        let range = chunk_range(self.length.unwrap_or_default(), index);
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let count = self.data.read_at(&mut bytes, range.start)?;
        Ok((count == bytes.len() && count > 0).then_some(bytes))
    }

    fn new(data: S, journal: Option<Journal<S>>, identity: &FileIdentity) -> Self {
        let length = identity.length();
        let chunks = Chunks::new(length.map_or(0, chunk_count));
        Self {
            data,
            journal,
            length,
            chunks: Mutex::new(chunks),
            last_checkpoint: Mutex::new(None),
            // Whatever there is, the first checkpoint is not superfluous.
            covered: AtomicU32::new(u32::MAX),
            is_blank: AtomicBool::new(false),
            syncing: Mutex::default(),
            is_broken: AtomicBool::new(false),
        }
    }

    /// Its data is as long as the file, and all zeros: chunks of zeros need not be written.
    #[must_use]
    pub fn with_blank_data(self) -> Self {
        self.is_blank.store(self.length.is_some(), Ordering::Relaxed);
        self
    }

    /// Writes bytes anywhere in the file. A chunk that came in pieces is read back and noted when it is
    /// whole.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        if self.length.is_some_and(|length| end > length) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut rest = bytes;
        let mut start = offset;
        while !rest.is_empty() {
            let index = u32::try_from(start / CHUNK_BYTES as u64).map_err(io::Error::other)?;
            let chunk = chunk_range(self.length.unwrap_or(u64::MAX), index);
            let here = start..end.min(chunk.end);
            let piece;
            (piece, rest) = rest.split_at((here.end - here.start) as usize);
            start = here.end;
            match here == chunk {
                true => self.write(index, piece)?,
                false => self.write_piece(index, here, &chunk, piece)?,
            }
        }
        Ok(())
    }

    fn write_piece(
        &self,
        index: u32,
        here: Range<u64>,
        chunk: &Range<u64>,
        bytes: &[u8],
    ) -> io::Result<()> {
        self.check_broken()?;
        self.forget(index);
        self.data.write_at(bytes, here.start)?;
        let mut chunks = self.chunks();
        let pieces = chunks.partial.entry(index).or_default();
        pieces.insert(here);
        if !pieces.contains(chunk) {
            return Ok(());
        }
        drop(chunks);
        self.settle(index, chunk)
    }

    /// What is written now may be half-written when the disk fails: whatever was there is not what was
    /// noted any more.
    fn forget(&self, index: u32) {
        self.chunks().forget(index);
    }

    /// All pieces of a chunk are here.
    fn settle(&self, index: u32, chunk: &Range<u64>) -> io::Result<()> {
        let mut bytes = vec![0; (chunk.end - chunk.start) as usize];
        if self.data.read_at(&mut bytes, chunk.start)? < bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.note(index, self.value(index, &bytes))
    }

    /// The value of a chunk; of what has no known length, as if it were long.
    fn value(&self, index: u32, bytes: &[u8]) -> ChunkValue {
        ChunkValue::of(self.length.unwrap_or(u64::MAX), index, bytes)
    }

    fn note(&self, index: u32, value: ChunkValue) -> io::Result<()> {
        if let Some(journal) = &self.journal {
            journal.note(index, value)?;
        }
        let mut chunks = self.chunks();
        chunks.set(index, value, State::Here);
        chunks.partial.remove(&index);
        Ok(())
    }

    /// Writes verified bytes. A whole chunk is not hashed again: `value` is its value in the file's tree.
    pub fn write_chunk(&self, offset: u64, bytes: &[u8], value: ChunkValue) -> io::Result<()> {
        let index = u32::try_from(offset / CHUNK_BYTES as u64).map_err(io::Error::other)?;
        debug_assert_eq!(value, self.value(index, bytes));
        match self.length.map(|length| chunk_range(length, index)) {
            Some(range) if range == (offset..offset + bytes.len() as u64) => {
                self.write_valued(index, bytes, Some(value))
            }
            _ => self.write_at(offset, bytes),
        }
    }

    /// Writes a chunk that was verified, and notes it. A chunk of zeros becomes a hole, now or at the end.
    pub fn write(&self, index: u32, bytes: &[u8]) -> io::Result<()> {
        self.write_valued(index, bytes, None)
    }

    fn write_valued(&self, index: u32, bytes: &[u8], value: Option<ChunkValue>) -> io::Result<()> {
        let fits = self.length.is_none_or(|length| {
            let range = chunk_range(length, index);
            range.end - range.start == bytes.len() as u64
        });
        if bytes.is_empty() || bytes.len() > CHUNK_BYTES || !fits {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.check_broken()?;
        let value = value.unwrap_or_else(|| self.value(index, bytes));
        let was_written = self.was_written(index);
        self.forget(index);
        let stored = self.store(index, bytes, was_written);
        if stored.is_err() {
            // Some of it may have been written.
            self.is_blank.store(false, Ordering::Relaxed);
        }
        stored?;
        self.note(index, value)
    }

    /// Whether there may be something in the place of this chunk.
    fn was_written(&self, index: u32) -> bool {
        let chunks = self.chunks();
        chunks.state(index) != State::Missing || chunks.partial.contains_key(&index)
    }

    fn store(&self, index: u32, bytes: &[u8], was_written: bool) -> io::Result<()> {
        let (offset, length) = (u64::from(index) * CHUNK_BYTES as u64, bytes.len() as u64);
        let is_zero = is_zero(bytes);
        let mut chunks = self.chunks();
        let is_blank = self.is_blank.load(Ordering::Relaxed) && !was_written;
        let at = u64::from(index)..u64::from(index) + 1;
        if is_zero && is_blank {
            chunks.zeros.insert(at);
        } else {
            chunks.zeros.remove(&at);
        }
        drop(chunks);
        if is_zero && (is_blank || self.data.punch_hole(offset, length)?) {
            return Ok(());
        }
        self.data.write_at(bytes, offset)
    }

    /// The space of chunks that are zeros, in as few calls as possible: while they come, each would be a
    /// change of the file system's lists of what is where.
    fn punch_zeros(&self, length: u64) -> io::Result<()> {
        let zeros = std::mem::take(&mut self.chunks().zeros);
        for run in zeros.iter() {
            let [start, end] = [run.start, run.end].map(|it| (it * CHUNK_BYTES as u64).min(length));
            if start < end && !self.data.punch_hole(start, end - start)? {
                break;
            }
        }
        Ok(())
    }

    /// Makes a checkpoint if the last one began `interval` ago or earlier; returns whether it made one. The
    /// first call starts the time.
    pub fn checkpoint_if_due(&self, now: Duration, interval: Duration) -> io::Result<bool> {
        // Held by another thread: that one is making it.
        let Ok(mut last) = self.last_checkpoint.try_lock() else { return Ok(false) };
        let since = now.saturating_sub(*last.get_or_insert(now));
        if since < interval || self.journal.is_none() {
            return Ok(false);
        }
        *last = Some(now);
        self.checkpoint()?;
        Ok(true)
    }

    /// Syncs the data, and says so in the journal.
    pub fn checkpoint(&self) -> io::Result<()> {
        self.check_broken()?;
        let Some(journal) = &self.journal else { return Ok(()) };
        // Counted before the sync: a chunk that is written while it runs may not be on the disk after it.
        let covered = journal.notes();
        if self.covered.load(Ordering::Relaxed) == covered {
            return Ok(());
        }
        let done = self.sync().and_then(|()| journal.checkpoint(covered));
        self.covered.store(covered, Ordering::Relaxed);
        self.is_broken.fetch_or(done.is_err(), Ordering::Relaxed);
        done
    }

    /// Syncs the data, one thread at a time: of two syncs at once the system reports a failure to only one.
    fn sync(&self) -> io::Result<()> {
        let _only = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_broken()?;
        let done = self.data.sync();
        self.is_broken.fetch_or(done.is_err(), Ordering::Relaxed);
        done
    }

    fn check_broken(&self) -> io::Result<()> {
        match self.is_broken.load(Ordering::Relaxed) {
            true => Err(io::Error::other("the disk failed before")),
            false => Ok(()),
        }
    }

    /// The next chunk to be hashed again with [`Unfinished::check`], each once.
    pub fn next_to_check(&self) -> Option<u32> {
        let mut chunks = self.chunks();
        loop {
            let index = chunks.to_check.pop_front()?;
            if chunks.state(index) == State::Unchecked {
                return Some(index);
            }
        }
    }

    /// Hashes a chunk again that the journal has. If it is another one, it is missing from now on.
    pub fn check(&self, index: u32) -> io::Result<bool> {
        let bytes = self.read(index)?;
        let value = bytes.as_ref().map(|bytes| self.value(index, bytes));
        let is_zero = bytes.is_some_and(|bytes| is_zero(&bytes));
        let mut chunks = self.chunks();
        if chunks.state(index) != State::Unchecked {
            return Ok(true); // it was written again meanwhile
        }
        let noted = chunks.value(index);
        if value == Some(noted) {
            chunks.set(index, noted, State::Here);
            if is_zero {
                chunks.zeros.insert(u64::from(index)..u64::from(index) + 1);
            }
            return Ok(true);
        }
        // No checkpoint may vouch for it.
        if let Some(journal) = &self.journal {
            journal.note_missing(index)?;
        }
        chunks.forget(index);
        Ok(false)
    }

    /// Chunks that the journal has and that were not hashed again yet.
    pub fn unchecked(&self) -> usize {
        self.chunks().unchecked
    }

    /// Whether a chunk is here, as far as is known now.
    pub fn is_here(&self, index: u32) -> bool {
        self.chunks().state(index) != State::Missing
    }

    /// The chunks that are here, as far as is known now.
    pub fn here(&self) -> Ranges {
        self.chunks().present()
    }

    /// The chunks that are missing, as far as is known now, in runs. Of a file of unknown length: those
    /// before the last one that is here.
    pub fn missing(&self) -> Vec<Range<u32>> {
        let chunks = self.chunks();
        let missing = chunks.present().missing_below(u64::from(chunks.count()));
        let index = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        missing.iter().map(|run| index(run.start)..index(run.end)).collect()
    }

    /// Forgets all that is here: what was put together was wrong. The journal forgets it on the disk, too, or
    /// it would vouch for what is written over it after a loss of power.
    pub fn discard(&self) -> io::Result<()> {
        let mut chunks = self.chunks();
        self.covered.store(u32::MAX, Ordering::Relaxed);
        self.is_blank.store(false, Ordering::Relaxed);
        *chunks = chunks.emptied();
        self.journal.as_ref().map_or(Ok(()), Journal::clear)
    }

    /// Makes it a file of this length, and its root the one that was promised; then all of it is on the disk.
    pub fn finish(&self, length: u64, root: &Root) -> Result<BlockTree, FinishError> {
        self.check_broken()?;
        self.settle_last(length)?;
        let values = self.values(chunk_count(length))?;
        self.data.set_length(length)?;
        let tree = self.tree(length, values)?;
        if tree.digest() != root {
            return Err(FinishError::WrongRoot);
        }
        self.punch_zeros(length)?;
        self.sync()?;
        Ok(tree)
    }

    /// Where the last chunk of a pipe ends is known only at the end.
    fn settle_last(&self, length: u64) -> io::Result<()> {
        let Some(index) = chunk_count(length).checked_sub(1) else { return Ok(()) };
        let chunk = chunk_range(length, index);
        let is_whole =
            self.chunks().partial.get(&index).is_some_and(|pieces| pieces.contains(&chunk));
        if is_whole { self.settle(index, &chunk) } else { Ok(()) }
    }

    /// The values of the chunks, if all of them are here for certain.
    fn values(&self, count: u32) -> Result<Vec<ChunkValue>, FinishError> {
        self.chunks().values(count).ok_or(FinishError::Missing)
    }

    fn tree(&self, length: u64, values: Vec<ChunkValue>) -> io::Result<BlockTree> {
        if length > CHUNK_BYTES as u64 || self.length.is_some() {
            return BlockTree::from_values(length, values).map_err(io::Error::other);
        }
        // What was thought to be long is a single chunk, which has another value.
        let mut bytes = vec![0; chunk_range(length, 0).end as usize];
        let count = self.data.read_at(&mut bytes, 0)?;
        Ok(BlockTree::of(&bytes[..count]))
    }

    /// Whether no chunk is here.
    pub(crate) fn has_nothing(&self) -> bool {
        self.chunks().has_nothing()
    }

    pub(crate) const fn data(&self) -> &S {
        &self.data
    }

    fn chunks(&self) -> MutexGuard<'_, Chunks> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    zeros().get(..bytes.len()) == Some(bytes)
}

#[cfg(test)]
mod tests;
