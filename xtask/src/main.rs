//! The build tool of this workspace: what CI runs beside the tests, runnable at home.
//!
//! It is started as `cargo xtask COMMAND`, an alias in `.cargo/config.toml`.
//!
//! * [`ci`]: every check that is no test, in order; `.ci/run` runs `cargo test` and then this.
//! * [`tidy`]: what no compiler looks at: links, line lengths, words that must not stay.
//! * [`api`]: the public API of each library, against the reviewed lists.
//! * [`bevy`]: the face for Bevy, in its own workspace.
//! * [`book`]: the book, its numbers and its links.
//! * [`c`]: the C interface: its header, what is installed of it, and programs that use it.
//! * [`corpus`]: the seeds of the fuzz targets, made from the golden vectors.
//! * [`lan`]: servers that are found by name, between hosts that are network namespaces.
//! * [`packages`]: what installs: crates for a registry, and a package for Debian.
//! * [`playground`]: the simulator in a page, and a program with it.
//! * [`python`]: the module for Python, in an environment of its own.
//! * [`shell`]: completions, manual pages, the bar.
//! * [`ablate`]: what each mechanism of the sender buys.
//! * [`views`]: a live server in a page, in a terminal and for a monitor.
//! * [`web`]: a page as a player, in its own workspace.
//! * [`mends`]: mended faults, made anew, which the oracles must find.

mod ablate;
mod api;
mod bevy;
mod book;
mod c;
mod ci;
mod copy;
mod corpus;
mod lan;
mod mends;
mod packages;
mod playground;
mod python;
mod shell;
mod tidy;
mod views;
mod web;
mod workspace;

use std::process::ExitCode;

use ci::Stop;
use workspace::Workspace;

const HELP: &str = "\
The build tool of haulier: it runs at home what CI runs.

Usage: cargo xtask COMMAND [FLAGS]

Commands:
  ci                every check CI runs after `cargo test`, in two lanes; each stops where one fails
  ci --all          the same with those of engines, languages and tools of which nothing has changed
  ci --list         what those checks are, and what each is there for
  ci --only NAME    one of them, such as the one that has just failed
  tidy              only the fast text checks (a second), good before every commit
  plain             the places in comments and pages that have to be read twice; tidy bounds their number
  api               fail if the public API is not the one in docs/api, and show how it differs
  api --write       write docs/api anew
  c --prefix DIR    build the C libraries, and install them below DIR with header, pkg-config and CMake files
  c --header        make crates/ffi/include/haulier.h anew, by cbindgen
  corpus            write the seeds of the fuzz targets anew from vectors/*.json
  corpus --check    fail if the seeds in the tree are other ones
  playground        build the page with the simulator in it, and a program with the page, and run it
  playground --check  the same, tried in a browser (Debian's chromium)
  web               build the page that joins as a player, and a server for it, and run that
  web --measure     how long its joins take over emulated links, beside a native player's
  book              build the book, with the playground in it, to target/book
  book --check      the same, and follow its links, and run the quick commands of its numbers
  packages          what the crates lack to be published; with --release also what only a release needs
  packages --check  the same, and Debian's package is built, looked at, installed, tried and removed
  deb [PROGRAM]     build Debian's package into target/deb, from a release build or this program
  mends [NAME]      take out each mend of a fault (minutes each): an oracle must find what it let in
  mends --list      what they are, and what finds each
  ablate [FLAGS]    run random links and crowds without each mechanism of the sender: what does it buy?
                    --only NAME, --seed N, --links N, --crowds N, --budget MINUTES; --out FILE writes the
                    tables after each row, --write puts them in docs/ABLATION.md, --check demands that
                    the build with switches does what the tree does while none is set
  ablate --constants  the same with each constant of the sender halved and doubled
  ablate --list     what the mechanisms are

Before you propose a change:
  cargo test && cargo xtask ci

What is missing is installed: the wasm target and the oldest supported Rust by rustup, cargo-deny into the
target directory. Where that cannot be, the step is skipped, and the last lines say so.
CARGO_TARGET_DIR is respected.";

fn main() -> ExitCode {
    if std::env::var_os(api::AS_RUSTDOC).is_some() {
        return api::as_rustdoc();
    }
    if std::env::var_os(python::AS_CARGO).is_some() {
        return python::as_cargo();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&arguments, &Workspace::here()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Failed { what, .. } | Stop::Skipped(what)) => {
            eprintln!("xtask: {what}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[&str], workspace: &Workspace) -> Result<(), Stop> {
    match arguments {
        [] | ["help", ..] | [.., "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        ["ci"] => Ok(ci::run_all(workspace, false)?),
        ["ci", ci::ALL] => Ok(ci::run_all(workspace, true)?),
        ["ci", "--list"] => {
            ci::list();
            Ok(())
        }
        ["ci", ci::RUNS] => Ok(ci::run_runs(workspace, false)?),
        ["ci", ci::RUNS, ci::ALL] => Ok(ci::run_runs(workspace, true)?),
        ["ci", "--only", name] => Ok(ci::run_one(workspace, name)?),
        ["tidy"] => Ok(tidy::run(workspace)?),
        ["plain"] => Ok(tidy::show_plain(workspace)?),
        ["api"] => api::check(workspace),
        ["api", "--write"] => api::write(workspace),
        ["c", "--prefix", prefix] => c::run(&ci::Shell::new(workspace), prefix),
        ["c", "--header"] => c::write_header(&ci::Shell::new(workspace)),
        ["corpus"] => Ok(corpus::write(workspace)?),
        ["corpus", "--check"] => Ok(corpus::check(workspace)?),
        ["playground"] => playground::run(&ci::Shell::new(workspace)),
        ["playground", "--check"] => playground::check(&ci::Shell::new(workspace)),
        ["web"] => web::run(&ci::Shell::new(workspace)),
        ["web", "--measure"] => web::measure(&ci::Shell::new(workspace)),
        ["book"] => book::run(&ci::Shell::new(workspace)),
        ["book", "--check"] => book::check(&ci::Shell::new(workspace)),
        ["packages"] => packages::check_crates(&ci::Shell::new(workspace)),
        ["packages", "--check"] => packages::check(&ci::Shell::new(workspace)),
        ["packages", "--release"] => packages::check_release(&ci::Shell::new(workspace)),
        ["deb"] => packages::deb(&ci::Shell::new(workspace), None),
        ["deb", program] => packages::deb(&ci::Shell::new(workspace), Some(program)),
        ["mends"] => Ok(mends::run(workspace, "")?),
        ["mends", "--list"] => {
            mends::list();
            Ok(())
        }
        ["ablate", "--list"] => {
            ablate::list();
            Ok(())
        }
        ["ablate", flags @ ..] => Ok(ablate::run(workspace, &ablate::Args::parse(flags)?)?),
        ["mends", name] => Ok(mends::run(workspace, name)?),
        other => {
            Err(format!("`{}` is no command; see: cargo xtask --help", other.join(" ")).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_command_is_an_error_that_leads_on() {
        let Err(Stop::Failed { what, .. }) = dispatch(&["ci", "--onyl", "fmt"], &Workspace::here())
        else {
            panic!("no error")
        };
        assert!(what.contains("ci --onyl fmt") && what.contains("--help"), "{what}");
    }
}
