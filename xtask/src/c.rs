//! The C interface: its header, what is installed for C, and the step that tries it.
//!
//! ```text
//! crates/ffi/src -> crates/ffi/header (cbindgen) -> crates/ffi/include/haulier.h
//! cargo build    -> libhaulier_ffi.so, .a        -> PREFIX/lib, with pkg-config and CMake files
//! ```

mod header;
mod tried;

use std::fs;
use std::path::Path;

use crate::ci::{Shell, Stop};
pub(crate) use header::{is_made_of_sources as header_is_made_of_sources, write as write_header};
pub(crate) use tried::check;

/// Builds the libraries, optimised, and installs all that a program in C needs below `prefix`.
pub(crate) fn run(shell: &Shell<'_>, prefix: &str) -> Result<(), Stop> {
    let prefix = std::path::absolute(prefix).map_err(|error| format!("{prefix}: {error}"))?;
    shell.cargo("build --locked --release -p haulier-ffi")?;
    install(shell, &shell.workspace.target.join("release"), &prefix)?;
    // Two thirds of them are for a debugger. Where there is no `strip` they stay.
    let lib = prefix.join("lib").display().to_string();
    let _smaller =
        shell.sh(&format!("strip --strip-debug '{lib}/libhaulier.a' '{lib}/libhaulier.so'"));
    println!("haulier is in {0}; try: PKG_CONFIG_PATH={0}/lib/pkgconfig", prefix.display());
    Ok(())
}

/// Copies header, libraries, pkg-config and CMake files below `prefix`.
fn install(shell: &Shell<'_>, built: &Path, prefix: &Path) -> Result<(), Stop> {
    let source = shell.workspace.root.join("crates/ffi");
    let version = version(shell)?;
    let abi = abi(&source)?;
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let (pkgconfig, cmake) = (lib.join("pkgconfig"), lib.join("cmake/haulier"));
    for directory in [&include, &pkgconfig, &cmake] {
        fs::create_dir_all(directory).map_err(|error| broken(directory, &error))?;
    }
    copy(&source.join("include/haulier.h"), &include.join("haulier.h"))?;
    copy(&built.join("libhaulier_ffi.a"), &lib.join("libhaulier.a"))?;
    let shared = format!("libhaulier.so.{abi}");
    copy(&built.join("libhaulier_ffi.so"), &lib.join(&shared))?;
    link(&shared, &lib.join("libhaulier.so"))?;
    let filled = [
        ("haulier.pc", pkgconfig),
        ("haulier-config.cmake", cmake.clone()),
        ("haulier-config-version.cmake", cmake),
    ];
    for (name, directory) in filled {
        let text = read(&source.join("install").join(name))?;
        let text = text.replace("@VERSION@", &version).replace("@ABI@", &abi);
        let to = directory.join(name);
        fs::write(&to, text).map_err(|error| broken(&to, &error))?;
    }
    Ok(())
}

/// The version of the interface, as the sources state it.
fn abi(source: &Path) -> Result<String, Stop> {
    let text = read(&source.join("src/version.rs"))?;
    let stated = text.split_once("HAULIER_ABI_VERSION: u32 = ");
    let number = stated.and_then(|(_, rest)| rest.split_once(';'));
    Ok(number.ok_or("src/version.rs states no ABI version".to_owned())?.0.to_owned())
}

/// The version of the workspace.
fn version(shell: &Shell<'_>) -> Result<String, Stop> {
    let manifest = read(&shell.workspace.root.join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.split('"').next());
    Ok(version.ok_or("Cargo.toml states no version".to_owned())?.to_owned())
}

/// A name beside the file that it is for.
fn link(file: &str, name: &Path) -> Result<(), String> {
    if name.is_symlink() || name.exists() {
        fs::remove_file(name).map_err(|error| broken(name, &error))?;
    }
    #[cfg(unix)]
    let made = std::os::unix::fs::symlink(file, name);
    #[cfg(not(unix))]
    let made = fs::copy(name.with_file_name(file), name).map(|_bytes| ());
    made.map_err(|error| broken(name, &error))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(|_bytes| ()).map_err(|error| broken(from, &error))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| broken(path, &error))
}

fn broken(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
