//! The giver's files: made of a seed, in versions, of which one is there now and one was offered.
//!
//! A file may change at any time: longer, shorter, or the same length with other bytes; and silently, with
//! the size and time that it had.

use std::ops::Range;

use bytes::Bytes;
use haulier_files::chunks::CHUNK_BYTES;
use haulier_files::names::SafePath;
use haulier_files::offer::{Content, Entry, Offer, Root};
use haulier_files::reason::{Fault, Reason};
use haulier_proto::connection::BlockTree;
use haulier_sim::Rng;

#[derive(Clone)]
pub(super) struct Version {
    pub(super) bytes: Bytes,
    pub(super) modified_ns: i64,
    pub(super) tree: BlockTree,
}

impl Version {
    pub(super) fn new(bytes: Bytes, modified_ns: i64) -> Self {
        let tree = BlockTree::of(&bytes);
        Self { bytes, modified_ns, tree }
    }

    const fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// These bytes, or fewer if it ends.
    fn span(&self, span: &Range<u64>) -> &[u8] {
        let [start, end] = [span.start, span.end].map(|at| at.min(self.length()) as usize);
        &self.bytes[start..end]
    }
}

/// How a file changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Edit {
    /// Some bytes in the middle of it.
    Some,
    /// Some bytes in the middle of it, and its size and time stay the same.
    Silent,
    Grows,
    Shrinks,
}

impl Edit {
    pub(super) const ALL: [Self; 4] = [Self::Some, Self::Silent, Self::Grows, Self::Shrinks];
}

pub(super) struct GivenFile {
    pub(super) path: SafePath,
    pub(super) versions: Vec<Version>,
    /// The index of the version that the file has now.
    current: usize,
    /// The index of the version that it had when the files were loaded.
    loaded: usize,
    /// Its root is known before it is asked for.
    is_hashed: bool,
}

/// The files, and their disk.
pub(super) struct Store {
    pub(super) files: Vec<GivenFile>,
    pub(super) failing_per_mille: u64,
    rng: Rng,
}

impl Store {
    pub(super) const fn new(rng: Rng) -> Self {
        Self { files: Vec::new(), failing_per_mille: 0, rng }
    }

    pub(super) fn add(&mut self, path: SafePath, version: Version, is_hashed: bool) {
        let versions = vec![version];
        self.files.push(GivenFile { path, versions, current: 0, loaded: 0, is_hashed });
    }

    /// A program starts, and looks at its files.
    pub(super) fn load(&mut self) {
        self.files.iter_mut().for_each(|file| file.loaded = file.current);
    }

    pub(super) fn offer(&self) -> Offer {
        let entry = |file: &GivenFile| {
            let version = &file.versions[file.loaded];
            let size = version.length();
            let content = match file.is_hashed {
                true => Content::Known { size, root: *version.tree.digest() },
                false => Content::Sized(size),
            };
            let mut entry = Entry::new(file.path.clone(), content);
            entry.modified_ns = version.modified_ns;
            entry
        };
        Offer::new(self.files.iter().map(entry).collect()).expect("an offer")
    }

    pub(super) fn index(&self, path: &SafePath) -> usize {
        self.files.iter().position(|file| file.path == *path).expect("a file that is given")
    }

    /// A file changes.
    pub(super) fn edit(&mut self, index: usize, edit: Edit) {
        let file = &mut self.files[index];
        let version = &file.versions[file.current];
        let mut bytes = version.bytes.to_vec();
        let place = self.rng.below(bytes.len() as u64 + 1) as usize;
        match edit {
            Edit::Some | Edit::Silent => {
                let end = bytes.len().min(place + 5_000);
                let fresh = self.rng.bytes(end - place);
                bytes[place..end].copy_from_slice(&fresh);
            }
            Edit::Grows => {
                let fresh = self.rng.bytes(10_000);
                bytes.splice(place..place, fresh);
            }
            Edit::Shrinks => bytes.truncate(place),
        }
        let modified_ns = version.modified_ns + i64::from(edit != Edit::Silent);
        let fresh = Version::new(bytes.into(), modified_ns);
        file.versions.push(fresh);
        file.current += 1;
    }

    /// Whether a file was changed after it was loaded: `Silent` if its size and time are the same, otherwise
    /// `Some`.
    fn change(&self, index: usize) -> Option<Edit> {
        let file = &self.files[index];
        let [loaded, now] = [file.loaded, file.current].map(|at| &file.versions[at]);
        if file.loaded == file.current {
            return None;
        }
        let is_same = (loaded.length(), loaded.modified_ns) == (now.length(), now.modified_ns);
        Some(if is_same { Edit::Silent } else { Edit::Some })
    }

    /// Reads parts of a file, one after the other.
    pub(super) fn read(&mut self, index: usize, spans: &[Range<u64>]) -> Result<Vec<u8>, Fault> {
        if self.rng.below(1000) < self.failing_per_mille {
            return Err(Reason::Unreadable.into());
        }
        if self.change(index) == Some(Edit::Some) {
            return Err(Reason::Changed.into());
        }
        let file = &self.files[index];
        let version = &file.versions[file.current];
        Ok(spans.iter().flat_map(|span| version.span(span)).copied().collect())
    }

    /// Hashes all of a file.
    pub(super) fn tree(&mut self, index: usize) -> Result<BlockTree, Fault> {
        self.read(index, &[])?;
        let file = &self.files[index];
        Ok(file.versions[file.current].tree.clone())
    }

    /// The tree of what was offered with its root.
    pub(super) fn offered_tree(&self, index: usize) -> BlockTree {
        let file = &self.files[index];
        file.versions[file.loaded].tree.clone()
    }

    /// Its root is offered from now on, if it is that of the file as it was loaded.
    pub(super) fn learn(&mut self, index: usize, root: &Root) {
        let file = &mut self.files[index];
        file.is_hashed |= file.versions[file.loaded].tree.digest() == root;
    }

    /// Whether a file ever had these bytes.
    pub(super) fn ever_had(&self, path: &str, root: &Root) -> bool {
        let file = self.files.iter().find(|file| file.path.as_str() == path);
        file.is_some_and(|file| file.versions.iter().any(|it| it.tree.digest() == root))
    }

    /// Of each file the version that was there when it was loaded.
    pub(super) fn loaded(&self) -> Vec<(String, usize)> {
        self.files.iter().map(|file| (file.path.as_str().to_owned(), file.loaded)).collect()
    }

    /// Whether a file had these bytes in this version, or in a later one.
    pub(super) fn had_since(&self, path: &str, root: &Root, first: usize) -> bool {
        let file = self.files.iter().find(|file| file.path.as_str() == path);
        let versions = file.and_then(|file| file.versions.get(first..)).unwrap_or_default();
        versions.iter().any(|it| it.tree.digest() == root)
    }

    /// Of each version of a file its length, and where these bytes begin to differ from it.
    pub(super) fn differences(&self, path: &str, bytes: &[u8]) -> Vec<(usize, usize)> {
        let file = self.files.iter().find(|file| file.path.as_str() == path);
        let first = |version: &Version| {
            let same = bytes.iter().zip(&version.bytes).take_while(|(a, b)| a == b).count();
            (version.bytes.len(), same)
        };
        file.map_or_else(Vec::new, |file| file.versions.iter().map(first).collect())
    }

    /// Whether these bytes have a chunk of a file, or it has changed, so that this cannot be said.
    pub(super) fn may_have_chunk(&self, path: &str, bytes: &[u8], index: u64) -> bool {
        let file = self.files.iter().find(|file| file.path.as_str() == path);
        let Some([version]) = file.map(|file| &file.versions[..]) else { return true };
        let chunk = |bytes: &[u8]| bytes.chunks(CHUNK_BYTES).nth(index as usize).map(<[_]>::to_vec);
        chunk(bytes) == chunk(&version.bytes)
    }

    /// Whether a file changed at all.
    pub(super) fn has_changed(&self, index: usize) -> bool {
        self.files[index].current > 0
    }
}
