//! What `serve` and `fetch` have in common: a connection as the files' machines want it (STANDARD-1, section
//! 8, is what they say over it), the threads for the disk, and codes in words.

use std::thread::{self, Thread};
use std::time::Duration;

use bytes::Bytes;
use haulier::proto::connection::Connection;
use haulier::{
    Block, BlockHandle, BlockNumber, Client, CloseCode, ConnectionId, SendError, Server,
    WantedChunk,
};
use haulier_files::pool::{DEFAULT_THREADS, DiskPool, Wake};
use haulier_files::reason;
use haulier_files::session::Link;

use crate::failure::Failure;

/// The longest name that can be asked for.
pub(crate) const MAX_NAME_BYTES: usize = haulier_files::messages::MAX_NAME_BYTES;

/// The longest wait for an event while nothing is to be done: how soon Ctrl-C is noticed.
const TURN: Duration = Duration::from_millis(20);

/// While the disk is at work: its answers are awaited by asking. 16 chunks in each are 33 Gbit/s.
const BUSY_TURN: Duration = Duration::from_millis(1);

/// How long to wait for an event.
pub(crate) const fn turn(is_busy: bool) -> Duration {
    if is_busy { BUSY_TURN } else { TURN }
}

/// The threads for the disk. They wake this one when it waits for them alone, in [`wait_for_disk`].
pub(crate) fn disk_pool() -> Result<DiskPool, Failure> {
    let caller: Thread = thread::current();
    let wake = Wake::new(move || caller.unpark());
    DiskPool::new(DEFAULT_THREADS, wake).map_err(|error| Failure::Io(error.to_string()))
}

/// Waits until the disk has answered something.
pub(crate) fn wait_for_disk() {
    thread::park_timeout(TURN);
}

/// What a code means.
pub(crate) fn meaning(code: CloseCode) -> Option<&'static str> {
    reason::meaning(code)
}

/// A client's connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientLink<'a>(pub(crate) &'a Client);

impl Link for ClientLink<'_> {
    fn send_message(&self, message: Bytes) -> Result<(), SendError> {
        self.0.send_message(message)
    }

    fn send_block(&self, block: &Block) -> Result<BlockHandle, SendError> {
        self.0.send_block(block)
    }

    fn cancel_block(&self, handle: BlockHandle, code: u32) {
        self.0.cancel_block(handle, code);
    }

    fn decline_block(&self, block: BlockNumber, code: u32) {
        self.0.decline_block(block, code);
    }

    fn have_chunks(&self, root: [u8; 32], map: Vec<u8>) {
        self.0.have_chunks(root, map);
    }

    fn want_chunk(&self) -> Option<WantedChunk> {
        self.0.want_chunk()
    }

    fn provide_chunk(&self, block: BlockHandle, index: u32, chunk: Bytes) {
        // A block that is gone wants nothing more.
        let _gone = self.0.provide_chunk(block, index, chunk);
    }

    fn all_acked(&self) -> bool {
        self.0.all_acked()
    }

    fn close(&self, code: CloseCode, reason: &str) {
        self.0.close(code, reason);
    }
}

/// One of a server's connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerLink<'a>(pub(crate) &'a Server, pub(crate) ConnectionId);

impl Link for ServerLink<'_> {
    fn send_message(&self, message: Bytes) -> Result<(), SendError> {
        self.0.send_message(self.1, message)
    }

    fn send_block(&self, block: &Block) -> Result<BlockHandle, SendError> {
        self.0.send_block(self.1, block)
    }

    fn cancel_block(&self, handle: BlockHandle, code: u32) {
        self.0.cancel_block(self.1, handle, code);
    }

    fn decline_block(&self, block: BlockNumber, code: u32) {
        self.0.decline_block(self.1, block, code);
    }

    fn have_chunks(&self, root: [u8; 32], map: Vec<u8>) {
        self.0.have_chunks(self.1, root, map);
    }

    fn want_chunk(&self) -> Option<WantedChunk> {
        self.0.want_chunk(self.1)
    }

    fn provide_chunk(&self, block: BlockHandle, index: u32, chunk: Bytes) {
        // A block that is gone wants nothing more.
        let _gone = self.0.provide_chunk(self.1, block, index, chunk);
    }

    fn all_acked(&self) -> bool {
        self.0.with_connection(self.1, Connection::all_acked).unwrap_or(true)
    }

    fn close(&self, code: CloseCode, reason: &str) {
        self.0.close(self.1, code, reason);
    }
}
