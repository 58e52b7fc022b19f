//! The file being sent, read by a thread of its own: a pipe that pauses must not hold up the acks, the
//! resends of what is under way, or Ctrl-C.

use std::io;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;

use bytes::Bytes;
use haulier::file::{Digest, Header, Outgoing};

/// Chunks read ahead.
const READ_AHEAD: usize = 2;

/// What the reading thread hands over. The digest comes with the last chunk and not behind it: a receiver's
/// receipt may be here before the thread runs again, and was then compared with a digest that was not known.
struct Read {
    piece: Piece,
    bytes: u64,
    digest: Option<Digest>,
}

enum Piece {
    Chunk(Bytes),
    End,
}

/// The chunks of a file, as they become available.
pub(crate) struct Source {
    pieces: Receiver<io::Result<Read>>,
    bytes: u64,
    digest: Option<Digest>,
    ended: bool,
}

impl Source {
    /// Starts reading.
    pub(crate) fn start(header: &Header, reader: impl io::Read + Send + 'static) -> Self {
        let (sender, pieces) = mpsc::sync_channel(READ_AHEAD);
        let mut outgoing = Outgoing::new(header, reader);
        thread::spawn(move || {
            loop {
                let read = outgoing.next_chunk().map(|chunk| Read {
                    piece: chunk.map_or(Piece::End, Piece::Chunk),
                    bytes: outgoing.bytes(),
                    digest: outgoing.digest(),
                });
                let is_last = !matches!(read, Ok(Read { piece: Piece::Chunk(_), .. }));
                // The other end is gone when the transfer failed: the rest is not needed.
                if sender.send(read).is_err() || is_last {
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
        let read = match self.pieces.try_recv() {
            Ok(read) => read?,
            Err(TryRecvError::Empty) => return Ok(None),
            Err(TryRecvError::Disconnected) => {
                return Err(io::Error::other("the reader broke down"));
            }
        };
        (self.bytes, self.digest) = (read.bytes, read.digest);
        match read.piece {
            Piece::Chunk(chunk) => Ok(Some(chunk)),
            Piece::End => {
                self.ended = true;
                Ok(None)
            }
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

    /// The digest of the file, at the latest when the last chunk was handed out.
    pub(crate) const fn digest(&self) -> Option<Digest> {
        self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Under load the receipt of a file of one chunk overtook the news that the file had ended.
    #[test]
    fn the_digest_is_known_with_the_last_chunk() {
        let header = Header { name: "a".into(), size: Some(3) };
        let mut source = Source::start(&header, &b"abc"[..]);
        while source.next().unwrap().is_none() {
            thread::yield_now();
        }
        assert!(!source.has_ended());
        assert_eq!(source.digest(), Some(blake3::hash(b"abc")));
    }
}
