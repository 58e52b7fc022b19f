//! The connections of `haulier`'s clients and servers, as links.

use bytes::Bytes;
use haulier::proto::connection::Connection;
use haulier::{
    Block, BlockHandle, BlockNumber, Client, CloseCode, ConnectionId, SendError, Server,
    WantedChunk,
};

use super::{Link, LinkSpeed};
use crate::offer::Root;

/// A client's connection.
#[derive(Clone, Copy, Debug)]
pub struct ClientLink<'a>(pub &'a Client);

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

    fn have_chunks(&self, root: Root, map: Vec<u8>) {
        self.0.have_chunks(root, map);
    }

    fn want_chunk(&self) -> Option<WantedChunk> {
        self.0.want_chunk()
    }

    fn provide_chunk(&self, block: BlockHandle, index: u32, chunk: Bytes) {
        // A block that is gone wants nothing more.
        let _gone = self.0.provide_chunk(block, index, chunk);
    }

    fn arrived_bytes(&self, block: BlockHandle) -> u64 {
        self.0.with_connection(|it| arrived_of(it, block)).unwrap_or_default()
    }

    fn unfinished_bytes(&self) -> u64 {
        self.0.with_connection(Connection::unfinished_bytes).unwrap_or_default()
    }

    fn all_acked(&self) -> bool {
        self.0.all_acked()
    }

    fn speed(&self) -> LinkSpeed {
        self.0.with_connection(speed_of).unwrap_or_default()
    }

    fn close(&self, code: CloseCode, reason: &str) {
        self.0.close(code, reason);
    }
}

/// One of a server's connections.
#[derive(Clone, Copy, Debug)]
pub struct ServerLink<'a>(pub &'a Server, pub ConnectionId);

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

    fn have_chunks(&self, root: Root, map: Vec<u8>) {
        self.0.have_chunks(self.1, root, map);
    }

    fn want_chunk(&self) -> Option<WantedChunk> {
        self.0.want_chunk(self.1)
    }

    fn provide_chunk(&self, block: BlockHandle, index: u32, chunk: Bytes) {
        // A block that is gone wants nothing more.
        let _gone = self.0.provide_chunk(self.1, block, index, chunk);
    }

    fn arrived_bytes(&self, block: BlockHandle) -> u64 {
        self.0.with_connection(self.1, |it| arrived_of(it, block)).unwrap_or_default()
    }

    fn unfinished_bytes(&self) -> u64 {
        self.0.with_connection(self.1, Connection::unfinished_bytes).unwrap_or_default()
    }

    fn all_acked(&self) -> bool {
        self.0.with_connection(self.1, Connection::all_acked).unwrap_or(true)
    }

    fn speed(&self) -> LinkSpeed {
        self.0.with_connection(self.1, speed_of).unwrap_or_default()
    }

    fn hold_bytes(&self, bytes: usize) {
        self.0.set_application_bytes(self.1, bytes);
    }

    fn close(&self, code: CloseCode, reason: &str) {
        self.0.close(self.1, code, reason);
    }
}

fn arrived_of(connection: &Connection, block: BlockHandle) -> u64 {
    connection.sending_block(block).map_or(0, |progress| progress.done)
}

fn speed_of(connection: &Connection) -> LinkSpeed {
    let stats = connection.stats();
    LinkSpeed::new(stats.bandwidth_bps, stats.rtt)
}
