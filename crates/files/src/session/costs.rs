//! What files cost of a quota: their bytes, and what the disk needs to have them at all.
//!
//! The invariant: every file and every directory costs something, so that a quota of bytes bounds how many
//! there are. What is there already, also of an unfinished file, costs nothing more.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::folder::Folder;
use crate::offer::{Content, Offer};
use crate::system;
use crate::writer::Replace;

/// What a file or directory costs at least, and what the others are rounded up to, in bytes: a block of a
/// disk.
const BLOCK_BYTES: u64 = 4096;

/// Directories in directories that are counted: more than an offer can have.
const MAX_DEPTH: usize = 64;

/// What a file of this size costs.
pub(super) const fn cost_of(bytes: u64) -> u64 {
    let blocks = bytes.div_ceil(BLOCK_BYTES);
    (if blocks == 0 { 1 } else { blocks }).saturating_mul(BLOCK_BYTES)
}

/// What is in a directory, unfinished files too. What cannot be read is not counted.
pub(super) fn cost_of_folder(folder: &Path) -> u64 {
    let mut found = 0_u64;
    let mut folders: Vec<(PathBuf, usize)> = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for item in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(metadata) = item.metadata() else { continue };
            found =
                found.saturating_add(cost_of(if metadata.is_dir() { 0 } else { metadata.len() }));
            if metadata.is_dir() && depth < MAX_DEPTH {
                folders.push((item.path(), depth + 1));
            }
        }
    }
    found
}

/// What each file of an offer would add.
#[derive(Debug)]
pub(super) struct Costs {
    pub(super) files: Vec<u64>,
    pub(super) folders: u64,
}

impl Costs {
    /// Looks at what is there of them. `path_of` says where each is to be.
    pub(super) fn find(
        offer: &Offer,
        replace: Replace,
        path_of: impl Fn(u32) -> Option<PathBuf>,
    ) -> Self {
        let paths = (0..offer.len()).map(path_of);
        let mut costs = Self { files: Vec::new(), folders: 0 };
        let mut folders = HashSet::new();
        for (entry, path) in offer.entries().iter().zip(paths) {
            let path = path.unwrap_or_default();
            costs.files.push(match entry.content {
                Content::Directory if is_there(&path) => 0,
                Content::Directory => BLOCK_BYTES,
                // Its length is not known: its bytes are counted as they come.
                Content::Stream => 0,
                Content::Sized(bytes) | Content::Known { size: bytes, .. } => match replace {
                    // It is here, or will be refused.
                    Replace::Never if is_there(&path) => 0,
                    _ => cost_of(bytes).saturating_sub(cost_of_part(&path)),
                },
            });
            let mut inner = path.parent().filter(|_| entry.path.parts().count() > 1);
            for _ in 1..entry.path.parts().count() {
                let Some(folder) = inner.filter(|it| !folders.contains(*it)) else { break };
                folders.insert(folder.to_owned());
                costs.folders += if is_there(folder) { 0 } else { BLOCK_BYTES };
                inner = folder.parent();
            }
        }
        costs
    }

    pub(super) fn total(&self) -> u64 {
        self.files.iter().fold(self.folders, |sum, cost| sum.saturating_add(*cost))
    }
}

/// What is there of a file that is not finished.
pub(super) fn cost_of_part(path: &Path) -> u64 {
    let part = part_of(path).and_then(|part| part.symlink_metadata().ok());
    part.map_or(0, |part| cost_of(part.len()))
}

/// Whether somebody still writes a file that is not finished.
pub(super) fn is_in_use(path: &Path) -> bool {
    let folder = path.parent().and_then(|folder| Folder::open(folder).ok());
    let part = folder.zip(part_of(path)).and_then(|(folder, part)| {
        let found = folder.find(part.file_name()?).ok()??;
        let is_file = found.kind == rustix::fs::FileType::RegularFile;
        is_file.then(|| folder.read(part.file_name()?).ok()).flatten()
    });
    part.is_some_and(|part| matches!(system::lock(&part), Ok(false)))
}

fn part_of(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    Some(path.with_file_name(system::name_with(name, "", ".haulier-part")))
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::SafePath;
    use crate::offer::Entry;

    fn offer(files: &[(&str, Content)]) -> Offer {
        let entry =
            |(path, content): &(&str, Content)| Entry::new(SafePath::new(path).unwrap(), *content);
        Offer::new(files.iter().map(entry).collect()).unwrap()
    }

    #[test]
    fn every_file_and_directory_costs_a_block_at_least() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            ("a/b/x", Content::Sized(0)),
            ("a/b/y", Content::Sized(4097)),
            ("e", Content::Directory),
        ];
        let offer = offer(&files);
        let find = || {
            let path_of = |file| offer.entry(file).map(|it| dir.path().join(it.path.as_str()));
            Costs::find(&offer, Replace::Never, path_of)
        };
        let costs = find();
        assert_eq!((costs.files, costs.folders), (vec![4096, 4096, 8192], 8192));
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/y"), vec![0; 4097]).unwrap();
        fs::create_dir(dir.path().join("e")).unwrap();
        assert_eq!((find().total(), cost_of_folder(dir.path())), (4096, 8192 + 3 * 4096));
    }

    /// A client that vanishes leaves what it has sent, and it is not charged again when it goes on.
    #[test]
    fn unfinished_files_are_there_and_cost_nothing_more() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x.haulier-part"), vec![0; 10_000]).unwrap();
        let offer = offer(&[("x", Content::Sized(10_000))]);
        let costs = Costs::find(&offer, Replace::Never, |_| Some(dir.path().join("x")));
        assert_eq!((costs.total(), cost_of_folder(dir.path())), (0, 12_288));
        // An old version is there until the new one is.
        fs::rename(dir.path().join("x.haulier-part"), dir.path().join("x")).unwrap();
        for (replace, expected) in [(Replace::Never, 0), (Replace::File, 12_288)] {
            let costs = Costs::find(&offer, replace, |_| Some(dir.path().join("x")));
            assert_eq!(costs.total(), expected, "{replace:?}");
        }
    }
}
