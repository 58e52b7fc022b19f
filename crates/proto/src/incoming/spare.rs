//! Memory of chunks that the application has dropped: the next chunks of the block are put together in it.
//!
//! Without this each chunk would be handed out in new memory. To get 256 KiB from the system page by page,
//! and to give them back, takes as long as copying them. So the chunks handed out last are remembered, and
//! their memory is used again when the application has dropped them. The invariant: at most [`MAX_CHUNKS`]
//! full chunks are held for that, and none after the block has ended.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::chunk::MAX_CHUNK_BYTES;

/// Chunks that are remembered: a few, for an application that drops each soon, and 2 MiB at most.
const MAX_CHUNKS: usize = 8;

/// The chunks handed out last, of full size, the newest at the end.
#[derive(Default)]
pub(super) struct Spare(Vec<Bytes>);

crate::debug_as! { Spare: |spare| chunks = spare.0.len() }

impl Spare {
    /// This chunk is handed out.
    pub(super) fn lend(&mut self, chunk: &Bytes) {
        if chunk.len() != MAX_CHUNK_BYTES {
            return;
        }
        if self.0.len() >= MAX_CHUNKS {
            // The oldest: its application keeps it, or others were free before.
            self.0.remove(0);
        }
        self.0.push(chunk.clone());
    }

    /// Empty memory for a chunk of `chunk_bytes` bytes: the memory of the newest chunk that the application
    /// has dropped, because it is the likeliest to be in a cache.
    pub(super) fn take(&mut self, chunk_bytes: usize) -> Vec<u8> {
        if chunk_bytes != MAX_CHUNK_BYTES {
            return Vec::new();
        }
        let Some(free) = self.0.iter().rposition(Bytes::is_unique) else { return Vec::new() };
        let mut chunk = self.0.remove(free);
        chunk.clear();
        chunk.into()
    }

    /// Memory held that the application has dropped, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let free = self.0.iter().filter(|chunk| chunk.is_unique()).map(Bytes::len);
        free.sum::<usize>() + self.0.capacity() * size_of::<Bytes>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(byte: u8) -> Bytes {
        alloc::vec![byte; MAX_CHUNK_BYTES].into()
    }

    /// What the application still has stays as it is.
    #[test]
    fn only_what_was_dropped_is_used_again() {
        let mut spare = Spare::default();
        let (kept, dropped) = (full(1), full(2));
        let place = dropped.as_ptr();
        spare.lend(&kept);
        spare.lend(&dropped);
        assert_eq!(spare.take(MAX_CHUNK_BYTES).capacity(), 0, "both are in use");
        drop(dropped);
        assert_eq!(spare.take(MAX_CHUNK_BYTES - 1).capacity(), 0, "for a full one alone");
        let memory = spare.take(MAX_CHUNK_BYTES);
        assert!(memory.is_empty() && memory.as_ptr() == place, "without a copy");
        assert_eq!(memory.capacity(), MAX_CHUNK_BYTES);
        assert_eq!(spare.take(MAX_CHUNK_BYTES).capacity(), 0, "once");
        assert_eq!(kept, full(1));
    }

    #[test]
    fn a_few_are_held_at_most() {
        let mut spare = Spare::default();
        (0..20).for_each(|byte| spare.lend(&full(byte)));
        spare.lend(&Bytes::from_static(b"the last of a block is short"));
        assert!(spare.memory_bytes() <= MAX_CHUNKS * (MAX_CHUNK_BYTES + 2 * size_of::<Bytes>()));
        let newest = spare.take(MAX_CHUNK_BYTES);
        assert_eq!(newest.capacity(), MAX_CHUNK_BYTES);
        assert_eq!(spare.0.len(), MAX_CHUNKS - 1);
    }
}
