//! haulier at the shell: serve, fetch, send, receive and inspect.
//!
//! Each command is a file of its own. What a person meets in all of them is in `haulier-shell`: numbers as
//! people write them, what is printed as text or JSON, how a command ends, Ctrl-C. The arguments are in
//! `args`. Pages for a browser are served by `haulier-view`.

mod access;
mod args;
mod asking;
mod details;
mod fetch;
mod files;
mod inspect;
mod keygen;
mod keys;
mod lan;
mod library;
#[cfg(feature = "port-mapping")]
mod port_mapping;
#[cfg(not(feature = "port-mapping"))]
#[path = "port_mapping/off.rs"]
mod port_mapping;
#[cfg(feature = "qr")]
mod qr;
#[cfg(not(feature = "qr"))]
#[path = "qr/off.rs"]
mod qr;
mod recv;
mod send;
mod serve;
mod shell;
mod silence;
mod spool;
mod target;
mod token;
mod trace;

use std::process::ExitCode;

use haulier_shell::failure::Failure;
use haulier_shell::report::Report;
use haulier_shell::{Globals, Program};

use crate::args::{Args, Command};

fn main() -> ExitCode {
    haulier_shell::main::<Args>()
}

impl Program for Args {
    const NAME: &'static str = "haulier";

    fn globals(&self) -> &Globals {
        &self.globals
    }

    fn prints_data(&self) -> bool {
        self.command.prints_data(self.globals.json)
    }

    fn run(&self, report: &Report) -> Result<(), Failure> {
        match &self.command {
            Command::Serve(args) => serve::run(args, report),
            Command::Fetch(args) => fetch::run(args, report),
            Command::Keygen(args) => keygen::run(args, report),
            Command::Token(args) => token::run(args, report),
            Command::Send(args) => send::run(args, report),
            Command::Recv(args) => recv::run(args, report),
            Command::Inspect(args) => inspect::run(args, report),
            Command::Completions(args) => shell::completions(args, report),
            Command::Man(args) => shell::man(args, report),
        }
    }
}
