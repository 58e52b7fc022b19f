//! What installs: packages for a registry, and Debian's.
//!
//! * [`crates`]: what each published crate has to have, and what is in its package;
//! * [`mod@deb`]: the package for Debian, from a program that is built;
//! * [`notices`]: the licences of the libraries that are in it.
//!
//! The step `packages` of CI builds nothing: it packs the program that the tests have built.

mod crates;
mod deb;
mod notices;

use std::fs;
use std::path::Path;

use crate::ci::{Shell, Stop, failed};

/// What the step needs of Debian: to look at the package as Debian does, and at the unit as systemd does.
const TOOLS: &str = "dpkg-dev lintian man-db systemd";

/// Checks the crates and their packages; and Debian's, which is installed into a root that is thrown away.
pub(crate) fn check(shell: &Shell<'_>) -> Result<(), Stop> {
    crates::check(shell, false)?;
    let program = shell.tested_program()?;
    shell.need_debian(TOOLS)?;
    let deb = deb::build(shell, &program)?;
    shell.run("lintian", &["--fail-on", "error,warning", "--info", &shown(&deb)])?;
    install(shell, &deb)
}

/// Checks the crates and their packages alone.
pub(crate) fn check_crates(shell: &Shell<'_>) -> Result<(), Stop> {
    crates::check(shell, false)
}

/// Checks the crates and their packages for a release: no placeholder may be left.
pub(crate) fn check_release(shell: &Shell<'_>) -> Result<(), Stop> {
    crates::check(shell, true)
}

/// Builds Debian's package from a program; without one from what a release has.
pub(crate) fn deb(shell: &Shell<'_>, program: Option<&str>) -> Result<(), Stop> {
    let release = shell.workspace.target.join("dist/haulier");
    let program = match program {
        Some(program) => std::path::absolute(program).map_err(|error| error.to_string())?,
        None => {
            shell.cargo("build --locked --profile dist -p haulier-cli --no-default-features")?;
            release
        }
    };
    let deb = deb::build(shell, &program)?;
    println!("{}", deb.display());
    Ok(())
}

/// Tries the package in a root that is laid over this machine's, and gone afterwards.
fn install(shell: &Shell<'_>, deb: &Path) -> Result<(), Stop> {
    // The root is in memory: an overlay cannot lie upon another one, as a container's root is.
    let lay = "set -e; d=$(mktemp -d); mount -t tmpfs none $d; mkdir $d/upper $d/work $d/new; \
               mount -t overlay overlay -o lowerdir=/,upperdir=$d/upper,workdir=$d/work $d/new; \
               mount -t proc proc $d/new/proc; mount --bind /dev $d/new/dev; \
               mount -t tmpfs none $d/new/run; mount -t tmpfs none $d/new/tmp";
    let may = format!("{lay}; exit 0");
    let mut tried = shell.workspace.command("unshare");
    tried.args(["--mount", "--pid", "--fork", "sh", "-c", &may]);
    if !tried.output().is_ok_and(|output| output.status.success()) {
        let what = "the package was built and looked at; no root to install it in can be made here";
        return Err(Stop::Skipped(what.to_owned()));
    }
    let script = shell.workspace.root.join("packaging/deb/try.sh");
    let run = format!(
        "{lay}; cp '{}' $d/new/tmp/try.sh; cp '{}' $d/new/tmp/haulier.deb; \
         exec chroot $d/new sh /tmp/try.sh /tmp/haulier.deb",
        script.display(),
        deb.display()
    );
    shell.run("unshare", &["--mount", "--pid", "--fork", "sh", "-c", &run])
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn broken(path: &Path, error: &std::io::Error) -> Stop {
    failed(error, &shown(path))
}

/// Reads a text file of the workspace.
fn read(shell: &Shell<'_>, path: &str) -> Result<String, Stop> {
    let path = shell.workspace.root.join(path);
    fs::read_to_string(&path).map_err(|error| broken(&path, &error))
}
