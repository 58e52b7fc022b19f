//! The oldest supported Rust, stated once, in the root manifest: every crate inherits it, no dependency
//! needs a newer one, and the README says it.
//!
//! Clippy reads it too, and refuses what the standard library did not have then (`incompatible_msrv`).

use super::{Finding, Tree};
use crate::workspace::{Package, Workspace};

/// The oldest Rust that every crate of the workspace promises, and all below it fits.
pub(crate) fn oldest_rust(workspace: &Workspace) -> Result<String, String> {
    let version = stated(&workspace.packages()?)?;
    let newer = |package: &&Package| {
        let needs = package.rust_version.as_deref().unwrap_or_default();
        parts(needs) > parts(&version)
    };
    match workspace.all_packages()?.iter().find(newer) {
        Some(Package { name, .. }) => Err(format!("`{name}` needs a newer Rust than {version}")),
        None => Ok(version),
    }
}

/// What the crates of the workspace state, if it is the same.
pub(super) fn stated(packages: &[Package]) -> Result<String, String> {
    let first = packages.first().and_then(|package| package.rust_version.clone());
    let version = first.ok_or("no rust-version, state the oldest supported Rust")?;
    match packages.iter().find(|package| package.rust_version.as_ref() != Some(&version)) {
        Some(Package { name, .. }) => {
            Err(format!("`{name}` says another rust-version than {version}: let it inherit"))
        }
        None => Ok(version),
    }
}

/// The numbers of a version; 1.88.0 is 1.88.
fn parts(version: &str) -> Vec<u32> {
    let numbers = version.trim_end_matches(".0").split('.');
    numbers.map_while(|part| part.parse().ok()).collect()
}

/// The README says which Rust one needs; that is this one.
pub(super) fn check(tree: &Tree, version: &str) -> Option<Finding> {
    let wanted = format!("Rust toolchain ({version} or newer");
    let readme = tree.file("README.md").and_then(|file| file.text.as_deref()).unwrap_or_default();
    let what = format!("does not say `{wanted}`, and Cargo.toml does");
    (!readme.contains(&wanted)).then(|| Finding::new("README.md", 1, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, rust_version: Option<&str>) -> Package {
        Package {
            name: name.to_owned(),
            manifest: String::new(),
            is_no_std: false,
            is_public_library: false,
            rust_version: rust_version.map(str::to_owned),
        }
    }

    #[test]
    fn stated_once() {
        let both = |b| stated(&[package("a", Some("1.88")), package("b", b)]);
        assert_eq!(both(Some("1.88")), Ok("1.88".to_owned()));
        assert!(both(Some("1.85")).unwrap_err().starts_with("`b` says another"));
        assert!(both(None).is_err() && stated(&[package("a", None)]).is_err());
    }

    #[test]
    fn versions_are_numbers_and_not_text() {
        assert!(parts("1.100") > parts("1.88") && parts("1.88.1") > parts("1.88"));
        assert!(parts("1.88.0") == parts("1.88") && parts("") < parts("1.88"));
    }

    #[test]
    fn the_readme_names_the_same() {
        let tree =
            Tree::of(&[("README.md", "You need a Rust toolchain (1.88 or newer, of course).")]);
        assert!(check(&tree, "1.88").is_none() && check(&tree, "1.90").is_some());
    }
}
