//! A program from its first argument to its exit code.

use std::process::ExitCode;

use clap::{ArgAction, Parser};

use crate::failure::Failure;
use crate::interrupt;
use crate::report::{Loudness, Report};
use crate::resolve::AddressError;

/// What every command has is behind what it has for itself.
const GLOBAL: &str = "All commands";

/// The options of all commands.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Globals {
    /// Print what there is to know in a screen.
    #[arg(short, long, global = true, help_heading = GLOBAL, action = ArgAction::HelpShort)]
    pub help: Option<bool>,

    /// Print all options, with all there is to say of them.
    #[arg(long, global = true, help_heading = GLOBAL, action = ArgAction::HelpLong)]
    pub help_all: Option<bool>,

    /// Print one JSON object a line; the last has "event":"done" or "event":"error".
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub json: bool,

    /// Say nothing but errors, and what was asked for: a ticket, a list, a table.
    #[arg(
        short,
        long,
        global = true,
        help_heading = GLOBAL,
        conflicts_with_all = ["json", "verbose"]
    )]
    pub quiet: bool,

    /// Say on standard error what is decided, too: addresses, keys, sizes, rates, what is resumed or packed.
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub verbose: bool,
}

/// A command line, and what to do for it.
pub trait Program: Parser {
    /// The name that it is installed under.
    const NAME: &'static str;

    /// The options of all commands.
    fn globals(&self) -> &Globals;

    /// Whether standard output carries the file itself, so that nothing else may go there.
    fn prints_data(&self) -> bool;

    /// Does what was asked for.
    ///
    /// # Errors
    ///
    /// Whatever the command fails with.
    fn run(&self, report: &Report) -> Result<(), Failure>;
}

/// Parses the arguments of the process, does what they ask for, and says how it ended.
#[must_use]
pub fn main<P: Program>() -> ExitCode {
    let program = match P::try_parse() {
        Ok(program) => program,
        Err(error) => return not_understood::<P>(&error),
    };
    let Globals { json, quiet, verbose, .. } = *program.globals();
    let loudness = match (quiet, verbose) {
        (true, _) => Loudness::Quiet,
        (_, true) => Loudness::Verbose,
        _ => Loudness::Plain,
    };
    let report = Report::new(P::NAME, json, program.prints_data()).with_loudness(loudness);
    interrupt::watch();
    match program.run(&report).and_then(|()| report.check_written()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report.failure(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Arguments that make no sense, or a request for help. With `--json` the error is JSON.
fn not_understood<P: Program>(error: &clap::Error) -> ExitCode {
    let is_json = error.use_stderr() && std::env::args_os().any(|arg| arg == "--json");
    let fails = |is_json, failure: &Failure| {
        Report::new(P::NAME, is_json, false).failure(failure);
        ExitCode::from(failure.exit_code())
    };
    if let Some(error) = name_error(error) {
        return fails(is_json, &Failure::Name(error.to_string()));
    }
    if !is_json {
        // Nothing can be done about a terminal that is gone.
        let _gone = error.print();
        return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
    }
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let sentence = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    fails(true, &Failure::Usage(sentence.trim_start_matches("error: ").into()))
}

/// A host name among the arguments that has no address: they make sense, and it is no matter of usage.
fn name_error(error: &clap::Error) -> Option<&AddressError> {
    let source = std::error::Error::source(error)?.downcast_ref::<AddressError>();
    source.filter(|error| matches!(error, AddressError::Name { .. }))
}
