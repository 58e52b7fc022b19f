//! Parts of a file whose root is not known yet: each becomes a block of its own, and all of them together
//! give the root of the file.
//!
//! A chunk has one value in its part and another in its file, because BLAKE3 counts from the start of each.
//! So it is hashed twice, while it is in memory once.
//!
//! The invariant: [`FileHasher::root`] is the root of one version of the file, which was there from the first
//! value on that it knows. What was in no part is read for it; and after any change that the system shows
//! (ctime too, which no program can set back) all of it is read again.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

use super::ahead::read_spans;
use super::source::{FileVersion, SourceFile};
use crate::chunks::{CHUNK_BYTES, chunk_count, chunk_range};
use crate::errors::{Change, ReadError};
use haulier_proto::connection::{BlockTree, ChunkValue};

/// Chunks that are hashed at a time in the background: 4 ms, so that who makes a part waits no longer.
const CHUNKS_AT_ONCE: usize = 16;

/// How often a file is read for its root if something of it changes meanwhile, its mode or a link to it.
const MAX_READS: u32 = 3;

/// The values of a file's chunks, as far as they are known.
#[derive(Clone, Debug, Default)]
pub struct FileHasher {
    /// Of which version they are.
    version: Option<FileVersion>,
    values: BTreeMap<u32, ChunkValue>,
    /// All chunks before this one are known.
    next: u32,
}

impl FileHasher {
    /// What [`FileHasher::hash_next`] reads, in bytes.
    pub(crate) const BYTES_AT_ONCE: u64 = (CHUNKS_AT_ONCE * CHUNK_BYTES) as u64;

    /// Reads a part of a file, which begins where a chunk does: its tree, as a block. Its chunks are then
    /// known.
    ///
    /// # Errors
    /// [`ReadError`], also if the file changes meanwhile.
    pub fn hash_part(
        &mut self,
        file: &SourceFile,
        part: Range<u64>,
    ) -> Result<BlockTree, ReadError> {
        self.follow(file)?;
        let length = file.version().bytes;
        let first = part.start / CHUNK_BYTES as u64;
        hash_ranges(file, &[part], |index, bytes| {
            let index = u32::try_from(first).unwrap_or(u32::MAX).saturating_add(index);
            let range = chunk_range(length, index);
            // The last chunk of a part is whole in the file, or not known.
            if range.end - range.start == bytes.len() as u64 {
                self.values.insert(index, ChunkValue::of(length, index, bytes));
            }
        })
    }

    /// Reads a part in the same way, for its chunks, which are then known.
    pub(crate) fn read_part(
        &mut self,
        file: &SourceFile,
        part: Range<u64>,
    ) -> Result<Vec<Bytes>, ReadError> {
        self.follow(file)?;
        let length = file.version().bytes;
        let first = part.start / CHUNK_BYTES as u64;
        let mut chunks = Vec::new();
        for start in (part.start..part.end).step_by(CHUNK_BYTES) {
            let index = u32::try_from(first).unwrap_or(u32::MAX) + chunks.len() as u32;
            let range = start..part.end.min(start + CHUNK_BYTES as u64);
            let chunk = read_spans(file, &[range], None)?;
            // A part ends where a chunk does, or with the file.
            if chunk_range(length, index).end == start + chunk.len() as u64 {
                self.values.insert(index, ChunkValue::of(length, index, &chunk));
            }
            chunks.push(chunk);
        }
        Ok(chunks)
    }

    /// Adds what another one knows of the same version.
    pub(crate) fn take_over(&mut self, other: Self) {
        if self.version.is_none() {
            *self = other;
        } else if self.version == other.version {
            self.values.extend(other.values);
        }
    }

    /// Hashes some chunks that are not known yet, one behind the other; whether any are left.
    ///
    /// # Errors
    /// [`ReadError`].
    pub(crate) fn hash_next(&mut self, file: &SourceFile) -> Result<bool, ReadError> {
        self.follow(file)?;
        let length = file.version().bytes;
        let chunks = chunk_count(length);
        let mut buffer = vec![0; CHUNK_BYTES];
        for _ in 0..CHUNKS_AT_ONCE {
            while self.values.contains_key(&self.next) {
                self.next += 1;
            }
            if self.next >= chunks {
                return Ok(false);
            }
            self.hash(file, self.next, &mut buffer)?;
        }
        Ok(true)
    }

    fn hash(&mut self, file: &SourceFile, index: u32, buffer: &mut [u8]) -> Result<(), ReadError> {
        let length = file.version().bytes;
        let range = chunk_range(length, index);
        let bytes = &mut buffer[..(range.end - range.start) as usize];
        file.read_exact(bytes, range.start)?;
        self.values.insert(index, ChunkValue::of(length, index, bytes));
        Ok(())
    }

    /// The tree of the file; chunks that are not known are read for it.
    ///
    /// # Errors
    /// [`ReadError`], also if the file changes meanwhile.
    pub fn root(&mut self, file: &SourceFile) -> Result<BlockTree, ReadError> {
        let length = file.version().bytes;
        let chunks = chunk_count(length);
        let mut buffer = vec![0; CHUNK_BYTES];
        for _ in 0..MAX_READS {
            self.follow(file)?;
            for index in 0..chunks {
                if !self.values.contains_key(&index) {
                    self.hash(file, index, &mut buffer)?;
                }
            }
            if self.follow(file)? {
                let values = self.values.range(..chunks).map(|(_, value)| *value).collect();
                return BlockTree::from_values(length, values)
                    .map_err(|_| ReadError::changed(file.path(), Change::Bytes));
            }
        }
        Err(ReadError::changed(file.path(), Change::Written))
    }

    /// Whether the file is still what its values are of. If not, nothing is known of it any more.
    fn follow(&mut self, file: &SourceFile) -> Result<bool, ReadError> {
        file.check()?;
        let now = file.version_now()?;
        let is_same = self.version == Some(now);
        if !is_same {
            *self = Self { version: Some(now), ..Self::default() };
        }
        Ok(is_same)
    }
}

/// The tree of a block that is made of these bytes of a file, one range behind the other.
///
/// # Errors
/// [`ReadError`], also if the file changes meanwhile.
pub fn hash_spans(file: &SourceFile, spans: &[Range<u64>]) -> Result<BlockTree, ReadError> {
    hash_ranges(file, spans, |_, _| ())
}

/// Chunk by chunk of the block; each is shown with its index.
fn hash_ranges(
    file: &SourceFile,
    ranges: &[Range<u64>],
    mut show: impl FnMut(u32, &[u8]),
) -> Result<BlockTree, ReadError> {
    let length = ranges.iter().map(|range| range.end.saturating_sub(range.start)).sum();
    let mut rest = ranges.iter().cloned();
    let mut range = 0..0;
    let mut values = Vec::new();
    let mut chunk = vec![0; chunk_range(length, 0).end as usize];
    for index in 0..chunk_count(length) {
        let wanted = chunk_range(length, index);
        chunk.truncate((wanted.end - wanted.start) as usize);
        let mut filled = 0;
        while filled < chunk.len() {
            if range.is_empty() {
                // The lengths add up, so there is a next one.
                range = rest.next().unwrap_or_default();
                continue;
            }
            let left = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
            let count = left.min(chunk.len() - filled);
            file.read_exact(&mut chunk[filled..filled + count], range.start)?;
            range.start += count as u64;
            filled += count;
        }
        show(index, &chunk);
        values.push(ChunkValue::of(length, index, &chunk));
    }
    file.check()?;
    BlockTree::from_values(length, values)
        .map_err(|_| ReadError::changed(file.path(), Change::Bytes))
}
