//! Congestion control for large blocks over UDP.
//!
//! A [`Controller`] is what a path was seen to do and the law by which datagrams are paced there; a [`Pacer`]
//! says when the next one may go, over all limits. Both are sans-I/O: the caller says what was sent, what was
//! acknowledged and when datagrams arrived by the receiver's clock, and asks whether one more may go. Neither
//! knows a frame, a block or a key, so a transport of another wire can use them.
//!
//! What makes it fast: a train of datagrams opens a transfer, and the receiver's report of when they arrived
//! gives the rate of the bottleneck after one round trip, where slow start takes eight.
//!
//! Each module uses only those after it: `pacer`, `controller`, `law`, `belief`, `history`, `urgency`,
//! `tuning`, `units`.

#![no_std]

extern crate alloc;

mod belief;
mod controller;
mod history;
mod law;
mod pacer;
mod tuning;
mod units;
mod urgency;

pub use belief::delivered::Proven;
pub use belief::known::{Known, Trust};
pub use belief::loss::{LossEstimate, Losses};
pub use belief::requests::RequestTrain;
pub use belief::samples::MAX_ARRIVALS;
pub use controller::Controller;
pub use history::{History, PathId, Sent};
pub use pacer::{Asking, Pacer};
pub use tuning::{ACK_DELAY, FULL_PACKET, TICK};
pub use units::{Bytes, Rate, Span};
pub use urgency::Urgency;

/// The example of the README is compiled and run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
