//! Browsers as players: the client for a page, the example around it, and their test.
//!
//! ```text
//! web/client (wasm32) -> playground-bindgen -> target/web/site <- web/client/js, web/page
//! web/server (WebTransport) and its examples: a workspace of its own, built in target/web
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::ci::{LINTED, Shell, Stop};

const TARGET: &str = "wasm32-unknown-unknown";

/// What the test of the page needs of Debian.
const BROWSER: &str = "chromium chromium-driver python3-selenium";

/// The way in which the machine of a page is built.
#[derive(Clone, Copy)]
enum Engine {
    /// As a site serves it.
    Fast,
    /// As tests are: in a third of the time, and slower by ten. Our crates are linted in the same build.
    Quick,
}

impl Engine {
    /// What cargo finds in its environment, for the page and its server alike: nothing is built twice.
    const fn env(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Fast => &[],
            Self::Quick => &LINTED,
        }
    }
}

/// Builds the page and a server with it, and runs that.
pub(crate) fn run(shell: &Shell<'_>) -> Result<(), Stop> {
    let site = build(shell, Engine::Fast)?;
    let program = example(shell, "world", Engine::Fast)?;
    println!("$ {} {}", program.display(), site.display());
    let status = Command::new(program).arg(site).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the example ended: {status}").into()),
        Err(error) => Err(format!("the example: {error}").into()),
    }
}

/// Lints and tests the server, and the page in a browser, beside native players.
pub(crate) fn check(shell: &Shell<'_>) -> Result<(), Stop> {
    let (manifest, target) = ("web/Cargo.toml", own_target(shell));
    let own = format!("--locked --manifest-path {manifest} --target-dir {}", target.display());
    shell.cargo(&format!("fmt --check --all --manifest-path {manifest}"))?;
    shell.cargo_with(Engine::Quick.env(), &format!("test {own} -p haulier-web"))?;
    let site = build(shell, Engine::Quick)?;
    let program = example(shell, "trial", Engine::Quick)?;
    let script = format!("web/page_test.py {} {}", program.display(), site.display());
    shell.debian_python(BROWSER, &script)
}

/// Measures joins of the page and of a native player over emulated links, for docs/PERFORMANCE.md.
pub(crate) fn measure(shell: &Shell<'_>) -> Result<(), Stop> {
    let site = build(shell, Engine::Fast)?;
    let program = example(shell, "trial", Engine::Fast)?;
    let script = format!("web/measure.py {} {}", program.display(), site.display());
    shell.debian_python(BROWSER, &script)
}

fn own_target(shell: &Shell<'_>) -> PathBuf {
    shell.workspace.target.join("web")
}

/// An example of the server, as `cargo test` builds it.
fn example(shell: &Shell<'_>, name: &str, engine: Engine) -> Result<PathBuf, Stop> {
    let target = own_target(shell);
    let own = format!("--manifest-path web/Cargo.toml --target-dir {}", target.display());
    let build = format!("build --locked {own} -p haulier-web --example {name}");
    shell.cargo_with(engine.env(), &build)?;
    Ok(target.join("debug/examples").join(name))
}

/// The directory with all that a page needs.
fn build(shell: &Shell<'_>, engine: Engine) -> Result<PathBuf, Stop> {
    shell.need_target(TARGET)?;
    let (profile, directory) = match engine {
        Engine::Fast => ("page", "page"),
        Engine::Quick => ("dev", "debug"),
    };
    let target = own_target(shell);
    let own = format!("--locked --manifest-path web/Cargo.toml --target-dir {}", target.display());
    let what = "-p haulier-web-client --lib";
    let build = format!("build {own} {what} --profile {profile} --target {TARGET}");
    shell.cargo_with(engine.env(), &build)?;
    let engine = target.join(TARGET).join(directory).join("haulier_web_client.wasm");
    let site = target.join("site");
    fs::create_dir_all(&site).map_err(|error| broken(&site, &error))?;
    let bindgen = "run --locked --manifest-path crates/playground/bindgen/Cargo.toml";
    shell.cargo(&format!("{bindgen} -- {} {}", engine.display(), site.display()))?;
    for source in ["web/client/js", "web/page"] {
        copy_all(&shell.workspace.root.join(source), &site)?;
    }
    number(&site.join("package.json"))?;
    Ok(site)
}

/// Gives the package for npm the version of all others.
fn number(manifest: &Path) -> Result<(), Stop> {
    let text = fs::read_to_string(manifest).map_err(|error| broken(manifest, &error))?;
    let mut package: Value =
        serde_json::from_str(&text).map_err(|error| broken(manifest, &error.into()))?;
    package["version"] = env!("CARGO_PKG_VERSION").into();
    fs::write(manifest, format!("{package:#}\n")).map_err(|error| broken(manifest, &error))
}

fn copy_all(from: &Path, to: &Path) -> Result<(), Stop> {
    for file in fs::read_dir(from).map_err(|error| broken(from, &error))?.flatten() {
        let file = file.path();
        let copied = fs::copy(&file, to.join(file.file_name().unwrap_or_default()));
        copied.map_err(|error| broken(&file, &error))?;
    }
    Ok(())
}

fn broken(path: &Path, error: &std::io::Error) -> Stop {
    format!("{}: {error}", path.display()).into()
}
