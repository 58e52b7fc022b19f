//! `cargo xtask tidy`: what no compiler looks at.
//!
//! Texts drift: a link outlives its page, a number is stated twice and changed once, a requirement loses
//! its test. Each check reads the whole [`Tree`] and answers with findings of one form,
//! `path:line: what, and what to do`. All of them are run, and all findings shown, before it fails.
//!
//! * [`arrows`]: modules that use only those below them.
//! * [`lines`]: one file at a time: lengths, spaces, words that must not stay, size.
//! * [`links`]: what Markdown points at; decisions that their index forgot.
//! * [`requirements`]: the tags of `docs/STANDARD.md`, each with the test that holds it.
//! * [`names`]: tests, functions and tags that prose names.
//! * [`plain`]: turns of phrase that have to be read twice.
//! * [`msrv`]: the oldest supported Rust, stated once.
//! * the header for C, which is made of sources, and made anew when they change.
//! * [`mends`], [`ablate`]: the lines that a table of changes has are in the code.

mod arrows;
mod lines;
mod links;
mod msrv;
mod names;
mod plain;
mod requirements;

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use crate::workspace::Workspace;
use crate::{ablate, c, mends};
pub(crate) use msrv::oldest_rust;

/// Something to mend.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// One file of the tree.
struct File {
    /// From the root, with `/` on every system.
    path: String,
    size_bytes: usize,
    /// `None`: not UTF-8, so nothing for people to read.
    text: Option<String>,
}

impl File {
    fn is_kind(&self, extensions: &[&str]) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
    }

    /// The lines with their numbers, from 1; none of a file that is no text.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.iter().flat_map(|text| (1..).zip(text.split('\n')))
    }
}

/// Every file that is committed or would be.
struct Tree {
    files: Vec<File>,
}

impl Tree {
    fn read(root: &Path) -> Result<Self, String> {
        let mut files = Vec::new();
        for path in listed_by_git(root)? {
            match std::fs::read(root.join(&path)) {
                Ok(bytes) => files.push(File {
                    path,
                    size_bytes: bytes.len(),
                    text: String::from_utf8(bytes).ok(),
                }),
                // Deleted, and still in git's index.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("{path}: {error}")),
            }
        }
        Ok(Self { files })
    }

    fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    fn of_kind<'a>(&'a self, extensions: &'a [&str]) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(|file| file.is_kind(extensions))
    }
}

/// The files that are committed or would be.
pub(crate) fn listed_by_git(root: &Path) -> Result<BTreeSet<String>, String> {
    // In a container the checkout often belongs to another user, and git refuses to read it.
    let safe = format!("safe.directory={}", root.display());
    let output = std::process::Command::new("git")
        .args(["-c", &safe, "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git ls-files: {error}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let listed = String::from_utf8_lossy(&output.stdout);
    Ok(listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

/// Shows every place that has to be read twice.
pub(crate) fn show_plain(workspace: &Workspace) -> Result<(), String> {
    let places = plain::all(&Tree::read(&workspace.root)?);
    places.iter().for_each(|place| println!("{place}"));
    println!("{} places", places.len());
    Ok(())
}

/// Runs every check.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let tree = Tree::read(&workspace.root)?;
    let mut findings: Vec<Finding> = tree.files.iter().flat_map(lines::check).collect();
    findings.extend(arrows::check(&tree));
    findings.extend(links::check(&tree));
    findings.extend(requirements::check(&tree));
    findings.extend(names::check(&tree));
    findings.extend(plain::check(&tree));
    let version = msrv::stated(&workspace.packages()?)?;
    findings.extend(msrv::check(&tree, &version));
    let text = |path: &str| tree.file(path).and_then(|file| file.text.clone());
    let drifted = mends::drifted(text).into_iter().chain(ablate::drifted(text));
    findings.extend(drifted.map(|(path, what)| Finding::new(path, 1, what)));
    let (header, is_made) = c::header_is_made_of_sources(&workspace.root)?;
    let not_made =
        || Finding::new(header, 1, "is not what the sources make: cargo xtask c --header");
    findings.extend((!is_made).then(not_made));
    findings.sort();
    findings.iter().for_each(|finding| println!("{finding}"));
    match findings.len() {
        0 => println!("tidy: {} files, nothing to mend", tree.files.len()),
        count => return Err(format!("{count} findings in {} files", tree.files.len())),
    }
    Ok(())
}

#[cfg(test)]
impl Tree {
    /// A tree of these paths and texts.
    fn of(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| File {
            path: path.to_owned(),
            size_bytes: text.len(),
            text: Some(text.to_owned()),
        };
        Self { files: files.iter().map(file).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_a_place_to_click_on() {
        assert_eq!(Finding::new("docs/A.md", 3, "a tab").to_string(), "docs/A.md:3: a tab");
    }

    #[test]
    fn the_tree_has_this_file() {
        assert!(listed_by_git(&Workspace::here().root).unwrap().contains("xtask/src/tidy.rs"));
    }
}
