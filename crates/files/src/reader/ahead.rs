//! Reading ahead of the network: what is asked for is read on the pool's threads, compared with what was
//! hashed, and taken when it is there.
//!
//! The invariant: at most [`MAX_READ_AHEAD`] pieces are asked for and not taken, so that they are all the
//! memory that a file takes. What is taken has the bytes that the file had when it was opened, as far as
//! its length, its time and its tree show.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::source::SourceFile;
use crate::chunks::{self, CHUNK_BYTES, chunk_range};
use crate::errors::{Change, ReadError};
use crate::pool::PoolHandle;
use haulier_proto::connection::BlockTree;

/// Pieces that may be asked for and not taken: 4 MiB, 30 ms at 1 Gbit/s, more than a disk takes to seek.
pub const MAX_READ_AHEAD: usize = 16;

/// What was asked for is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// [`MAX_READ_AHEAD`] pieces are asked for; one has to be taken first.
    #[error("{MAX_READ_AHEAD} pieces are asked for already")]
    Full,
    /// It is more than a chunk, or not in the file.
    #[error("it is more than a chunk, or behind the end of the file")]
    OutOfRange,
}

/// A file that is read ahead.
#[derive(Debug)]
pub struct FileReader {
    shared: Arc<Shared>,
    pool: PoolHandle,
    /// Asked for and not taken.
    asked: usize,
}

/// What the bytes have to be: a chunk of this block, which may be the whole file, a part of it, or some
/// pieces.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The tree of the block.
    pub tree: BlockTree,
    /// Which of its chunks.
    pub index: u32,
}

struct Shared {
    file: SourceFile,
    done: Mutex<VecDeque<(u64, Result<Bytes, ReadError>)>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {} pieces read", self.file.path().display(), self.done().len())
    }
}

impl FileReader {
    /// Reads this file.
    pub fn new(pool: &PoolHandle, file: SourceFile) -> Self {
        let shared = Arc::new(Shared { file, done: Mutex::default() });
        Self { shared, pool: pool.clone(), asked: 0 }
    }

    /// The file.
    pub fn file(&self) -> &SourceFile {
        &self.shared.file
    }

    /// Pieces that can be asked for now.
    pub const fn room(&self) -> usize {
        MAX_READ_AHEAD - self.asked
    }

    /// Asks for the chunk of the file with this index, to be known by this number, and compared with the
    /// tree of the file, if there is one.
    ///
    /// # Errors
    /// [`AskError`], and then there is no answer.
    pub fn ask_chunk(
        &mut self,
        number: u64,
        index: u32,
        tree: Option<&BlockTree>,
    ) -> Result<(), AskError> {
        let range = chunk_range(self.file().version().bytes, index);
        if range.is_empty() {
            return Err(AskError::OutOfRange);
        }
        let expected = tree.map(|tree| Expected { tree: tree.clone(), index });
        self.ask(number, vec![range], expected)
    }

    /// Asks for these bytes of the file, one range behind the other and a chunk at most, to be known by this
    /// number: a chunk of a block, with which they are compared if its tree is given.
    ///
    /// # Errors
    /// [`AskError`], and then there is no answer.
    pub fn ask(
        &mut self,
        number: u64,
        ranges: Vec<Range<u64>>,
        expected: Option<Expected>,
    ) -> Result<(), AskError> {
        if self.room() == 0 {
            return Err(AskError::Full);
        }
        let file_bytes = self.file().version().bytes;
        let fits = |range: &Range<u64>| range.start <= range.end && range.end <= file_bytes;
        let lengths = ranges.iter().map(|range| range.end.saturating_sub(range.start));
        let length = lengths.fold(0, u64::saturating_add);
        if !ranges.iter().all(fits) || length > CHUNK_BYTES as u64 {
            return Err(AskError::OutOfRange);
        }
        self.asked += 1;
        let (shared, pool) = (Arc::clone(&self.shared), self.pool.clone());
        self.pool.run(move || {
            // The reader is dropped, so the result is not needed.
            if Arc::strong_count(&shared) == 1 {
                return;
            }
            let read = shared.read(&ranges, expected.as_ref());
            shared.done().push_back((number, read));
            pool.wake();
        });
        Ok(())
    }

    /// A piece that was asked for, in any order, with its number.
    pub fn take(&mut self) -> Option<(u64, Result<Bytes, ReadError>)> {
        let taken = self.shared.done().pop_front()?;
        self.asked -= 1;
        Some(taken)
    }
}

impl Shared {
    fn read(&self, ranges: &[Range<u64>], expected: Option<&Expected>) -> Result<Bytes, ReadError> {
        read_spans(&self.file, ranges, expected.map(|it| (&it.tree, it.index)))
    }

    fn done(&self) -> MutexGuard<'_, VecDeque<(u64, Result<Bytes, ReadError>)>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads these bytes of a file, one range behind the other, and compares them with a chunk of this tree.
pub(crate) fn read_spans(
    file: &SourceFile,
    ranges: &[Range<u64>],
    expected: Option<(&BlockTree, u32)>,
) -> Result<Bytes, ReadError> {
    let bytes = match ranges {
        [range] if file.is_hole(range) => zeros(range.end - range.start),
        _ => read(file, ranges)?,
    };
    // After the bytes, so that a change in between is found; before they are compared, for it says more.
    file.check()?;
    match expected {
        Some((tree, index)) if !tree.is_chunk(index, &bytes) => {
            Err(ReadError::changed(file.path(), Change::Bytes))
        }
        _ => Ok(bytes),
    }
}

/// A chunk of a hole, which takes no memory.
fn zeros(length: u64) -> Bytes {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let zeros = chunks::zeros();
    if length <= zeros.len() { zeros.slice(..length) } else { vec![0; length].into() }
}

fn read(file: &SourceFile, ranges: &[Range<u64>]) -> Result<Bytes, ReadError> {
    let length: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    let mut rest = bytes.as_mut_slice();
    for range in ranges {
        let (piece, behind) = rest.split_at_mut((range.end - range.start) as usize);
        file.read_exact(piece, range.start)?;
        rest = behind;
    }
    Ok(bytes.into())
}
