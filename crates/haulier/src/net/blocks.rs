//! What an application does with blocks by its handles: each call is one of the connection, under the lock.
//!
//! The invariant: nothing here waits for a disk or for the network. A program that feeds a block from a disk
//! gets `Event::ChunksWanted` like any other event, polled, waited for or awaited, and reads on any thread.

use std::ops::Range;

use bytes::Bytes;
use haulier_proto::connection::{
    Block, BlockHandle, BlockNumber, BlockOptions, ProvideError, SendError, WantedChunk,
};
use haulier_proto::server::ConnectionId;

use super::{Client, Server};

impl Client {
    /// Sends a block of any size, which arrives whole. Its bytes are not copied.
    ///
    /// # Errors
    /// [`SendError`]: wait for [`Event::Connected`](crate::Event::Connected) before the first. `NotOpen` also
    /// if the driver has ended: [`poll`](Self::poll) returns why.
    pub fn send_block(&self, block: &Block) -> Result<BlockHandle, SendError> {
        self.send_block_with(block, BlockOptions::default())
    }

    /// Sends a block of any size beside other blocks: the one with the highest priority goes first.
    ///
    /// # Errors
    /// As [`send_block`](Self::send_block).
    pub fn send_block_with(
        &self,
        block: &Block,
        options: BlockOptions,
    ) -> Result<BlockHandle, SendError> {
        self.change(|connection, now| connection.send_block_with(now, block, options))
            .ok_or(SendError::NotOpen)?
    }

    /// Gives a block up. The server receives the `code`, the application's own. Returns whether the block was
    /// in transfer; no event follows.
    pub fn cancel_block(&self, handle: BlockHandle, code: u32) -> bool {
        self.change(|connection, now| connection.cancel_block(now, handle, code)).unwrap_or(false)
    }

    /// Declines the rest of a block that the server announced
    /// ([`Event::BlockAnnounced`](crate::Event::BlockAnnounced)). The server receives the `code`, the
    /// application's own. Returns whether the block was being received.
    pub fn decline_block(&self, block: BlockNumber, code: u32) -> bool {
        self.change(|connection, now| connection.decline_block(now, block, code)).unwrap_or(false)
    }

    /// The application has the block with this BLAKE3 already, for example on its disk: when the server
    /// announces it, only that is sent, and [`Event::BlockHere`](crate::Event::BlockHere) takes the place of
    /// [`Event::Block`](crate::Event::Block). Returns whether it is remembered: at most 64 are.
    pub fn have_block(&self, digest: [u8; 32]) -> bool {
        self.change(|connection, _| connection.have_block(digest)).unwrap_or(false)
    }

    /// Says which chunks of the block with this BLAKE3 the application has already, verified: bit `i` of the
    /// map, the lowest of each byte first, is the chunk from byte `i * 262144` on. When the server announces
    /// the block only the others are sent and handed out. With
    /// [`Delivery::Chunks`](haulier_proto::connection::Delivery::Chunks) or `InOrder`; returns whether it is
    /// remembered.
    pub fn have_chunks(&self, digest: [u8; 32], map: impl Into<Vec<u8>>) -> bool {
        self.change(|connection, _| connection.have_chunks(digest, map)).unwrap_or(false)
    }

    /// The next chunk that is wanted of a block [from a source](Block::from_source); `None` if no more are
    /// for now, and [`Event::ChunksWanted`](crate::Event::ChunksWanted) says when there are again. Any
    /// thread or task may ask, read and provide: the network waits for none.
    pub fn want_chunk(&self) -> Option<WantedChunk> {
        self.change(|connection, _| connection.want_chunk())?
    }

    /// Provides a chunk that was wanted, in any order. The application answers for its bytes: the server
    /// would close the connection for others.
    ///
    /// # Errors
    /// [`ProvideError`]; `UnknownBlock` also if there is no connection any more.
    pub fn provide_chunk(
        &self,
        block: BlockHandle,
        index: u32,
        data: impl Into<Bytes>,
    ) -> Result<(), ProvideError> {
        self.change(|connection, now| connection.provide_chunk(now, block, index, data))
            .ok_or(ProvideError::UnknownBlock)?
    }

    /// Pauses a block: no further chunk of it is begun before [`resume_block`](Self::resume_block), and it
    /// has no time limit. Returns whether it is on its way.
    pub fn pause_block(&self, block: BlockHandle) -> bool {
        self.change(|connection, now| connection.pause_block(now, block)).unwrap_or(false)
    }

    /// Goes on with a block that was paused. Returns whether it is on its way.
    pub fn resume_block(&self, block: BlockHandle) -> bool {
        self.change(|connection, now| connection.resume_block(now, block)).unwrap_or(false)
    }

    /// Says which bytes of a block go first, as far as chunks may be open (256 MiB), and then the others. It
    /// can be changed at any time; an empty range is the usual order. Returns whether the block is on its
    /// way.
    pub fn prefer_range(&self, block: BlockHandle, offsets: Range<u64>) -> bool {
        self.change(|connection, now| connection.prefer_range(now, block, offsets)).unwrap_or(false)
    }

    /// Changes the priority of a block, from the next slice on. Returns whether it is on its way.
    pub fn set_block_priority(&self, block: BlockHandle, priority: u8) -> bool {
        self.change(|connection, now| connection.set_block_priority(now, block, priority))
            .unwrap_or(false)
    }
}

impl Server {
    /// Sends a block of any size, which arrives whole. Make the [`Block`] once for all clients: that
    /// hashes it, and its bytes are never copied.
    ///
    /// # Errors
    /// [`SendError`]; `NotOpen` also for a connection that no longer exists, and if the driver has ended:
    /// [`poll`](Self::poll) returns why.
    pub fn send_block(&self, id: ConnectionId, block: &Block) -> Result<BlockHandle, SendError> {
        self.send_block_with(id, block, BlockOptions::default())
    }

    /// Sends a block of any size beside other blocks: the one with the highest priority goes first.
    ///
    /// # Errors
    /// As [`send_block`](Self::send_block).
    pub fn send_block_with(
        &self,
        id: ConnectionId,
        block: &Block,
        options: BlockOptions,
    ) -> Result<BlockHandle, SendError> {
        let sent =
            self.change(id, |connection, now| connection.send_block_with(now, block, options));
        sent.ok_or(SendError::NotOpen)?
    }

    /// Gives a block up. The client receives the `code`, the application's own. Returns whether the block was
    /// in transfer; no event follows.
    pub fn cancel_block(&self, id: ConnectionId, handle: BlockHandle, code: u32) -> bool {
        let done = self.change(id, |connection, now| connection.cancel_block(now, handle, code));
        done.unwrap_or(false)
    }

    /// Declines the rest of a block that a client announced
    /// ([`Event::BlockAnnounced`](crate::Event::BlockAnnounced)). The client receives the `code`, the
    /// application's own. Returns whether the block was being received.
    pub fn decline_block(&self, id: ConnectionId, block: BlockNumber, code: u32) -> bool {
        let done = self.change(id, |connection, now| connection.decline_block(now, block, code));
        done.unwrap_or(false)
    }

    /// The application has the block with this BLAKE3 already: when the client announces it, only that is
    /// sent, and [`Event::BlockHere`](crate::Event::BlockHere) takes the place of
    /// [`Event::Block`](crate::Event::Block). Returns whether it is remembered: at most 64 are, for each
    /// connection.
    pub fn have_block(&self, id: ConnectionId, digest: [u8; 32]) -> bool {
        self.change(id, |connection, _| connection.have_block(digest)).unwrap_or(false)
    }

    /// Says which chunks of the block with this BLAKE3 the application has already, verified: bit `i` of the
    /// map, the lowest of each byte first, is the chunk from byte `i * 262144` on. When the client announces
    /// the block only the others are sent and handed out. With
    /// [`Delivery::Chunks`](haulier_proto::connection::Delivery::Chunks) or `InOrder`; returns whether it is
    /// remembered.
    pub fn have_chunks(&self, id: ConnectionId, digest: [u8; 32], map: impl Into<Vec<u8>>) -> bool {
        self.change(id, |connection, _| connection.have_chunks(digest, map)).unwrap_or(false)
    }

    /// The next chunk that is wanted of a block [from a source](Block::from_source); `None` if no more are
    /// for now, and [`Event::ChunksWanted`](crate::Event::ChunksWanted) says when there are again. Any
    /// thread or task may ask, read and provide: the network waits for none.
    pub fn want_chunk(&self, id: ConnectionId) -> Option<WantedChunk> {
        self.change(id, |connection, _| connection.want_chunk())?
    }

    /// Provides a chunk that was wanted, in any order. The application answers for its bytes: the client
    /// would close the connection for others.
    ///
    /// # Errors
    /// [`ProvideError`]; `UnknownBlock` also if the connection is gone.
    pub fn provide_chunk(
        &self,
        id: ConnectionId,
        block: BlockHandle,
        index: u32,
        data: impl Into<Bytes>,
    ) -> Result<(), ProvideError> {
        self.change(id, |connection, now| connection.provide_chunk(now, block, index, data))
            .ok_or(ProvideError::UnknownBlock)?
    }

    /// Pauses a block: no further chunk of it is begun before [`resume_block`](Self::resume_block), and it
    /// has no time limit. Returns whether it is on its way.
    pub fn pause_block(&self, id: ConnectionId, block: BlockHandle) -> bool {
        self.change(id, |connection, now| connection.pause_block(now, block)).unwrap_or(false)
    }

    /// Goes on with a block that was paused. Returns whether it is on its way.
    pub fn resume_block(&self, id: ConnectionId, block: BlockHandle) -> bool {
        self.change(id, |connection, now| connection.resume_block(now, block)).unwrap_or(false)
    }

    /// Says which bytes of a block go first, as far as chunks may be open (256 MiB), and then the others. It
    /// can be changed at any time; an empty range is the usual order. Returns whether the block is on its
    /// way.
    pub fn prefer_range(&self, id: ConnectionId, block: BlockHandle, offsets: Range<u64>) -> bool {
        let done = self.change(id, |connection, now| connection.prefer_range(now, block, offsets));
        done.unwrap_or(false)
    }

    /// Changes the priority of a block, from the next slice on. Returns whether it is on its way.
    pub fn set_block_priority(&self, id: ConnectionId, block: BlockHandle, priority: u8) -> bool {
        let done =
            self.change(id, |connection, now| connection.set_block_priority(now, block, priority));
        done.unwrap_or(false)
    }
}
