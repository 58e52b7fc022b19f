//! haulier at the shell: send, receive, demonstrate, soak, measure and inspect.
//!
//! Each command is a file of its own. They share what a person meets in all of them: the arguments
//! (`args`), numbers as people write them (`units`), what is printed as text or JSON (`report`), how it
//! ends (`failure`), and Ctrl-C (`interrupt`).

mod args;
mod bench;
mod demo;
mod failure;
mod inspect;
mod interrupt;
mod output;
mod recv;
mod report;
mod send;
mod soak;
mod units;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Command};
use crate::report::Report;

fn main() -> ExitCode {
    let args = Args::parse();
    let report = Report::new(args.json, args.command.prints_data());
    interrupt::watch();
    let outcome = match &args.command {
        Command::Send(args) => send::run(args, &report),
        Command::Recv(args) => recv::run(args, &report),
        Command::Demo(args) => demo::run(args, &report),
        Command::Soak(args) => soak::run(args, &report),
        Command::Bench(args) => bench::run(args, &report),
        Command::Inspect(args) => inspect::run(args, &report),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report.failure(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}
