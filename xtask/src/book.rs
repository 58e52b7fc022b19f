//! The book: `book/src` filled in, built by mdBook, and checked.
//!
//! ```text
//! book/src ------\
//! book/numbers.json --[pages]--> target/book-pages --[mdBook]--> target/book
//! examples, docs --/                                            ^
//!     page of the playground, still pictures of its scenes -----/
//! ```
//!
//! * [`pages`]: what is filled in: numbers, scenes, programs, and the pages of `docs`.
//! * [`numbers`]: every number with the command that says it, and whether it still does.
//! * [`links`]: that each link of the built pages leads somewhere.
//!
//! The code in the pages is compiled by `cargo test`, as the doc tests of the package `haulier-book`; a test
//! of the program reads the commands in them with its own parser.

mod links;
mod numbers;
mod pages;

use std::fs;
use std::path::Path;

use crate::ci::{Shell, Stop};
use crate::playground;
use numbers::Numbers;

/// Builds the book, with the playground in it.
pub(crate) fn run(shell: &Shell<'_>) -> Result<(), Stop> {
    let page = playground::build(shell)?;
    let built = shell.workspace.target.join("book");
    build(shell, &shell.tested_lab()?, &page, &built)?;
    println!("book: {}", built.join("index.html").display());
    Ok(())
}

/// Builds the book, follows its links, and runs the quick commands of its numbers. Of the playground there
/// is the page alone: its engine takes longer to build than all of this, and has a test of its own.
pub(crate) fn check(shell: &Shell<'_>) -> Result<(), Stop> {
    let workspace = shell.workspace;
    let program = shell.tested_lab()?;
    let built = workspace.target.join("book-checked");
    let page = workspace.target.join("book-playground");
    empty(&page)?;
    playground::copy_page(shell, &page)?;
    build(shell, &program, &page, &built)?;
    let count = links::check(&built)?;
    println!("book: {count} links lead somewhere");
    Numbers::read(&workspace.root)?.check(|arguments| shell.output(&program, arguments))
}

fn build(shell: &Shell<'_>, program: &Path, page: &Path, built: &Path) -> Result<(), Stop> {
    let root = &shell.workspace.root;
    let filled = shell.workspace.target.join("book-pages");
    empty(&filled)?;
    let scenes = pages::fill(root, &filled, &Numbers::read(root)?)?;
    fs::create_dir_all(filled.join("src/scenes")).map_err(|error| broken(&filled, &error))?;
    for scene in &scenes {
        let picture = filled.join("src").join(scene.picture());
        let picture = picture.display().to_string();
        shell.output(program, &["playground", "--scene", &scene.query, "--svg", &picture])?;
    }
    println!("book: {} scenes", scenes.len());
    let builder = "run --locked --manifest-path book/builder/Cargo.toml";
    shell.cargo(&format!("{builder} -- {}", filled.display()))?;
    empty(built)?;
    copy_all(&filled.join("book"), built)?;
    copy_all(page, &built.join("playground"))
}

/// Makes a folder with nothing in it.
fn empty(path: &Path) -> Result<(), Stop> {
    if path.exists() {
        fs::remove_dir_all(path).map_err(|error| broken(path, &error))?;
    }
    fs::create_dir_all(path).map_err(|error| broken(path, &error))
}

/// Copies a folder with all that is in it.
fn copy_all(from: &Path, to: &Path) -> Result<(), Stop> {
    fs::create_dir_all(to).map_err(|error| broken(to, &error))?;
    for file in fs::read_dir(from).map_err(|error| broken(from, &error))?.flatten() {
        let (from, to) = (file.path(), to.join(file.file_name()));
        if from.is_dir() {
            copy_all(&from, &to)?;
        } else {
            fs::copy(&from, to).map_err(|error| broken(&from, &error))?;
        }
    }
    Ok(())
}

fn broken(path: &Path, error: &std::io::Error) -> Stop {
    format!("{}: {error}", path.display()).into()
}
