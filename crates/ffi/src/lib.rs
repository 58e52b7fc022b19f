//! The C interface of haulier. `include/haulier.h` is made of this, and docs/C.md is the page for its users.
//!
//! This crate translates and decides nothing: each function is one call of [`haulier`]. What holds for all of
//! them is at the head of the header (`header/head.h`), and what holds for one is in its own comment,
//! from where it comes into the header.
//!
//! The invariants:
//!
//! * This is the one crate with `unsafe`. A pointer of C becomes a reference in `memory` and nowhere else;
//!   a null pointer is an error, and so is whatever else can be seen to be wrong.
//! * Whatever C passes as a number is checked before it becomes a type with fewer values.
//! * No panic leaves a function: `result::border` makes an error of it.

#![allow(non_camel_case_types, reason = "the names are those of C")]
#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "the comments are those of the header, where brackets are those of an address"
)]
#![allow(
    clippy::missing_safety_doc,
    reason = "what a caller owes is said once for all functions, at the head of the header"
)]

pub mod block;
pub mod client;
pub mod event;
mod memory;
pub mod result;
pub mod secret;
pub mod server;
pub mod settings;
pub mod source;
pub mod stats;
mod trace;
pub mod version;
