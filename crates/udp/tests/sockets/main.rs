//! Runners on real sockets, on loopback: what only the system decides. What blocks or fails is tested inside,
//! against carriers that do so at will.

#![allow(clippy::unwrap_used, reason = "a test program")]

mod addresses;
mod article;
mod batches;
mod readers;
mod sizes;
mod support;
