//! The map of the tests of haulier/1. Parts are tested beside their code; here is what needs more than one.
//!
//! * `vectors`: the golden bytes of `/vectors/haulier1.json`;
//! * `connection`: STANDARD-1 point by point, in one room (`lan`);
//! * `debug`: no payload in what `Debug` prints;
//! * `states`: the state table of a connection, printed and compared with `docs/STATES.md`.
//!
//! `alloc.rs` and `memory.rs` are programs of their own, because they count every allocation of the process.
//! Whole joins over bad links live in `haulier-sim`.

#![allow(
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test program: nothing uses it, and a panic is how it reports"
)]

mod connection;
mod debug;
#[path = "../lan/mod.rs"]
mod lan;
#[path = "../../../article/tests/machine/vectors/load.rs"]
mod load;
#[path = "../../../article/tests/machine/page.rs"]
mod page;
mod states;
mod vectors;
