//! Chunks made smaller by zstd, each in a frame of its own, where that pays.
//!
//! | | bytes |
//! |---|---|
//! | head of a chunk | 4, little endian: bit 31, it is packed; the others, the bytes that follow |
//! | the chunk | a zstd frame, or, if that is no shorter, the chunk as it is |
//!
//! Frames know nothing of each other, so a chunk that is lost costs no other, and nothing of one file shows
//! in the size of another.
//!
//! The invariant: no more comes out than may, in chunks of which only the last is short, and unpacking
//! takes no more memory than a chunk and what was given, whatever a frame says.

use bytes::{Buf, Bytes, BytesMut};
use zstd::bulk::{Compressor, Decompressor};

use crate::chunks::CHUNK_BYTES;

/// The fastest of zstd's ordinary levels, 400 MB/s and more on a core: what it gives away in size, a link
/// that is faster gives back in time.
const LEVEL: i32 = 1;

/// The bit of the head that says that what follows is a frame.
const IS_PACKED: u32 = 1 << 31;

/// Bytes of a head.
const HEAD_BYTES: usize = 4;

/// Packing has to save a tenth: less is not worth the time of both ends.
const MIN_SAVED_OF_ALL: usize = 10;

/// When a giver packs files, if the taker accepts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Packing {
    /// No file.
    #[default]
    Never,
    /// Files and parts of them that shrink by a tenth, on links that are slower than packing is.
    Auto,
    /// All that can be, whatever the link and whatever it saves: for measurements, and for those who pay by
    /// the byte.
    Always,
}

/// Why what came is not a packed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnpackError {
    /// A head that announces more than a chunk has.
    #[error("a packed chunk of {bytes} bytes is too long")]
    TooLong {
        /// What it announces.
        bytes: u32,
    },
    /// A frame that is damaged, or has more bytes than may come out.
    #[error("a packed chunk is damaged")]
    Damaged,
    /// There is more than may come out.
    #[error("there is more behind the last packed chunk")]
    Behind,
}

/// Makes chunks smaller.
pub struct Packer(Compressor<'static>);

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Packer")
    }
}

impl Packer {
    /// One for each thread: it keeps 1 MB of tables.
    pub fn new() -> std::io::Result<Self> {
        Compressor::new(LEVEL).map(Self)
    }

    /// A chunk with its head, packed if that makes it shorter.
    pub fn pack(&mut self, chunk: &[u8]) -> Bytes {
        let mut packed = vec![0; HEAD_BYTES + chunk.len()];
        // It fails if the frame has no room, that is, where it would be no shorter.
        let body = packed.split_at_mut(HEAD_BYTES).1;
        let (head, length) = match self.0.compress_to_buffer(chunk, body) {
            Ok(length) if length < chunk.len() => (IS_PACKED, length),
            _ => {
                body.copy_from_slice(chunk);
                (0, chunk.len())
            }
        };
        packed.truncate(HEAD_BYTES + length);
        let head = head | u32::try_from(length).unwrap_or_default();
        packed[..HEAD_BYTES].copy_from_slice(&head.to_le_bytes());
        packed.into()
    }

    /// Whether packing pays, judged by these chunks, the first ones of what is to be sent.
    pub fn pays(&mut self, chunks: &[Bytes]) -> bool {
        let before: usize = chunks.iter().map(Bytes::len).sum();
        let after: usize = chunks.iter().map(|chunk| self.pack(chunk).len()).sum();
        before > 0 && after + before / MIN_SAVED_OF_ALL <= before
    }
}

/// Makes chunks of what a [`Packer`] made.
pub struct Unpacker {
    decompressor: Decompressor<'static>,
    given: BytesMut,
    /// What may still come out, in bytes.
    left: u64,
    /// A chunk that was shorter than a chunk is the last.
    is_ended: bool,
}

impl std::fmt::Debug for Unpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unpacker(at most {} bytes more)", self.left)
    }
}

impl Unpacker {
    /// Unpacks at most `max_bytes` bytes.
    pub fn new(max_bytes: u64) -> std::io::Result<Self> {
        let decompressor = Decompressor::new()?;
        Ok(Self { decompressor, given: BytesMut::new(), left: max_bytes, is_ended: false })
    }

    /// Gives what came next, cut anywhere. What is whole is to be taken before more is given: that is what
    /// bounds the memory.
    pub fn give(&mut self, bytes: &[u8]) {
        self.given.extend_from_slice(bytes);
    }

    /// The next chunk, if all of it was given. Only the last one is shorter than 256 KiB.
    pub fn next_chunk(&mut self) -> Result<Option<Bytes>, UnpackError> {
        let max_bytes =
            usize::try_from(self.left).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        if !self.given.is_empty() && (self.is_ended || max_bytes == 0) {
            return Err(UnpackError::Behind);
        }
        let Some(head) = self.given.first_chunk() else { return Ok(None) };
        let head = u32::from_le_bytes(*head);
        let (is_packed, bytes) = (head & IS_PACKED != 0, head & !IS_PACKED);
        if bytes as usize > CHUNK_BYTES {
            return Err(UnpackError::TooLong { bytes });
        }
        if self.given.len() < HEAD_BYTES + bytes as usize {
            return Ok(None);
        }
        self.given.advance(HEAD_BYTES);
        let body = self.given.split_to(bytes as usize);
        let chunk = match is_packed {
            true => self.unpack(&body, max_bytes)?,
            false => body.freeze(),
        };
        if chunk.is_empty() || chunk.len() > max_bytes {
            return Err(UnpackError::Damaged);
        }
        self.left -= chunk.len() as u64;
        self.is_ended = chunk.len() < CHUNK_BYTES;
        Ok(Some(chunk))
    }

    /// Whether nothing that was given is left: so it ended where a chunk ends.
    pub fn is_done(&self) -> bool {
        self.given.is_empty()
    }

    /// A frame that has more than this many bytes is an error, found before they are made.
    fn unpack(&mut self, frame: &[u8], max_bytes: usize) -> Result<Bytes, UnpackError> {
        let mut chunk = vec![0; max_bytes];
        let unpacked = self.decompressor.decompress_to_buffer(frame, chunk.as_mut_slice());
        chunk.truncate(unpacked.map_err(|_| UnpackError::Damaged)?);
        Ok(chunk.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(bytes: usize) -> Vec<u8> {
        (0_u32..)
            .flat_map(|i| format!("block {} at {}\n", i % 97, i / 31).into_bytes())
            .take(bytes)
            .collect()
    }

    fn noise(bytes: usize) -> Vec<u8> {
        let words = (0_u64..).scan(7_u64, |state, _| {
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            Some(state.to_le_bytes())
        });
        words.flatten().take(bytes).collect()
    }

    fn unpacked(packed: &[u8], length: u64, at_once: usize) -> Result<Vec<u8>, UnpackError> {
        let mut unpacker = Unpacker::new(length).unwrap();
        let mut all = Vec::new();
        for some in packed.chunks(at_once) {
            unpacker.give(some);
            while let Some(chunk) = unpacker.next_chunk()? {
                all.extend_from_slice(&chunk);
            }
        }
        Ok(all)
    }

    #[test]
    fn what_was_packed_comes_out() {
        let mut packer = Packer::new().unwrap();
        for file in
            [text(3 * CHUNK_BYTES + 9), noise(CHUNK_BYTES + 1), Vec::new(), vec![0; CHUNK_BYTES]]
        {
            let packed: Vec<u8> =
                file.chunks(CHUNK_BYTES).flat_map(|chunk| packer.pack(chunk)).collect();
            let length = file.len() as u64;
            for at_once in [1000, 70_001, usize::MAX] {
                assert_eq!(unpacked(&packed, length, at_once), Ok(file.clone()));
            }
        }
    }

    #[test]
    fn packing_pays_for_what_shrinks_by_a_tenth() {
        let mut packer = Packer::new().unwrap();
        let chunk = |bytes: Vec<u8>| Bytes::from(bytes);
        assert!(packer.pays(&[chunk(text(CHUNK_BYTES))]));
        assert!(!packer.pays(&[chunk(noise(CHUNK_BYTES))]) && !packer.pays(&[]));
        let mostly_noise = [noise(CHUNK_BYTES * 19 / 20), text(CHUNK_BYTES / 20)].concat();
        assert!(!packer.pays(&[chunk(mostly_noise)]));
    }

    /// A frame of a few bytes that would become a gigabyte becomes an error.
    #[test]
    fn a_frame_of_more_than_its_chunk_is_refused() {
        let bomb = zstd::bulk::compress(&vec![0; 1 << 26], 19).unwrap();
        assert!(bomb.len() < CHUNK_BYTES);
        let head = (IS_PACKED | bomb.len() as u32).to_le_bytes();
        let packed = [&head[..], &bomb].concat();
        assert_eq!(unpacked(&packed, 1 << 30, usize::MAX), Err(UnpackError::Damaged), "a bomb");
        let frame = zstd::bulk::compress(b"short", 1).unwrap();
        let head = (IS_PACKED | frame.len() as u32).to_le_bytes();
        let short = [&head[..], &frame].concat();
        assert_eq!(unpacked(&short, 4, usize::MAX), Err(UnpackError::Damaged));
        assert_eq!(unpacked(&short, 5, usize::MAX), Ok(b"short".to_vec()));
        let long = (CHUNK_BYTES as u32 + 1).to_le_bytes();
        let too_long = Err(UnpackError::TooLong { bytes: CHUNK_BYTES as u32 + 1 });
        assert_eq!(unpacked(&long, 1 << 30, usize::MAX), too_long);
        assert_eq!(unpacked(&[short, vec![0]].concat(), 5, usize::MAX), Err(UnpackError::Behind));
    }

    proptest! {
        #[test]
        fn any_bytes_are_unpacked_or_refused(bytes: Vec<u8>, is_frame: bool, length in 0..3_u64 << 18) {
            let magic = if is_frame { vec![40, 0, 0, 0x80, 0x28, 0xb5, 0x2f, 0xfd] } else { Vec::new() };
            if let Ok(all) = unpacked(&[magic, bytes].concat(), length, 64) {
                prop_assert!(all.len() as u64 <= length);
            }
        }
    }
}
