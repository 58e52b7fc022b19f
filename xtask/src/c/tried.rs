//! The step `c`: what a program in C or C++ does with the interface, compiled with every warning and run with
//! the sanitizers, found by hand, by pkg-config and by CMake.

use std::fs;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use super::{broken, install};
use crate::ci::{Shell, Stop};

/// What the step needs of Debian, beside a compiler.
const PACKAGES: &str = "cmake pkg-config";

/// A warning is an error, and so is a leak.
const STRICT: &str = "-Wall -Wextra -Wpedantic -Wredundant-decls -Werror -g";
const SANITIZED: &str = "-fsanitize=address,undefined -fno-sanitize-recover=undefined";

/// What the static library needs of the system.
const BESIDE: &str = "-lpthread -ldl -lm";

/// Programs that say themselves whether all is well: each feature once, and the shapes of ENet.
const PROGRAMS: [(&str, &str); 2] = [
    ("program", "crates/ffi/tests/program.c"),
    ("enet", "crates/ffi/examples/enet_pair.c crates/ffi/examples/haulier_enet.c"),
];

/// Where things are while they are tried.
struct Place {
    prefix: PathBuf,
    programs: PathBuf,
}

/// Fails unless all of it works.
pub(crate) fn check(shell: &Shell<'_>) -> Result<(), Stop> {
    // As the tests have built it: nothing is compiled twice.
    shell.cargo("test --locked --no-run --test border")?;
    let target = &shell.workspace.target;
    let place = Place { prefix: target.join("c/prefix"), programs: target.join("c/programs") };
    for directory in [&place.prefix, &place.programs] {
        if directory.exists() {
            fs::remove_dir_all(directory).map_err(|error| broken(directory, &error))?;
        }
        fs::create_dir_all(directory).map_err(|error| broken(directory, &error))?;
    }
    install(shell, &target.join("debug/deps"), &place.prefix)?;
    by_hand(shell, &place)?;
    shell.need_debian(PACKAGES)?;
    by_pkg_config(shell, &place)?;
    by_cmake(shell, &place)
}

/// The programs as C and as C++, with the static library; the examples join, sanitized.
fn by_hand(shell: &Shell<'_>, place: &Place) -> Result<(), Stop> {
    let (include, lib) = (place.prefix.join("include"), place.prefix.join("lib"));
    for (name, program) in PROGRAMS {
        for (language, compiler) in [("c", "cc -std=c11"), ("cpp", "c++ -std=c++17 -x c++")] {
            let made = place.programs.join(format!("{name}_in_{language}"));
            shell.sh(&format!(
                "{compiler} {STRICT} {SANITIZED} -I{} {program} -x none {} -o {} {BESIDE}",
                include.display(),
                lib.join("libhaulier.a").display(),
                made.display(),
            ))?;
            // With a directory for files, which one of them writes.
            shell.sh(&format!("{} {}", made.display(), place.programs.display()))?;
        }
    }
    for (name, source) in [
        ("join_server", "crates/ffi/examples/join_server.c"),
        ("join_client", "crates/ffi/examples/join_client.c"),
        ("tiny", "crates/ffi/tests/tiny.c"),
    ] {
        shell.sh(&format!(
            "cc -std=c99 {STRICT} {SANITIZED} -I{} {source} {} -o {} {BESIDE}",
            include.display(),
            lib.join("libhaulier.a").display(),
            place.programs.join(name).display(),
        ))?;
    }
    let tiny = place.programs.join("tiny");
    join(shell, &place.programs, Some(&tiny))
}

/// The examples with the shared library, as docs/C.md says.
fn by_pkg_config(shell: &Shell<'_>, place: &Place) -> Result<(), Stop> {
    let pkgconfig = place.prefix.join("lib/pkgconfig");
    let programs = place.programs.join("pkg-config");
    fs::create_dir_all(&programs).map_err(|error| broken(&programs, &error))?;
    for name in ["join_server", "join_client"] {
        shell.sh(&format!(
            "cc {STRICT} crates/ffi/examples/{name}.c -o {} \
             $(PKG_CONFIG_PATH={} pkg-config --cflags --libs haulier) -Wl,-rpath,{}",
            programs.join(name).display(),
            pkgconfig.display(),
            place.prefix.join("lib").display(),
        ))?;
    }
    join(shell, &programs, None)
}

/// All examples, by `find_package(haulier)`.
fn by_cmake(shell: &Shell<'_>, place: &Place) -> Result<(), Stop> {
    let build = place.programs.join("cmake");
    shell.sh(&format!(
        "cmake -S crates/ffi/examples -B {} -DCMAKE_PREFIX_PATH={} -DCMAKE_BUILD_TYPE=Debug",
        build.display(),
        place.prefix.display(),
    ))?;
    shell.sh(&format!("cmake --build {}", build.display()))?;
    join(shell, &build, None)
}

/// The server prints its ticket, the client joins with it and says thank you; also after another one, which
/// is turned away.
fn join(shell: &Shell<'_>, programs: &Path, other: Option<&Path>) -> Result<(), Stop> {
    let shown = programs.join("join_server").display().to_string();
    println!("$ {shown}");
    let mut server = Running(
        shell
            .workspace
            .command(programs.join("join_server"))
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{shown}: {error}"))?,
    );
    let mut said = BufReader::new(server.0.stdout.take().ok_or("no output".to_owned())?);
    let mut ticket = String::new();
    said.read_line(&mut ticket).map_err(|error| format!("{shown}: {error}"))?;
    if let Some(other) = other {
        shell.sh(&format!("{} {}", other.display(), ticket.trim_end()))?;
    }
    let client = programs.join("join_client").display().to_string();
    shell.sh(&format!("{client} {}", ticket.trim_end()))?;
    let mut rest = String::new();
    said.read_to_string(&mut rest).map_err(|error| format!("{shown}: {error}"))?;
    let ended = server.0.wait().map_err(|error| format!("{shown}: {error}"))?;
    if ended.success() && rest == "a client says thank you\n" {
        return Ok(());
    }
    Err(format!("{shown}: {ended}, and it said: {rest}").into())
}

/// Ends with the step, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _already_over = self.0.kill();
        let _already_over = self.0.wait();
    }
}
