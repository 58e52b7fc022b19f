//! Blocks from sources: the chunks that the application is asked for and provides, and its changes to blocks
//! that are being sent.
//!
//! The machine asks for chunks and takes them: it reads nothing itself, and waits for nothing. The invariant:
//! a chunk is asked for once.

use bytes::Bytes;

use super::{BlockHandle, Connection};
use crate::Instant;
use crate::chunk::MAX_CHUNK_BYTES;
use crate::outgoing::{ProvideError, Wanted};

/// A chunk of a block from a source that is to be sent next.
///
/// # Examples
/// ```
/// use haulier_proto::connection::WantedChunk;
/// use std::io::{Read, Seek, SeekFrom};
///
/// /// What `provide_chunk` is to be given.
/// fn read(file: &mut std::fs::File, wanted: WantedChunk) -> std::io::Result<Vec<u8>> {
///     let mut bytes = vec![0; wanted.length];
///     file.seek(SeekFrom::Start(wanted.offset))?;
///     file.read_exact(&mut bytes)?;
///     Ok(bytes)
/// }
/// # let _ = read;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct WantedChunk {
    /// Its block.
    pub block: BlockHandle,
    /// The tag of the block.
    pub tag: u64,
    /// Which chunk of the block it is.
    pub index: u32,
    /// Where it begins in the block, in bytes.
    pub offset: u64,
    /// Its bytes, as many as [`provide_chunk`](Connection::provide_chunk) has to be given.
    pub length: usize,
}

impl Connection {
    /// The next chunk that the application should provide; `None` if no more are wanted for now, and
    /// [`Event::ChunksWanted`](super::Event::ChunksWanted) says when there are again. Each is returned once.
    /// At most 16 are wanted ahead of what is being sent, and two of each further block.
    pub fn want_chunk(&mut self) -> Option<WantedChunk> {
        let Wanted { handle, tag, index, bytes: length } = self.outbound.blocks_mut().want()?;
        let offset = u64::from(index) * MAX_CHUNK_BYTES as u64;
        Some(WantedChunk { block: BlockHandle(handle), tag, index, offset, length })
    }

    /// Provides a chunk that was wanted, in any order and at any time. It is kept until the peer has it. The
    /// application answers for the bytes: they are not compared with the tree again
    /// ([`BlockTree::is_chunk`](super::BlockTree::is_chunk) does), and a wrong chunk makes the peer close
    /// the connection with [`CloseCode::BLOCK_DAMAGED`](super::CloseCode::BLOCK_DAMAGED). An application
    /// that cannot provide a chunk gives the block up ([`cancel_block`](Self::cancel_block)).
    ///
    /// # Errors
    /// [`ProvideError`]. `UnknownBlock` is ordinary for a block that the peer has declined, or has by now.
    pub fn provide_chunk(
        &mut self,
        now: Instant,
        block: BlockHandle,
        index: u32,
        data: impl Into<Bytes>,
    ) -> Result<(), ProvideError> {
        self.outbound.blocks_mut().provide(now, block.0, index, data.into())
    }

    /// Pauses a block: what is being sent of it is finished, and no further chunk is begun before
    /// [`resume_block`](Self::resume_block). It has no time limit meanwhile. Returns whether it is on its
    /// way.
    pub fn pause_block(&mut self, now: Instant, block: BlockHandle) -> bool {
        self.outbound.blocks_mut().set_paused(now, block.0, true)
    }

    /// Goes on with a block that was paused. Returns whether it is on its way.
    pub fn resume_block(&mut self, now: Instant, block: BlockHandle) -> bool {
        self.outbound.blocks_mut().set_paused(now, block.0, false)
    }

    /// Says which bytes of a block go first, from the next chunk on: those of the chunks that `offsets`
    /// touches, as far as chunks may be open (1024 after the first that the peer has not, 256 MiB), in their
    /// order, and then the others. It can be changed at any time; an empty range is the usual order. The
    /// first chunk that the peer has not goes before all others while none is open, so that a receiver with
    /// [`Delivery::InOrder`](super::Delivery::InOrder) goes on too. Returns whether the block is on its way.
    pub fn prefer_range(
        &mut self,
        now: Instant,
        block: BlockHandle,
        offsets: core::ops::Range<u64>,
    ) -> bool {
        let chunk = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let first = chunk(offsets.start / MAX_CHUNK_BYTES as u64);
        let end = chunk(offsets.end.div_ceil(MAX_CHUNK_BYTES as u64));
        self.outbound.blocks_mut().prefer(now, block.0, (first, end.max(first)))
    }

    /// Changes the priority of a block, from the next slice on. Returns whether it is on its way.
    pub fn set_block_priority(&mut self, now: Instant, block: BlockHandle, priority: u8) -> bool {
        self.outbound.blocks_mut().set_priority(now, block.0, priority)
    }
}
