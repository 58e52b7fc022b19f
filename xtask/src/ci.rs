//! `cargo xtask ci`: every check that is no test, in order, with what each one proves.
//!
//! The invariant: CI runs `cargo test`, this, and nothing else, so whoever passes here passes there. A step
//! that the machine cannot run (no rustup, no network) is skipped and named in the last lines, never
//! silently.
//!
//! The steps are a table in [`steps`]; [`shell`] runs their commands.

mod shell;
mod steps;

use std::time::{Duration, Instant};

use crate::workspace::Workspace;
pub(crate) use shell::Shell;
use steps::{STEPS, Step};

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

/// Runs every step, and stops at the first that fails.
pub(crate) fn run_all(workspace: &Workspace) -> Result<(), String> {
    run(workspace, &STEPS.iter().collect::<Vec<_>>())
}

/// Runs one step.
pub(crate) fn run_one(workspace: &Workspace, name: &str) -> Result<(), String> {
    let step = STEPS.iter().find(|step| step.name == name);
    let step = step.ok_or_else(|| format!("no step `{name}`; see: cargo xtask ci --list"))?;
    run(workspace, &[step])
}

/// Prints the steps.
pub(crate) fn list() {
    for step in STEPS {
        println!("{:<14} {}", step.name, step.proves);
    }
}

fn run(workspace: &Workspace, steps: &[&Step]) -> Result<(), String> {
    let shell = Shell { workspace };
    let started = Instant::now();
    let mut results = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        println!("\n=== [{}/{}] {}: {}", index + 1, steps.len(), step.name, step.proves);
        let step_started = Instant::now();
        let outcome = (step.run)(&shell);
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
    print!("{}", summary(&results, started.elapsed()));
    Ok(())
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
