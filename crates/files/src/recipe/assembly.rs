//! A new file, put together from an old one and from the pieces that came: its chunks, in order.
//!
//! The invariant: at most what was given and one chunk is in memory, however long the stretches are that are copied.

use bytes::{Buf, Bytes};

use super::plan::{Plan, Step};
use crate::errors::ReadError;
use crate::reader::SourceFile;
use crate::values::{CHUNK_BYTES, chunk_range};

/// What an assembly has.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Assembled {
    /// The next chunk of the new file, with its index.
    Chunk(u32, Bytes),
    /// Nothing, before more of what is wanted is given.
    NeedsBytes,
    /// All chunks were handed out.
    End,
}

impl std::fmt::Debug for Assembled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Chunk(index, bytes) => write!(f, "Chunk({index}, {} bytes)", bytes.len()),
            Self::NeedsBytes => f.write_str("NeedsBytes"),
            Self::End => f.write_str("End"),
        }
    }
}

/// A new file that is put together.
pub struct Assembly {
    steps: std::vec::IntoIter<Step>,
    /// What is left of the step that is being done.
    step: Option<Step>,
    old: SourceFile,
    length: u64,
    given: std::collections::VecDeque<Bytes>,
    chunk: Vec<u8>,
    index: u32,
}

impl std::fmt::Debug for Assembly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "chunk {} of {} bytes", self.index, self.length)
    }
}

impl Assembly {
    /// Begins, with the old file that the plan was made for.
    pub fn new(plan: &Plan, old: SourceFile) -> Self {
        Self {
            steps: plan.steps().to_vec().into_iter(),
            step: None,
            old,
            length: plan.length(),
            given: std::collections::VecDeque::new(),
            chunk: Vec::new(),
            index: 0,
        }
    }

    /// Gives the next bytes of the wanted pieces, one piece behind the other.
    pub fn give(&mut self, bytes: Bytes) {
        self.given.push_back(bytes);
    }

    /// The next chunk. It may read 256 KiB of the old file, and so wait for the disk. If that has changed, the new
    /// file has to be fetched whole.
    pub fn next_chunk(&mut self) -> Result<Assembled, ReadError> {
        let range = chunk_range(self.length, self.index);
        let wanted_bytes = (range.end - range.start) as usize;
        if wanted_bytes == 0 {
            return Ok(Assembled::End);
        }
        while self.chunk.len() < wanted_bytes {
            if !self.fill(wanted_bytes)? {
                return Ok(Assembled::NeedsBytes);
            }
        }
        let chunk = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK_BYTES));
        self.index += 1;
        Ok(Assembled::Chunk(self.index - 1, chunk.into()))
    }

    /// Adds to the chunk; `false` if there is nothing to add now.
    fn fill(&mut self, wanted_bytes: usize) -> Result<bool, ReadError> {
        let missing = wanted_bytes - self.chunk.len();
        let Some(step) = self.step.take().or_else(|| self.steps.next()) else { return Ok(false) };
        match step {
            Step::Copy(range) => {
                let count =
                    missing.min(usize::try_from(range.end - range.start).unwrap_or(missing));
                let filled = self.chunk.len();
                self.chunk.resize(filled + count, 0);
                self.old.read_exact(&mut self.chunk[filled..], range.start)?;
                self.old.check()?;
                let rest = range.start + count as u64..range.end;
                self.step = (!rest.is_empty()).then_some(Step::Copy(rest));
            }
            Step::Want { pieces, bytes } => {
                let Some(given) = self.given.front_mut() else {
                    self.step = Some(Step::Want { pieces, bytes });
                    return Ok(false);
                };
                let left = usize::try_from(bytes).unwrap_or(missing);
                let count = missing.min(given.len()).min(left);
                self.chunk.extend_from_slice(&given.split_to(count));
                if !given.has_remaining() {
                    self.given.pop_front();
                }
                let bytes = bytes - count as u64;
                self.step = (bytes > 0).then_some(Step::Want { pieces, bytes });
            }
        }
        Ok(true)
    }
}
