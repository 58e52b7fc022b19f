//! The bytes of a file run: header, segments, trailer (STANDARD §8.1).

use haulier_core::names::MAX_NAME_BYTES;

use super::Digest;

/// "A file follows", and the version of this format.
pub(super) const MAGIC: [u8; 5] = *b"HAUL\x01";

/// Magic, flags, length of the name, size.
pub(super) const FIXED_HEADER_BYTES: usize = MAGIC.len() + 1 + 1 + 8;

/// Size, digest of the content, seal.
pub(super) const TRAILER_BYTES: usize = 8 + 32 + 32;

/// Bytes of the length in front of each segment; a length of 0 ends them.
pub(super) const SEGMENT_HEADER_BYTES: usize = 4;

/// The longest segment: no reason to hold more at once than a chunk.
pub(super) const MAX_SEGMENT_BYTES: usize = haulier_core::chunk::MAX_CHUNK_BYTES;

/// Flag: the size in the header is the file's. Without it the sender did not know (a pipe).
pub(super) const SIZE_KNOWN: u8 = 1;

/// What the sender says of a file before its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name, 1 to 255 bytes. Not to be used as a path but as [`plain_name`](super::plain_name) gives it.
    pub name: String,
    /// Its size in bytes, if the sender knows it.
    pub size: Option<u64>,
}

impl Header {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut name_bytes = self.name.len().min(MAX_NAME_BYTES);
        while !self.name.is_char_boundary(name_bytes) {
            name_bytes -= 1;
        }
        let mut bytes = Vec::with_capacity(FIXED_HEADER_BYTES + name_bytes);
        bytes.extend_from_slice(&MAGIC);
        bytes.push(if self.size.is_some() { SIZE_KNOWN } else { 0 });
        bytes.push(u8::try_from(name_bytes).unwrap_or(u8::MAX));
        bytes.extend_from_slice(&self.size.unwrap_or(0).to_le_bytes());
        bytes.extend_from_slice(&self.name.as_bytes()[..name_bytes]);
        bytes
    }
}

/// The seal in the trailer: BLAKE3 over header, size and content digest. It proves the name, which the
/// digest of the content alone does not.
pub(super) fn seal(header: &[u8], size: u64, digest: &Digest) -> Digest {
    let mut hasher = blake3::Hasher::new();
    hasher.update(header).update(&size.to_le_bytes()).update(digest.as_bytes());
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let header = Header { name: "é".repeat(200), size: None };
        let bytes = header.to_bytes();
        assert_eq!(bytes[6], 254);
        assert!(std::str::from_utf8(&bytes[FIXED_HEADER_BYTES..]).is_ok());
    }
}
