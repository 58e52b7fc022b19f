//! The bytes of a block that is being sent: all of them, or the chunks that its program has provided.
//!
//! A block from a source is never whole in memory: its chunks are asked for, kept from when they are
//! provided until the receiver has verified them, and dropped. The invariant: a chunk is asked for once, and
//! every chunk of such a block in memory was asked for.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;

use bytes::Bytes;

use super::cut::Cut;
use super::repair::Encoded;
use super::repair_cache::BlockRepair;
use crate::chunk::MAX_CHUNK_BYTES;

/// The bytes of a block.
#[derive(Debug)]
pub(crate) enum Content {
    /// All are here, and shared by all connections that send it, as are its repair slices.
    Held(Held),
    /// They come from a source, chunk by chunk.
    Source(Provided),
}

impl Content {
    /// All of a block.
    #[cfg(test)]
    pub(crate) fn held(data: Bytes) -> Self {
        Self::shared(data, BlockRepair::new())
    }

    /// All of a block that others send too.
    pub(crate) const fn shared(data: Bytes, repair: BlockRepair) -> Self {
        Self::Held(Held { data, repair, used: BTreeMap::new() })
    }

    /// Those of a block of this many bytes, which are asked for.
    pub(crate) const fn from_source(length: u64) -> Self {
        Self::Source(Provided { length, wanted: BTreeSet::new(), given: BTreeMap::new() })
    }

    /// The block's length in bytes.
    pub(super) const fn length(&self) -> u64 {
        match self {
            Self::Held(held) => held.data.len() as u64,
            Self::Source(source) => source.length,
        }
    }

    /// Whether the bytes of this chunk are here.
    pub(super) fn has(&self, index: u32) -> bool {
        match self {
            Self::Held(_) => true,
            Self::Source(source) => source.given.contains_key(&index),
        }
    }

    /// The bytes of a chunk, if they are here.
    pub(super) fn chunk(&self, index: u32) -> Option<&[u8]> {
        match self {
            Self::Held(Held { data, .. }) => {
                let start = (index as usize).checked_mul(MAX_CHUNK_BYTES)?;
                let rest = data.get(start..)?;
                rest.get(..MAX_CHUNK_BYTES.min(rest.len()))
            }
            Self::Source(source) => source.given.get(&index).map(|given| &*given.data),
        }
    }

    /// Whether the repair slices of a chunk, cut this way, are made, by whoever sends the block.
    pub(super) fn is_encoded(&self, chunk: u32, cut: Cut) -> bool {
        let is_shared = || matches!(self, Self::Held(held) if held.repair.has(chunk, cut));
        self.repair(chunk, cut, 0).is_some() || is_shared()
    }

    /// Has the repair slices of a chunk here, cut this way. Returns nothing if its bytes are not.
    pub(super) fn prepare_repair(&mut self, chunk: u32, cut: Cut) -> Option<()> {
        match self {
            Self::Held(held) if held.used.get(&chunk).is_some_and(|used| used.is_of(cut)) => {}
            Self::Held(held) => {
                let (start, bytes) = (chunk as usize * MAX_CHUNK_BYTES, cut.chunk_bytes());
                let data = held.data.get(start..)?.get(..bytes)?;
                held.used.insert(chunk, held.repair.of_chunk(chunk, data, cut));
            }
            Self::Source(source) => source.given.get_mut(&chunk)?.prepare_repair(cut),
        }
        Some(())
    }

    /// A repair slice of a chunk that is cut this way, after they were
    /// [prepared](Self::prepare_repair).
    pub(super) fn repair(&self, chunk: u32, cut: Cut, index: u8) -> Option<&[u8]> {
        match self {
            Self::Held(held) => held.used.get(&chunk)?.slice(cut, index),
            Self::Source(source) => source.given.get(&chunk)?.repair.as_ref()?.slice(cut, index),
        }
    }

    /// The number of chunks that were asked for, provided or not, without the `open` ones.
    pub(super) fn ahead(&self, open: usize) -> usize {
        match self {
            Self::Held(_) => 0,
            Self::Source(source) => source.wanted.len() + source.given.len().saturating_sub(open),
        }
    }

    /// The chunks that a source has provided.
    pub(super) fn given(&self) -> impl Iterator<Item = u32> {
        let source = match self {
            Self::Held(_) => None,
            Self::Source(source) => Some(source),
        };
        source.into_iter().flat_map(|source| source.given.keys().copied())
    }

    /// The receiver has this chunk.
    pub(super) fn on_done(&mut self, index: u32) {
        match self {
            Self::Held(held) => drop(held.used.remove(&index)),
            Self::Source(source) => drop(source.given.remove(&index)),
        }
    }

    /// Memory that chunks from a source take, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Held(_) => 0,
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

/// A block that is here.
#[derive(Debug)]
pub(crate) struct Held {
    data: Bytes,
    repair: BlockRepair,
    /// The repair slices of the chunks that are not done, and needed some.
    used: BTreeMap<u32, Arc<Encoded>>,
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
    /// Its repair slices: made when the first is needed, and dropped with the chunk.
    repair: Option<Encoded>,
}

crate::debug_as! { Given: |given| bytes = given.data.len() }

impl Given {
    fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.data.len() + self.repair.as_ref().map_or(0, Encoded::bytes)
    }

    fn prepare_repair(&mut self, cut: Cut) {
        if !self.repair.as_ref().is_some_and(|repair| repair.is_of(cut)) {
            self.repair = Some(Encoded::of(&self.data, cut));
        }
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
            self.given.insert(index, Given { data, repair: None });
        }
        was_wanted
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::super::cut::SliceSize;
    use super::*;

    /// Connections that send one block encode each of its chunks once: the next one has nothing to wait for.
    #[test]
    fn what_another_connection_has_encoded_is_encoded() {
        let (data, repair) = (Bytes::from(vec![7; MAX_CHUNK_BYTES]), BlockRepair::new());
        let cut = Cut::new(MAX_CHUNK_BYTES, SliceSize::SMALLEST_OF_FULL_CHUNK).unwrap();
        let mut one = Content::shared(data.clone(), repair.clone());
        let other = Content::shared(data, repair);
        assert!(!one.is_encoded(0, cut) && !other.is_encoded(0, cut));
        one.prepare_repair(0, cut).unwrap();
        assert!(one.is_encoded(0, cut) && other.is_encoded(0, cut));
    }
}
