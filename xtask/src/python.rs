//! The module for Python: its wheel, and its tests in an environment of its own.
//!
//! ```text
//! python/src -> maturin -> target/python/wheels -> target/python/env <- pytest, mypy
//! ```
//!
//! maturin has cargo build the one package. Alone it has fewer features of what is under it than `cargo test`
//! has, so that all of haulier would be built a second time: two minutes of CPU. So this program takes
//! cargo's place, and passes the call on for all packages that `cargo test` builds: [`as_cargo`].

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::ci::{Shell, Stop};
use crate::workspace::cargo;

/// Set to the real cargo for a run of this program as cargo.
pub(crate) const AS_CARGO: &str = "XTASK_AS_CARGO";

/// The arguments that give the features of `cargo test`: all of its packages, and an example, for which the
/// dependencies of tests count. `cargo test` has built this one.
const AS_TESTED: [&str; 5] = ["--workspace", "--exclude", "xtask", "--example", "mods"];

/// The tools that build the wheel and test it, in versions that are known to work. They come from Python's
/// registry.
const TOOLS: &str = "maturin==1.16.0 pytest==9.2.0 mypy==2.4.1";

/// The package that makes environments, which Debian has apart.
const ENVIRONMENTS: &str = "python3-venv";

/// Builds the wheel, installs it, and runs its tests against the program that `cargo test` has built.
pub(crate) fn check(shell: &Shell<'_>) -> Result<(), Stop> {
    let folder = shell.workspace.target.join("python");
    let python = environment(shell, &folder.join("env"))?;
    let python = python.display();
    let wheels = folder.join("wheels");
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels)
            .map_err(|error| format!("{}: {error}", wheels.display()))?;
    }
    // With the flags of `cargo test`, so that no library is built a second time.
    let build = "-m maturin build --profile dev --locked --quiet --manifest-path python/Cargo.toml";
    let to = wheels.display();
    let (this, cargo) = (std::env::current_exe(), cargo());
    let this = this.map_err(|error| error.to_string())?.display().to_string();
    let cargo = cargo.to_string_lossy();
    let env = [("CARGO", this.as_str()), (AS_CARGO, &cargo)];
    shell.command(&format!("{python} {build} --interpreter {python} --out {to}"), &env)?;
    let pip = "-m pip install --quiet --disable-pip-version-check";
    let install = "--no-index --force-reinstall --find-links";
    shell.command(&format!("{python} {pip} {install} {to} haulier"), &[])?;
    let program = shell.tested_program()?.display().to_string();
    let tests = format!("{python} -B -m pytest python --rootdir python");
    shell.command(&tests, &[("HAULIER_PROGRAM", &program)])?;
    let cache = folder.join("mypy");
    let types = "--config-file python/pyproject.toml python/tests python/examples python/bench";
    shell.command(&format!("{python} -m mypy --cache-dir {} {types}", cache.display()), &[])?;
    shell.command(&format!("{python} -m mypy.stubtest haulier"), &[])
}

/// What maturin asks of cargo, built as `cargo test` builds it.
pub(crate) fn as_cargo() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|it| it == "rustc") {
        // Behind it is what to tell the compiler of one package: to strip it, for the wheel's size.
        arguments.truncate(arguments.iter().position(|it| it == "--").unwrap_or(arguments.len()));
        arguments[0] = "build".to_owned();
        arguments.extend(AS_TESTED.map(str::to_owned));
    }
    let mut cargo = Command::new(std::env::var_os(AS_CARGO).unwrap_or_else(|| "cargo".into()));
    match cargo.args(arguments).env_remove(AS_CARGO).env_remove("CARGO").status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cargo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The Python of an environment with the tools in it.
fn environment(shell: &Shell<'_>, folder: &Path) -> Result<PathBuf, Stop> {
    let python = folder.join("bin/python");
    let names = TOOLS.split(' ').filter_map(|tool| tool.split('=').next());
    let imports: Vec<String> = names.map(|name| format!("__import__('{name}')")).collect();
    let has_tools = format!("{} -c {}", python.display(), imports.join(","));
    if !shell.succeeds(&has_tools) {
        let make = format!("-m venv --clear {}", folder.display());
        if !shell.succeeds(&format!("python3 {make}")) {
            shell.debian_python(ENVIRONMENTS, &make)?;
        }
        let install = "-m pip install --quiet --disable-pip-version-check";
        shell
            .command(&format!("{} {install} {TOOLS}", python.display()), &[])
            .map_err(|_| Stop::Skipped(format!("{TOOLS} could not be installed")))?;
    }
    Ok(python)
}
