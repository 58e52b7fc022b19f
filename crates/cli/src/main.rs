//! haulier at the shell: serve, fetch, send, receive, demonstrate, soak, measure and inspect.
//!
//! Each command is a file of its own. They share what a person meets in all of them: the arguments
//! (`args`), numbers as people write them (`units`), what is printed as text or JSON (`report`), how it
//! ends (`failure`), and Ctrl-C (`interrupt`). Pages for a browser are served by `haulier-view`.

mod access;
mod args;
mod asking;
mod bar;
mod bench;
mod demo;
mod details;
mod failure;
mod fetch;
mod files;
mod inspect;
mod interrupt;
mod keygen;
mod keys;
mod lan;
mod library;
mod look;
mod playground;
mod port_mapping;
mod qr;
mod recv;
mod relay;
mod report;
mod resolve;
mod send;
mod serve;
mod shell;
mod silence;
mod soak;
mod spool;
mod target;
mod token;
mod trace;
mod tui;
mod units;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command};
use crate::failure::Failure;
use crate::report::{Loudness, Report};
use crate::resolve::AddressError;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return not_understood(&error),
    };
    let loudness = match (args.quiet, args.verbose) {
        (true, _) => Loudness::Quiet,
        (_, true) => Loudness::Verbose,
        _ => Loudness::Plain,
    };
    let report =
        Report::new(args.json, args.command.prints_data(args.json)).with_loudness(loudness);
    interrupt::watch();
    let outcome = match &args.command {
        Command::Serve(args) => serve::run(args, &report),
        Command::Fetch(args) => fetch::run(args, &report),
        Command::Keygen(args) => keygen::run(args, &report),
        Command::Token(args) => token::run(args, &report),
        Command::Send(args) => send::run(args, &report),
        Command::Recv(args) => recv::run(args, &report),
        Command::Demo(args) => demo::run(args, &report),
        Command::Soak(args) => soak::run(args, &report),
        Command::Bench(args) => bench::run(args, &report),
        Command::Inspect(args) => inspect::run(args, &report),
        Command::Playground(args) => playground::run(args, &report),
        Command::Completions(args) => shell::completions(args, &report),
        Command::Man(args) => shell::man(args, &report),
    };
    match outcome.and_then(|()| report.check_written()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report.failure(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Arguments that make no sense, or a request for help. With `--json` the error is JSON.
fn not_understood(error: &clap::Error) -> ExitCode {
    let is_json = error.use_stderr() && std::env::args_os().any(|arg| arg == "--json");
    if let Some(error) = name_error(error) {
        let failure = Failure::Name(error.to_string());
        Report::new(is_json, false).failure(&failure);
        return ExitCode::from(failure.exit_code());
    }
    if !is_json {
        // Nothing can be done about a terminal that is gone.
        let _gone = error.print();
        return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
    }
    let text = error.to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let sentence = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let failure = Failure::Usage(sentence.trim_start_matches("error: ").into());
    Report::new(true, false).failure(&failure);
    ExitCode::from(failure.exit_code())
}

/// A host name among the arguments that has no address: they make sense, and it is no matter of usage.
fn name_error(error: &clap::Error) -> Option<&AddressError> {
    let source = std::error::Error::source(error)?.downcast_ref::<AddressError>();
    source.filter(|error| matches!(error, AddressError::Name { .. }))
}
