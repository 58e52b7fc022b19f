//! The table of steps. Cheap ones first, so that a slip is reported within seconds.
//!
//! Each set of packages, features and profile has its dependencies built anew, the C code of AWS-LC among
//! them, half a minute of two cores each time. So everything is linted in one run with one set of features,
//! [`ALL`], the other sets are those without AWS-LC, and what is run is what `cargo test` has built. That
//! optimised machines do the same is seen in the playground's step: its engine is built as releases are, and
//! its runs have the hashes of the program's.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::Stop;
use super::shell::{Shell, failed};
use crate::workspace::Package;
use crate::{api, bevy, book, c, corpus, playground, python, tidy};

/// One check.
pub(super) struct Step {
    pub(super) name: &'static str,
    /// What is known once it has passed.
    pub(super) proves: &'static str,
    pub(super) lane: Lane,
    /// The step runs if something below these paths has changed; always, if the list is empty.
    pub(super) of: &'static [&'static str],
    pub(super) run: fn(&Shell<'_>) -> Result<(), Stop>,
}

impl Step {
    /// Whether the step runs if these files have changed. `None`: it is not known which, so it runs.
    pub(super) fn is_asked_for(&self, changed: Option<&[String]>) -> bool {
        let Some(changed) = changed else { return true };
        let is_below = |path: &String| self.of.iter().any(|start| path.starts_with(start));
        self.of.is_empty() || changed.iter().any(is_below)
    }
}

/// Which steps a step runs beside: the two lanes run at the same time, each in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// Has something built, which others wait for, and which uses all cores some of the time.
    Builds,
    /// Runs what the tests have built, on one core or waiting.
    Runs,
}

/// Every check, in order.
pub(super) const STEPS: &[Step] = &[
    Step {
        name: "tidy",
        proves: "texts are clean, links resolve, every requirement names its test",
        lane: Lane::Builds,
        of: &[],
        run: |shell| Ok(tidy::run(shell.workspace)?),
    },
    Step {
        name: "corpus",
        proves: "the fuzz seeds are those the golden vectors make",
        lane: Lane::Builds,
        of: &[],
        run: |shell| Ok(corpus::check(shell.workspace)?),
    },
    Step {
        name: "fmt",
        proves: "the code looks as rustfmt.toml says",
        lane: Lane::Builds,
        of: &[],
        run: |shell| {
            shell.cargo("fmt --all --check")?;
            shell.cargo("fmt --check --manifest-path bench/Cargo.toml")?;
            shell.cargo("fmt --check --manifest-path fuzz/Cargo.toml")
        },
    },
    Step {
        name: "deny",
        proves: "dependencies, licences and sources are those of the three deny*.toml",
        lane: Lane::Builds,
        of: &["Cargo.lock", "deny", "bevy/Cargo", "web/Cargo"],
        run: deny,
    },
    Step {
        name: "advisories",
        proves: "no dependency has a known fault, or was withdrawn",
        lane: Lane::Builds,
        of: &["Cargo.lock", "bevy/Cargo", "web/Cargo"],
        run: advisories,
    },
    Step {
        name: "clippy",
        proves: "no warning anywhere; tests, benches and fuzz targets compile",
        lane: Lane::Builds,
        of: &[],
        run: clippy,
    },
    Step {
        name: "features",
        proves: "without default features all builds without a warning",
        lane: Lane::Builds,
        of: &[],
        run: features,
    },
    Step {
        name: "xtask",
        proves: "this tool finds what it looks for",
        lane: Lane::Builds,
        of: &[],
        run: |shell| shell.cargo("test --locked -p xtask"),
    },
    Step {
        name: "doc",
        proves: "the pages build, and their links lead somewhere",
        lane: Lane::Builds,
        of: &[],
        run: doc,
    },
    Step {
        name: "api",
        proves: "the public API is the one in docs/api",
        lane: Lane::Builds,
        of: &[],
        run: |shell| api::check(shell.workspace),
    },
    Step {
        name: "wasm",
        proves: "the machine builds without an operating system",
        lane: Lane::Builds,
        of: &[],
        run: wasm,
    },
    Step {
        name: "msrv",
        proves: "the oldest Rust we promise compiles everything",
        lane: Lane::Builds,
        of: &["Cargo.lock", "Cargo.toml", "rust-toolchain.toml"],
        run: msrv,
    },
    Step {
        name: "web",
        proves: "a page in a browser joins beside native players, over WebTransport",
        lane: Lane::Builds,
        of: &["web/", "xtask/src/web.rs"],
        run: crate::web::check,
    },
    Step {
        name: "bevy",
        proves: "apps of Bevy join, load levels from the wire, and leave; its example is a game",
        lane: Lane::Builds,
        of: &["bevy/", "xtask/src/bevy.rs"],
        run: bevy::check,
    },
    Step {
        name: "python",
        proves: "Python joins, serves, fetches, sends and soaks, with the program too; its types are right",
        lane: Lane::Builds,
        of: &["python/", "xtask/src/python.rs"],
        run: python::check,
    },
    Step {
        name: "book",
        proves: "the book builds, its links lead somewhere, its quick numbers are what commands say",
        lane: Lane::Builds,
        of: &[],
        run: book::check,
    },
    Step {
        name: "playground",
        proves: "in a browser the page plays what the program plays, by mouse, keyboard and phone",
        lane: Lane::Builds,
        of: &["crates/playground/", "xtask/src/playground.rs"],
        run: playground::check,
    },
    // The first of these ask cargo, which by and by waits for what the other lane builds.
    Step {
        name: "game",
        proves: "a game and a joining player share a link, in the example people look at",
        lane: Lane::Runs,
        of: &[],
        run: |shell| shell.tested_example("game_loop"),
    },
    Step {
        name: "world",
        proves: "a level is walked on before it is whole, and the tiles ahead come first",
        lane: Lane::Runs,
        of: &[],
        run: |shell| shell.tested_example("stream_world"),
    },
    Step {
        name: "mods",
        proves: "of a set of files that changed in one place, little comes a second time",
        lane: Lane::Runs,
        of: &[],
        run: |shell| shell.tested_example("mods"),
    },
    Step {
        name: "c",
        proves: "programs in C and C++ join by the header there is, with no leak and no undefined behaviour",
        lane: Lane::Runs,
        of: &[],
        run: c::check,
    },
    Step {
        name: "test-ignored",
        proves: "what takes longer: every pair of sequences; a thousand hostile clients keep nobody out",
        lane: Lane::Runs,
        of: &[],
        run: |shell| shell.cargo("test --locked --test machine --test threats -- --ignored"),
    },
    Step {
        name: "demo",
        proves: "the program carries a world over real sockets, with no set-up",
        lane: Lane::Runs,
        of: &[],
        run: |shell| lab(shell, "demo --json"),
    },
    Step {
        name: "joiners",
        proves: "a thousand join one server at once, over real sockets and in virtual time, under attack",
        lane: Lane::Runs,
        of: &[],
        run: joiners,
    },
    Step {
        name: "random",
        proves: "joins over links and in crowds that are drawn on the day get their block in time",
        lane: Lane::Runs,
        of: &[],
        run: random,
    },
    Step {
        name: "soak",
        proves: "300 simulated transfers over bad links all complete, a game's packets beside them",
        lane: Lane::Runs,
        of: &[],
        run: |shell| soak(shell, "--transfers 300 --seed 1"),
    },
    Step {
        name: "soak-packets",
        proves: "100,000 packets over links of up to 99 % loss and 10 s keep every promise",
        lane: Lane::Runs,
        of: &[],
        run: |shell| soak(shell, "--layers packets --transfers 100000 --seed 1"),
    },
    Step {
        name: "soak-connection",
        proves: "connections over bad links, liars among them, finish or say why not, within bounds",
        lane: Lane::Runs,
        of: &[],
        run: |shell| soak(shell, "--layers connection --transfers 2000 --seed 1"),
    },
    Step {
        name: "soak-files",
        proves: "files arrive from disk to disk, whatever fails, and nothing wrong has a name",
        lane: Lane::Runs,
        of: &[],
        run: |shell| soak(shell, "--layers files --transfers 100 --seed 1"),
    },
    Step {
        name: "packages",
        proves: "crates could be published; Debian's package installs, serves, completes and is gone",
        lane: Lane::Runs,
        of: &["packaging/", "xtask/src/packages"],
        run: crate::packages::check,
    },
    Step {
        name: "second",
        proves: "the second program, from STANDARD-1 alone, makes the golden bytes and transfers",
        lane: Lane::Runs,
        of: &[],
        run: |shell| shell.python("vectors/second/test_second.py"),
    },
    Step {
        name: "shell",
        proves: "shells read their completions, no manual page has a fault, a bar survives a resize",
        lane: Lane::Runs,
        of: &["crates/cli/s", "crates/shell/", "crates/lab-cli/src/demo/"],
        run: crate::shell::check,
    },
    Step {
        name: "lan",
        proves: "a server is found by its name from another host, over link-local addresses, too",
        lane: Lane::Runs,
        of: &["crates/cli/lan_test.py", "crates/cli/src/lan/"],
        run: crate::lan::check,
    },
    Step {
        name: "views",
        proves: "a server with fifty clients is seen in a browser and a terminal, and by a monitor",
        lane: Lane::Runs,
        of: &["crates/view/", "crates/shell/src/tui/"],
        run: crate::views::check,
    },
    Step {
        name: "wireshark",
        proves: "Wireshark shows of captures what the program says of them, and leaves others alone",
        lane: Lane::Runs,
        of: &["wireshark/", "crates/capture/", "crates/cli/src/inspect/"],
        run: wireshark,
    },
];

/// Everything there is: async clients and servers, and both providers of AES.
const ALL: &str = "--features haulier/tokio,haulier-proto/rust-crypto";

fn deny(shell: &Shell<'_>) -> Result<(), Stop> {
    shell.cargo_deny("--locked --workspace check bans licenses sources")?;
    for package in no_std(shell)? {
        let manifest = package.manifest;
        let config = "--config deny-no-std.toml check bans";
        shell.cargo_deny(&format!("--locked --manifest-path {manifest} {config}"))?;
    }
    deny_faces(shell, "bans licenses sources")
}

/// The workspaces of their own from which people take something; benches and fuzz targets stay here.
fn deny_faces(shell: &Shell<'_>, what: &str) -> Result<(), Stop> {
    for face in ["bevy", "web"] {
        let where_it_is = format!("--locked --workspace --manifest-path {face}/Cargo.toml");
        shell.cargo_deny(&format!("{where_it_is} --config deny-faces.toml check {what}"))?;
    }
    Ok(())
}

/// The database of advisories is a repository of its own, which not every machine reaches.
fn advisories(shell: &Shell<'_>) -> Result<(), Stop> {
    shell
        .cargo_deny("fetch db")
        .map_err(|_| Stop::Skipped("the database of advisories could not be fetched".to_owned()))?;
    shell.cargo_deny("--locked --workspace check advisories")?;
    deny_faces(shell, "advisories")
}

fn clippy(shell: &Shell<'_>) -> Result<(), Stop> {
    let targets = "--locked --all-targets";
    shell.cargo(&format!("clippy {targets} --workspace {ALL} -- -D warnings"))?;
    shell.cargo(&format!("clippy {targets} --manifest-path bench/Cargo.toml -- -D warnings"))?;
    // The build script of libfuzzer-sys compiles libFuzzer, a minute of C++, unless a variable names a
    // library. A check links nothing, so any file will do.
    let pretended = [("CUSTOM_LIBFUZZER_PATH", "fuzz/Cargo.toml")];
    let fuzz = "clippy --locked --manifest-path fuzz/Cargo.toml -- -D warnings";
    shell.cargo_with(&pretended, fuzz)
}

fn features(shell: &Shell<'_>) -> Result<(), Stop> {
    let machines: String =
        no_std(shell)?.iter().map(|package| format!(" -p {}", package.name)).collect();
    shell.cargo(&format!("clippy --locked{machines} --no-default-features -- -D warnings"))?;
    // Without sockets; without C.
    shell.cargo("clippy --locked -p haulier --no-default-features -- -D warnings")?;
    let no_c = "--no-default-features --features udp,rust-crypto";
    shell.cargo(&format!("clippy --locked -p haulier {no_c} -- -D warnings"))?;
    // The program as it is handed out.
    shell.cargo("clippy --locked --all-targets -p haulier-cli --no-default-features -- -D warnings")
}

fn doc(shell: &Shell<'_>) -> Result<(), Stop> {
    // The program and the library are both named `haulier` and their pages would overwrite each other.
    let arguments = format!("doc --locked --workspace --no-deps --exclude haulier-cli {ALL}");
    shell.cargo_with(&[("RUSTDOCFLAGS", "-D warnings")], &arguments)
}

fn wasm(shell: &Shell<'_>) -> Result<(), Stop> {
    let target = "wasm32-unknown-unknown";
    shell.need_target(target)?;
    // A check finds what is not there; the playground's step builds all of it, and runs it.
    for package in no_std(shell)? {
        let check =
            format!("check --locked -p {} --no-default-features --target {target}", package.name);
        shell.cargo(&check)?;
    }
    let aes = "--no-default-features --features rust-crypto";
    shell.cargo(&format!("check --locked -p haulier-proto {aes} --target {target}"))
}

/// The crates that promise to need no operating system.
fn no_std(shell: &Shell<'_>) -> Result<Vec<Package>, Stop> {
    let packages = shell.workspace.packages()?;
    let machines: Vec<Package> = packages.into_iter().filter(|p| p.is_no_std).collect();
    if machines.is_empty() {
        return Err("no crate has the category no-std".to_owned().into());
    }
    Ok(machines)
}

fn msrv(shell: &Shell<'_>) -> Result<(), Stop> {
    let version = tidy::oldest_rust(shell.workspace)?;
    // What people build: libraries and the program. Tests are ours, and have the Rust of rust-toolchain.toml.
    // Nothing of it runs, so nothing needs to be fast: C code of libraries is compiled in half the time.
    let quick = r#"--config profile.dev.package."*".opt-level=0"#;
    let people = "--workspace --exclude xtask";
    shell.cargo_of(&version, &format!("check --locked {people} {quick}"))
}

/// The dissector beside `inspect`. The program is built as the step before has built it, and the tests.
fn wireshark(shell: &Shell<'_>) -> Result<(), Stop> {
    let program = shell.tested_program()?;
    let captures = shell.workspace.target.join("captures");
    let script = "wireshark/test_dissector.py";
    let lab = shell.tested_lab()?;
    let command =
        format!("{script} {} {} {}", program.display(), lab.display(), captures.display());
    shell.debian_python("tshark python3", &command)
}

/// Counts and completeness; how long it takes is the machine's business.
fn joiners(shell: &Shell<'_>) -> Result<(), Stop> {
    let bench = "bench joiners --clients 1000 --uplink 1G --json";
    lab(shell, &format!("{bench} --bytes 64k"))?;
    // In virtual time the same thousand as in PERFORMANCE.
    lab(shell, &format!("{bench} --bytes 256k --simulated --attack"))
}

/// The seed is the day: nothing can be tuned to it. Numbers are printed, and judged by people.
fn random(shell: &Shell<'_>) -> Result<(), Stop> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let day = since.as_secs() / (24 * 60 * 60);
    lab(shell, &format!("bench random --seed {day} --links 12 --crowds 3 --sizes 256k --json"))
}

/// A soak, in which what machines allocate is counted.
fn soak(shell: &Shell<'_>, arguments: &str) -> Result<(), Stop> {
    lab(shell, &format!("soak {arguments} --json"))
}

/// Runs `haulier-lab` as the tests have built it, and looks at its last line.
fn lab(shell: &Shell<'_>, arguments: &str) -> Result<(), Stop> {
    let program = shell.tested_lab()?;
    let arguments: Vec<&str> = arguments.split(' ').collect();
    let output = shell.output(&program, &arguments)?;
    let last = output.lines().last().unwrap_or_default();
    println!("{last}");
    if says_done(last) {
        return Ok(());
    }
    let what = format!("it exited with success, but its last line is not a good end: {last}");
    Err(failed(what, &format!("{} {}", program.display(), arguments.join(" "))))
}

fn says_done(line: &str) -> bool {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    line["event"] == "done" && line["ok"] == true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_good_end_is_one() {
        assert!(says_done(r#"{"event": "done", "ok": true}"#));
        assert!(says_done(r#"{"event":"done","ok":true,"seconds":1.5}"#));
        assert!(!says_done(r#"{"event":"done","ok":false}"#));
        assert!(!says_done(r#"{"event":"progress","ok":true}"#));
        assert!(!says_done(""));
    }
}
