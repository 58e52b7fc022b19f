//! What files cost of a quota: their bytes, and what the disk needs to have them at all.
//!
//! The invariant: every file, pipe and directory costs something from the moment it may be made, so that a
//! quota of bytes bounds their number; and a file costs its journal too while it is unfinished. Bytes that
//! are on the disk already, also of an unfinished file, cost nothing more.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::folder::Folder;
use crate::journal::max_journal_bytes;
use crate::offer::{Content, Entry, Offer};
use crate::quota::{BLOCK_BYTES, cost_of};
use crate::reason::{Fault, Reason};
use crate::system;
use crate::writer::{MIN_JOURNAL_BYTES, Replace};

/// Directories in directories that are counted: more than an offer can have.
const MAX_DEPTH: usize = 64;

/// What is in a place: the cost in bytes, and how many files and directories there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

impl Taken {
    const fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.files += 1;
    }
}

/// What is in a directory, unfinished files too. What cannot be read is not counted.
pub(super) fn taken_in_folder(folder: &Path) -> Taken {
    let mut found = Taken::default();
    let mut folders: Vec<(PathBuf, usize)> = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for item in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(metadata) = item.metadata() else { continue };
            found.add(cost_of(if metadata.is_dir() { 0 } else { metadata.len() }));
            if metadata.is_dir() && depth < MAX_DEPTH {
                folders.push((item.path(), depth + 1));
            }
        }
    }
    found
}

/// The cost of the longest journal that a file of this size can have.
pub(super) const fn cost_of_journal(bytes: u64) -> u64 {
    if bytes < MIN_JOURNAL_BYTES { 0 } else { cost_of(max_journal_bytes(bytes)) }
}

/// What an entry costs until it has its name; of a pipe what it costs without any bytes.
pub(super) fn cost_of_entry(entry: &Entry) -> u64 {
    let bytes = entry.size().unwrap_or_default();
    cost_of(bytes).saturating_add(cost_of_journal(bytes))
}

/// Directories that the files of an offer may be in. Each costs a look at the disk and some 150 bytes of
/// memory while they are counted, and 200,000 paths of 32 parts, the longest list of an inbox, have six
/// million.
const MAX_FOLDERS: usize = 200_000;

/// What each file of an offer would add.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// Of each file.
    pub(super) files: Vec<u64>,
    /// Of the directories that are made for them.
    pub(super) folders: u64,
    /// Files of which some is here, and what that costs.
    pub(super) here: BTreeMap<u32, u64>,
}

impl Costs {
    /// Looks which bytes of them are on the disk already. `path_of` returns the path of each.
    ///
    /// # Errors
    /// They are in more than [`MAX_FOLDERS`].
    pub(super) fn find(
        offer: &Offer,
        replace: Replace,
        is_alone: bool,
        path_of: impl Fn(u32) -> Option<PathBuf>,
    ) -> Result<Self, Fault> {
        let mut costs = Self::default();
        let mut folders = HashSet::new();
        for (file, entry) in (0..).zip(offer.entries()) {
            let path = path_of(file).unwrap_or_default();
            let cost = match (entry.content, replace) {
                (Content::Directory, _) if is_there(&path) => 0,
                (Content::Directory, _) => BLOCK_BYTES,
                // It is here, or will be refused.
                (_, Replace::Never) if is_there(&path) => 0,
                // Another upload may finish the part, and this one then writes a second file beside it.
                (_, Replace::File) if !is_alone => cost_of_entry(entry),
                _ => {
                    let part = cost_of_part(&path);
                    if part.bytes > 0 {
                        costs.here.insert(file, part.bytes + part.journal_bytes);
                    }
                    cost_of_entry(entry).saturating_sub(part.bytes)
                }
            };
            costs.files.push(cost);
            let mut inner = path.parent().filter(|_| entry.path.parts().count() > 1);
            for _ in 1..entry.path.parts().count() {
                let Some(folder) = inner.filter(|it| !folders.contains(*it)) else { break };
                if folders.len() >= MAX_FOLDERS {
                    let what = format!("its files are in more than {MAX_FOLDERS} directories");
                    return Err(Fault::new(Reason::Quota, &what));
                }
                folders.insert(folder.to_owned());
                costs.folders += if is_there(folder) { 0 } else { BLOCK_BYTES };
                inner = folder.parent();
            }
        }
        Ok(costs)
    }

    /// What they add in bytes, and how many files and directories.
    pub(super) fn total(&self) -> Taken {
        let bytes = self.files.iter().fold(self.folders, |sum, cost| sum.saturating_add(*cost));
        let files = self.files.iter().filter(|cost| **cost > 0).count() as u64;
        Taken { bytes, files: files + self.folders / BLOCK_BYTES }
    }
}

/// The bytes on the disk of a file that is not finished.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PartCost {
    pub(super) bytes: u64,
    pub(super) journal_bytes: u64,
}

pub(super) fn cost_of_part(path: &Path) -> PartCost {
    let cost = |ending| {
        let beside = beside(path, ending).and_then(|it| it.symlink_metadata().ok());
        beside.map_or(0, |it| cost_of(it.len()))
    };
    PartCost { bytes: cost(".haulier-part"), journal_bytes: cost(".haulier-journal") }
}

/// Whether a writer still has an unfinished file open.
pub(super) fn is_in_use(path: &Path) -> bool {
    let folder = path.parent().and_then(|folder| Folder::open(folder).ok());
    let part = folder.zip(beside(path, ".haulier-part")).and_then(|(folder, part)| {
        let found = folder.find(part.file_name()?).ok()??;
        let is_file = found.kind == rustix::fs::FileType::RegularFile;
        is_file.then(|| folder.read(part.file_name()?).ok()).flatten()
    });
    part.is_some_and(|part| matches!(system::lock(&part), Ok(false)))
}

fn beside(path: &Path, ending: &str) -> Option<PathBuf> {
    let name = path.file_name()?;
    Some(path.with_file_name(system::name_with(name, "", ending)))
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::SafePath;

    fn offer(files: &[(&str, Content)]) -> Offer {
        let entry =
            |(path, content): &(&str, Content)| Entry::new(SafePath::new(path).unwrap(), *content);
        Offer::new(files.iter().map(entry).collect()).unwrap()
    }

    #[test]
    fn every_file_pipe_and_directory_costs_a_block_at_least() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            ("a/b/x", Content::Sized(0)),
            ("a/b/y", Content::Sized(4097)),
            ("e", Content::Directory),
            ("p", Content::Stream),
            ("w", Content::Sized(2 << 20)),
        ];
        let offer = offer(&files);
        let find = || {
            let path_of = |file| offer.entry(file).map(|it| dir.path().join(it.path.as_str()));
            Costs::find(&offer, Replace::Never, true, path_of).unwrap()
        };
        let costs = find();
        // The long one has a journal.
        let expected = vec![4096, 4096, 8192, (2 << 20) + 4096, 4096];
        assert_eq!((&costs.files, costs.folders), (&expected, 8192));
        assert_eq!(costs.total(), Taken { bytes: (2 << 20) + 8 * 4096, files: 7 });
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/y"), vec![0; 4097]).unwrap();
        fs::create_dir(dir.path().join("e")).unwrap();
        assert_eq!(find().total().files, 3);
        let taken = Taken { bytes: 8192 + 3 * 4096, files: 4 };
        assert_eq!(taken_in_folder(dir.path()), taken);
    }

    /// A client that vanishes leaves what it has sent, and it is not charged again when it goes on.
    #[test]
    fn unfinished_files_are_there_and_cost_nothing_more() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x.haulier-part"), vec![0; 10_000]).unwrap();
        let offer = offer(&[("x", Content::Sized(10_000))]);
        let find = |replace, is_alone| {
            let path_of = |_| Some(dir.path().join("x"));
            Costs::find(&offer, replace, is_alone, path_of).unwrap().total().bytes
        };
        assert_eq!((find(Replace::Never, false), find(Replace::File, true)), (0, 0));
        assert_eq!(taken_in_folder(dir.path()).bytes, 12_288);
        // Another upload may be about to give this one its name.
        assert_eq!(find(Replace::File, false), 12_288);
        // An old version is there until the new one is.
        fs::rename(dir.path().join("x.haulier-part"), dir.path().join("x")).unwrap();
        assert_eq!((find(Replace::Never, true), find(Replace::File, true)), (0, 12_288));
    }

    /// A list of a megabyte with 30 directories for each file: counting them took gigabytes.
    #[test]
    fn an_offer_of_too_many_directories_is_refused_before_they_are_counted() {
        let inner = "/a".repeat(30);
        let paths: Vec<_> = (0..7_000).map(|n| format!("{n}{inner}/f")).collect();
        let files: Vec<_> = paths.iter().map(|path| (&**path, Content::Sized(0))).collect();
        let offer = offer(&files);
        let path_of = |file| offer.entry(file).map(|it| PathBuf::from(it.path.as_str()));
        let found = Costs::find(&offer, Replace::Never, true, path_of);
        assert_eq!(found.unwrap_err().reason, Reason::Quota);
    }
}
