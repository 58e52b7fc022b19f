//! The giver's list: which files there are, in the order in which they go.
//!
//! The invariant: an [`Offer`] holds at most [`MAX_FILES`] entries, every path in it is safe, and no two
//! collide, whether it was made here or read from the wire. A file is named by its index from then on.

use std::collections::HashSet;

use crate::collisions::{Collision, check_collisions};
use crate::fields::{Fields, FormatError, put_text, put_varint};
use crate::mode::Mode;
use crate::names::{MAX_PATH_BYTES, NameError, SafePath};
use crate::tag::MAX_FILE_BYTES;

/// Entries of an offer. Its list has some 100 MB then, and its paths are all in memory.
pub const MAX_FILES: u32 = 1_000_000;

/// The longest offer, in bytes.
pub const MAX_OFFER_BYTES: u64 = 256 << 20;

/// Files up to this go before the others, in bytes: a game starts with them, and all of them together are
/// little.
const SMALL_BYTES: u64 = 1 << 20;

/// An entry of the wire with a path of one byte and nothing behind its time.
const MIN_ENTRY_BYTES: usize = 11;

/// What an allocation takes beside its bytes.
const ALLOCATION_BYTES: usize = 16;

/// A BLAKE3.
pub type Root = [u8; 32];

/// The BLAKE3 of nothing.
pub(crate) fn empty_root() -> Root {
    *blake3::hash(&[]).as_bytes()
}

/// What of a file is known before it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// It is a directory without anything in it.
    Directory,
    /// A file, its size in bytes and its BLAKE3.
    Known {
        /// In bytes.
        size: u64,
        /// Its BLAKE3.
        root: Root,
    },
    /// A file of this size in bytes, which is not hashed yet.
    Sized(u64),
    /// A pipe: it ends where it ends, and there is no second time.
    Stream,
}

/// A file or an empty directory of an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is to be.
    pub path: SafePath,
    /// What is in it.
    pub content: Content,
    /// The permissions to read, write and run it.
    pub mode: Mode,
    /// When it was last changed: nanoseconds since 1970.
    pub modified_ns: i64,
}

impl Entry {
    /// A file or directory of the default mode, changed in 1970.
    #[must_use]
    pub const fn new(path: SafePath, content: Content) -> Self {
        Self { path, content, mode: Mode::of_unix(0o666), modified_ns: 0 }
    }

    /// Its size in bytes, if that is known; a directory has none.
    #[must_use]
    pub const fn size(&self) -> Option<u64> {
        match self.content {
            Content::Directory => Some(0),
            Content::Known { size, .. } | Content::Sized(size) => Some(size),
            Content::Stream => None,
        }
    }

    /// Whether it is an empty directory, which people do not count as a file.
    #[must_use]
    pub const fn is_directory(&self) -> bool {
        matches!(self.content, Content::Directory)
    }

    /// Its BLAKE3, if that is known.
    #[must_use]
    pub const fn root(&self) -> Option<&Root> {
        match &self.content {
            Content::Known { root, .. } => Some(root),
            _ => None,
        }
    }

    /// What goes first: what has no bytes, then what is small.
    const fn class(&self) -> u8 {
        match self.content {
            Content::Directory => 0,
            Content::Known { size, .. } | Content::Sized(size) if size <= SMALL_BYTES => 1,
            Content::Known { .. } | Content::Sized(_) => 2,
            Content::Stream => 3,
        }
    }
}

/// Why a list is no offer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OfferError {
    /// There are more files than an offer may have.
    #[error("more than 1,000,000 files, or a list longer than 256 MiB")]
    TooLong,
    /// A file is larger than any file.
    #[error("a file of more than 2^50 bytes")]
    TooLarge,
    /// A path is not safe.
    #[error("a path that cannot be offered: {0}")]
    Name(#[from] NameError),
    /// Two paths are one on some systems.
    #[error(transparent)]
    Collision(Box<Collision>),
    /// The bytes are no list.
    #[error("no list of files: {0}")]
    Format(#[from] FormatError),
}

/// The list of what a giver has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    entries: Vec<Entry>,
}

impl Offer {
    /// Puts entries into the order in which they go: small files first, then by path, pipes last.
    ///
    /// # Errors
    /// [`OfferError`] if they are too many, too large, or if paths collide.
    pub fn new(mut entries: Vec<Entry>) -> Result<Self, OfferError> {
        entries.sort_by(|a, b| (a.class(), &a.path).cmp(&(b.class(), &b.path)));
        let offer = Self { entries };
        offer.check()?;
        let bytes: u64 = offer.entries.iter().map(|it| it.path.as_str().len() as u64 + 60).sum();
        if bytes > MAX_OFFER_BYTES { Err(OfferError::TooLong) } else { Ok(offer) }
    }

    /// From the wire.
    ///
    /// # Errors
    /// [`OfferError`] unless all of the bytes are one offer.
    pub fn read(bytes: &[u8]) -> Result<Self, OfferError> {
        if bytes.len() as u64 > MAX_OFFER_BYTES {
            return Err(OfferError::TooLong);
        }
        let mut fields = Fields::new(bytes);
        let count = Self::count(bytes)?;
        fields.varint()?;
        // An entry has eleven bytes or more, so nobody makes room by saying a number.
        let mut entries = Vec::with_capacity((count as usize).min(bytes.len() / MIN_ENTRY_BYTES));
        for _ in 0..count {
            entries.push(read_entry(&mut fields)?);
        }
        fields.end()?;
        let offer = Self { entries };
        offer.check()?;
        Ok(offer)
    }

    /// The number of entries that a list claims, without reading them.
    ///
    /// # Errors
    /// [`OfferError`] if it has more than any offer.
    pub(crate) fn count(bytes: &[u8]) -> Result<u32, OfferError> {
        let count = Fields::new(bytes).varint()?;
        u32::try_from(count).ok().filter(|count| *count <= MAX_FILES).ok_or(OfferError::TooLong)
    }

    /// The memory of this number of entries, without their paths.
    pub(crate) const fn memory_bytes_of(files: u32) -> usize {
        files as usize * size_of::<Entry>()
    }

    /// What it takes in memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let paths = self.entries.iter().map(|it| it.path.as_str().len() + ALLOCATION_BYTES);
        self.entries.capacity() * size_of::<Entry>() + paths.sum::<usize>()
    }

    /// As the bytes of a message or a block.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.entries.len() as u64);
        self.entries.iter().for_each(|entry| put_entry(&mut out, entry));
        out
    }

    fn check(&self) -> Result<(), OfferError> {
        if self.entries.len() > MAX_FILES as usize {
            return Err(OfferError::TooLong);
        }
        if self.entries.iter().filter_map(Entry::size).any(|size| size > MAX_FILE_BYTES) {
            return Err(OfferError::TooLarge);
        }
        check_collisions(self.entries.iter().map(|entry| &entry.path))
            .map_err(|collision| OfferError::Collision(Box::new(collision)))
    }

    /// All entries, in the order in which they go.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of this index.
    #[must_use]
    pub fn entry(&self, file: u32) -> Option<&Entry> {
        self.entries.get(file as usize)
    }

    /// The root of a file is known now.
    pub(crate) fn learn(&mut self, file: u32, root: Root) {
        if let Some(entry) = self.entries.get_mut(file as usize)
            && let Content::Sized(size) = entry.content
        {
            entry.content = Content::Known { size, root };
        }
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(MAX_FILES)
    }

    /// How many of them are files: all but empty directories.
    #[must_use]
    pub fn files(&self) -> u32 {
        let files = self.entries.iter().filter(|entry| !entry.is_directory()).count();
        u32::try_from(files).unwrap_or(MAX_FILES)
    }

    /// Whether the offer has no entry.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether any path is in both: it takes as long as both are.
    #[must_use]
    pub fn shares_path(&self, other: &Self) -> bool {
        let (few, many) = if self.len() < other.len() { (self, other) } else { (other, self) };
        let paths: HashSet<&SafePath> = few.entries.iter().map(|entry| &entry.path).collect();
        many.entries.iter().any(|entry| paths.contains(&entry.path))
    }

    /// What of it is at this path or below it; all of it for an empty one. It may be nothing.
    #[must_use]
    pub fn within(&self, path: &str) -> Self {
        let entries = self.entries.iter().filter(|entry| entry.path.is_within(path));
        Self { entries: entries.cloned().collect() }
    }
}

/// What an entry is, in the lowest two bits of its first byte.
const DIRECTORY: u8 = 0;
const KNOWN: u8 = 1;
const SIZED: u8 = 2;
const STREAM: u8 = 3;

/// The mode is in the bits above them.
const MODE_SHIFT: u32 = 2;

fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    let kind = match entry.content {
        Content::Directory => DIRECTORY,
        Content::Known { .. } => KNOWN,
        Content::Sized(_) => SIZED,
        Content::Stream => STREAM,
    };
    out.push(kind | entry.mode.bits() << MODE_SHIFT);
    put_text(out, entry.path.as_str());
    out.extend_from_slice(&entry.modified_ns.to_le_bytes());
    match &entry.content {
        Content::Directory | Content::Stream => {}
        Content::Sized(size) => put_varint(out, *size),
        Content::Known { size, root } => {
            put_varint(out, *size);
            out.extend_from_slice(root);
        }
    }
}

fn read_entry(fields: &mut Fields<'_>) -> Result<Entry, OfferError> {
    let flags = fields.u8()?;
    let path = SafePath::new(fields.text(MAX_PATH_BYTES as u64)?)?;
    let modified_ns = i64::from_le_bytes(fields.array()?);
    let content = match flags & STREAM {
        DIRECTORY if flags != DIRECTORY => {
            return Err(FormatError::Value("a directory with a mode").into());
        }
        DIRECTORY => Content::Directory,
        KNOWN => Content::Known { size: fields.varint()?, root: fields.array()? },
        SIZED => Content::Sized(fields.varint()?),
        _ => Content::Stream,
    };
    let mode = Mode::from_bits(flags >> MODE_SHIFT);
    Ok(Entry { path, content, mode, modified_ns })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry(path: &str, content: Content) -> Entry {
        Entry::new(SafePath::new(path).unwrap(), content)
    }

    fn known(path: &str, size: u64) -> Entry {
        entry(path, Content::Known { size, root: [7; 32] })
    }

    #[test]
    fn small_files_go_first_then_by_path_and_pipes_last() {
        let offer = Offer::new(vec![
            entry("a.log", Content::Stream),
            known("b/world.bin", 5 << 20),
            entry("a.bin", Content::Sized(2 << 20)),
            known("z.cfg", 10),
            known("c/x.cfg", 1 << 20),
            entry("empty", Content::Directory),
        ]);
        let offer = offer.unwrap();
        let paths: Vec<&str> = offer.entries().iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["empty", "c/x.cfg", "z.cfg", "a.bin", "b/world.bin", "a.log"]);
        assert_eq!(Offer::read(&offer.to_bytes()), Ok(offer.clone()));
        assert_eq!(
            (offer.within("b").len(), offer.within("").len(), offer.within("no").len()),
            (1, 6, 0)
        );
    }

    #[test]
    fn an_offer_has_the_bytes_of_the_standard() {
        let mut file = known("a/b", 300);
        (file.mode, file.modified_ns) = (Mode::of_unix(0o750), -2);
        let offer = Offer::new(vec![file, entry("p", Content::Stream)]).unwrap();
        let golden = [
            &[2, 0xe5, 3][..],
            b"a/b",
            &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x41, 0x2c],
            &[7; 32],
            &[3, 1],
            b"p",
            &[0; 8],
        ];
        assert_eq!(offer.to_bytes(), golden.concat());
    }

    /// Paths that leave the directory, that are there twice, and sizes and flags that nothing has.
    #[test]
    fn what_is_no_offer_is_refused() {
        let good = Offer::new(vec![known("ab", 1), known("cd", 2)]).unwrap().to_bytes();
        for length in 0..good.len() {
            assert!(Offer::read(&good[..length]).is_err(), "{length}");
        }
        assert_eq!(Offer::read(&[&good[..], &[0]].concat()), Err(FormatError::Trailing.into()));
        let replaced = |from: &[u8], to: &[u8]| {
            let at = good.windows(from.len()).position(|window| window == from).unwrap();
            Offer::read(&[&good[..at], to, &good[at + from.len()..]].concat())
        };
        assert_eq!(replaced(b"ab", b".."), Err(NameError::Part.into()));
        assert!(matches!(replaced(b"ab", b"CD"), Err(OfferError::Collision(_))));
        assert!(matches!(replaced(&[2, 1, 2], &[2, 4, 2]), Err(OfferError::Format(_))));
        let size = [&[7; 32][..], &[1]].concat();
        let huge = [&[0xc4; 1][..], &[0, 0, 0, 0, 0, 0, 1], &[7; 32][..]].concat();
        let first = [&[1][..], &[7; 32][..]].concat();
        assert!(good.windows(size.len()).any(|it| it == size));
        assert_eq!(replaced(&first, &huge), Err(OfferError::TooLarge));
        assert_eq!(Offer::read(&[0xc0, 0, 0, 0, 0, 0x0f, 0x42, 0x41]), Err(OfferError::TooLong));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_offer_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(offer) = Offer::read(&bytes) {
                prop_assert_eq!(Offer::read(&offer.to_bytes()), Ok(offer));
            }
        }
    }
}
