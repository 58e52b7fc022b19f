//! Which file an unfinished one is to become: the head of its journal.
//!
//! The invariant: two identities are of the same content only if both know the root and it is the same, or if
//! name, length and time of change are known in both, and equal.

use super::JournalError;
use crate::chunks::MAX_TREE_BYTES;
use crate::offer::Root;

/// The first bytes of a journal; the last one is the version of the format.
const MAGIC: &[u8; 8] = b"hauljrn\x01";

/// Bytes before the name: the magic, the length of the name, what is known, and its three numbers.
const FIXED_BYTES: usize = 8 + 2 + 1 + 32 + 8 + 8;

/// Bytes of a check: CRC-32 finds what a disk damages; what an adversary writes is found by the root.
const CHECK_BYTES: usize = 4;

/// The longest name, in bytes: that of a path in an offer.
const MAX_NAME_BYTES: usize = 1024;

const KNOWS_ROOT: u8 = 1;
const KNOWS_LENGTH: u8 = 2;
const KNOWS_TIME: u8 = 4;

/// What is known of a file before it is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    name: String,
    root: Option<Root>,
    length: Option<u64>,
    modified_ns: Option<i64>,
}

impl FileIdentity {
    /// A file of which only the name is known, such as a pipe. Of a name over 1024 bytes the first 1024
    /// count.
    pub fn new(name: impl Into<String>) -> Self {
        let mut name = name.into();
        while name.len() > MAX_NAME_BYTES {
            name.pop();
        }
        Self { name, root: None, length: None, modified_ns: None }
    }

    /// With its length.
    pub const fn with_length(mut self, bytes: u64) -> Self {
        self.length = Some(bytes);
        self
    }

    /// With its BLAKE3.
    pub const fn with_root(mut self, root: Root) -> Self {
        self.root = Some(root);
        self
    }

    /// With the time at which the giver last changed it, in nanoseconds since 1970.
    pub const fn with_modified_ns(mut self, nanoseconds: i64) -> Self {
        self.modified_ns = Some(nanoseconds);
        self
    }

    /// Its name, as in the offer.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its BLAKE3, if it is known.
    pub const fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// Its length, if it is known.
    pub const fn length(&self) -> Option<u64> {
        self.length
    }

    /// Whether what was kept of one is part of the other.
    pub fn is_same_content(&self, other: &Self) -> bool {
        if let (Some(root), Some(others)) = (self.root, other.root) {
            return root == others && self.length == other.length;
        }
        let is_known = self.length.is_some() && self.modified_ns.is_some();
        let version = |identity: &Self| (identity.length, identity.modified_ns);
        is_known && self.name == other.name && version(self) == version(other)
    }

    /// The head of a journal, and its check, with which the chain of checks begins.
    pub(super) fn to_bytes(&self) -> (Vec<u8>, u32) {
        let mut bytes = MAGIC.to_vec();
        let name_bytes = u16::try_from(self.name.len()).unwrap_or_default();
        bytes.extend(name_bytes.to_le_bytes());
        let flag = |is_known, flag| if is_known { flag } else { 0 };
        bytes.push(
            flag(self.root.is_some(), KNOWS_ROOT)
                | flag(self.length.is_some(), KNOWS_LENGTH)
                | flag(self.modified_ns.is_some(), KNOWS_TIME),
        );
        bytes.extend(self.root.unwrap_or_default());
        bytes.extend(self.length.unwrap_or_default().to_le_bytes());
        bytes.extend(self.modified_ns.unwrap_or_default().to_le_bytes());
        bytes.extend(self.name.as_bytes());
        let check = crc32fast::hash(&bytes);
        bytes.extend(check.to_le_bytes());
        (bytes, check)
    }

    /// Reads the head of a journal: the identity, its check, and how many bytes it takes.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, u32, usize), JournalError> {
        let damaged = JournalError::DamagedHead;
        let mut fields = Fields(bytes);
        if fields.take::<8>() != Some(*MAGIC) {
            return Err(JournalError::NotAJournal);
        }
        let name_bytes = usize::from(u16::from_le_bytes(fields.take().ok_or(damaged)?));
        let [flags] = fields.take().ok_or(damaged)?;
        let root = fields.take().ok_or(damaged)?;
        let length = u64::from_le_bytes(fields.take().ok_or(damaged)?);
        let modified_ns = i64::from_le_bytes(fields.take().ok_or(damaged)?);
        let (name, rest) = fields.0.split_at_checked(name_bytes).ok_or(damaged)?;
        let check = Fields(rest).take().map(u32::from_le_bytes).ok_or(damaged)?;
        let checked = bytes.get(..FIXED_BYTES + name_bytes).ok_or(damaged)?;
        if crc32fast::hash(checked) != check || length > MAX_TREE_BYTES {
            return Err(damaged);
        }
        let identity = Self {
            name: std::str::from_utf8(name).map_err(|_| damaged)?.to_owned(),
            root: (flags & KNOWS_ROOT != 0).then_some(root),
            length: (flags & KNOWS_LENGTH != 0).then_some(length),
            modified_ns: (flags & KNOWS_TIME != 0).then_some(modified_ns),
        };
        Ok((identity, check, checked.len() + CHECK_BYTES))
    }

    /// The most bytes that a head can take.
    pub(super) const MAX_BYTES: usize = FIXED_BYTES + MAX_NAME_BYTES + CHECK_BYTES;
}

/// The bytes that are still to be read.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let all =
            FileIdentity::new("maps/ä").with_length(9).with_root([5; 32]).with_modified_ns(-3);
        let few = FileIdentity::new("");
        for identity in [all, few] {
            let (mut bytes, check) = identity.to_bytes();
            let length = bytes.len();
            assert!(length <= FileIdentity::MAX_BYTES);
            assert_eq!(FileIdentity::read(&bytes), Ok((identity.clone(), check, length)));
            assert!((0..length).all(|cut| FileIdentity::read(&bytes[..cut]).is_err()));
            bytes[length / 2] ^= 1;
            assert!(FileIdentity::read(&bytes).is_err());
        }
    }

    /// A server that has hashed its file since may offer a root; an unfinished file of it continues even so.
    #[test]
    fn the_same_content_is_the_same_root_or_the_same_version() {
        let version = FileIdentity::new("a").with_length(9).with_modified_ns(3);
        let with_root = version.clone().with_root([5; 32]);
        let renamed = FileIdentity::new("b").with_length(9).with_root([5; 32]);
        assert!(with_root.is_same_content(&renamed) && version.is_same_content(&with_root));
        assert!(!version.is_same_content(&renamed));
        assert!(!with_root.is_same_content(&version.clone().with_root([6; 32])));
        assert!(!version.is_same_content(&version.clone().with_modified_ns(4)));
        let pipe = FileIdentity::new("a");
        assert!(!pipe.is_same_content(&pipe), "what a pipe gives next is not what it gave");
    }
}
