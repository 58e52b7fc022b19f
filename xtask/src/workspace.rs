//! Where this workspace is, what is in it, and how a command is run in it.
//!
//! What cargo knows is asked of cargo (`cargo metadata`): no list of crates is kept here, so that a new
//! crate is checked from its first day.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Where this workspace is, and where its build output goes.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
}

/// A package of the workspace or below it.
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its manifest, from anywhere.
    pub(crate) manifest: String,
    /// Whether the package says that it needs no operating system: the category `no-std`.
    pub(crate) is_no_std: bool,
    /// Whether the package is a library that may be published, and promises its API.
    pub(crate) is_public_library: bool,
    /// The oldest Rust that it promises to work with.
    pub(crate) rust_version: Option<String>,
}

impl Workspace {
    pub(crate) fn here() -> Self {
        // Asked at run time first: a built xtask may have moved since, with its whole checkout.
        let manifest = std::env::var("CARGO_MANIFEST_DIR");
        let manifest = manifest.unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
        let root = Path::new(&manifest).parent().unwrap_or(Path::new(".")).to_path_buf();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            // A relative one means relative to where the caller stands, and commands run at the root.
            Some(set) => std::path::absolute(&set).unwrap_or_else(|_| set.into()),
            None => root.join("target"),
        };
        Self { root, target }
    }

    /// A command at the root of the workspace, building into its target directory.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        // Cargo hands its own path on in CARGO, and another toolchain's cargo would believe it.
        command.env_remove("CARGO");
        command
    }

    /// The packages of the workspace, by name.
    pub(crate) fn packages(&self) -> Result<Vec<Package>, String> {
        self.metadata(&["--no-deps"])
    }

    /// The packages of the workspace and all they depend on, on every platform.
    pub(crate) fn all_packages(&self) -> Result<Vec<Package>, String> {
        self.metadata(&[])
    }

    fn metadata(&self, arguments: &[&str]) -> Result<Vec<Package>, String> {
        let mut command = self.command(cargo());
        command.args(["metadata", "--locked", "--format-version", "1"]).args(arguments);
        let output = command.output().map_err(|error| format!("cargo metadata: {error}"))?;
        if !output.status.success() {
            return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
        }
        packages_in(&output.stdout)
    }
}

/// The cargo that started us, so that everything uses the toolchain that the caller chose.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn packages_in(metadata: &[u8]) -> Result<Vec<Package>, String> {
    let metadata: Value =
        serde_json::from_slice(metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let list = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let mut packages: Vec<Package> = list.iter().filter_map(package).collect();
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

fn package(json: &Value) -> Option<Package> {
    let has =
        |list: &Value, wanted: &str| list.as_array().is_some_and(|l| l.contains(&wanted.into()));
    let targets = json["targets"].as_array()?;
    // `publish = false` is an empty list of registries; without `publish` there is no list.
    let may_be_published =
        json["publish"].as_array().is_none_or(|registries| !registries.is_empty());
    Some(Package {
        name: json["name"].as_str()?.to_owned(),
        manifest: json["manifest_path"].as_str()?.to_owned(),
        is_no_std: has(&json["categories"], "no-std"),
        is_public_library: may_be_published
            && targets.iter().any(|t| has(&t["kind"], "lib"))
            && json["metadata"]["haulier"]["promises-api"] != false,
        rust_version: json["rust_version"].as_str().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_workspace() {
        let manifest = Workspace::here().root.join("Cargo.toml");
        assert!(std::fs::read_to_string(manifest).unwrap().contains("[workspace]"));
    }

    #[test]
    fn a_package_is_what_its_manifest_says() {
        let metadata = r#"{"packages": [
            {"name": "tool", "manifest_path": "/t/Cargo.toml", "publish": [], "categories": [],
             "targets": [{"kind": ["lib"]}], "rust_version": null},
            {"name": "core", "manifest_path": "/c/Cargo.toml", "publish": null,
             "categories": ["no-std"], "targets": [{"kind": ["test"]}, {"kind": ["lib"]}],
             "rust_version": "1.88"},
            {"name": "program", "manifest_path": "/p/Cargo.toml", "publish": null, "categories": [],
             "targets": [{"kind": ["bin"]}]},
            {"name": "lab", "manifest_path": "/l/Cargo.toml", "publish": null, "categories": [],
             "targets": [{"kind": ["lib"]}], "metadata": {"haulier": {"promises-api": false}}}
        ]}"#;
        let packages = packages_in(metadata.as_bytes()).unwrap();
        let said = packages.iter().map(|p| (&*p.name, p.is_no_std, p.is_public_library));
        let expected = [
            ("core", true, true),
            ("lab", false, false),
            ("program", false, false),
            ("tool", false, false),
        ];
        assert!(said.eq(expected));
        assert_eq!(packages[0].rust_version.as_deref(), Some("1.88"));
        assert!(packages_in(b"{}").is_err());
    }
}
