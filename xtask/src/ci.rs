//! `cargo xtask ci`: every check that is no test, in order, with what each one proves.
//!
//! The invariant: CI runs `cargo test`, this, and nothing else, so whoever passes here passes there. A step
//! that the machine cannot run (no rustup, no network) is skipped and named in the last lines, never
//! silently, and so is one of an engine, a language or a tool of which nothing has changed: those take longer
//! than all others together. `--all` runs them, as `.ci/nightly` does.
//!
//! The steps are a table in [`steps`]; [`shell`] runs their commands. Those that only run what is built go
//! beside those that build, as a second process of this tool, whose words come when it has ended: a compiler
//! leaves a core idle half of the time.

mod shell;
mod steps;

use std::io;
use std::process::{Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::workspace::Workspace;
pub(crate) use shell::{LINTED, Shell, failed};
use steps::{Lane, STEPS, Step};

/// Why a step did not pass.
pub(crate) enum Stop {
    /// The machine lacks something, and what.
    Skipped(String),
    /// What went wrong, and the command that shows it again, if it is but one.
    Failed { what: String, repeat: Option<String> },
}

impl From<String> for Stop {
    fn from(what: String) -> Self {
        Self::Failed { what, repeat: None }
    }
}

/// The argument of the second process, which runs the steps.
pub(crate) const RUNS: &str = "--runs";

/// The argument with which every step runs, also those whose files have not changed.
pub(crate) const ALL: &str = "--all";

/// Runs the steps, and stops at the first of each lane that fails.
pub(crate) fn run_all(workspace: &Workspace, is_all: bool) -> Result<(), String> {
    let shell = Shell::new(workspace);
    // Before anything else is built in its place.
    if let Err(Stop::Failed { what, .. } | Stop::Skipped(what)) = shell.tested_program() {
        return Err(what);
    }
    let changed = if is_all { None } else { changed(workspace) };
    let beside = start_runs(workspace, is_all)?;
    let builds = run(&shell, &of(Lane::Builds, changed.as_deref()));
    let ended = beside.join().map_err(|_| "the thread of the second lane panicked".to_owned())?;
    let ended = ended.map_err(|error| format!("the second lane: {error}"))?;
    println!("\n=== beside that\n{}", String::from_utf8_lossy(&ended.stdout));
    match (builds, ended.status.success()) {
        (Ok(summary), true) => {
            print!("{summary}{}", left_out(changed.as_deref()));
            Ok(())
        }
        (Ok(_), false) => Err("a step beside those that build failed: see above".to_owned()),
        (Err(what), true) => Err(what),
        (Err(what), false) => Err(format!("{what}\nand a step beside it: see above")),
    }
}

/// Runs the steps that build nothing.
pub(crate) fn run_runs(workspace: &Workspace, is_all: bool) -> Result<(), String> {
    let changed = if is_all { None } else { changed(workspace) };
    let summary = run(&Shell::new(workspace), &of(Lane::Runs, changed.as_deref()))?;
    print!("{summary}");
    Ok(())
}

/// The other lane, as a process whose words are kept until it has ended.
fn start_runs(
    workspace: &Workspace,
    is_all: bool,
) -> Result<JoinHandle<io::Result<Output>>, String> {
    let this = std::env::current_exe().map_err(|error| format!("this program: {error}"))?;
    // One pipe for both kinds of words, so that they stay in order.
    let mut command = workspace.command("sh");
    command.args(["-c", "exec \"$0\" ci \"$@\" 2>&1"]).arg(this).arg(RUNS);
    command.args(is_all.then_some(ALL));
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let lane = command.spawn().map_err(|error| format!("the second lane: {error}"))?;
    // Its output has to be read: a full pipe would stop it.
    Ok(std::thread::spawn(|| lane.wait_with_output()))
}

/// The steps of a lane that something has changed for.
fn of(lane: Lane, changed: Option<&[String]>) -> Vec<&'static Step> {
    STEPS.iter().filter(|step| step.lane == lane && step.is_asked_for(changed)).collect()
}

/// The files that commits have changed in the two days before the newest one: a change is landed within
/// those. `None`, which is all files, if there is no history to ask.
fn changed(workspace: &Workspace) -> Option<Vec<String>> {
    let git = |arguments: &[&str]| {
        let output = workspace.command("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    if git(&["rev-parse", "--is-shallow-repository"])?.trim() != "false" {
        return None;
    }
    let newest: u64 = git(&["log", "-1", "--format=%ct"])?.trim().parse().ok()?;
    let since = format!("--since={}", newest.saturating_sub(2 * 24 * 60 * 60));
    let of_commits = git(&["log", &since, "--format=", "--name-only"])?;
    let at_work = git(&["status", "--porcelain", "--no-renames"])?;
    let at_work = at_work.lines().filter_map(|line| line.get(3..));
    Some(of_commits.lines().chain(at_work).map(str::to_owned).collect())
}

/// Says which steps do not run.
fn left_out(changed: Option<&[String]>) -> String {
    let names: Vec<_> =
        STEPS.iter().filter(|it| !it.is_asked_for(changed)).map(|it| it.name).collect();
    if names.is_empty() {
        return String::new();
    }
    format!("not run, for nothing of theirs has changed: {}; `--all` runs them\n", names.join(", "))
}

/// Runs one step.
pub(crate) fn run_one(workspace: &Workspace, name: &str) -> Result<(), String> {
    let step = STEPS.iter().find(|step| step.name == name);
    let step = step.ok_or_else(|| format!("no step `{name}`; see: cargo xtask ci --list"))?;
    print!("{}", run(&Shell::new(workspace), &[step])?);
    Ok(())
}

/// Prints the steps.
pub(crate) fn list() {
    for step in STEPS {
        println!("{:<14} {}", step.name, step.proves);
    }
}

/// Runs these, and gives back the summary.
fn run(shell: &Shell<'_>, steps: &[&Step]) -> Result<String, String> {
    let started = Instant::now();
    let mut results = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        println!("\n=== [{}/{}] {}: {}", index + 1, steps.len(), step.name, step.proves);
        let step_started = Instant::now();
        let outcome = (step.run)(shell);
        let took = step_started.elapsed();
        match outcome {
            Ok(()) => println!("=== {} passed in {}", step.name, seconds(took)),
            Err(Stop::Skipped(ref why)) => println!("=== {} SKIPPED: {why}", step.name),
            Err(Stop::Failed { what, repeat }) => {
                return Err(failure(step, &what, repeat.as_deref(), took));
            }
        }
        results.push((step.name, took, outcome));
    }
    Ok(summary(&results, started.elapsed()))
}

fn failure(step: &Step, what: &str, repeat: Option<&str>, took: Duration) -> String {
    let repeat = repeat.map(|command| format!("\n  just the command: {command}"));
    format!(
        "step `{name}` FAILED after {took}: {what}\n  \
         this step again:  cargo xtask ci --only {name}{repeat}",
        name = step.name,
        took = seconds(took),
        repeat = repeat.unwrap_or_default(),
    )
}

fn summary(results: &[(&str, Duration, Result<(), Stop>)], total: Duration) -> String {
    let mut text = String::from("\n=== summary\n");
    let mut skipped = Vec::new();
    for (name, took, outcome) in results {
        let verdict = match outcome {
            Err(Stop::Skipped(why)) => {
                skipped.push(format!("  {name}: {why}\n"));
                "SKIPPED"
            }
            _ => "passed",
        };
        text += &format!("{name:<14} {:>8}  {verdict}\n", seconds(*took));
    }
    if skipped.is_empty() {
        return text + &format!("xtask: all {} passed in {}\n", results.len(), seconds(total));
    }
    let ran = results.len() - skipped.len();
    text += &format!("xtask: {ran} passed in {}, {} NOT RUN:\n", seconds(total), skipped.len());
    text + &skipped.concat()
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (index, step) in STEPS.iter().enumerate() {
            assert!(STEPS[..index].iter().all(|other| other.name != step.name), "{}", step.name);
        }
    }

    #[test]
    fn steps_of_an_engine_run_if_it_has_changed() {
        let names = |changed: &[&str]| {
            let changed: Vec<String> = changed.iter().map(|&path| path.to_owned()).collect();
            let of_lane = |lane| of(lane, Some(&changed));
            let steps = [of_lane(Lane::Builds), of_lane(Lane::Runs)].concat();
            steps.iter().map(|step| step.name).collect::<Vec<_>>()
        };
        assert!(names(&[]).contains(&"clippy") && !names(&[]).contains(&"bevy"));
        assert!(names(&["README.md", "bevy/src/lib.rs"]).contains(&"bevy"));
        assert!(!names(&["crates/bevy/src/lib.rs"]).contains(&"bevy"));
        assert!(left_out(Some(&[])).contains("bevy") && left_out(None).is_empty());
    }

    #[test]
    fn what_was_skipped_is_the_last_word() {
        let skipped = Err(Stop::Skipped("no rustup".to_owned()));
        let results = [("fmt", Duration::ZERO, Ok(())), ("msrv", Duration::ZERO, skipped)];
        let text = summary(&results, Duration::from_secs(1));
        assert!(
            text.ends_with("xtask: 1 passed in 1.0 s, 1 NOT RUN:\n  msrv: no rustup\n"),
            "{text}"
        );
        assert!(summary(&results[..1], Duration::ZERO).ends_with("all 1 passed in 0.0 s\n"));
    }

    #[test]
    fn a_failure_says_how_to_see_it_again() {
        let text = failure(&STEPS[0], "exit status 1", Some("cargo x"), Duration::from_secs(2));
        assert!(text.contains("FAILED after 2.0 s: exit status 1"), "{text}");
        assert!(text.contains(&format!("cargo xtask ci --only {}\n", STEPS[0].name)), "{text}");
        assert!(text.ends_with("just the command: cargo x"), "{text}");
    }
}
