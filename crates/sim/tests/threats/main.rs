//! The connection under attack: a test for each row of docs/THREATS.md, by its name.
//!
//! The rule of three is checked by the server's host after every event, in every test here that has one in
//! a world: more than three bytes or datagrams out for one in, to any address that is not proven, and
//! the test fails.

#![allow(clippy::unwrap_used, reason = "a test program")]

mod address;
mod amplification;
mod crowd;
mod door;
mod ends;
mod floods;
mod forgery;
mod keys;
mod lies;
mod life;
mod paths;
mod replay;
mod shares;
mod support;
mod tokens;
