//! Joins over real sockets, on loopback: every mode, every end, every driver, and five hundred clients at a
//! time.
//!
//! No test sleeps or measures. What must happen is waited for, and [`MAX`] only ends a test that hangs.
//!
//! [`MAX`]: support::MAX

#![allow(clippy::unwrap_used, reason = "a test program")]

mod addresses;
mod awaited;
mod carried;
mod channels;
mod ends;
mod handles;
mod many;
mod modes;
mod sources;
mod support;
mod trace;
mod traffic;
mod workers;
