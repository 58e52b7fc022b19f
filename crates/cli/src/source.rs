//! The file being sent, read by a thread of its own: a pipe that pauses must not hold up the acks, the
//! resends of what is under way, or Ctrl-C.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;

use bytes::Bytes;
use haulier::file::{Digest, Header, Outgoing};

/// Chunks read ahead.
const READ_AHEAD: usize = 2;

/// What the reading thread hands over.
enum Piece {
    Chunk(Bytes, u64),
    End(u64, Option<Digest>),
}

/// The chunks of a file, as they become available.
pub(crate) struct Source {
    pieces: Receiver<io::Result<Piece>>,
    bytes: u64,
    digest: Option<Digest>,
    ended: bool,
}

impl Source {
    /// Starts reading.
    pub(crate) fn start(header: &Header, reader: impl Read + Send + 'static) -> Self {
        let (sender, pieces) = mpsc::sync_channel(READ_AHEAD);
        let mut outgoing = Outgoing::new(header, reader);
        thread::spawn(move || {
            loop {
                let piece = outgoing.next_chunk().map(|chunk| match chunk {
                    Some(chunk) => Piece::Chunk(chunk, outgoing.bytes()),
                    None => Piece::End(outgoing.bytes(), outgoing.digest()),
                });
                let is_last = !matches!(piece, Ok(Piece::Chunk(..)));
                // The other end is gone when the transfer failed: nobody wants the rest.
                if sender.send(piece).is_err() || is_last {
                    return;
                }
            }
        });
        Self { pieces, bytes: 0, digest: None, ended: false }
    }

    /// The next chunk, if one is read.
    pub(crate) fn next(&mut self) -> io::Result<Option<Bytes>> {
        if self.ended {
            return Ok(None);
        }
        match self.pieces.try_recv() {
            Ok(Ok(Piece::Chunk(chunk, bytes))) => {
                self.bytes = bytes;
                Ok(Some(chunk))
            }
            Ok(Ok(Piece::End(bytes, digest))) => {
                (self.bytes, self.digest, self.ended) = (bytes, digest, true);
                Ok(None)
            }
            Ok(Err(error)) => Err(error),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(io::Error::other("the reader broke down")),
        }
    }

    /// Whether every chunk was handed out.
    pub(crate) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Bytes of the file in the chunks handed out.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The digest of the file, once every chunk was handed out.
    pub(crate) const fn digest(&self) -> Option<Digest> {
        self.digest
    }
}
