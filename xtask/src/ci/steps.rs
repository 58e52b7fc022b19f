//! The table of steps. Cheap ones first, so that a slip is told within seconds.

use std::time::Duration;

use super::Stop;
use super::shell::{Shell, Tool, failed};
use crate::{corpus, tidy};

/// One check.
pub(super) struct Step {
    pub(super) name: &'static str,
    /// What is known once it has passed.
    pub(super) proves: &'static str,
    pub(super) run: fn(&Shell<'_>) -> Result<(), Stop>,
}

/// Every check, in order.
pub(super) const STEPS: &[Step] = &[
    Step { name: "tools", proves: "what the steps need is here, or installed now", run: tools },
    Step {
        name: "tidy",
        proves: "texts are clean, links resolve, every requirement names its test",
        run: |shell| tidy::run(shell.workspace).map_err(|what| failed(what, "cargo xtask tidy")),
    },
    Step {
        name: "corpus",
        proves: "the fuzz seeds are those the golden vectors make",
        run: |shell| {
            corpus::check(shell.workspace)
                .map_err(|what| failed(what, "cargo xtask corpus --check"))
        },
    },
    Step {
        name: "fmt",
        proves: "the code looks as rustfmt.toml says",
        run: |shell| {
            shell.need(Tool::Rustfmt)?;
            shell.cargo("fmt --all --check")?;
            shell.cargo("fmt --check --manifest-path bench/Cargo.toml")?;
            shell.cargo("fmt --check --manifest-path fuzz/Cargo.toml")
        },
    },
    Step {
        name: "clippy",
        proves: "no warning anywhere, tests and benches included",
        run: |shell| {
            shell.need(Tool::Clippy)?;
            shell.cargo(&format!("clippy --workspace --all-targets {ALL} -- -D warnings"))?;
            shell.cargo("clippy -p haulier-proto --no-default-features -- -D warnings")?;
            let features = "--no-default-features --features rust-crypto";
            shell.cargo(&format!("clippy -p haulier-proto {features} -- -D warnings"))
        },
    },
    Step {
        name: "test",
        proves: "all tests pass, with every debug assertion armed",
        run: |shell| {
            // With both providers, so that they are compared with each other.
            shell.cargo(&format!("test --workspace {ALL}"))
        },
    },
    Step {
        name: "test-release",
        proves: "the machine's tests pass optimised, walking every pair of sequences",
        run: |shell| shell.cargo("test --release --workspace --test machine"),
    },
    Step {
        name: "wasm",
        proves: "the machine builds where there is no operating system",
        run: |shell| {
            shell.need(Tool::Wasm)?;
            let target = "--target wasm32-unknown-unknown";
            shell.cargo(&format!("build -p haulier-proto --no-default-features {target}"))?;
            let aes = "--no-default-features --features rust-crypto";
            shell.cargo(&format!("build -p haulier-proto {aes} {target}"))
        },
    },
    Step { name: "dependencies", proves: "no runtime, no socket under the machine", run: under },
    Step {
        name: "no-udp",
        proves: "the library builds without its sockets, and without C",
        run: |shell| {
            shell.cargo("check -p haulier --no-default-features")?;
            shell.cargo("check -p haulier --no-default-features --features udp,rust-crypto")
        },
    },
    Step {
        name: "benches",
        proves: "the benches compile, those beside other crates too",
        run: |shell| {
            shell.cargo(&format!("check --workspace --benches {ALL}"))?;
            shell.cargo("check --locked --all-targets --manifest-path bench/Cargo.toml")
        },
    },
    Step {
        name: "fuzz",
        proves: "the fuzz targets compile, on stable and without libFuzzer",
        run: fuzz,
    },
    Step {
        name: "doc",
        proves: "the documentation builds, and its links lead somewhere",
        run: doc,
    },
    Step { name: "msrv", proves: "the oldest Rust we promise compiles everything", run: msrv },
    Step {
        name: "build",
        proves: "the program builds as people get it",
        run: |shell| shell.cargo(BUILD),
    },
    Step {
        name: "demo",
        proves: "the program carries a world over real sockets",
        run: |shell| program(shell, "demo --json"),
    },
    Step {
        name: "soak",
        proves: "300 simulated transfers over bad links all complete, a game's packets beside them",
        run: |shell| program(shell, "soak --transfers 300 --seed 1 --json"),
    },
    Step {
        name: "soak-packets",
        proves: "100,000 packets over links of up to 99 % loss and 10 s keep every promise",
        run: |shell| program(shell, "soak --layers packets --transfers 100000 --seed 1 --json"),
    },
    Step {
        name: "soak-connection",
        proves: "connections over bad links, with restarts and changes of address, finish or say why not",
        run: |shell| program(shell, "soak --layers connection --transfers 2000 --seed 1 --json"),
    },
    Step {
        name: "grid",
        proves: "a block gets through each of 155 links, by every kind of join",
        run: |shell| program(shell, "bench grid --quick --json"),
    },
    Step {
        name: "crowd",
        proves: "a thousand hostile clients do not keep a hundred honest ones from joining",
        run: |shell| {
            shell.cargo("test --release --workspace --test threats -- --ignored a_thousand")
        },
    },
    Step {
        name: "game",
        proves: "a game and a joining player share a link, in the example people look at",
        run: |shell| shell.cargo("run --release --example game_loop"),
    },
];

/// Everything there is, in as few builds as possible: each set of packages and features has the C code of
/// AWS-LC compiled anew, a minute a time.
const ALL: &str = "--features haulier/tokio,haulier-proto/rust-crypto";

/// Never fails: a step that still lacks its tool says so itself, and is counted as not run.
fn tools(shell: &Shell<'_>) -> Result<(), Stop> {
    println!("{}", shell.cargo_output("--version")?.trim());
    for tool in Tool::ALL {
        match shell.need(tool) {
            Ok(()) => println!("{tool:?}: here"),
            Err(Stop::Skipped(why) | Stop::Failed { what: why, .. }) => {
                println!("{tool:?}: MISSING, steps that need it will be skipped: {why}");
            }
        }
    }
    Ok(())
}

/// The crates that may be linked into the machine, itself included. One more is a decision: who adds it
/// here has looked at what it drags in. None asks the system for anything: `libc` is there for
/// `cpufeatures` to name CPU features, and `getrandom` must never be.
const UNDER_PROTO: &[&str] = &[
    // The machine.
    "bytes",
    "cfg-if",
    "crc32fast",
    "haulier-proto",
    // Repair slices.
    "fixedbitset",
    "once_cell",
    "reed-solomon-simd",
    // Ours in `crypto` and `credentials`. The two of AWS-LC with the feature `aws-lc`, `aes-gcm` with
    // `rust-crypto`.
    "aes-gcm",
    "aws-lc-rs",
    "aws-lc-sys",
    "base64ct",
    "blake3",
    "chacha20poly1305",
    "snow",
    "subtle",
    "zeroize",
    // Under blake3.
    "arrayvec",
    "constant_time_eq",
    // Under snow: X25519, BLAKE2s.
    "blake2",
    "block-buffer",
    "curve25519-dalek",
    "digest",
    "fiat-crypto",
    // Under the AEADs of RustCrypto.
    "aead",
    "aes",
    "chacha20",
    "cipher",
    "cpufeatures",
    "crypto-common",
    "ctr",
    "generic-array",
    "ghash",
    "inout",
    "libc",
    "opaque-debug",
    "poly1305",
    "polyval",
    "typenum",
    "universal-hash",
];

/// The crates that run while the machine is compiled, and are not in it: C compilers, version checks and
/// a derive macro.
const BUILDS_PROTO: &[&str] = &[
    "cc",
    "cmake",
    "curve25519-dalek-derive",
    "dunce",
    "find-msvc-tools",
    "fs_extra",
    "getrandom",
    "jobserver",
    "pkg-config",
    "proc-macro2",
    "quote",
    "r-efi",
    "readme-rustdocifier",
    "rustc_version",
    "semver",
    "shlex",
    "syn",
    "unicode-ident",
    "version_check",
];

fn under(shell: &Shell<'_>) -> Result<(), Stop> {
    let both = [UNDER_PROTO, BUILDS_PROTO].concat();
    let edges: [(_, &[&str]); 2] = [("normal,no-proc-macro", UNDER_PROTO), ("normal,build", &both)];
    for features in ["", " --no-default-features", " --all-features"] {
        for (edges, allowed) in edges {
            // Every target: a crate that only Windows gets is a dependency all the same.
            let arguments =
                format!("tree -p haulier-proto -e {edges} --target all --prefix none{features}");
            let tree = shell.cargo_output(&arguments)?;
            let crates = judge_tree(&tree, allowed)
                .map_err(|what| failed(what, &format!("cargo {arguments}")))?;
            println!("under haulier-proto ({edges}{features}): {}", crates.join(", "));
        }
    }
    Ok(())
}

fn judge_tree<'t>(tree: &'t str, allowed: &[&str]) -> Result<Vec<&'t str>, String> {
    let lines = tree.lines().filter(|line| !line.trim().is_empty());
    let mut crates: Vec<&str> = lines.filter_map(|line| line.split(' ').next()).collect();
    crates.sort_unstable();
    crates.dedup();
    if let Some(foreign) = crates.iter().find(|name| !allowed.contains(name)) {
        return Err(format!("`{foreign}` is under haulier-proto, and its list does not allow it"));
    }
    // An empty tree would pass the search above.
    if !crates.contains(&"haulier-proto") {
        return Err("haulier-proto is not in its own tree".to_owned());
    }
    Ok(crates)
}

fn fuzz(shell: &Shell<'_>) -> Result<(), Stop> {
    // The build script of libfuzzer-sys compiles libFuzzer, a minute of C++, unless it is told where one
    // is. A check links nothing, so the file need not be one.
    let pretended = [("CUSTOM_LIBFUZZER_PATH", "fuzz/Cargo.toml")];
    shell.cargo_with(&pretended, "check --manifest-path fuzz/Cargo.toml")
}

fn doc(shell: &Shell<'_>) -> Result<(), Stop> {
    // The program and the library are both named `haulier` and their pages would overwrite each other.
    let arguments = "doc --workspace --no-deps --exclude haulier-cli";
    shell.cargo_with(&[("RUSTDOCFLAGS", "-D warnings")], arguments)
}

fn msrv(shell: &Shell<'_>) -> Result<(), Stop> {
    let manifest = std::fs::read_to_string(shell.workspace.root.join("Cargo.toml"));
    let version = manifest.ok().and_then(|text| tidy::rust_version(&text).map(str::to_owned));
    let version =
        version.ok_or_else(|| failed("Cargo.toml has no rust-version", "cargo xtask tidy"))?;
    // A directory of its own: two toolchains in one would rebuild each other's work.
    let target = shell.workspace.target.join("msrv");
    // Nothing of it runs, so nothing needs to be fast: C code of libraries is compiled in half the time.
    let quick = r#"--config profile.dev.package."*".opt-level=0"#;
    shell.cargo_of(&version, &target, &format!("check --workspace --all-targets {quick}"))
}

const BUILD: &str = "build --release --workspace --bin haulier";

/// Generous: both take seconds, and a slow machine is no failure. A hang is.
const PROGRAM_LIMIT: Duration = Duration::from_secs(300);

fn program(shell: &Shell<'_>, arguments: &str) -> Result<(), Stop> {
    // Nothing to do after the step `build`; with --only, an old program would prove nothing.
    shell.cargo(BUILD)?;
    let lines = shell.program_lines("haulier", arguments, PROGRAM_LIMIT)?;
    let last = lines.last().map_or("", String::as_str);
    println!("{last}");
    if says_done(last) {
        return Ok(());
    }
    let what = format!("it exited with success, but its last line is not a good end: {last}");
    Err(failed(what, &format!("cargo run --release -p haulier-cli -- {arguments}")))
}

fn says_done(line: &str) -> bool {
    let line: String = line.split_whitespace().collect();
    line.contains(r#""event":"done""#) && line.contains(r#""ok":true"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_crate_under_the_machine_is_found() {
        let tree = "haulier-proto v0.1.0 (/x/crates/proto)\nbytes v1.12.0\ncrc32fast v1.5.0\n\
                    cfg-if v1.0.4\nbytes v1.12.0 (*)\n";
        let judge = |tree: &str| judge_tree(tree, UNDER_PROTO).map(|crates| crates.len());
        assert_eq!(judge(tree), Ok(4));
        for foreign in ["mio", "getrandom"] {
            let error = judge(&format!("{tree}{foreign} v1.2.0\n")).unwrap_err();
            assert!(error.contains(&format!("`{foreign}`")), "{error}");
        }
        assert!(judge("").is_err());
    }

    #[test]
    fn only_a_good_end_is_one() {
        assert!(says_done(r#"{"event": "done", "ok": true}"#));
        assert!(says_done(r#"{"event":"done","ok":true,"seconds":1.5}"#));
        assert!(!says_done(r#"{"event":"done","ok":false}"#));
        assert!(!says_done(r#"{"event":"progress","ok":true}"#));
        assert!(!says_done(""));
    }
}
