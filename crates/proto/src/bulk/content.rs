//! The bytes of a block that is being sent: all of them, or the chunks that its program has provided.
//!
//! A block from a source is never whole in memory: its chunks are asked for, kept from when they are
//! provided until the receiver has verified them, and dropped. The invariant: a chunk is asked for once, and
//! what is here of it was asked for.

use alloc::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::cut::Cut;
use super::repair::{BlockRepair, ChunkRepair};
use crate::chunk::MAX_CHUNK_BYTES;

/// The bytes of a block.
#[derive(Debug)]
pub(crate) enum Content {
    /// All are here, and shared by all connections that send it, as are its repair slices.
    Held { data: Bytes, repair: BlockRepair },
    /// They come from a source, chunk by chunk.
    Source(Provided),
}

impl Content {
    /// All of a block.
    #[cfg(test)]
    pub(crate) fn held(data: Bytes) -> Self {
        let repair = BlockRepair::of_block(data.len());
        Self::Held { data, repair }
    }

    /// Those of a block of this many bytes, which are asked for.
    pub(crate) const fn from_source(length: u64) -> Self {
        Self::Source(Provided { length, wanted: BTreeSet::new(), given: BTreeMap::new() })
    }

    /// The block's length in bytes.
    pub(super) const fn length(&self) -> u64 {
        match self {
            Self::Held { data, .. } => data.len() as u64,
            Self::Source(source) => source.length,
        }
    }

    /// Whether the bytes of this chunk are here.
    pub(super) fn has(&self, index: u32) -> bool {
        match self {
            Self::Held { .. } => true,
            Self::Source(source) => source.given.contains_key(&index),
        }
    }

    /// The bytes of a chunk, if they are here.
    pub(super) fn chunk(&self, index: u32) -> Option<&[u8]> {
        match self {
            Self::Held { data, .. } => {
                let start = (index as usize).checked_mul(MAX_CHUNK_BYTES)?;
                let rest = data.get(start..)?;
                rest.get(..MAX_CHUNK_BYTES.min(rest.len()))
            }
            Self::Source(source) => source.given.get(&index).map(|given| &*given.data),
        }
    }

    /// A repair slice of a chunk that is cut this way. Of one from a source they are
    /// [prepared](Provided::prepare_repair) before.
    pub(super) fn repair(&self, chunk: u32, cut: Cut, index: u8) -> Option<&[u8]> {
        match self {
            Self::Held { repair, .. } => {
                repair.slice(usize::try_from(chunk).ok()?, self.chunk(chunk)?, cut, index)
            }
            Self::Source(source) => source.given.get(&chunk)?.repair.slice(cut, index),
        }
    }

    /// Chunks that were asked for, whether they are here or not, but for the `open` ones.
    pub(super) fn ahead(&self, open: usize) -> usize {
        match self {
            Self::Held { .. } => 0,
            Self::Source(source) => source.wanted.len() + source.given.len().saturating_sub(open),
        }
    }

    /// The chunks that a source has provided.
    pub(super) fn given(&self) -> impl Iterator<Item = u32> {
        let source = match self {
            Self::Held { .. } => None,
            Self::Source(source) => Some(source),
        };
        source.into_iter().flat_map(|source| source.given.keys().copied())
    }

    /// The receiver has this chunk.
    pub(super) fn on_done(&mut self, index: u32) {
        if let Self::Source(source) = self {
            source.given.remove(&index);
        }
    }

    /// Memory that chunks from a source take, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Held { .. } => 0,
            Self::Source(source) => source.given.values().map(Given::memory_bytes).sum(),
        }
    }

    pub(super) fn check_invariants(&self) {
        if let Self::Source(source) = self {
            let mut both = source.given.keys().filter(|&index| source.wanted.contains(index));
            assert_eq!(both.next(), None, "provided, and still asked for");
        }
    }
}

/// What a program has provided of a block.
#[derive(Debug)]
pub(crate) struct Provided {
    length: u64,
    /// Chunks that were asked for and are not provided.
    wanted: BTreeSet<u32>,
    given: BTreeMap<u32, Given>,
}

/// A chunk that was provided.
struct Given {
    data: Bytes,
    repair: ChunkRepair,
}

crate::debug_as! { Given: |given| bytes = given.data.len() }

impl Given {
    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.data.len() + self.repair.memory_bytes()
    }
}

impl Provided {
    /// Whether this chunk was asked for, and is not done.
    pub(super) fn is_known(&self, index: u32) -> bool {
        self.wanted.contains(&index) || self.given.contains_key(&index)
    }

    /// A chunk is asked for.
    pub(super) fn on_wanted(&mut self, index: u32) {
        self.wanted.insert(index);
    }

    /// A chunk is provided; `None` if it is of no use any more. Returns whether it was asked for.
    pub(super) fn provide(&mut self, index: u32, data: Option<Bytes>) -> bool {
        let was_wanted = self.wanted.remove(&index);
        if let Some(data) = data.filter(|_| was_wanted) {
            self.given.insert(index, Given { data, repair: ChunkRepair::default() });
        }
        was_wanted
    }

    /// Makes the repair slices of a chunk that is cut this way, unless they are there.
    pub(super) fn prepare_repair(&mut self, chunk: u32, cut: Cut) {
        if let Some(given) = self.given.get_mut(&chunk) {
            given.repair.prepare(&given.data, cut);
        }
    }
}
