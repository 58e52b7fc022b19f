//! A file on its way out: reads, hashes, and cuts into chunks.

use std::io::{self, ErrorKind, Read};

use bytes::Bytes;

use super::Digest;
use super::wire::{Header, SEGMENT_HEADER_BYTES, seal};
use haulier_core::chunk::MAX_CHUNK_BYTES;

/// The chunks of one file. A small file is one chunk, header and trailer included, so that it costs one
/// trip.
pub struct Outgoing<R> {
    reader: R,
    header: Vec<u8>,
    hasher: blake3::Hasher,
    bytes: u64,
    /// Bytes to go out before anything else is read: the header, at the end the trailer.
    ready: Vec<u8>,
    digest: Option<Digest>,
}

/// Shows the number of bytes, and none of the bytes.
impl<R> std::fmt::Debug for Outgoing<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (bytes, digest) = (&self.bytes, &self.digest);
        f.debug_struct("Outgoing")
            .field("bytes", bytes)
            .field("digest", digest)
            .finish_non_exhaustive()
    }
}

impl<R: Read> Outgoing<R> {
    /// The chunks of what `reader` gives. A name longer than 255 bytes is cut.
    pub fn new(header: &Header, reader: R) -> Self {
        let header = header.to_bytes();
        Self {
            reader,
            ready: header.clone(),
            header,
            hasher: blake3::Hasher::new(),
            bytes: 0,
            digest: None,
        }
    }

    /// Bytes of the file read so far.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The digest of the file, once all of it was read.
    #[must_use]
    pub const fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// The next chunk; `None` after the last. Each but the last is full.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        let mut chunk = Vec::with_capacity(MAX_CHUNK_BYTES);
        loop {
            let room = MAX_CHUNK_BYTES - chunk.len();
            let now = self.ready.len().min(room);
            chunk.extend(self.ready.drain(..now));
            let room = room - now;
            if self.digest.is_some() || room <= SEGMENT_HEADER_BYTES {
                break;
            }
            self.read_segment(&mut chunk, room)?;
        }
        Ok(if chunk.is_empty() { None } else { Some(chunk.into()) })
    }

    /// Appends one segment of at most `room` bytes, or at the end of the file prepares the trailer.
    fn read_segment(&mut self, chunk: &mut Vec<u8>, room: usize) -> io::Result<()> {
        let start = chunk.len();
        chunk.resize(start + room, 0);
        let content = start + SEGMENT_HEADER_BYTES;
        let read = read_full(&mut self.reader, &mut chunk[content..])?;
        self.hasher.update(&chunk[content..content + read]);
        self.bytes += read as u64;
        if read == 0 {
            chunk.truncate(start);
            self.prepare_trailer();
            return Ok(());
        }
        let length = u32::try_from(read).unwrap_or(u32::MAX);
        chunk[start..content].copy_from_slice(&length.to_le_bytes());
        chunk.truncate(content + read);
        Ok(())
    }

    fn prepare_trailer(&mut self) {
        let digest = self.hasher.finalize();
        self.ready.extend_from_slice(&0u32.to_le_bytes());
        self.ready.extend_from_slice(&self.bytes.to_le_bytes());
        self.ready.extend_from_slice(digest.as_bytes());
        self.ready.extend_from_slice(seal(&self.header, self.bytes, &digest).as_bytes());
        self.digest = Some(digest);
    }
}

/// Reads until the buffer is full or the file ends.
fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
