//! What a page does with blocks: it sends its own, and says what it thinks of the server's.

use haulier_proto::connection::{
    Block, BlockHandle, BlockNumber, BlockOptions, Connection, SendError,
};
use js_sys::Error;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::settings::{urgency, usage};
use crate::{Player, at, of_send};

#[wasm_bindgen]
impl Player {
    /// Sends a block; the number that is returned names it in events and calls. `urgency` is a word, or empty
    /// for the setting's.
    ///
    /// # Errors
    /// An `Error` with a `kind`: `not-open`, `full`, `usage`.
    pub fn send_block(
        &mut self,
        now_ms: f64,
        tag: u64,
        data: Vec<u8>,
        priority: u8,
        weight: u16,
        word: &str,
    ) -> Result<u32, Error> {
        let mut options = BlockOptions::default().with_priority(priority).with_weight(weight);
        if !word.is_empty() {
            options = options.with_urgency(urgency(word)?);
        }
        let block = Block::new(tag, data);
        let connection = self.machine.connection_mut().ok_or(SendError::NotOpen);
        let sent = connection.and_then(|it| it.send_block_with(at(now_ms), &block, options));
        sent.map(|handle| handle.to_bits()).map_err(|refused| of_send(&refused))
    }

    /// Gives a block of the page up. Whether it was on its way.
    pub fn cancel_block(&mut self, now_ms: f64, handle: u32, code: u32) -> bool {
        self.tell(|it| it.cancel_block(at(now_ms), BlockHandle::from_bits(handle), code))
    }

    /// Pauses a block of the page, or goes on with it. Whether it is on its way.
    pub fn pause_block(&mut self, now_ms: f64, handle: u32, is_paused: bool) -> bool {
        let (now, handle) = (at(now_ms), BlockHandle::from_bits(handle));
        self.tell(|it| match is_paused {
            true => it.pause_block(now, handle),
            false => it.resume_block(now, handle),
        })
    }

    /// Gives a block of the page another priority. Whether it is on its way.
    pub fn set_block_priority(&mut self, now_ms: f64, handle: u32, priority: u8) -> bool {
        self.tell(|it| it.set_block_priority(at(now_ms), BlockHandle::from_bits(handle), priority))
    }

    /// Does not want the rest of a block of the server. Whether it was being received.
    pub fn decline_block(&mut self, now_ms: f64, block: u32, code: u32) -> bool {
        self.tell(|it| it.decline_block(at(now_ms), BlockNumber::from_bits(block), code))
    }

    /// Says that the page has the block with this BLAKE3. Whether it is remembered.
    ///
    /// # Errors
    /// An `Error` of kind `usage` if a digest has other than 32 bytes.
    pub fn have_block(&mut self, digest: &[u8]) -> Result<bool, Error> {
        let digest = digest_of(digest)?;
        Ok(self.tell(|it| it.have_block(digest)))
    }

    /// Says that the page has these chunks of the block with this BLAKE3. Whether that is remembered.
    ///
    /// # Errors
    /// The errors of [`have_block`](Self::have_block).
    pub fn have_chunks(&mut self, digest: &[u8], map: Vec<u8>) -> Result<bool, Error> {
        let digest = digest_of(digest)?;
        Ok(self.tell(|it| it.have_chunks(digest, map)))
    }

    /// Does something with the connection, if there is one.
    fn tell(&mut self, act: impl FnOnce(&mut Connection) -> bool) -> bool {
        self.machine.connection_mut().is_some_and(act)
    }
}

fn digest_of(bytes: &[u8]) -> Result<[u8; 32], Error> {
    bytes.try_into().map_err(|_| usage("a digest has 32 bytes"))
}
