//! A pipe that is given: read once, part by part, by the first client that asks and has proven its address.
//!
//! The invariant: a part is whole, or ends the pipe; and at most one is in memory here.

use std::path::Path;

use bytes::Bytes;

use crate::offer::Root;
use crate::pool::{PoolHandle, Wake};
use crate::reader::{PipeRead, PipeReader};
use crate::reason::Fault;
use crate::tag::BlockTag;

/// A part that is being read.
struct Part {
    tag: BlockTag,
    max_bytes: usize,
    bytes: Vec<u8>,
}

pub(super) struct Pipe {
    reader: PipeReader,
    hasher: blake3::Hasher,
    length: u64,
    part: Option<Part>,
}

impl Pipe {
    /// Opens it: standard input if there is no path.
    pub(super) fn open(path: Option<&Path>, pool: &PoolHandle) -> Result<Self, Fault> {
        let pool = pool.clone();
        let wake = Wake::new(move || pool.wake());
        let reader = match path {
            Some(path) => PipeReader::open(path, wake),
            None => PipeReader::stdin(wake),
        };
        let reader = reader.map_err(|error| error.fault())?;
        Ok(Self { reader, hasher: blake3::Hasher::new(), length: 0, part: None })
    }

    /// Begins a part.
    pub(super) fn begin(&mut self, tag: BlockTag, max_bytes: u64) {
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        self.part = Some(Part { tag, max_bytes, bytes: Vec::new() });
    }

    /// The part, if all of it is here.
    pub(super) fn poll(&mut self) -> Option<(BlockTag, Result<Bytes, Fault>)> {
        let part = self.part.as_mut()?;
        let mut is_ended = false;
        // Parts and what is read are in whole chunks, so a part is never overfull.
        while part.bytes.len() < part.max_bytes && !is_ended {
            match self.reader.take() {
                Ok(PipeRead::Chunk(chunk)) => part.bytes.extend_from_slice(&chunk),
                Ok(PipeRead::Nothing) => return None,
                Ok(PipeRead::End) => is_ended = true,
                Err(error) => {
                    let tag = self.part.take()?.tag;
                    return Some((tag, Err(error.fault())));
                }
            }
        }
        let Part { tag, bytes, .. } = self.part.take()?;
        self.hasher.update(&bytes);
        self.length += bytes.len() as u64;
        Some((tag, Ok(bytes.into())))
    }

    /// What came out of it: its length and BLAKE3.
    pub(super) fn root(&self) -> (u64, Root) {
        (self.length, *self.hasher.finalize().as_bytes())
    }
}
