//! The copy of the tree in which each mechanism has a switch, and constants can be scaled.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::constants::{self, Name};
use super::table::mechanisms;
use crate::copy::{Edit, Tree, edit};
use crate::workspace::Workspace;

/// What the copy has beside the switches: a module for them, for which the core has a standard library, and
/// no constants of types with constants in them.
pub(super) const PREPARED: &[Edit] = &[
    edit(
        "crates/control/src/lib.rs",
        "extern crate alloc;\n",
        "extern crate alloc;\nextern crate std;\n\npub mod ablation;\n",
    ),
    edit("crates/control/src/lib.rs", "#![no_std]\n", "#![no_std]\n#![allow(warnings)]\n"),
    edit(
        "crates/proto/src/lib.rs",
        "extern crate alloc;\n",
        "extern crate alloc;\nextern crate std;\n\npub(crate) use haulier_control::ablation;\n",
    ),
    edit("crates/proto/src/lib.rs", "#![no_std]\n", "#![no_std]\n#![allow(warnings)]\n"),
    edit(
        "crates/control/src/belief/known.rs",
        "    pub const NOTHING: Self = Self {",
        "    pub fn nothing() -> Self { Self {",
    ),
    edit(
        "crates/control/src/belief/known.rs",
        "        trust: Trust::Own,\n    };",
        "trust: Trust::Own } }",
    ),
];

/// Files of which constants are scaled: below the folder, and the other.
const SCALED: [&str; 3] =
    ["crates/control/src/", "crates/proto/src/bulk/", "crates/proto/src/outgoing/ack_frequency.rs"];

/// Files whose constants are no tuning, and whose functions may be constants: of the wire, of memory, of
/// units.
const PLAIN: &[&str] = &[
    "block",
    "chunks",
    "classes",
    "content",
    "credit",
    "cut",
    "erasures",
    "error_kind",
    "repair",
    "tree",
    "units",
    "wants",
];

/// The copy with all switches, and its constants.
pub(super) fn tree(workspace: &Workspace) -> Result<(Tree, Vec<Name>), String> {
    let mut tree = Tree::read(workspace, "ablate")?;
    PREPARED.iter().try_for_each(|edit| tree.apply(edit))?;
    for mechanism in mechanisms() {
        let off = format!("crate::ablation::off(\"{}\")", mechanism.name);
        for Edit { path, there, instead } in mechanism.edits {
            let text = tree.text(path)?;
            if text.matches(there).count() != 1 {
                return Err(format!(
                    "{}: two edits change the same lines of {path}",
                    mechanism.name
                ));
            }
            let text = text.replacen(there, &instead.replace("$off", &off), 1);
            tree.set(path, text);
        }
    }
    tree.set("crates/control/src/ablation.rs", include_str!("switches.rs").to_owned());
    let is_source = |path: &str| {
        ["crates/control/src/", "crates/proto/src/"].iter().any(|of| path.starts_with(of))
    };
    let sources = tree.files().filter(|(path, _)| is_source(path));
    let sources: Vec<String> = sources.map(|(path, _)| path.to_owned()).collect();
    let mut scaled = Vec::new();
    for path in sources {
        let text = tree.text(&path)?;
        if path.ends_with("/units.rs") || path.ends_with("/ablation.rs") {
            continue;
        }
        let text = without_tests(text).replace("Known::NOTHING", "Known::nothing()");
        let is_known = path.ends_with("/known.rs");
        let text = if is_known { text.replace("Self::NOTHING", "Self::nothing()") } else { text };
        // What asks for a switch or a scale is not known to the compiler.
        let text = if is_plain(&path) { text } else { text.replace("const fn ", "fn ") };
        if is_scaled(&path) {
            scaled.push((path, text));
        } else {
            tree.set(&path, text);
        }
    }
    let (scaled, names) = constants::as_functions(&scaled);
    scaled.into_iter().for_each(|(path, text)| tree.set(&path, text));
    Ok((tree, names))
}

fn is_scaled(path: &str) -> bool {
    SCALED.iter().any(|start| path.starts_with(start)) && !is_plain(path)
}

fn is_plain(path: &str) -> bool {
    let name = path.trim_end_matches(".rs").rsplit('/').next().unwrap_or_default();
    let of = |part: &&str| path.starts_with(&format!("crates/proto/src/{part}/"));
    let is_control = path.starts_with("crates/control/src/");
    let parts = ["bulk", "outgoing", "connection", "server", "transit"];
    PLAIN.contains(&name) || !is_control && !parts.iter().any(of)
}

/// A source without the tests at its end, which compare with constants.
fn without_tests(text: &str) -> String {
    let tests = text.find("\nmod tests {").and_then(|at| text[..at].rfind("\n#[cfg(test)]"));
    text[..tests.map_or(text.len(), |at| at + 1)].to_owned()
}

/// A hash of the code that a row was measured with.
pub(super) fn code_of(workspace: &Workspace) -> Result<u64, String> {
    let tree = Tree::read(workspace, "ablate")?;
    let parts = ["core", "control", "proto", "sim", "lab", "haulier"]
        .map(|part| format!("crates/{part}/src/"));
    let mut hasher = DefaultHasher::new();
    let sources = tree.files().filter(|(path, _)| parts.iter().any(|part| path.starts_with(part)));
    sources.for_each(|source| source.hash(&mut hasher));
    Ok(hasher.finish())
}

/// A hash of the lines that switch a mechanism off.
pub(super) fn code_of_edits(edits: &[Edit]) -> u64 {
    let mut hasher = DefaultHasher::new();
    edits.iter().for_each(|it| (it.path, it.there, it.instead).hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// An edit that another one has changed the lines of is found here, and not after a build.
    #[test]
    fn all_switches_are_in_one_copy() {
        let (tree, names) = tree(&Workspace::here()).unwrap();
        let sources: String =
            tree.files().map(|(_, bytes)| String::from_utf8_lossy(bytes)).collect();
        for mechanism in mechanisms() {
            assert!(
                sources.contains(&format!("off(\"{}\")", mechanism.name)),
                "{}",
                mechanism.name
            );
        }
        let mut seen = HashMap::new();
        mechanisms().for_each(|it| *seen.entry(it.name).or_insert(0) += 1);
        assert!(seen.values().all(|&times| times == 1), "{seen:?}");
        assert!(names.len() > 100, "{}", names.len());
    }
}
