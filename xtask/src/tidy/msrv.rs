//! The oldest supported Rust, stated once: in the root manifest. Crates inherit it, `cargo xtask ci`
//! builds with it, and a README that names one names that one.

use super::{Finding, Tree};

/// The `rust-version` of a manifest.
pub(crate) fn rust_version(manifest: &str) -> Option<&str> {
    let value =
        manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.split('"').next());
    value.filter(|value| value.starts_with(|c: char| c.is_ascii_digit()))
}

/// Looks for a second statement of it, or one that disagrees.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifest = tree.file("Cargo.toml").and_then(|file| file.text.as_deref());
    let Some(version) = manifest.and_then(rust_version) else {
        return vec![Finding::new(
            "Cargo.toml",
            1,
            "no rust-version, state the oldest supported Rust",
        )];
    };
    let mut findings = Vec::new();
    for file in tree.of_kind(&["toml"]).filter(|file| file.path != "Cargo.toml") {
        let stated = |text: &str| text.starts_with("rust-version =") || text.starts_with("msrv");
        for (line, _) in file.lines().filter(|(_, text)| stated(text)) {
            let what = "the oldest supported Rust again, use rust-version.workspace = true";
            findings.push(Finding::new(&file.path, line, what));
        }
    }
    for file in tree.files.iter().filter(|file| file.path.rsplit('/').next() == Some("README.md")) {
        for (line, text) in file.lines() {
            for named in versions_named(text).filter(|named| named != version) {
                let what = format!("names Rust {named}, but Cargo.toml says {version}");
                findings.push(Finding::new(&file.path, line, what));
            }
        }
    }
    findings
}

/// The versions a line names, as in "Rust 1.88", "rustc 1.88" or "rust-1.88".
fn versions_named(text: &str) -> impl Iterator<Item = String> {
    let lower = text.to_lowercase();
    let starts: Vec<usize> = lower.match_indices("1.").map(|(at, _)| at).collect();
    starts.into_iter().filter_map(move |at| {
        let before = lower[..at].trim_end_matches([' ', '-', '+', '`', '*']);
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        let end = lower[at..].find(|c| !digits(c)).map_or(lower.len(), |length| at + length);
        let is_rust = ["rust", "rustc", "msrv"].iter().any(|word| before.ends_with(word));
        is_rust.then(|| lower[at..end].trim_end_matches('.').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: (&str, &str) =
        ("Cargo.toml", "[workspace.package]\nrust-version = \"1.88\" # why\n");

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn stated_once() {
        assert_eq!(rust_version(ROOT.1), Some("1.88"));
        let crate_manifest = ("crates/a/Cargo.toml", "[package]\nrust-version.workspace = true\n");
        let readme = ("README.md", "Rust 1.88 or newer, **rustc 1.88**, rust-1.88; version 1.2");
        assert_eq!(findings(&[ROOT, crate_manifest, readme]), [""; 0]);
    }

    #[test]
    fn stated_twice_or_otherwise() {
        assert_eq!(findings(&[("Cargo.toml", "[workspace]")]).len(), 1);
        let what = "the oldest supported Rust again, use rust-version.workspace = true";
        let second = ("crates/a/Cargo.toml", "[package]\nrust-version = \"1.88\"\n");
        assert_eq!(findings(&[ROOT, second]), [format!("crates/a/Cargo.toml:2: {what}")]);
        let clippy = ("clippy.toml", "msrv = \"1.85\"");
        assert_eq!(findings(&[ROOT, clippy]), [format!("clippy.toml:1: {what}")]);
        let readme = ("crates/a/README.md", "It needs\nRust 1.80.");
        let what = "names Rust 1.80, but Cargo.toml says 1.88";
        assert_eq!(findings(&[ROOT, readme]), [format!("crates/a/README.md:2: {what}")]);
    }
}
