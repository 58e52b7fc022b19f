//! Joins over real sockets, on loopback: every mode, every end, and five hundred clients at a time.
//!
//! No test sleeps or measures. What must happen is waited for, and [`MOST`] only ends a test that hangs.

mod ends;
mod many;
mod modes;
mod support;
mod traffic;

#[cfg(feature = "tokio")]
mod awaited;
