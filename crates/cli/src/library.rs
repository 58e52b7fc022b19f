//! What is served or sent: the files and directories of the command line, each under its name.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use haulier::file::plain_name;
use haulier_files::errors::ReadError;
use haulier_files::offer::Entry;
use haulier_files::session::{Library, LibraryError};
use haulier_files::tree_cache::TreeCache;
use haulier_shell::failure::Failure;
use haulier_shell::report::Report;

/// Looks at all of it; what cannot be served is said at once. `rename` is the name of the only one. With
/// `hashes_anew` nothing that was kept of a file is believed.
pub(crate) fn load(
    paths: &[PathBuf],
    rename: Option<&str>,
    hashes_anew: bool,
    report: &Report,
) -> Result<Library, Failure> {
    let mut names = BTreeSet::new();
    let mut named = Vec::new();
    for path in paths {
        let name = rename.map_or_else(|| name_of(path), |name| Ok(name.to_owned()))?;
        let failed = |error| Failure::file(path, &error);
        // Opening a pipe would wait for its writer.
        if path.as_os_str() != "-" && fs::metadata(path).map_err(failed)?.is_file() {
            File::open(path).map_err(failed)?;
        }
        if !names.insert(name.clone()) {
            return Err(Failure::Usage(format!(
                "two of the files are called {name}: a client could only ask for one of them"
            )));
        }
        named.push((name, path.clone()));
    }
    let cache = TreeCache::user_folder().map_or_else(TreeCache::beside, TreeCache::with_fallback);
    let cache = if hashes_anew { cache.without_trust() } else { cache };
    let library = Library::load(&named, cache);
    let library = library.map_err(|error| failure_of(&error))?;
    if let [first, ..] = library.skipped() {
        report.warning(&format!(
            "{} of what is in the directories is not served, such as {}: links, pipes, and names that \
             not every system has",
            library.skipped().len(),
            first.display()
        ));
    }
    if library.offer().is_empty() {
        return Err(Failure::Usage("nothing in there can be served".into()));
    }
    if library.offer().entries().iter().all(Entry::is_directory) {
        report.warning("there is no file in there: all that others get of it is empty directories");
    }
    Ok(library)
}

/// A file that changes while it is looked at is no fault of the command line.
fn failure_of(error: &LibraryError) -> Failure {
    match error {
        LibraryError::Read(ReadError::Changed { .. }) => Failure::Io(error.to_string()),
        _ => Failure::Usage(error.to_string()),
    }
}

/// The name for clients: without a dot at its beginning, for nothing hidden is to appear at theirs.
fn name_of(path: &Path) -> Result<String, Failure> {
    if path.as_os_str() == "-" {
        return Ok("stdin".into());
    }
    // `.` and `maps/..` have names, too.
    let full = if path.file_name().is_some() { None } else { fs::canonicalize(path).ok() };
    let name = full.as_deref().unwrap_or(path).file_name().and_then(|name| name.to_str());
    name.and_then(plain_name).map(|name| name.into_owned()).ok_or_else(|| {
        let what = "has no name that a client could ask for: UTF-8, up to 255 bytes, and plain on every \
                    system";
        Failure::Usage(format!("{} {what}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use haulier_files::errors::Change;

    use super::*;

    #[test]
    fn a_file_that_changes_while_it_is_hashed_is_no_wrong_argument() {
        let changed = |change| LibraryError::Read(ReadError::Changed { path: "x".into(), change });
        assert_eq!(failure_of(&changed(Change::Longer)).exit_code(), 5);
        let too_long = LibraryError::Read(ReadError::TooLong { path: "x".into(), bytes: 1 });
        assert_eq!(failure_of(&too_long).exit_code(), 2);
    }
}
