//! What haulier's programs have in common at the shell: how they are called, what they say, how they end.
//!
//! A [`Program`] is a command line and what to do for it; [`main`](fn@main) parses, runs and reports. Text
//! for people and JSON for scripts are a [`Report`](report::Report), an error is a
//! [`Failure`](failure::Failure) with an exit code, numbers are read by [`units`] and names of hosts by
//! [`resolve`].
//!
//! It is a package because two programs need it, and promises nothing about its API.

mod bar;
pub mod failure;
pub mod interrupt;
pub mod look;
mod program;
pub mod report;
pub mod resolve;
#[cfg(feature = "tui")]
mod tui;
#[cfg(not(feature = "tui"))]
#[path = "tui/off.rs"]
mod tui;
pub mod units;

pub use program::{Globals, Program, main};

/// The example of the README is compiled and run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
