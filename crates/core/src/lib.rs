//! The parts that both wires of haulier need: time, datagrams on their way out, and the interface between a
//! protocol and its driver; numbers that wrap, chunks in slices, and packets in fragments.
//!
//! A protocol is a [`Machine`]: time and datagrams go in; datagrams, and the time of its next deadline,
//! come out. It has no clock, socket, thread or randomness of its own. A runner drives it over real
//! sockets, a simulator over virtual time, and both see the same four calls.
//!
//! The rest is what the articles' wire (crate `haulier-article`) and haulier/1 (crate `haulier-proto`) have
//! in common. Nothing here knows how a datagram of either looks: its parts refuse with small errors of their
//! own, and each wire has its own list of counted reasons.
//!
//! Each module uses only those after it: `machine`, `batch`, `ecn`, `four_tuple`, `fragment`, `restart`,
//! `sequence_buffer`, `chunk`, `bit_set`, `sequence`, `budget`, `rtt`, `drop_reasons`, `settings`,
//! `debug_as`, `names`, `time`.

#![no_std]

extern crate alloc;

mod batch;
mod bit_set;
mod budget;
mod debug_as;
mod drop_reasons;
mod ecn;
mod four_tuple;
mod machine;
mod restart;
mod rtt;
mod sequence;
mod sequence_buffer;
mod settings;

pub mod chunk;
pub mod fragment;
pub mod names;
pub mod time;

pub use batch::{Batch, DatagramBuffer, Run};
pub use bit_set::BitSet;
pub use budget::SendBudget;
pub use ecn::Ecn;
pub use four_tuple::{Carried, FourTuple};
pub use machine::Machine;
pub use restart::RestartWatch;
pub use rtt::RttEstimator;
pub use sequence::{Sequence, Sequence32, SequenceNumber};
pub use sequence_buffer::{PACKET_WINDOW, SequenceBuffer};
pub use time::Instant;

/// The example of the README is compiled and run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
