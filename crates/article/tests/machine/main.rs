//! The map of the tests of the articles' system. Parts are tested beside their code; here is what needs more
//! than one.
//!
//! * `vectors`: the golden bytes and scripts in `/vectors`, one module a file;
//! * `hangs`: the ways in which a chunk transfer hung or lied, each with its story;
//! * `sender`, `receiver`: behaviour that the articles and STANDARD §7 ask for, point by point;
//! * `fragments`: the attacks of the fragmentation article by name, and the bugs of its program;
//! * `acks`, `endpoint`: the packet layer, STANDARD §9, point by point;
//! * `packet_properties`: the packet layer under random losses, orders and copies;
//! * `debug`: no payload in what `Debug` prints;
//! * `front_page`: the files and tests that the crate's page names;
//! * `properties`: random operations against a trivial model, and bytes at every parser;
//! * `states`: the state tables, printed and compared with `docs/STATES.md`.
//!
//! `alloc.rs` is a program of its own, because it counts every allocation of the process. Whole transfers
//! over bad links live in `haulier-sim`.

#![allow(
    unreachable_pub,
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test program: nothing uses it, and a panic is how it reports"
)]

mod acks;
mod debug;
mod endpoint;
mod fragments;
mod front_page;
mod hangs;
mod packet_properties;
mod page;
mod properties;
mod receiver;
mod sender;
mod states;
mod support;
mod vectors;
