//! Runs the commands of a step, and finds or installs what they need.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::Stop;
use crate::Workspace;

/// What a step may need beside cargo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Rustfmt,
    Clippy,
    Wasm,
}

impl Tool {
    pub(super) const ALL: [Self; 3] = [Self::Rustfmt, Self::Clippy, Self::Wasm];

    /// The arguments with which rustup installs it.
    const fn rustup(self) -> &'static str {
        match self {
            Self::Rustfmt => "component add rustfmt",
            Self::Clippy => "component add clippy",
            Self::Wasm => "target add wasm32-unknown-unknown",
        }
    }
}

/// Runs commands in a workspace.
pub(super) struct Shell<'a> {
    pub(super) workspace: &'a Workspace,
}

impl Shell<'_> {
    /// Runs cargo; `arguments` are parted at spaces.
    pub(super) fn cargo(&self, arguments: &str) -> Result<(), Stop> {
        self.cargo_with(&[], arguments)
    }

    /// Runs cargo with more in its environment.
    pub(super) fn cargo_with(&self, env: &[(&str, &str)], arguments: &str) -> Result<(), Stop> {
        let mut command = self.workspace.command(cargo());
        command.args(arguments.split_whitespace()).envs(env.iter().copied());
        let prefix: String = env.iter().map(|(name, value)| format!("{name}='{value}' ")).collect();
        run(command, &format!("{prefix}cargo {arguments}"))
    }

    /// Runs cargo and gives back what it printed.
    pub(super) fn cargo_output(&self, arguments: &str) -> Result<String, Stop> {
        let shown = format!("cargo {arguments}");
        println!("$ {shown}");
        let mut command = self.workspace.command(cargo());
        command.args(arguments.split_whitespace()).stderr(Stdio::inherit());
        let output = command.output().map_err(|error| failed(error, &shown))?;
        if !output.status.success() {
            return Err(failed(output.status, &shown));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs the cargo of another toolchain, which is installed first if need be.
    pub(super) fn cargo_of(
        &self,
        toolchain: &str,
        target: &Path,
        arguments: &str,
    ) -> Result<(), Stop> {
        if !quietly(self.rustup(&format!("run {toolchain} cargo --version"))) {
            let install = format!("toolchain install {toolchain} --profile minimal");
            self.install(&install)?;
        }
        let mut command = self.rustup(&format!("run {toolchain} cargo {arguments}"));
        command.env("CARGO_TARGET_DIR", target);
        let shown =
            format!("CARGO_TARGET_DIR='{}' cargo +{toolchain} {arguments}", target.display());
        run(command, &shown)
    }

    /// Makes sure of a tool, or says that the step must be skipped.
    pub(super) fn need(&self, tool: Tool) -> Result<(), Stop> {
        if self.has(tool) { Ok(()) } else { self.install(tool.rustup()) }
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

    fn has(&self, tool: Tool) -> bool {
        let cargo_has = |subcommand: &str| {
            let mut command = self.workspace.command(cargo());
            command.args([subcommand, "--version"]);
            quietly(command)
        };
        match tool {
            Tool::Rustfmt => cargo_has("fmt"),
            Tool::Clippy => cargo_has("clippy"),
            Tool::Wasm => {
                let mut rustc = self.workspace.command("rustc");
                rustc.args(["--print", "target-libdir", "--target", "wasm32-unknown-unknown"]);
                // rustc prints the path whether or not there is anything.
                rustc.output().is_ok_and(|output| {
                    Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
                })
            }
        }
    }

    /// Runs a program of ours and gives back the lines it printed. One that is still running at the
    /// limit is killed: a transfer that hangs is the very fault these runs look for.
    pub(super) fn program_lines(
        &self,
        program: &str,
        arguments: &str,
        limit: Duration,
    ) -> Result<Vec<String>, Stop> {
        let path = self.workspace.target.join("release").join(program);
        let path = path.with_extension(std::env::consts::EXE_EXTENSION);
        let shown = format!("{} {arguments}", path.display());
        println!("$ {shown}");
        let mut command = self.workspace.command(path);
        command.args(arguments.split_whitespace());
        lines_within(&mut command, limit).map_err(|what| failed(what, &shown))
    }
}

/// The cargo that started us, so that all steps use the toolchain the caller chose.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
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

pub(super) fn failed(what: impl ToString, shown: &str) -> Stop {
    Stop::Failed { what: what.to_string(), repeat: shown.to_owned() }
}

fn lines_within(command: &mut Command, limit: Duration) -> Result<Vec<String>, String> {
    let deadline = Instant::now() + limit;
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|error| error.to_string())?;
    let (sender, receiver) = mpsc::channel();
    let stdout = child.stdout.take();
    std::thread::spawn(move || {
        let lines = stdout.into_iter().flat_map(|pipe| BufReader::new(pipe).lines());
        // A failed read ends the lines just as the end of the pipe does.
        lines.map_while(Result::ok).all(|line| sender.send(line).is_ok())
    });

    let mut lines = Vec::new();
    let status = loop {
        match receiver.recv_timeout(Duration::from_millis(20)) {
            Ok(line) => lines.push(line),
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(Duration::from_millis(20)),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break Some(status);
        }
        if Instant::now() >= deadline {
            let _already_gone = child.kill();
            let _status = child.wait();
            break None;
        }
    };
    lines.extend(receiver);
    match status {
        Some(status) if status.success() => return Ok(lines),
        _ => lines.iter().rev().take(20).rev().for_each(|line| println!("{line}")),
    }
    Err(status.map_or(format!("still running after {limit:?}"), |status| status.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cargo is the one program that is certainly there, on every system.
    #[test]
    fn lines_come_back_and_a_failure_is_one() {
        let run = |argument| {
            let mut command = Command::new(cargo());
            lines_within(command.arg(argument).stderr(Stdio::null()), Duration::from_secs(60))
        };
        assert!(run("-V").unwrap()[0].starts_with("cargo 1."));
        assert!(run("--no-such").unwrap_err().contains("exit"));
    }

    #[test]
    #[cfg(unix)]
    fn a_program_that_hangs_is_killed() {
        let started = Instant::now();
        let hangs = lines_within(Command::new("sleep").arg("600"), Duration::from_millis(50));
        assert!(hangs.unwrap_err().starts_with("still running"));
        assert!(started.elapsed() < Duration::from_secs(60));
    }
}
