//! Which datagrams of a connection arrived (`docs/STANDARD-1.md`, sections 2.2 and 4.1).
//!
//! [`ReceivedDatagrams`] remembers what arrived, refuses what arrived before, and knows when an ack is due.
//! An [`AckFrame`] says it to the peer. The peer's ledger has a record of each datagram that it sent, and
//! decides there, and nowhere else, what became of it. What to do about a lost one is left to those who sent
//! something in it.
//!
//! ```
//! use haulier_proto::Instant;
//! use haulier_proto::internals::ReceivedDatagrams;
//!
//! let mut received = ReceivedDatagrams::new();
//! let now = Instant::from_millis(20);
//! received.on_verified(now, 1, true); // number 0 is lost
//! assert_eq!(received.ack_due(), Some(now));
//! let ack = received.ack_frame(now).unwrap();
//! received.on_ack_sent(now, true);
//! assert_eq!(ack.ranges(2).unwrap().collect::<Vec<_>>(), [1..=1]);
//! ```

mod ack_frame;
mod arrivals;
mod datagram;
mod items;
mod ledger;
mod number;
mod received;
mod skipped;
#[cfg(test)]
mod tests;
mod timing;
mod window;

pub(crate) use ack_frame::ACK_SPAN;
pub use ack_frame::{AckFrame, AckRanges};
pub use arrivals::ArrivalsFrame;
pub(crate) use arrivals::{Arrivals, MAX_EARLIER_ARRIVALS};
pub(crate) use datagram::{Datagram, Fate, Outgoing, Symbol};
pub(crate) use items::Item;
pub(crate) use ledger::{Acked, KEPT, Ledger};
pub use number::expand_number;
pub use received::ReceivedDatagrams;

use core::time::Duration;

/// The longest an end keeps an ack back, 20 ms [H-4.1b]: a frame of a game at 50 a second. Both
/// ends know it, so nobody tells the other.
pub(crate) const MAX_ACK_DELAY: Duration = Duration::from_millis(20);
