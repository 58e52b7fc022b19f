//! The face for Bevy: a workspace of its own, for Bevy is 120 crates and asks for a newer Rust.
//!
//! Bevy 0.20 states Rust 1.97.1, and compiles with the version of `rust-toolchain.toml`, so Cargo is run with
//! `--ignore-rust-version`. AWS-LC is not built, because its C code would be compiled a second time here: the
//! face treats blocks and messages alike with either cipher.

use crate::ci::{LINTED, Shell, Stop};

const WORKSPACE: &str = "--manifest-path bevy/Cargo.toml";
const AS_HERE: &str = "--locked --ignore-rust-version --no-default-features";

/// A target directory of its own, so that its lock stops no other build.
const BUILT: &str = "bevy";

/// Lints it, runs its tests, and plays its game, of which a picture is left.
pub(crate) fn check(shell: &Shell<'_>) -> Result<(), Stop> {
    shell.cargo(&format!("fmt --check {WORKSPACE}"))?;
    let built = shell.workspace.target.join(BUILT).display().to_string();
    let env = [&[("CARGO_TARGET_DIR", built.as_str())], &LINTED[..]].concat();
    let cargo = |arguments: &str| shell.cargo_with(&env, arguments);
    cargo(&format!("test {WORKSPACE} {AS_HERE} --all-targets --no-run"))?;
    cargo(&format!("test {WORKSPACE} {AS_HERE}"))?;
    let picture = shell.workspace.target.join("bevy-crowd.svg").display().to_string();
    cargo(&format!("run {WORKSPACE} {AS_HERE} --example crowd -- --svg {picture}"))
}
