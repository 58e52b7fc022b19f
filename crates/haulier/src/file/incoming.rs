//! A file on its way in: takes chunks, writes, hashes, and compares at the end.
//!
//! The chunks come from outside, so every number in them is looked at before it is used, and nothing is
//! allocated because a number says so.

use haulier_core::debug_as;
use std::io;

use super::Digest;
use super::wire::{
    FIXED_HEADER_BYTES, Header, MAGIC, MAX_SEGMENT_BYTES, SEGMENT_HEADER_BYTES, SIZE_KNOWN,
    TRAILER_BYTES, seal,
};

/// Where the bytes of a file go.
pub trait Sink {
    /// The header is here; the bytes follow.
    ///
    /// # Errors
    /// When the file is not wanted or cannot be made; the transfer ends.
    fn begin(&mut self, header: &Header) -> io::Result<()>;

    /// The next bytes.
    ///
    /// # Errors
    /// When they cannot be written; the transfer ends.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
}

/// Why a run of chunks is not a file, or not the file that was sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The first bytes are not those of a file run of this version.
    #[error("what arrives is not a file sent by haulier")]
    NotAFile,
    /// A field has a value that it cannot have.
    #[error("the sender broke the format: {0}")]
    Malformed(&'static str),
    /// The content is not what the trailer says.
    #[error("the content does not have the BLAKE3 that was sent")]
    WrongDigest,
    /// The name or the size is not what the trailer says.
    #[error("name or size are not those that were sent")]
    WrongSeal,
    /// The size is not what header or trailer say.
    #[error("{received} bytes came instead of {announced}")]
    WrongSize {
        /// The size that was announced, in bytes.
        announced: u64,
        /// The size that arrived, in bytes.
        received: u64,
    },
    /// The sink failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A file that arrived whole and is what was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// What the sender said of it.
    pub header: Header,
    /// Its size.
    pub bytes: u64,
    /// Its digest.
    pub digest: Digest,
}

#[derive(Debug, Default)]
enum Part {
    #[default]
    Header,
    SegmentLength,
    Segment(usize),
    Trailer,
    Done,
}

/// One file, chunk by chunk. After an error or the end it takes no more.
#[derive(Default)]
pub struct Incoming {
    part: Part,
    /// The bytes of a part that is not whole yet: at most a header.
    gathered: Vec<u8>,
    header_bytes: Vec<u8>,
    header: Option<Header>,
    hasher: blake3::Hasher,
    bytes: u64,
}

debug_as! { Incoming: |file| part = file.part, header = file.header, bytes = file.bytes }

impl Incoming {
    /// Nothing is here.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the sender said of the file, once that is here.
    #[must_use]
    pub const fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Bytes of the file written so far.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes in the next chunk of the run. Returns the file when this was the last.
    ///
    /// # Errors
    /// See [`FileError`]. The sink keeps what was written; do not use it.
    pub fn push(
        &mut self,
        mut chunk: &[u8],
        sink: &mut impl Sink,
    ) -> Result<Option<Finished>, FileError> {
        while !chunk.is_empty() {
            match self.part {
                Part::Header => {
                    if self.gather_header(&mut chunk)? {
                        let header = self.parse_header()?;
                        sink.begin(&header)?;
                        self.header = Some(header);
                    }
                }
                Part::SegmentLength => {
                    if self.gather(&mut chunk, SEGMENT_HEADER_BYTES) {
                        self.begin_segment()?;
                    }
                }
                Part::Segment(left) => {
                    let (now, rest) = chunk.split_at(left.min(chunk.len()));
                    self.write(now, sink)?;
                    chunk = rest;
                    self.part = match left - now.len() {
                        0 => Part::SegmentLength,
                        left => Part::Segment(left),
                    };
                }
                Part::Trailer => {
                    if self.gather(&mut chunk, TRAILER_BYTES) {
                        self.part = Part::Done;
                        if !chunk.is_empty() {
                            return Err(FileError::Malformed("bytes after the trailer"));
                        }
                        return self.compare().map(Some);
                    }
                }
                Part::Done => return Err(FileError::Malformed("a chunk after the trailer")),
            }
        }
        Ok(None)
    }

    /// Gathers up to `want` bytes; returns whether they are all here.
    fn gather(&mut self, chunk: &mut &[u8], want: usize) -> bool {
        let missing = want.saturating_sub(self.gathered.len());
        let (now, rest) = chunk.split_at(missing.min(chunk.len()));
        self.gathered.extend_from_slice(now);
        *chunk = rest;
        self.gathered.len() >= want
    }

    fn gather_header(&mut self, chunk: &mut &[u8]) -> Result<bool, FileError> {
        if !self.gather(chunk, FIXED_HEADER_BYTES) {
            return Ok(false);
        }
        if !self.gathered.starts_with(&MAGIC) {
            return Err(FileError::NotAFile);
        }
        let name_bytes = usize::from(self.gathered[MAGIC.len() + 1]);
        Ok(self.gather(chunk, FIXED_HEADER_BYTES + name_bytes))
    }

    fn parse_header(&mut self) -> Result<Header, FileError> {
        let bytes = std::mem::take(&mut self.gathered);
        let flags = bytes[MAGIC.len()];
        if flags & !SIZE_KNOWN != 0 {
            return Err(FileError::Malformed("unknown flags"));
        }
        let size = le_u64(&bytes[MAGIC.len() + 2..]);
        let name = String::from_utf8(bytes[FIXED_HEADER_BYTES..].to_vec())
            .map_err(|_| FileError::Malformed("a name that is not UTF-8"))?;
        if name.is_empty() {
            return Err(FileError::Malformed("an empty name"));
        }
        let size_known = flags & SIZE_KNOWN != 0;
        if !size_known && size != 0 {
            return Err(FileError::Malformed("a size that is said not to be known"));
        }
        self.header_bytes = bytes;
        self.part = Part::SegmentLength;
        Ok(Header { name, size: size_known.then_some(size) })
    }

    fn begin_segment(&mut self) -> Result<(), FileError> {
        let length = self.gathered.iter().rev().fold(0, |n, &byte| n << 8 | usize::from(byte));
        self.gathered.clear();
        self.part = match length {
            0 => Part::Trailer,
            1..=MAX_SEGMENT_BYTES => Part::Segment(length),
            _ => return Err(FileError::Malformed("a segment longer than a chunk")),
        };
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<(), FileError> {
        let came = self.bytes + bytes.len() as u64;
        if let Some(said) = self.header.as_ref().and_then(|header| header.size)
            && came > said
        {
            return Err(FileError::WrongSize { announced: said, received: came });
        }
        sink.write(bytes)?;
        self.hasher.update(bytes);
        self.bytes = came;
        Ok(())
    }

    /// Compares what came with the trailer.
    fn compare(&mut self) -> Result<Finished, FileError> {
        let said = le_u64(&self.gathered);
        let digest = self.hasher.finalize();
        let header = self.header.clone().ok_or(FileError::NotAFile)?;
        for said in [Some(said), header.size].into_iter().flatten() {
            if said != self.bytes {
                return Err(FileError::WrongSize { announced: said, received: self.bytes });
            }
        }
        // Comparing `Hash`es takes the same time wherever they differ.
        if digest != hash(&self.gathered[8..40]) {
            return Err(FileError::WrongDigest);
        }
        if seal(&self.header_bytes, said, &digest) != hash(&self.gathered[40..72]) {
            return Err(FileError::WrongSeal);
        }
        Ok(Finished { header, bytes: self.bytes, digest })
    }
}

/// The first eight bytes as a number.
fn le_u64(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |n, &byte| n << 8 | u64::from(byte))
}

fn hash(bytes: &[u8]) -> Digest {
    let mut array = [0; 32];
    array.copy_from_slice(bytes);
    Digest::from_bytes(array)
}
