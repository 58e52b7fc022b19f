//! What a crate has to have before it goes to a registry, where it cannot be changed any more.
//!
//! cargo is asked twice: what the manifests say (`cargo metadata`), and what is in the packages (`cargo
//! package`, without building them). A package of a thing that is not published, or of a page whose links
//! lead nowhere, is found here, and not by its first user.

use std::collections::BTreeSet;
use std::path::Path;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};
use serde_json::Value;

use crate::ci::{Shell, Stop};
use crate::workspace::cargo;

/// What a package may have, packed: people on a slow link download all of them.
const PACKED_KIB_MAX: u64 = 600;

/// What every package has to have.
const FILES: [&str; 4] = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Checks every crate that is published, and packs those of the workspace.
pub(super) fn check(shell: &Shell<'_>, is_release: bool) -> Result<(), Stop> {
    let ours = published(shell, "Cargo.toml")?;
    // A workspace of its own, whose package can be made once haulier is on a registry.
    let apart = published(shell, "bevy/Cargo.toml")?;
    let names: BTreeSet<&str> = ours.iter().map(|package| text(package, "name")).collect();
    let mut findings = Vec::new();
    for package in ours.iter().chain(&apart) {
        let mut found = manifest(package, &names, is_release);
        // The page of the other one is a guide, with a picture that is in the repository.
        if ours.contains(package) {
            let readme = Path::new(text(package, "manifest_path")).with_file_name("README.md");
            found.extend(page_findings(&std::fs::read_to_string(&readme).unwrap_or_default()));
        }
        findings.extend(found.iter().map(|what| format!("{}: {what}", text(package, "name"))));
    }
    // What the manifests say is known to be right before it is packed: cargo says less of what is not.
    said(&findings)?;
    let chosen: String = names.iter().map(|name| format!(" -p {name}")).collect();
    // In a folder of its own: another build may hold the lock of the usual one.
    let folder = super::shown(&shell.workspace.target.join("crates"));
    let arguments = format!("package --quiet --locked --no-verify --allow-dirty{chosen}");
    shell.cargo_with(&[("CARGO_TARGET_DIR", &folder)], &arguments)?;
    for package in &ours {
        findings.extend(packed(shell, package)?);
    }
    said(&findings)?;
    let list = Vec::from_iter(names).join(" ");
    println!("packages: {} crates could be published: {list}", ours.len() + apart.len());
    Ok(())
}

/// The packages of a workspace that are for a registry: `publish = false` is an empty list of registries in
/// the metadata, and without `publish` there is no list.
fn published(shell: &Shell<'_>, manifest: &str) -> Result<Vec<Value>, Stop> {
    let flags = "metadata --locked --no-deps --format-version 1 --manifest-path";
    let arguments: Vec<&str> = flags.split(' ').chain([manifest]).collect();
    let output = shell.output(cargo().as_ref(), &arguments)?;
    let metadata: Value = serde_json::from_str(&output).map_err(|error| error.to_string())?;
    let all = metadata["packages"].as_array().cloned().unwrap_or_default();
    let may_be = |package: &Value| package["publish"].as_array().is_none_or(|to| !to.is_empty());
    Ok(all.into_iter().filter(may_be).collect())
}

fn said(findings: &[String]) -> Result<(), Stop> {
    findings.iter().for_each(|finding| println!("{finding}"));
    match findings.len() {
        0 => Ok(()),
        count => Err(format!("{count} findings in the packages of crates").into()),
    }
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

/// The faults of a manifest.
fn manifest(package: &Value, published: &BTreeSet<&str>, is_release: bool) -> Vec<String> {
    let mut findings = Vec::new();
    for field in ["description", "license", "repository", "readme", "rust_version"] {
        if text(package, field).is_empty() {
            findings.push(format!("no `{}` in its manifest", field.replace('_', "-")));
        }
    }
    for field in ["keywords", "categories"] {
        let count = package[field].as_array().map_or(0, Vec::len);
        if !(1..=5).contains(&count) {
            findings.push(format!("{count} {field}, a registry takes 1 to 5"));
        }
    }
    if is_release && text(package, "repository").contains(".invalid") {
        findings.push("`repository` is a placeholder: set it in [workspace.package]".to_owned());
    }
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let name = text(dependency, "name");
        // cargo drops those that are for tests and have no version.
        if dependency["path"].is_null() || text(dependency, "kind") == "dev" {
            continue;
        }
        if text(dependency, "req") == "*" {
            findings.push(format!("depends on {name} without a version: use `workspace = true`"));
        }
        if !published.contains(name) {
            findings.push(format!("depends on {name}, which is not published"));
        }
    }
    findings
}

/// The faults of the page of a crate: it needs a title and an example, and links that work elsewhere.
fn page_findings(page: &str) -> Vec<String> {
    let (mut has_title, mut has_example, mut findings) = (false, false, Vec::new());
    for event in Parser::new(page) {
        match event {
            Event::Start(Tag::Heading { .. }) => has_title = true,
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(kind))) => {
                has_example |= matches!(&*kind, "rust" | "sh" | "c");
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. })
                if !dest_url.starts_with("https://") && !dest_url.starts_with('#') =>
            {
                findings.push(format!("README.md: `{dest_url}` leads nowhere on a registry"));
            }
            _ => {}
        }
    }
    if !has_title {
        findings.push("README.md: no heading, say what it is".to_owned());
    }
    if !has_example {
        findings.push("README.md: no example, as ```rust (a doc test) or ```sh".to_owned());
    }
    findings
}

/// What is wrong with a package that was made.
fn packed(shell: &Shell<'_>, package: &Value) -> Result<Vec<String>, Stop> {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let path = shell.workspace.target.join(format!("crates/package/{name}-{version}.crate"));
    let kib = std::fs::metadata(&path).map_err(|error| super::broken(&path, &error))?.len() / 1024;
    let list = shell.output("tar".as_ref(), &["tzf", &super::shown(&path)])?;
    let mut findings = list_findings(&list, &format!("{name}-{version}/"));
    if kib > PACKED_KIB_MAX {
        findings.push(format!("{kib} KiB packed, of {PACKED_KIB_MAX}: see `include`"));
    }
    Ok(findings.iter().map(|what| format!("{name}: {what}")).collect())
}

/// What is missing in a package with these files, or should not be there.
fn list_findings(list: &str, folder: &str) -> Vec<String> {
    let files: BTreeSet<&str> = list.lines().filter_map(|line| line.strip_prefix(folder)).collect();
    let missing = FILES.iter().filter(|file| !files.contains(*file));
    let mut findings: Vec<String> = missing
        .map(|file| {
            format!("no {file} in its package: see `include`, and the links beside the manifest")
        })
        .collect();
    if !files.iter().any(|file| matches!(*file, "src/lib.rs" | "src/main.rs")) {
        findings.push("no source in its package".to_owned());
    }
    let strays = files
        .iter()
        .filter(|file| ["tests/", "benches/", "target/"].iter().any(|at| file.starts_with(at)));
    findings.extend(strays.map(|file| format!("{file} is in its package: see `include`")));
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn whole() -> Value {
        json!({"name": "a", "version": "1.0.0", "description": "A", "license": "MIT", "readme": "README.md",
            "repository": "https://a.example/a", "rust_version": "1.88", "keywords": ["a"],
            "categories": ["a"], "publish": null, "dependencies": [
                {"name": "b", "path": "/b", "req": "^1.0", "kind": null},
                {"name": "tests", "path": "/t", "req": "*", "kind": "dev"},
                {"name": "serde", "req": "^1", "kind": null}]})
    }

    #[test]
    fn a_manifest_that_could_be_published() {
        assert_eq!(manifest(&whole(), &BTreeSet::from(["a", "b"]), true), [""; 0]);
    }

    #[test]
    fn what_is_missing_in_a_manifest_is_said() {
        let published = BTreeSet::from(["a", "b"]);
        let with = |field: &str, value: Value| {
            let mut package = whole();
            package[field] = value;
            manifest(&package, &published, true)
        };
        assert_eq!(with("description", Value::Null), ["no `description` in its manifest"]);
        assert_eq!(with("rust_version", Value::Null), ["no `rust-version` in its manifest"]);
        assert!(
            with("keywords", json!(["1", "2", "3", "4", "5", "6"]))[0].starts_with("6 keywords")
        );
        assert!(with("categories", json!([]))[0].starts_with("0 categories"));
        let found = with("repository", json!("https://a.invalid/a"));
        assert!(found[0].contains("placeholder"), "{found:?}");
        let path = |req| json!([{"name": "c", "path": "/c", "req": req, "kind": null}]);
        assert!(with("dependencies", path("^1"))[0].contains("c, which is not published"));
        assert!(with("dependencies", path("*"))[0].contains("without a version"));
    }

    #[test]
    fn a_placeholder_is_for_work_and_not_for_a_release() {
        let mut package = whole();
        package["repository"] = json!("https://a.invalid/a");
        assert_eq!(manifest(&package, &BTreeSet::from(["a", "b"]), false), [""; 0]);
    }

    #[test]
    fn a_page_has_a_title_and_an_example_and_links_for_elsewhere() {
        let page = "# A\n[b](https://b.example) [c](#a)\n```rust\nlet a = 1;\n```\n";
        assert_eq!(page_findings(page), [""; 0]);
        let page = "A [b](../b.md)\n```text\na\n```\n";
        let found = page_findings(page);
        assert!(found[0].contains("`../b.md` leads nowhere"), "{found:?}");
        assert!(found[1].contains("no heading") && found[2].contains("no example"), "{found:?}");
    }

    #[test]
    fn a_package_has_its_licences_and_no_tests() {
        let list =
            "a-1/Cargo.toml\na-1/LICENSE-MIT\na-1/LICENSE-APACHE\na-1/README.md\na-1/src/lib.rs\n";
        assert_eq!(list_findings(list, "a-1/"), [""; 0]);
        let found = list_findings("a-1/Cargo.toml\na-1/tests/a.rs\n", "a-1/");
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(found[4].starts_with("tests/a.rs is in its package"));
    }
}
