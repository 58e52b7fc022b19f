//! What is on the disk when a library is loaded: files, pipes, and all that is in directories.
//!
//! The invariant: below a path that was named no link is followed, and nothing of this crate is offered.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::{LibraryError, MAX_OPEN, PipeSource, Served};
use crate::errors::ReadError;
use crate::folder::Folder;
use crate::names::SafePath;
use crate::offer::{Content, Entry};
use crate::reader::SourceFile;

/// Directories in directories that are looked into: what a path may have.
const MAX_DEPTH: usize = 32;

#[derive(Default)]
pub(super) struct Found {
    pub(super) files: Vec<(Entry, Served)>,
    pub(super) skipped: Vec<PathBuf>,
}

impl Found {
    /// What is at these paths; `-` is standard input.
    pub(super) fn at(paths: &[(String, PathBuf)]) -> Result<Self, LibraryError> {
        let mut found = Self::default();
        for (name, path) in paths {
            if path.as_os_str() == "-" {
                found.add_pipe(name, path, true)?;
                continue;
            }
            let metadata = fs::metadata(path).map_err(|error| ReadError::io(path, error))?;
            if metadata.is_dir() {
                let folder = Folder::open(path).map_err(|error| ReadError::io(path, error))?;
                found.add_folder(name, path, &folder, 0)?;
            } else if metadata.file_type().is_fifo() {
                found.add_pipe(name, path, false)?;
            } else {
                found.add_file(name, SourceFile::open(path)?, None)?;
            }
        }
        Ok(found)
    }

    fn add_file(
        &mut self,
        name: &str,
        file: SourceFile,
        base: Option<&Path>,
    ) -> Result<(), LibraryError> {
        let path = file.path().to_owned();
        let safe = SafePath::from_disk(name)
            .map_err(|error| LibraryError::Name { path: path.clone(), error })?;
        let mut entry = Entry::new(safe, Content::Sized(file.version().bytes));
        entry.mode = file.mode();
        entry.modified_ns = file.version().modified_ns;
        let is_kept_open = self.files.len() < MAX_OPEN;
        let mut served = Served::new(&path, Some(file), is_kept_open);
        served.base = base.map(Path::to_owned);
        self.files.push((entry, served));
        Ok(())
    }

    /// A pipe: nothing of it is known, and nothing is opened yet.
    fn add_pipe(&mut self, name: &str, path: &Path, is_stdin: bool) -> Result<(), LibraryError> {
        let safe = SafePath::from_disk(name)
            .map_err(|error| LibraryError::Name { path: path.to_owned(), error })?;
        let mut served = Served::new(path, None, false);
        served.pipe = Some(PipeSource { is_stdin, was_taken: AtomicBool::new(false) });
        self.files.push((Entry::new(safe, Content::Stream), served));
        Ok(())
    }

    /// What is in a directory, by name. A link could lead anywhere, also back.
    fn add_folder(
        &mut self,
        name: &str,
        base: &Path,
        folder: &Folder,
        depth: usize,
    ) -> Result<(), LibraryError> {
        let path = folder.path();
        let io = |error| ReadError::io(path, error);
        let mut inside: Vec<_> =
            fs::read_dir(path).map_err(io)?.collect::<Result<_, _>>().map_err(io)?;
        inside.sort_by_key(fs::DirEntry::file_name);
        let is_empty = inside.is_empty();
        for item in inside {
            let kind = item.file_type().map_err(io)?;
            let (path, part) = (item.path(), item.file_name());
            let inner = item.file_name().to_str().map(|inner| format!("{name}/{inner}"));
            match inner.filter(|inner| SafePath::from_disk(inner).is_ok()) {
                Some(inner) if kind.is_dir() && depth + 1 < MAX_DEPTH => {
                    let folder = folder.inner(&part).map_err(io)?;
                    self.add_folder(&inner, base, &folder, depth + 1)?;
                }
                Some(inner) if kind.is_file() => {
                    let file = SourceFile::open_inside(folder, &path)?;
                    self.add_file(&inner, file, Some(base))?;
                }
                _ if is_own(&path) => {}
                _ => self.skipped.push(path),
            }
        }
        if is_empty {
            let safe = SafePath::from_disk(name)
                .map_err(|error| LibraryError::Name { path: path.to_owned(), error })?;
            let entry = Entry::new(safe, Content::Directory);
            self.files.push((entry, Served::new(path, None, false)));
        }
        Ok(())
    }
}

/// Whether it is something that lies beside files because of this crate.
fn is_own(path: &Path) -> bool {
    let endings = ["haulier-part", "haulier-journal", "haulier-tree"];
    path.extension().is_some_and(|ending| endings.iter().any(|own| ending == *own))
}
