//! The notices of the libraries that are in a program: their licences ask that they go with it.
//!
//! They are read from the sources that cargo has fetched; a text that several have is there once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::ci::{Shell, Stop};
use crate::workspace::cargo;

/// Names, versions and licences of what is in the program of this package, and the texts of the licences.
pub(super) fn of(shell: &Shell<'_>, package: &str) -> Result<String, Stop> {
    let host = shell.output("rustc".as_ref(), &["--print", "host-tuple"])?;
    let arguments =
        ["metadata", "--locked", "--format-version", "1", "--filter-platform", host.trim()];
    let metadata = shell.output(cargo().as_ref(), &arguments)?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let used = used(&metadata, package);
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let (mut list, mut texts) = (String::new(), BTreeMap::<String, Vec<String>>::new());
    // What has no source is ours.
    for library in packages.filter(|p| used.contains(text(p, "id")) && !p["source"].is_null()) {
        let name = format!("{} {}", text(library, "name"), text(library, "version"));
        list.push_str(&format!("{name}: {}\n", text(library, "license")));
        for notice in notices(Path::new(text(library, "manifest_path"))) {
            texts.entry(notice).or_default().push(name.clone());
        }
    }
    let texts =
        texts.iter().map(|(notice, names)| format!("\n\n=== {}\n\n{notice}\n", names.join(", ")));
    Ok(format!(
        "What is in the program beside haulier, under which licences.\n\n{list}{}",
        texts.collect::<String>()
    ))
}

fn text<'a>(json: &'a Value, field: &str) -> &'a str {
    json[field].as_str().unwrap_or_default()
}

/// What a package needs to run, whatever its tests and its building need.
fn used<'a>(metadata: &'a Value, package: &str) -> BTreeSet<&'a str> {
    let nodes: BTreeMap<&str, &Value> = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|node| (text(node, "id"), node))
        .collect();
    let root = metadata["packages"].as_array().into_iter().flatten().find(|p| p["name"] == package);
    let (mut used, mut next) = (BTreeSet::new(), Vec::from_iter(root.map(|root| text(root, "id"))));
    while let Some(id) = next.pop() {
        if !used.insert(id) {
            continue;
        }
        let dependencies =
            nodes.get(id).and_then(|node| node["deps"].as_array()).into_iter().flatten();
        let is_in = |dependency: &&Value| {
            let kinds = dependency["dep_kinds"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        };
        next.extend(dependencies.filter(is_in).map(|dependency| text(dependency, "pkg")));
    }
    used
}

/// The texts beside a manifest that are notices.
fn notices(manifest: &Path) -> Vec<String> {
    let folder = manifest.parent().unwrap_or(manifest);
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    let is_notice = |name: &str| {
        ["LICEN", "COPYING", "NOTICE", "COPYRIGHT"]
            .iter()
            .any(|start| name.to_uppercase().starts_with(start))
    };
    let mut paths: Vec<_> = files.flatten().map(|file| file.path()).collect();
    paths.retain(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_notice));
    paths.sort();
    // Lines end as their author's system ends them.
    let read = |path: &_| Some(fs::read_to_string(path).ok()?.replace('\r', "").trim().to_owned());
    paths.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_runs_is_in_a_program_and_what_builds_it_is_not() {
        let to = |id: &str, kind: Value| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({"packages": [{"name": "p", "id": "p"}], "resolve": {"nodes": [
            {"id": "p", "deps": [to("a", Value::Null), to("cc", json!("build")), to("t", json!("dev"))]},
            {"id": "a", "deps": [to("b", Value::Null)]}, {"id": "b", "deps": []},
            {"id": "cc", "deps": []}, {"id": "t", "deps": []}]}});
        assert_eq!(used(&metadata, "p"), BTreeSet::from(["a", "b", "p"]));
    }
}
