//! haulier to study: a demonstration, measurements, soaks and the playground.
//!
//! Each command is a file of its own, above `haulier-lab`, which measures, and `haulier-sim`, which
//! simulates. What a person meets in all of them is in `haulier-shell`. Files are moved by another program,
//! `haulier`. Without the feature `measure` there is the demonstration alone, which is built sooner.

mod args;
#[cfg(feature = "measure")]
mod bench;
mod demo;
#[cfg(feature = "measure")]
mod playground;
mod relay;
#[cfg(feature = "measure")]
mod soak;
mod tokens;

use std::process::ExitCode;

use haulier_shell::failure::Failure;
use haulier_shell::report::Report;
use haulier_shell::{Globals, Program};

use crate::args::{Args, Command};

fn main() -> ExitCode {
    haulier_shell::main::<Args>()
}

impl Program for Args {
    const NAME: &'static str = "haulier-lab";

    fn globals(&self) -> &Globals {
        &self.globals
    }

    fn prints_data(&self) -> bool {
        false
    }

    fn run(&self, report: &Report) -> Result<(), Failure> {
        match &self.command {
            Command::Demo(args) => demo::run(args, report),
            #[cfg(feature = "measure")]
            Command::Soak(args) => soak::run(args, report),
            #[cfg(feature = "measure")]
            Command::Bench(args) => bench::run(args, report),
            #[cfg(feature = "measure")]
            Command::Playground(args) => playground::run(args, report),
        }
    }
}
