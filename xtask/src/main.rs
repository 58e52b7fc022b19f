//! The build tool of this workspace: what CI runs, runnable at home.
//!
//! It is started as `cargo xtask COMMAND` (an alias in `.cargo/config.toml`) and uses the standard
//! library only, so that it is built in a second and never the reason why a build is broken.
//!
//! * [`ci`]: every check, in order; `.ci/run` does nothing else.
//! * [`tidy`]: what no compiler looks at: links, line lengths, words that must not stay.
//! * [`corpus`]: the seeds of the fuzz targets, made from the golden vectors.

mod ci;
mod corpus;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HELP: &str = "\
The build tool of haulier: it runs at home what CI runs.

Usage: cargo xtask COMMAND [FLAGS]

Commands:
  ci                every check CI runs, in order; stops at the first that fails
  ci --list         what those checks are, and what each is there for
  ci --only NAME    one of them, such as the one that has just failed
  tidy              only the fast text checks (a second), good before every commit
  corpus            write the seeds of the fuzz targets anew from vectors/*.json
  corpus --check    fail if the seeds in the tree are other ones

Before you propose a change:
  cargo xtask ci

While you work, one crate at a time is quicker:
  cargo test -p haulier-proto

What is missing is installed where rustup can do it: rustfmt, clippy, the wasm target, the oldest
supported Rust. Where it cannot, the step is skipped, and the last lines say so.
CARGO_TARGET_DIR is respected.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&arguments, &Workspace::here()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[&str], workspace: &Workspace) -> Result<(), String> {
    match arguments {
        [] | ["help", ..] | [.., "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        ["ci"] => ci::run_all(workspace),
        ["ci", "--list"] => {
            ci::list();
            Ok(())
        }
        ["ci", "--only", name] => ci::run_one(workspace, name),
        ["tidy"] => tidy::run(workspace),
        ["corpus"] => corpus::write(workspace),
        ["corpus", "--check"] => corpus::check(workspace),
        other => Err(format!("`{}` is no command; see: cargo xtask --help", other.join(" "))),
    }
}

/// Where this workspace is, and where its build output goes.
struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    fn here() -> Self {
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
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        // Cargo hands its own path on in CARGO, and another toolchain's cargo would believe it.
        command.env_remove("CARGO");
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_command_is_an_error_that_leads_on() {
        let error = dispatch(&["ci", "--onyl", "fmt"], &Workspace::here()).unwrap_err();
        assert!(error.contains("ci --onyl fmt") && error.contains("--help"), "{error}");
    }

    #[test]
    fn the_root_is_the_workspace() {
        let manifest = Workspace::here().root.join("Cargo.toml");
        assert!(std::fs::read_to_string(manifest).unwrap().contains("[workspace]"));
    }
}
