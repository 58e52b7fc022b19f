//! The playground: its engine as WebAssembly, the page around it, and a program that has both.
//!
//! ```text
//! crates/playground (wasm32) -> playground-bindgen -> target/playground <- crates/playground/page
//!                                                        |
//!                                       HAULIER_PLAYGROUND: the build script of haulier-lab-cli
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use crate::ci::{Shell, Stop};

/// Tells the build script of `haulier-lab-cli` where the page is.
const PAGE: &str = "HAULIER_PLAYGROUND";

const TARGET: &str = "wasm32-unknown-unknown";

/// What the test of the page needs of Debian.
const BROWSER: &str = "chromium chromium-driver python3-selenium";

/// What the live view draws with as well, and has.
const SHARED: [&str; 2] = ["paint.js", "theme.css"];

/// Builds the page, and a program with it, and runs that.
pub(crate) fn run(shell: &Shell<'_>) -> Result<(), Stop> {
    let page = build(shell)?;
    let run = "run --locked --release -- playground";
    shell.cargo_with(&[(PAGE, &page.display().to_string())], run)
}

/// Builds the page, and a program with it, and tries both in a browser. Pictures of it are left.
pub(crate) fn check(shell: &Shell<'_>) -> Result<(), Stop> {
    let page = build(shell)?;
    let program = shell.tested_lab_with(&[(PAGE, &page.display().to_string())])?;
    let target = &shell.workspace.target;
    let pictures = target.join("playground-pictures");
    fs::create_dir_all(&pictures).map_err(|error| broken(&pictures, &error))?;
    let script = "crates/playground/page_test.py";
    let script = format!("{script} {} {}", program.display(), pictures.display());
    shell.debian_python(BROWSER, &script)
}

/// The directory with the whole page.
pub(crate) fn build(shell: &Shell<'_>) -> Result<PathBuf, Stop> {
    shell.need_target(TARGET)?;
    let engine = "-p haulier-playground --lib --profile playground";
    shell.cargo(&format!("build --locked {engine} --target {TARGET}"))?;
    let target = &shell.workspace.target;
    let engine = target.join(TARGET).join("playground/haulier_playground.wasm");
    let page = target.join("playground");
    if page.exists() {
        fs::remove_dir_all(&page).map_err(|error| broken(&page, &error))?;
    }
    fs::create_dir_all(&page).map_err(|error| broken(&page, &error))?;
    let bindgen = "run --locked --manifest-path crates/playground/bindgen/Cargo.toml";
    shell.cargo(&format!("{bindgen} -- {} {}", engine.display(), page.display()))?;
    copy_page(shell, &page)?;
    Ok(page)
}

/// Copies all of the page but its engine.
pub(crate) fn copy_page(shell: &Shell<'_>, page: &Path) -> Result<(), Stop> {
    let source = shell.workspace.root.join("crates/playground/page");
    for file in fs::read_dir(&source).map_err(|error| broken(&source, &error))?.flatten() {
        copy(&file.path(), page)?;
    }
    for name in SHARED {
        copy(&shell.workspace.root.join("crates/view/page").join(name), page)?;
    }
    Ok(())
}

fn copy(from: &Path, page: &Path) -> Result<(), Stop> {
    let to = page.join(from.file_name().unwrap_or_default());
    fs::copy(from, to).map(|_bytes| ()).map_err(|error| broken(from, &error))
}

fn broken(path: &Path, error: &std::io::Error) -> Stop {
    format!("{}: {error}", path.display()).into()
}
