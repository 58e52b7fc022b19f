//! What both wires of haulier need: time, datagrams on their way out, and the joint between a protocol
//! and whatever drives it.
//!
//! A protocol is a [`Machine`]: time and datagrams go in; datagrams, and the time of its next deadline,
//! come out. It has no clock, socket, thread or randomness of its own. A runner drives it over real
//! sockets, a simulator over virtual time, and both see the same four calls.

#![no_std]

extern crate alloc;

mod batch;
mod four_tuple;
mod machine;
pub mod time;

pub use batch::{Batch, DatagramBuffer, Run};
pub use four_tuple::FourTuple;
pub use machine::Machine;
pub use time::Instant;
