//! The map of the program's tests. They run the built `haulier-lab` as a user would and look at what a user
//! sees: exit code, output, files. What it measures is tested in `haulier-lab` and `haulier-sim`.
//!
//! * `demo`, `playground`: the commands of these names;
//! * `bench_grid`, `bench_crowd`, `bench_join`, `bench_joiners`, `bench_links`, `bench_random`,
//!   `bench_recorded`: each bench; `soak_bench`: the soaks, and the benches of strategies and fragments;
//! * `failures`: what cannot be done, with the right code and a sentence that helps; Ctrl-C;
//! * `help`, `json`: what people read and what scripts read, for all commands.
//!
//! `support` and `pipe`, which run the program, are those of `haulier-cli`.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test program: nothing uses it, and a panic is how it reports"
)]

mod bench_crowd;
mod bench_grid;
mod bench_join;
mod bench_joiners;
mod bench_links;
mod bench_random;
mod bench_recorded;
mod demo;
mod failures;
mod help;
mod json;
#[path = "../../../cli/tests/program/pipe.rs"]
#[allow(dead_code, reason = "the other program needs more of it")]
mod pipe;
mod playground;
mod soak_bench;
#[path = "../../../cli/tests/program/support.rs"]
#[allow(dead_code, reason = "the other program needs more of it")]
mod support;

/// The program, and its name.
const PROGRAM: &str = env!("CARGO_BIN_EXE_haulier-lab");
const NAME: &str = "haulier-lab";
