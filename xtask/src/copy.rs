//! A copy of the tree that is changed and built, while the tree itself stays as it is.
//!
//! [`mends`](crate::mends) and [`ablate`](crate::ablate) have tables of [`Edit`]s: lines that are in the
//! code, and what stands there in the copy instead. The invariant: the lines are in the code, each once,
//! which `cargo xtask tidy` checks; a change of them is a change of the table too. A file of the copy that
//! would be the same is not written, so that cargo builds only what has changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::workspace::{Workspace, cargo};

/// A change of one file.
pub(crate) struct Edit {
    pub(crate) path: &'static str,
    pub(crate) there: &'static str,
    pub(crate) instead: &'static str,
}

pub(crate) const fn edit(path: &'static str, there: &'static str, instead: &'static str) -> Edit {
    Edit { path, there, instead }
}

/// The faults of a table's edits: the path and the fault of each. An edit has its name in `table`.
pub(crate) fn drifted<'e>(
    table: &str,
    edits: impl Iterator<Item = (&'e str, &'e Edit)>,
    read: impl Fn(&str) -> Option<String>,
) -> Vec<(&'static str, String)> {
    edits
        .filter_map(|(name, edit)| {
            let times = read(edit.path).map_or(0, |text| text.matches(edit.there).count());
            let what = format!("what `{name}` of {table} changes is here {times} times, not once");
            (times != 1).then_some((edit.path, what))
        })
        .collect()
}

/// The files of a copy, changed or not.
pub(crate) struct Tree {
    /// Where the copy is.
    pub(crate) root: PathBuf,
    target: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
}

impl Tree {
    /// The files that are committed or would be, for a copy in `target/NAME/tree`.
    pub(crate) fn read(workspace: &Workspace, name: &str) -> Result<Self, String> {
        let read = |path: String| {
            let bytes = std::fs::read(workspace.root.join(&path)).ok()?;
            Some((path, bytes))
        };
        let files = crate::tidy::listed_by_git(&workspace.root)?.into_iter().filter_map(read);
        let home = workspace.target.join(name);
        Ok(Self { root: home.join("tree"), target: home.join("target"), files: files.collect() })
    }

    /// The files and what is in them.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice()))
    }

    /// The text of a file.
    pub(crate) fn text(&self, path: &str) -> Result<&str, String> {
        let bytes = self.files.get(path).ok_or_else(|| format!("there is no {path}"))?;
        std::str::from_utf8(bytes).map_err(|error| format!("{path}: {error}"))
    }

    pub(crate) fn set(&mut self, path: &str, text: String) {
        self.files.insert(path.to_owned(), text.into_bytes());
    }

    /// Applies an edit.
    pub(crate) fn apply(&mut self, edit: &Edit) -> Result<(), String> {
        let text = self.text(edit.path)?;
        if text.matches(edit.there).count() != 1 {
            return Err(format!("{}: not once there: {}", edit.path, edit.there));
        }
        self.set(edit.path, text.replacen(edit.there, edit.instead, 1));
        Ok(())
    }

    /// Writes what differs from the copy that is there, and removes sources that the tree has no more: a
    /// module in a file of its own and one in a folder are two.
    pub(crate) fn write(&self) -> Result<(), String> {
        self.remove_stale(&self.root.join("crates"))?;
        for (path, bytes) in &self.files {
            let to = self.root.join(path);
            if std::fs::read(&to).ok().as_ref() != Some(bytes) {
                write(&to, bytes)?;
            }
        }
        Ok(())
    }

    fn remove_stale(&self, folder: &Path) -> Result<(), String> {
        let error = |error| format!("{}: {error}", folder.display());
        let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
        for entry in entries {
            let path = entry.map_err(error)?.path();
            let name = path.strip_prefix(&self.root).ok().and_then(Path::to_str);
            if path.is_dir() {
                self.remove_stale(&path)?;
            } else if name.is_none_or(|name| !self.files.contains_key(name)) {
                std::fs::remove_file(&path).map_err(error)?;
            }
        }
        Ok(())
    }

    /// Cargo in the copy, with a target directory of its own.
    pub(crate) fn cargo(&self, arguments: &str) -> Command {
        let mut command = Command::new(cargo());
        command.args(arguments.split_whitespace()).current_dir(&self.root).stdin(Stdio::null());
        // Cargo hands its own path on in CARGO, and another toolchain's cargo would believe it.
        command.env("CARGO_TARGET_DIR", &self.target).env_remove("CARGO");
        command
    }

    /// A program that [`cargo`](Self::cargo) has built for release.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.target.join("release").join(name)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let error = |error| format!("{}: {error}", path.display());
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(error)?;
    std::fs::write(path, bytes).map_err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When `path.rs` became `path/mod.rs` the copy had both, and was not built any more.
    #[test]
    fn a_copy_has_no_sources_of_before() {
        let home = std::env::temp_dir().join(format!("copy-of-a-tree-{}", std::process::id()));
        let tree = |name: &str| Tree {
            root: home.clone(),
            target: home.clone(),
            files: BTreeMap::from([(name.to_owned(), Vec::new())]),
        };
        let [before, after] = ["crates/a/path.rs", "crates/a/path/mod.rs"];
        tree(before).write().expect("written");
        tree(after).write().expect("written");
        assert!(!home.join(before).exists() && home.join(after).exists());
        std::fs::remove_dir_all(&home).expect("removed");
    }
}
