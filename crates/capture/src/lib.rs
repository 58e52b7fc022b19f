//! Captures of UDP, and what is sealed in them (VIEWS, "Captures").
//!
//! ```text
//! bytes -> CaptureReader -> Packet -> layers -> UdpDatagram -> Opener -> Opened -> CaptureWriter -> bytes
//!                                                                ^
//!                                                             KeyLog
//! ```
//!
//! [`CaptureReader`] reads pcap and pcapng, [`layers::udp`] finds the UDP datagram in a packet of any usual
//! link. An [`Opener`] opens what haulier/1 seals, with the secrets of a [`KeyLog`], and rewrites it as it
//! would be in mode `open`; a [`CaptureWriter`] writes that.
//!
//! The invariant: whatever bytes come in, nothing panics, and memory is bounded by constants of this crate,
//! not by the file.

pub mod layers;

mod direction;
mod keylog;
mod opener;
mod reader;
mod train;
mod writer;

pub use keylog::{KeyLog, KeyLogError, MAX_LINES};
pub use opener::{Opened, Opener, Sealed};
pub use reader::{CaptureError, CaptureReader, Packet};
pub use train::train;
pub use writer::CaptureWriter;

/// The example of the README is compiled and run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
