//! What of an unfinished file is here: its chunks and their values, noted as they are written.
//!
//! A head says which file it is to become ([`FileIdentity`]). Then come lines, only ever appended: a *note*
//! for each chunk that was written, and *checkpoints*. A note is written as soon as its chunk is, so that
//! it survives the end of the process; neither has to be on the disk yet. Once a second the data is synced,
//! then a checkpoint says how many notes were there **before that sync began**, then the journal is synced.
//! Notes that came meanwhile stand before the checkpoint too, and are not covered by it.
//!
//! | | bytes |
//! |---|---|
//! | head | magic and version 8; length of the name 2; flags 1; root 32; length 8; time 8; name; check 4 |
//! | note | `N`; index 4; value 32, zeros if the chunk was found not to be here; check 4 |
//! | checkpoint | `C`; covered notes 4; check 4 |
//!
//! Numbers are little endian, checks CRC-32. 100 GB are 381,470 chunks and 15.6 MB of journal.
//!
//! The invariant: a chunk is [`Belief::Synced`] only if its last note was there before a sync of the data
//! that succeeded, and every byte of the journal up to that checkpoint is as it was written. That a disk
//! keeps what it says it synced is not taken for granted: all of it is hashed again before the file gets
//! its name.

mod identity;
mod lines;

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use identity::FileIdentity;
use lines::{Line, Lines};

use crate::chunks::chunk_count;
use crate::storage::Storage;
use haulier_proto::connection::ChunkValue;

/// The value that says that a chunk is not here. No bytes are known that have it.
const MISSING: ChunkValue = ChunkValue::from_bytes([0; 32]);

/// The longest that the journal of a file of this size gets while it comes once: a note of each chunk as it
/// is written, at most twice, and another one if it is found to be gone; and a checkpoint for each note.
pub(crate) const fn max_journal_bytes(length: u64) -> u64 {
    let notes = 3 * (chunk_count(length) as u64 + SPARE_NOTES);
    FileIdentity::MAX_BYTES as u64 + notes * (lines::NOTE_BYTES + lines::CHECKPOINT_BYTES) as u64
}

/// Chunks beyond those of a file that are noted because parts begin at multiples of 1 MiB.
const SPARE_NOTES: u64 = 8;

/// Why a journal is of no use. Nothing is lost but what it says: the file begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// It does not begin as one.
    #[error("it is not a journal of this version")]
    NotAJournal,
    /// Its head is cut off or damaged.
    #[error("its head is damaged")]
    DamagedHead,
    /// It is of a file with another root, or of another version.
    #[error("it is of another file")]
    OtherFile,
}

/// What a journal says of one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Belief {
    /// It was on the disk when a checkpoint was made.
    Synced,
    /// It was written later, and is hashed again before it counts.
    Written,
}

/// What a journal knows: the last note of each chunk.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// For each chunk its value and the number of its note, from 1; 0 if it has no note.
    chunks: Vec<(ChunkValue, u32)>,
    notes: u32,
    covered: u32,
}

/// The journal of an unfinished file, open to be appended to. Several threads may do so.
#[derive(Debug)]
pub struct Journal<S> {
    storage: S,
    /// Where the first line begins.
    start: Tail,
    tail: Mutex<Tail>,
}

/// A journal that is gone on with; or what it was in, and why not.
pub type Opened<S> = Result<(Journal<S>, Recovered), (S, JournalError)>;

/// Where the journal ends.
#[derive(Clone, Copy, Debug)]
struct Tail {
    end: u64,
    chain: u32,
    notes: u32,
}

impl<S: Storage> Journal<S> {
    /// Begins a journal; what was in it before is gone.
    pub fn create(storage: S, identity: &FileIdentity) -> io::Result<Self> {
        let (head, chain) = identity.to_bytes();
        storage.set_length(0)?;
        storage.write_at(&head, 0)?;
        let start = Tail { end: head.len() as u64, chain, notes: 0 };
        Ok(Self { storage, start, tail: Mutex::new(start) })
    }

    /// Reads the journal of this file, writes it again and goes on with it; if it is not one of this file,
    /// the storage is given back.
    pub fn open(storage: S, wanted: &FileIdentity) -> io::Result<Opened<S>> {
        let mut head = vec![0; FileIdentity::MAX_BYTES];
        let head_bytes = storage.read_at(&mut head, 0)?;
        let (identity, chain, end) = match FileIdentity::read(&head[..head_bytes]) {
            Ok(read) => read,
            Err(error) => return Ok(Err((storage, error))),
        };
        if !identity.is_same_content(wanted) {
            return Ok(Err((storage, JournalError::OtherFile)));
        }
        let mut recovered = Recovered::new(identity.length());
        let mut lines = Lines::new(&storage, end as u64, chain);
        let start = Tail { end: end as u64, chain, notes: 0 };
        let mut tail = start;
        while let Some(line) = lines.read_next()? {
            if !recovered.add(line) {
                break;
            }
            (tail.end, tail.chain) = lines.end();
        }
        tail.notes = recovered.notes;
        // What is behind the last good line must not look like a continuation of the next one.
        storage.set_length(tail.end)?;
        write_again(&storage, tail.end)?;
        Ok(Ok((Self { storage, start, tail: Mutex::new(tail) }, recovered)))
    }

    /// Whether this is the journal of that file. Nothing of it is changed.
    pub(crate) fn is_of(storage: &S, wanted: &FileIdentity) -> io::Result<bool> {
        let mut head = vec![0; FileIdentity::MAX_BYTES];
        let head_bytes = storage.read_at(&mut head, 0)?;
        let read = FileIdentity::read(&head[..head_bytes]);
        Ok(read.is_ok_and(|(identity, ..)| identity.is_same_content(wanted)))
    }

    /// Notes a chunk that was written.
    pub fn note(&self, index: u32, value: ChunkValue) -> io::Result<()> {
        let mut tail = self.tail();
        self.append(&mut tail, Line::Note(index, value))?;
        tail.notes = tail.notes.saturating_add(1);
        Ok(())
    }

    /// Notes that a chunk that was noted is not there.
    pub fn note_missing(&self, index: u32) -> io::Result<()> {
        self.note(index, MISSING)
    }

    /// The number of notes in the journal: a checkpoint covers them if the data is synced after this call.
    pub fn notes(&self) -> u32 {
        self.tail().notes
    }

    /// Writes a checkpoint: the chunks of the first `covered` notes are on the disk. It returns when the
    /// checkpoint is on the disk, too.
    pub fn checkpoint(&self, covered: u32) -> io::Result<()> {
        self.append(&mut self.tail(), Line::Checkpoint(covered))?;
        self.storage.sync()
    }

    /// Forgets all notes, on the disk too.
    pub fn clear(&self) -> io::Result<()> {
        let mut tail = self.tail();
        *tail = self.start;
        self.storage.set_length(tail.end)?;
        self.storage.sync()
    }

    /// A write that failed half-way is written over by the next.
    fn append(&self, tail: &mut Tail, line: Line) -> io::Result<()> {
        let (bytes, chain) = line.to_bytes(tail.chain);
        self.storage.write_at(&bytes, tail.end)?;
        tail.end += bytes.len() as u64;
        tail.chain = chain;
        Ok(())
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes all of it once more, in place. A failed sync may have left lines in the system's memory that no
/// later sync writes, and without them no line after them counts; which sync of which earlier process failed
/// is unknown. Each byte stays as it was, so that a crash half-way changes nothing.
fn write_again(storage: &impl Storage, end: u64) -> io::Result<()> {
    let mut buffer = vec![0; lines::READ_BYTES];
    let mut offset = 0;
    while offset < end {
        let count = (end - offset).min(buffer.len() as u64) as usize;
        let part = &mut buffer[..count];
        if storage.read_at(part, offset)? < count {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        storage.write_at(part, offset)?;
        offset += count as u64;
    }
    Ok(())
}

impl Recovered {
    /// What has no known length is never gone on with: it has no chunks.
    fn new(length: Option<u64>) -> Self {
        let chunks = length.map_or(0, chunk_count) as usize;
        Self { chunks: vec![(MISSING, 0); chunks], notes: 0, covered: 0 }
    }

    /// `false` if no journal of this file can have such a line, so that it ends before.
    fn add(&mut self, line: Line) -> bool {
        match line {
            Line::Note(index, value) => {
                let Some(chunk) = self.chunks.get_mut(index as usize) else { return false };
                self.notes = self.notes.saturating_add(1);
                *chunk = (value, self.notes);
            }
            Line::Checkpoint(covered) => {
                if covered < self.covered || covered > self.notes {
                    return false;
                }
                self.covered = covered;
            }
        }
        true
    }

    /// The chunks that were noted, each once, in order.
    pub fn chunks(&self) -> impl Iterator<Item = (u32, ChunkValue, Belief)> + '_ {
        let noted = (0..).zip(&self.chunks).filter(|(_, (value, _))| *value != MISSING);
        noted.map(|(index, &(value, number))| match number <= self.covered {
            true => (index, value, Belief::Synced),
            false => (index, value, Belief::Written),
        })
    }
}

#[cfg(test)]
mod tests;
