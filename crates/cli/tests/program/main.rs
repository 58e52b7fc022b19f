//! The map of the program's tests. They run the built `haulier` as a user would and look at what a user
//! sees: exit code, output, files. Parts of it are tested beside their code, the library in its crates.
//!
//! * `transfer`: files of all sizes between `send` and `recv`, by every way in and out;
//! * `attributes`: what a file keeps beside its bytes: whether it can be run, and when it was changed;
//! * `inbox`: `serve --inbox`: quotas, several clients, what goes on where it was;
//! * `failures`: what cannot be done is refused, with the right code and a sentence that helps;
//! * `signals`: Ctrl-C and sudden death, in the middle of everything;
//! * `disk`: full disks; `ends`: signals in pairs, outputs that are full or closed, temporary files;
//! * `shown`: what is said of a dark path and of a slow link, and what counts as a file;
//! * `inspect`, of captures too: the command of this name;
//! * `serve`, `serve_failures`: the same for `serve` and `fetch`; `serve_hostile`: servers that lie;
//! * `serve_bounds`: clients that ask `serve` for all that they can: memory, work, other clients;
//! * `second`: transfers with the program in another language, `vectors/second`;
//! * `tokens`: `keygen` and `token`, and that no secret is ever said;
//! * `kinds`: what is asked and waited for, what sort of error it is, names, `--quiet`, `--verbose`;
//! * `lan`, `qr`: servers that are found by their name, tickets that are scanned;
//! * `port_mapping`: what routers are asked for;
//! * `shell`: completions and manual pages;
//! * `help`, `json`: what people read and what scripts read, for all commands.
//!
//! `support` runs the programs and kills them when a test ends early; `pipe` reads what they say. No
//! test knows a port or waits for the clock: a program says where it listens, and one that hangs is
//! killed after five minutes.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test program: nothing uses it, and a panic is how it reports"
)]

#[cfg(unix)]
mod attributes;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod ends;
mod failures;
mod help;
mod inbox;
mod inspect;
mod json;
mod kinds;
mod lan;
mod pipe;
mod places;
#[cfg(all(target_os = "linux", feature = "port-mapping"))]
mod port_mapping;
#[cfg(feature = "qr")]
mod qr;
#[cfg(feature = "qr")]
mod qr_reader;
mod resume;
mod scenes;
mod second;
mod serve;
#[cfg(target_os = "linux")]
mod serve_bounds;
mod serve_failures;
mod serve_hostile;
mod shell;
#[cfg(unix)]
mod shown;
#[cfg(unix)]
mod signals;
mod support;
mod tokens;
mod trace;
mod transfer;
#[cfg(unix)]
mod words;

/// The program, and its name.
const PROGRAM: &str = env!("CARGO_BIN_EXE_haulier");
const NAME: &str = "haulier";
