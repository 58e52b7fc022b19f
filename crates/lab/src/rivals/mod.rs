//! Other senders, as hosts: competing traffic on a shared link.
//!
//! * [`cubic`]: a TCP bulk transfer with CUBIC, which fills queues until they drop;
//! * [`bbr`]: one with BBR, which paces at the rate that it measured;
//! * `tcp`: what the two have in common, their segments, acks, losses and time-outs.

pub mod bbr;
pub mod cubic;
mod tcp;

pub(crate) use tcp::segment_number;
pub use tcp::{MSS, TcpReceiver};
