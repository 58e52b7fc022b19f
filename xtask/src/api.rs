//! `cargo xtask api`: the public API of each published library, as lists that a reviewer reads.
//!
//! The lists are in `docs/api/`, an item a line, with all features. A change of the API is a change of a
//! list in the same commit, so that nothing becomes public, or ceases to be, unseen.
//!
//! rustdoc describes the crates in JSON, which is unstable: the toolchain must write the format that the
//! crate `public-api` reads (see `xtask/Cargo.toml`). A stable rustdoc writes it only with `RUSTC_BOOTSTRAP`
//! set. Set for all of cargo, that variable would rebuild everything, because build scripts look at it. So
//! cargo uses this program as its rustdoc, and it passes the call on: [`as_rustdoc`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::ci::Stop;
use crate::workspace::{Workspace, cargo};

const DIRECTORY: &str = "docs/api";

/// The format of rustdoc's JSON that `public-api` reads.
const FORMAT: u64 = 57;

/// Set for a run of this program as rustdoc.
pub(crate) const AS_RUSTDOC: &str = "XTASK_AS_RUSTDOC";

/// Fails if the API is not the one in the lists, and shows how it differs.
pub(crate) fn check(workspace: &Workspace) -> Result<(), Stop> {
    let now = lists(workspace)?;
    let before = committed(workspace)?;
    let names: BTreeSet<&String> = now.keys().chain(before.keys()).collect();
    let mut changed = 0;
    for name in names {
        let list = |of: &'_ BTreeMap<String, String>| of.get(name).cloned().unwrap_or_default();
        let lines = difference(&list(&before), &list(&now));
        if !lines.is_empty() {
            println!("{DIRECTORY}/{name}:\n{}", lines.join("\n"));
            changed += 1;
        }
    }
    if changed > 0 {
        let what = "is not what was reviewed: `cargo xtask api --write`, and commit the lists";
        return Err(format!("the public API of {changed} crates {what}").into());
    }
    println!("api: {} crates, as reviewed", now.len());
    Ok(())
}

/// Writes the lists, and removes those of crates that are gone.
pub(crate) fn write(workspace: &Workspace) -> Result<(), Stop> {
    let now = lists(workspace)?;
    let directory = workspace.root.join(DIRECTORY);
    let at = |error: std::io::Error| format!("{DIRECTORY}: {error}");
    std::fs::create_dir_all(&directory).map_err(at)?;
    for name in committed(workspace)?.keys().filter(|name| !now.contains_key(*name)) {
        std::fs::remove_file(directory.join(name)).map_err(at)?;
    }
    for (name, list) in &now {
        std::fs::write(directory.join(name), list).map_err(at)?;
        println!("{DIRECTORY}/{name}: {} items", list.lines().count());
    }
    Ok(())
}

/// The lists as they should be, by the name of their file.
fn lists(workspace: &Workspace) -> Result<BTreeMap<String, String>, Stop> {
    let packages = workspace.packages()?;
    let libraries: Vec<_> = packages.iter().filter(|package| package.is_public_library).collect();
    let mut command = workspace.command(cargo());
    command.args(["doc", "--locked", "--no-deps", "--all-features"]);
    command.args(libraries.iter().flat_map(|package| ["-p", &package.name]));
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    command.env("RUSTDOC", this).env(AS_RUSTDOC, "1");
    command.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json");
    let status = command.status().map_err(|error| format!("cargo doc: {error}"))?;
    if !status.success() {
        return Err(format!("cargo doc: {status}").into());
    }
    let list = |name: &String| {
        let file = format!("{}.json", name.replace('-', "_"));
        Ok((format!("{name}.txt"), list(&workspace.target.join("doc").join(file))?))
    };
    libraries.iter().map(|package| list(&package.name)).collect()
}

/// The list of one crate: what rustdoc derives from the rest (blanket impls, auto traits, derives) left
/// out.
fn list(json: &Path) -> Result<String, Stop> {
    let at = |error: &dyn std::fmt::Display| format!("{}: {error}", json.display());
    let text = std::fs::read_to_string(json).map_err(|error| at(&error))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| at(&error))?;
    let format = &value["format_version"];
    if *format != FORMAT {
        return Err(Stop::Skipped(format!("rustdoc writes JSON of format {format}, not {FORMAT}")));
    }
    let builder = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true);
    let api = builder.build().map_err(|error| at(&error))?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}

fn committed(workspace: &Workspace) -> Result<BTreeMap<String, String>, String> {
    let at = |error: std::io::Error| format!("{DIRECTORY}: {error}");
    let mut lists = BTreeMap::new();
    let entries = match std::fs::read_dir(workspace.root.join(DIRECTORY)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(lists),
        entries => entries.map_err(at)?,
    };
    for entry in entries {
        let entry = entry.map_err(at)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".txt") {
            lists.insert(name, std::fs::read_to_string(entry.path()).map_err(at)?);
        }
    }
    Ok(lists)
}

/// The lines that went and those that came. Each item has a line of its own, so their order says nothing.
fn difference(before: &str, now: &str) -> Vec<String> {
    let lines = |text: &'_ str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let (before, now) = (lines(before), lines(now));
    let gone = before.difference(&now).map(|line| format!("-{line}"));
    gone.chain(now.difference(&before).map(|line| format!("+{line}"))).collect()
}

/// Runs rustdoc with our arguments, and lets it use what is unstable.
pub(crate) fn as_rustdoc() -> ExitCode {
    let mut rustdoc = Command::new("rustdoc");
    rustdoc.args(std::env::args_os().skip(1)).env("RUSTC_BOOTSTRAP", "1");
    match rustdoc.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("rustdoc: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_and_what_came_is_shown() {
        let (before, now) = ("pub fn a::x()\npub mod a\n", "pub fn a::x(u8)\npub mod a\n");
        assert_eq!(difference(before, now), ["-pub fn a::x()", "+pub fn a::x(u8)"]);
        assert!(difference(now, now).is_empty());
        assert_eq!(difference("", "pub mod a\n"), ["+pub mod a"]);
    }
}
