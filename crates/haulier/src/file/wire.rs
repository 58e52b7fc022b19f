//! The bytes of a file run: header, segments, trailer (STANDARD §8.1).

use super::Digest;

/// The longest name, in bytes: what file systems take.
pub const MAX_NAME_BYTES: usize = 255;

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
    /// Its name, 1 to 255 bytes. Not to be used as a path before [`is_plain_name`] said yes.
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

/// Whether a name from the wire may be joined to a directory: one component, nothing that any file system
/// takes for more than a name, nothing that a terminal obeys.
#[must_use]
pub fn is_plain_name(name: &str) -> bool {
    let reserved = ["CON", "PRN", "AUX", "NUL", "COM", "LPT"];
    let stem =
        name.split('.').next().unwrap_or(name).trim_end_matches(|c: char| c.is_ascii_digit());
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name != "."
        && name != ".."
        && !name.ends_with(['.', ' '])
        && !name.starts_with(' ')
        && !name.chars().any(|c| c.is_control() || "/\\:*?\"<>|\u{202a}\u{202e}".contains(c))
        && !reserved.iter().any(|word| stem.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_their_directory_are_not_plain() {
        for name in ["world.bin", "save 3.dat", ".hidden", "Ünïcode.map", "a.b.c", "console.log"]
        {
            assert!(is_plain_name(name), "{name}");
        }
        let hostile = [
            "",
            ".",
            "..",
            "../x",
            "/etc/passwd",
            "a/b",
            "a\\b",
            "C:x",
            "x\0y",
            "x\ny",
            "\u{1b}[2J",
            "nul",
            "COM1.txt",
            "trailing.",
            "trailing ",
            " leading",
            "a\u{202e}b",
            "what?",
        ];
        for name in hostile {
            assert!(!is_plain_name(name), "{name:?}");
        }
        assert!(!is_plain_name(&"x".repeat(256)));
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let header = Header { name: "é".repeat(200), size: None };
        let bytes = header.to_bytes();
        assert_eq!(bytes[6], 254);
        assert!(std::str::from_utf8(&bytes[FIXED_HEADER_BYTES..]).is_ok());
    }
}
