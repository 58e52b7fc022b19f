//! Runs the commands of a step, and finds or installs what they need.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Stop;
use crate::workspace::{Workspace, cargo};

/// The version of cargo-deny that is installed where it is missing.
const CARGO_DENY: &str = "0.20.2";

/// The environment in which cargo builds with clippy as the compiler of a workspace's own crates: what is
/// built is linted, and none of what is under it has to be checked beside that. `cargo clippy` itself does no
/// other. Optimisations of MIR are left out in those crates.
pub(crate) const LINTED: [(&str, &str); 2] = [
    ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
    ("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__"),
];

/// Runs commands in a workspace.
pub(crate) struct Shell<'a> {
    pub(crate) workspace: &'a Workspace,
    /// Where the programs of the tests are copied to, once one was asked for.
    tested: OnceCell<PathBuf>,
}

impl<'a> Shell<'a> {
    pub(crate) const fn new(workspace: &'a Workspace) -> Self {
        Self { workspace, tested: OnceCell::new() }
    }

    /// Runs cargo; `arguments` are split at spaces.
    pub(crate) fn cargo(&self, arguments: &str) -> Result<(), Stop> {
        self.cargo_with(&[], arguments)
    }

    /// Runs cargo with more in its environment.
    pub(crate) fn cargo_with(&self, env: &[(&str, &str)], arguments: &str) -> Result<(), Stop> {
        let mut command = self.workspace.command(cargo());
        command.args(arguments.split_whitespace()).envs(env.iter().copied());
        let prefix: String = env.iter().map(|(name, value)| format!("{name}='{value}' ")).collect();
        run(command, &format!("{prefix}cargo {arguments}"))
    }

    /// The program `haulier`, as [`tested`](Self::tested).
    pub(crate) fn tested_program(&self) -> Result<PathBuf, Stop> {
        self.tested("haulier")
    }

    /// The program `haulier-lab`, as [`tested`](Self::tested).
    pub(crate) fn tested_lab(&self) -> Result<PathBuf, Stop> {
        self.tested("haulier-lab")
    }

    /// Builds the programs as `cargo test` does, which has then built them already, and says where a copy of
    /// this one is. `cargo build` has other features of some libraries, because no test asks for more; and a
    /// step beside this one may build others.
    fn tested(&self, name: &str) -> Result<PathBuf, Stop> {
        if let Some(copies) = self.tested.get() {
            return Ok(copies.join(name));
        }
        self.cargo("test --locked --no-run --test program")?;
        let copies = self.workspace.target.join("tested");
        for program in ["haulier", "haulier-lab"] {
            let (built, copy) =
                (self.workspace.target.join("debug").join(program), copies.join(program));
            copy_aside(&built, &copy).map_err(|error| format!("{}: {error}", copy.display()))?;
        }
        Ok(self.tested.get_or_init(|| copies).join(name))
    }

    /// `haulier-lab` with more in the environment of the compiler, and without a copy: what was built last.
    pub(crate) fn tested_lab_with(&self, env: &[(&str, &str)]) -> Result<PathBuf, Stop> {
        self.cargo_with(env, "test --locked --no-run -p haulier-lab-cli --test program")?;
        Ok(self.workspace.target.join("debug/haulier-lab"))
    }

    /// Builds an example as `cargo test` does, and runs it.
    pub(crate) fn tested_example(&self, name: &str) -> Result<(), Stop> {
        self.cargo(&format!("test --locked --no-run --example {name}"))?;
        let program = self.workspace.target.join("debug/examples").join(name);
        let shown = program.display().to_string();
        run(self.workspace.command(program), &shown)
    }

    /// Runs a program that was built, and gives back what was printed.
    pub(crate) fn output(&self, program: &Path, arguments: &[&str]) -> Result<String, Stop> {
        let shown = format!("{} {}", program.display(), arguments.join(" "));
        let output = self.workspace.command(program).args(arguments).output();
        let output = output.map_err(|error| failed(error, &shown))?;
        if !output.status.success() {
            println!("{}", String::from_utf8_lossy(&output.stdout));
            println!("{}", String::from_utf8_lossy(&output.stderr));
            return Err(failed(output.status, &shown));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs a program of this machine.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Result<(), Stop> {
        let mut command = self.workspace.command(program);
        command.args(arguments);
        run(command, &format!("{program} {}", arguments.join(" ")))
    }

    /// Runs the cargo of another toolchain, which is installed first if need be, in a directory of its
    /// own: two toolchains in one would rebuild each other's work.
    pub(crate) fn cargo_of(&self, toolchain: &str, arguments: &str) -> Result<(), Stop> {
        if !quietly(self.rustup(&format!("run {toolchain} cargo --version"))) {
            self.install(&format!("toolchain install {toolchain} --profile minimal"))?;
        }
        let target = self.workspace.target.join(toolchain);
        let mut command = self.rustup(&format!("run {toolchain} cargo {arguments}"));
        command.env("CARGO_TARGET_DIR", &target);
        run(
            command,
            &format!("CARGO_TARGET_DIR='{}' cargo +{toolchain} {arguments}", target.display()),
        )
    }

    /// Runs cargo-deny: the one that is installed, or one of our own in the target directory.
    pub(crate) fn cargo_deny(&self, arguments: &str) -> Result<(), Stop> {
        let own = self.workspace.target.join("tools/bin/cargo-deny");
        let own = own.with_extension(std::env::consts::EXE_EXTENSION);
        let mut installed = self.workspace.command("cargo-deny");
        installed.arg("--version");
        let mut command = match quietly(installed) {
            true => self.workspace.command("cargo-deny"),
            false => self.workspace.command(self.installed_deny(own)?),
        };
        command.args(arguments.split_whitespace());
        run(command, &format!("cargo deny {arguments}"))
    }

    fn installed_deny(&self, path: PathBuf) -> Result<PathBuf, Stop> {
        if path.exists() {
            return Ok(path);
        }
        // Unoptimised it is built in a quarter of the time, and still takes but a second to run.
        let arguments =
            format!("install cargo-deny --version {CARGO_DENY} --locked --debug --root");
        println!("$ cargo {arguments} '{}'", self.workspace.target.join("tools").display());
        let mut command = self.workspace.command(cargo());
        command.args(arguments.split_whitespace()).arg(self.workspace.target.join("tools"));
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").env_remove("CARGO_TARGET_DIR");
        match command.status() {
            Ok(status) if status.success() => Ok(path),
            _ => Err(Stop::Skipped("cargo-deny is not here and could not be installed".to_owned())),
        }
    }

    /// Makes sure that there is a standard library for this target, or says that the step is skipped.
    pub(crate) fn need_target(&self, target: &str) -> Result<(), Stop> {
        let mut rustc = self.workspace.command("rustc");
        rustc.args(["--print", "target-libdir", "--target", target]);
        // rustc prints the path whether or not there is anything.
        let is_here = rustc
            .output()
            .is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir());
        if is_here { Ok(()) } else { self.install(&format!("target add {target}")) }
    }

    /// Runs a command that is split at spaces, with more in its environment.
    pub(crate) fn command(&self, command: &str, env: &[(&str, &str)]) -> Result<(), Stop> {
        let prefix: String = env.iter().map(|(name, value)| format!("{name}='{value}' ")).collect();
        let mut started = self.split(command);
        started.envs(env.iter().copied());
        run(started, &format!("{prefix}{command}"))
    }

    /// Whether a command, split at spaces, ends well. Its output is not shown.
    pub(crate) fn succeeds(&self, command: &str) -> bool {
        quietly(self.split(command))
    }

    fn split(&self, command: &str) -> Command {
        let mut words = command.split_whitespace();
        let mut split = self.workspace.command(words.next().unwrap_or_default());
        split.args(words);
        split
    }

    /// Runs a script of Python, of any version that is here. It leaves no compiled files.
    pub(crate) fn python(&self, script: &str) -> Result<(), Stop> {
        let mut installed = self.workspace.command("python3");
        installed.arg("--version");
        if !quietly(installed) {
            return Err(Stop::Skipped(format!("no python3 here, for {script}")));
        }
        let mut command = self.workspace.command("python3");
        command.args(["-B", script]);
        run(command, &format!("python3 -B {script}"))
    }

    /// Runs a script of Python with Debian's Python, which has what `packages` bring; they are installed if
    /// this may be done.
    pub(crate) fn debian_python(&self, packages: &str, script: &str) -> Result<(), Stop> {
        self.need_debian(packages)?;
        let mut command = self.workspace.command("/usr/bin/python3");
        command.arg("-B").args(script.split_whitespace());
        run(command, &format!("/usr/bin/python3 -B {script}"))
    }

    /// Makes sure that these packages of Debian are installed, or says that the step is skipped.
    pub(crate) fn need_debian(&self, packages: &str) -> Result<(), Stop> {
        let list = || packages.split_whitespace();
        let mut installed = self.workspace.command("dpkg");
        installed.arg("-s").args(list());
        if quietly(installed) {
            return Ok(());
        }
        // A new machine knows of no package before; one without a network may have what it needs.
        let mut update = self.apt_get();
        update.arg("update");
        let _tried = quietly(update);
        let mut install = self.apt_get();
        install.args(["install", "-y", "--no-install-recommends"]).args(list());
        let shown = format!("apt-get install -y --no-install-recommends {packages}");
        run(install, &shown)
            .map_err(|_| Stop::Skipped(format!("{packages} could not be installed")))
    }

    /// apt-get, once the other lane has done with it: of two at a time one finds its lists locked, and fails.
    fn apt_get(&self) -> Command {
        let mut command = self.workspace.command("flock");
        command.arg(self.workspace.target.join("apt.lock")).arg("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    /// Runs a line of the shell.
    pub(crate) fn sh(&self, line: &str) -> Result<(), Stop> {
        let mut command = self.workspace.command("sh");
        command.args(["-c", line]);
        run(command, line)
    }

    fn install(&self, arguments: &str) -> Result<(), Stop> {
        println!("$ rustup {arguments}");
        match self.rustup(arguments).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(_) => Err(Stop::Skipped(format!("`rustup {arguments}` failed"))),
            Err(_) => Err(Stop::Skipped(format!("no rustup here, for `rustup {arguments}`"))),
        }
    }

    fn rustup(&self, arguments: &str) -> Command {
        let mut command = self.workspace.command("rustup");
        command.args(arguments.split_whitespace());
        command
    }
}

fn run(mut command: Command, shown: &str) -> Result<(), Stop> {
    println!("$ {shown}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(status, shown)),
        Err(error) => Err(failed(error, shown)),
    }
}

fn quietly(mut command: Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Copies a program; one at the same place may be running.
fn copy_aside(program: &Path, copy: &Path) -> std::io::Result<()> {
    let unfinished = copy.with_extension(std::process::id().to_string());
    std::fs::create_dir_all(copy.parent().unwrap_or(copy))?;
    std::fs::copy(program, &unfinished)?;
    std::fs::rename(&unfinished, copy)
}

pub(crate) fn failed(what: impl ToString, shown: &str) -> Stop {
    Stop::Failed { what: what.to_string(), repeat: Some(shown.to_owned()) }
}
