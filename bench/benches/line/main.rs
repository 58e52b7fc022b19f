//! How fast one connection is on this machine, beside what the machine can do at all, and beside others.
//!
//!     cargo bench --manifest-path bench/Cargo.toml --bench line -- [--bytes N] [--rounds N] [--only WORD]
//!
//! One run has all of it, round by round, since only ratios of one run say something on a machine that has
//! other work; of each row the best round counts. A block of 1 GiB over loopback from a new server to a new
//! client, from the call that connects to the last verified chunk; both ends have a network thread each, and
//! the client's application takes the chunks and forgets them. Beside it: what memory, hash and cipher take
//! for a slice of 1434 bytes, what UDP carries without a protocol, QUIC (quinn with BBR) and TCP. The hash of
//! the whole block is made before the clock starts, as a server does when it starts.
//!
//! Linux alone: the time of a thread is read from `/proc`.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, reason = "a bench program")]

#[cfg(target_os = "linux")]
mod ceiling;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod machines;
#[cfg(target_os = "linux")]
mod ours;
#[cfg(target_os = "linux")]
mod quic;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
mod tcp;

#[cfg(target_os = "linux")]
fn main() {
    table::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {}
