//! What of a folder came by fetches: the list beside the files, and the folder for files of several names.
//!
//! A giver chooses which names and BLAKE3s it offers. A taker that compares whatever has such a name, and
//! says that it is here, tells any server what is in its folder. So unless its user said that files may be
//! replaced, a taker compares only what an earlier fetch has stored, and puts files of several names where
//! no others are. The invariant: what a giver hears of a folder is the same whatever is in it that no fetch
//! has begun to store, but that a name is taken (SECURITY.md has the exceptions).
//!
//! The list, `.fetched.haulier-journal`, is only ever appended to, a line for each file before it gets its
//! name: BLAKE3, bytes, time of change, path. A line that is missing or damaged costs a `--force`.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::folder::Folder;
use crate::offer::{Entry, Root};

/// With the ending of journals, so that nobody offers a file of this name, and no server has it in its list.
const NAME: &str = ".fetched.haulier-journal";

/// The longest list that is read, in bytes: twice that of an offer of the most files.
const MAX_BYTES: u64 = 512 << 20;

/// The folder of files that have none in common.
const UNNAMED: &str = "fetched";

/// Folders that are tried, `maps (2)` and so on. A user who has all of them knows why.
const MAX_FOLDERS: u32 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    root: Root,
    bytes: u64,
    modified_ns: i64,
}

/// The list of a folder.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    stored: HashMap<String, Stored>,
    list: Option<File>,
}

impl Fetched {
    /// Reads the list in this folder, if there is one.
    pub(super) fn read(folder: &Path) -> Self {
        let mut text = Vec::new();
        let read = open(folder, OpenOptions::new().read(true))
            .and_then(|list| list.take(MAX_BYTES).read_to_end(&mut text));
        let lines = text.split(|byte| *byte == b'\n').filter(|_| read.is_ok());
        let stored = lines.filter_map(|line| parse(std::str::from_utf8(line).ok()?)).collect();
        Self { stored, list: None }
    }

    /// Reads the list, and keeps it open to add the files that are stored from now on. In a folder that
    /// cannot be written nothing is added.
    pub(super) fn keep(folder: &Path) -> Self {
        let append = open(folder, OpenOptions::new().append(true).create(true).mode(0o600));
        Self { list: append.ok(), ..Self::read(folder) }
    }

    /// Whether a fetch has stored this file, as it is offered now.
    pub(super) fn has(&self, entry: &Entry, root: Option<&Root>) -> bool {
        self.stored.get(entry.path.as_str()).is_some_and(|stored| match root {
            Some(root) => stored.root == *root,
            None => Some(stored.bytes) == entry.size() && stored.modified_ns == entry.modified_ns,
        })
    }

    /// A file is about to get its name.
    pub(super) fn add(&mut self, entry: &Entry, bytes: u64, root: &Root) {
        let Some(list) = &mut self.list else { return };
        let (root, path) = (blake3::Hash::from_bytes(*root).to_hex(), entry.path.as_str());
        let line = format!("{root} {bytes} {} {path}\n", entry.modified_ns);
        // At the worst it is not compared the next time, and said to be in the way.
        drop(list.write_all(line.as_bytes()));
    }
}

fn parse(line: &str) -> Option<(String, Stored)> {
    let mut fields = line.splitn(4, ' ');
    let root = *blake3::Hash::from_hex(fields.next()?).ok()?.as_bytes();
    let (bytes, modified_ns) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((fields.next()?.to_owned(), Stored { root, bytes, modified_ns }))
}

/// Another user who can make files or links here must not have another file written, nor say what was
/// fetched: the list is this user's, has one name, and nobody else may write to it.
fn open(folder: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    let file = options.custom_flags(flags).open(folder.join(NAME))?;
    let about = file.metadata()?;
    let is_ours = about.uid() == rustix::process::geteuid().as_raw();
    match about.is_file() && about.nlink() == 1 && is_ours && about.mode() & 0o022 == 0 {
        true => Ok(file),
        false => Err(ErrorKind::InvalidInput.into()),
    }
}

/// Whether a fetch has stored files in this folder, or in one of those in it.
#[must_use]
pub fn was_fetched_into(folder: &Path) -> bool {
    let Ok(inside) = fs::read_dir(folder) else { return false };
    let is_begun =
        |path: PathBuf| path.extension().is_some_and(|it| it == "haulier-part") || is_listed(&path);
    is_listed(folder) || inside.flatten().any(|entry| is_begun(entry.path()))
}

fn is_listed(folder: &Path) -> bool {
    folder.join(NAME).symlink_metadata().is_ok_and(|list| list.is_file())
}

/// The directory for files of several names; all of them are in `top`, if it is given. It is `base` itself
/// if their place there is absent, empty or of an earlier fetch; else a new directory in `base`.
pub(super) fn folder_for(base: &Path, top: Option<&str>) -> io::Result<PathBuf> {
    if is_free(&list_folder(base, top)) {
        return Ok(base.to_owned());
    }
    let name = top.unwrap_or(UNNAMED);
    // The first name of files with a directory of their own is taken: that was looked at above.
    for n in 1 + u32::from(top.is_some())..=MAX_FOLDERS {
        let folder = base.join(if n == 1 { name.to_owned() } else { format!("{name} ({n})") });
        match fs::create_dir(&folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            Err(_) if !is_free(&folder) => {}
            _ => {
                Folder::open(base)?.sync()?;
                // So it is known again as a whole, whatever is in it by then.
                drop(Fetched::keep(&folder));
                return Ok(folder);
            }
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Where the list of files in `base` is: in the directory that all of them are in, unless `base` was made for
/// them.
pub(super) fn list_folder(base: &Path, top: Option<&str>) -> PathBuf {
    let top = top.filter(|_| !is_listed(base));
    top.map_or_else(|| base.to_owned(), |top| base.join(top))
}

/// Whether a folder is not there, is empty, or has a list.
fn is_free(folder: &Path) -> bool {
    match folder.symlink_metadata() {
        Ok(about) if about.is_dir() => {
            is_listed(folder) || fs::read_dir(folder).is_ok_and(|mut it| it.next().is_none())
        }
        Ok(_) => false,
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::names::SafePath;
    use crate::offer::Content;

    fn entry(path: &str) -> Entry {
        Entry::new(SafePath::new(path).unwrap(), Content::Sized(5))
    }

    #[test]
    fn a_list_knows_what_was_stored_and_no_other_version_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut list = Fetched::keep(dir.path());
        list.add(&entry("maps/a b.map"), 5, &[7; 32]);
        // As a loss of power leaves it.
        fs::write(dir.path().join("half"), "abc").unwrap();
        list.list.as_mut().unwrap().write_all(b"0707 5").unwrap();
        let list = Fetched::read(dir.path());
        assert!(list.has(&entry("maps/a b.map"), Some(&[7; 32])));
        assert!(list.has(&entry("maps/a b.map"), None), "by its size and time");
        assert!(!list.has(&entry("maps/a b.map"), Some(&[8; 32])));
        assert!(!list.has(&entry("maps/a"), Some(&[7; 32])));
        assert!(was_fetched_into(dir.path()));
    }

    /// A line ends with a path that a server chose: a list that is another file would be written to.
    #[test]
    fn a_list_that_somebody_planted_is_neither_read_nor_written() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, list) = (dir.path().join("victim"), dir.path().join(NAME));
        let line = format!("{} 5 0 x\n", blake3::Hash::from_bytes([7; 32]).to_hex());
        let plants: [&dyn Fn(); 3] = [
            &|| fs::hard_link(&victim, &list).unwrap(),
            &|| std::os::unix::fs::symlink(&victim, &list).unwrap(),
            &|| {
                fs::write(&list, &line).unwrap();
                fs::set_permissions(&list, fs::Permissions::from_mode(0o666)).unwrap();
            },
        ];
        for plant in plants {
            fs::write(&victim, &line).unwrap();
            plant();
            let mut fetched = Fetched::keep(dir.path());
            fetched.add(&entry("y"), 5, &[8; 32]);
            assert!(!fetched.has(&entry("x"), Some(&[7; 32])));
            assert_eq!(fs::read_to_string(&victim).unwrap(), line);
            fs::remove_file(&list).unwrap();
        }
    }

    /// What is in a folder that no fetch has made decides nothing but where files go.
    #[test]
    fn files_of_several_names_go_where_no_others_are() {
        let dir = tempfile::tempdir().unwrap();
        let of = |top| folder_for(dir.path(), top).unwrap();
        assert_eq!([of(None), of(Some("maps"))], [dir.path(), dir.path()]);
        fs::create_dir(dir.path().join("maps")).unwrap();
        assert_eq!(of(Some("maps")), dir.path());
        fs::write(dir.path().join("maps/own"), "").unwrap();
        let second = dir.path().join("maps (2)");
        assert_eq!([of(Some("maps")), of(Some("maps"))], [&*second, &*second], "it is listed");
        fs::remove_dir_all(&second).unwrap();
        fs::write(&second, "").unwrap();
        assert_eq!(of(Some("maps")), dir.path().join("maps (3)"));
        assert_eq!(of(None), dir.path().join("fetched"));
        Fetched::keep(&dir.path().join("maps"));
        assert_eq!(of(Some("maps")), dir.path(), "a fetch was there");
    }
}
