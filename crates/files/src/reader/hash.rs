//! Hashing a file with several threads.
//!
//! They share one counter: each takes the next four chunks, reads and hashes them. That is all the
//! scheduling that there is to do, the disk is read nearly in order, and it needs no library; BLAKE3's own
//! threads would want the file mapped into memory, where a file that shrinks kills the process.
//!
//! The invariant: a tree that is made is that of one version of the file; otherwise no tree is made.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::source::SourceFile;
use crate::chunks::{CHUNK_BYTES, chunk_count, chunk_range};
use crate::errors::{Change, ReadError};
use haulier_proto::connection::{BlockTree, ChunkValue};

/// Chunks that a thread reads at a time: 1 MiB, with which a disk is as fast as with more.
const CHUNKS_AT_ONCE: u32 = 4;

/// The number of bytes of a file that are hashed already: to be read by another thread.
#[derive(Debug, Default)]
pub struct HashProgress {
    bytes: AtomicU64,
}

impl HashProgress {
    /// Bytes that were hashed.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Hashes a file with `threads` threads, at least one.
pub fn hash_file(
    file: &SourceFile,
    threads: usize,
    progress: &HashProgress,
) -> Result<BlockTree, ReadError> {
    let length = file.version().bytes;
    let chunks = chunk_count(length);
    let next = AtomicU32::new(0);
    let values = Mutex::new(vec![ChunkValue::from_bytes([0; 32]); chunks as usize]);
    let work = || hash_some(file, &next, &values, progress);
    let useful = chunks.div_ceil(CHUNKS_AT_ONCE) as usize;
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(useful)).map(|_| scope.spawn(work)).collect();
        let mine = work();
        let panicked = || ReadError::io(file.path(), std::io::Error::other("a thread panicked"));
        others.into_iter().fold(mine, |result, other| {
            result.and(other.join().unwrap_or_else(|_| Err(panicked())))
        })
    })?;
    #[cfg(test)]
    drop(crate::moments::reach(crate::moments::Moment::Hashed));
    file.check()?;
    let values = values.into_inner().unwrap_or_else(PoisonError::into_inner);
    BlockTree::from_values(length, values)
        .map_err(|_| ReadError::changed(file.path(), Change::Bytes))
}

/// One thread's share: until none are left, or something is wrong, which ends the others as well.
fn hash_some(
    file: &SourceFile,
    next: &AtomicU32,
    values: &Mutex<Vec<ChunkValue>>,
    progress: &HashProgress,
) -> Result<(), ReadError> {
    let length = file.version().bytes;
    let chunks = chunk_count(length);
    // Of a hundred thousand short files not a MiB each is to be made and given back.
    let at_once = CHUNKS_AT_ONCE as usize * CHUNK_BYTES;
    let mut buffer = vec![0; usize::try_from(length).map_or(at_once, |length| length.min(at_once))];
    loop {
        let first = next.fetch_add(CHUNKS_AT_ONCE, Ordering::Relaxed);
        if first >= chunks {
            return Ok(());
        }
        let last = (first + CHUNKS_AT_ONCE - 1).min(chunks - 1);
        let (start, end) = (chunk_range(length, first).start, chunk_range(length, last).end);
        let bytes = &mut buffer[..(end - start) as usize];
        if let Err(error) = file.read_exact(bytes, start) {
            next.store(chunks, Ordering::Relaxed);
            return Err(error);
        }
        let hashed: Vec<ChunkValue> = (first..)
            .zip(bytes.chunks(CHUNK_BYTES))
            .map(|(index, chunk)| ChunkValue::of(length, index, chunk))
            .collect();
        let mut values = values.lock().unwrap_or_else(PoisonError::into_inner);
        values[first as usize..=last as usize].copy_from_slice(&hashed);
        progress.bytes.fetch_add(end - start, Ordering::Relaxed);
    }
}
