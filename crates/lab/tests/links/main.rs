//! What transfers leave to each other, to TCP and to a game; odd, recorded, disordered and drawn links, and
//! those with short queues or losses in runs; drawn crowds; the grid's figures. One program, so that its
//! tests keep every core busy and are linked once.

#![allow(clippy::unwrap_used, reason = "a test program")]

mod bursts;
mod disorder;
mod grid;
mod harm;
mod jitter;
mod model;
mod odd_links;
mod own_losses;
mod random;
mod recorded;
mod share;
mod short_queues;
mod transfers;
