//! Gives the shared library its name at run time: `libhaulier.so.N`, N being the version of the ABI. A
//! program that was linked with another one does not start, and the system says which file it misses.

use std::path::Path;

fn main() {
    let version = Path::new("src/version.rs");
    println!("cargo::rerun-if-changed={}", version.display());
    let text = std::fs::read_to_string(version).unwrap_or_default();
    let number = text
        .split_once("HAULIER_ABI_VERSION: u32 = ")
        .and_then(|(_, rest)| rest.split_once(';'))
        .map_or_else(|| panic!("no ABI version in {}", version.display()), |(number, _)| number);
    // Elsewhere the file's own name is the one that counts.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhaulier.so.{number}");
    }
}
