//! The lines of a journal, one after the other, and the chain of checks through them.
//!
//! The invariant: a line is read only if every line before it is there, whole, and in its place. Each check
//! is the CRC-32 of the line, begun with the check of the line before, so that a line that was lost,
//! doubled or moved ends the journal like one that was damaged.

use std::io::{self, BufReader, Read};

use crate::storage::Storage;
use haulier_proto::connection::ChunkValue;

/// First byte of a line that notes a chunk: index and value follow.
const NOTE: u8 = b'N';

/// First byte of a checkpoint: the number of notes that it covers follows.
const CHECKPOINT: u8 = b'C';

/// Bytes of a note with its check.
pub(super) const NOTE_BYTES: usize = 1 + 4 + 32 + 4;

/// Bytes of a checkpoint with its check.
pub(super) const CHECKPOINT_BYTES: usize = 1 + 4 + 4;

/// What is read at a time, in bytes: few calls, and nothing beside the notes themselves.
pub(super) const READ_BYTES: usize = 256 * 1024;

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A chunk was written, and has this value.
    Note(u32, ChunkValue),
    /// The chunks of this many notes, counted from the first, are on the disk.
    Checkpoint(u32),
}

impl Line {
    /// The bytes of the line behind a line with this check, and its own check.
    pub(super) fn to_bytes(self, chain: u32) -> (Vec<u8>, u32) {
        let mut bytes = Vec::with_capacity(NOTE_BYTES);
        match self {
            Self::Note(index, value) => {
                bytes.push(NOTE);
                bytes.extend(index.to_le_bytes());
                bytes.extend(value.as_bytes());
            }
            Self::Checkpoint(covered) => {
                bytes.push(CHECKPOINT);
                bytes.extend(covered.to_le_bytes());
            }
        }
        let check = chained(chain, &bytes);
        bytes.extend(check.to_le_bytes());
        (bytes, check)
    }
}

fn chained(chain: u32, bytes: &[u8]) -> u32 {
    let mut check = crc32fast::Hasher::new_with_initial(chain);
    check.update(bytes);
    check.finalize()
}

/// Reads lines until the first that is damaged.
pub(super) struct Lines<'s, S> {
    input: BufReader<At<'s, S>>,
    chain: u32,
    /// Where the next line begins.
    end: u64,
}

impl<'s, S: Storage> Lines<'s, S> {
    /// The lines from here on, behind a line with this check.
    pub(super) fn new(storage: &'s S, offset: u64, chain: u32) -> Self {
        let input = BufReader::with_capacity(READ_BYTES, At { storage, offset });
        Self { input, chain, end: offset }
    }

    /// The next line; `None` at the end, or at a line that is damaged.
    pub(super) fn read_next(&mut self) -> io::Result<Option<Line>> {
        let mut line = [0; NOTE_BYTES];
        if !self.fill(&mut line[..CHECKPOINT_BYTES])? {
            return Ok(None);
        }
        let length = match line[0] {
            NOTE => NOTE_BYTES,
            CHECKPOINT => CHECKPOINT_BYTES,
            _ => return Ok(None),
        };
        if !self.fill(&mut line[CHECKPOINT_BYTES..length])? {
            return Ok(None);
        }
        let (body, check) = line[..length].split_at(length - 4);
        let chain = chained(self.chain, body);
        if check != chain.to_le_bytes() {
            return Ok(None);
        }
        self.chain = chain;
        self.end += length as u64;
        Ok(Self::parse(body))
    }

    fn parse(body: &[u8]) -> Option<Line> {
        let (number, value) = body.get(1..)?.split_first_chunk()?;
        let number = u32::from_le_bytes(*number);
        Some(match value.first_chunk() {
            Some(value) => Line::Note(number, ChunkValue::from_bytes(*value)),
            None => Line::Checkpoint(number),
        })
    }

    /// `false`: the file ends before.
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        match self.input.read_exact(buffer) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Where the last line that was read ends, and its check.
    pub(super) const fn end(&self) -> (u64, u32) {
        (self.end, self.chain)
    }
}

/// A storage, read from a place on.
struct At<'s, S> {
    storage: &'s S,
    offset: u64,
}

impl<S: Storage> Read for At<'_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.storage.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}
