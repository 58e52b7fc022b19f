//! Which datagrams of a connection arrived (`docs/STANDARD-1.md`, sections 2.2 and 4.1).
//!
//! [`ReceivedDatagrams`] remembers what arrived, refuses what arrived before, and knows when an ack is due.
//! An [`AckFrame`] reports it to the peer. The peer's ledger has a record of each datagram that it sent, and
//! only there is its fate decided. The parts that sent something in a lost datagram decide what to do about
//! it.
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
mod history;
mod items;
mod late;
mod ledger;
mod number;
mod received;
mod reordering;
mod runs;
mod sent_block;
mod sent_message;
mod skipped;
#[cfg(test)]
mod tests;
mod timing;
mod verdict;
mod window;

pub use ack_frame::{AckFrame, AckRanges, EcnCounts};
pub(crate) use arrivals::Arrivals;
pub use arrivals::ArrivalsFrame;
pub use datagram::{ChunkAt, LossReason};
pub(crate) use datagram::{Datagram, Fate, Outgoing, Symbol, UDP_IPV4_BYTES};
pub(crate) use items::Item;
pub(crate) use ledger::{AckWalk, Acked, KEPT, Ledger, NeverSent};
pub use number::expand_number;
pub use received::ReceivedDatagrams;
pub(crate) use sent_block::{Control, ProgressMark};
pub(crate) use sent_message::{SentLimit, SentPart};
pub(crate) use timing::Timing;
pub(crate) use window::{Place, ReplayWindow, SMALLEST};

use core::time::Duration;

/// The maximum ack delay, 20 ms [H-4.1b]: a frame of a game at 50 a second. It is fixed, so neither end
/// announces it.
pub(crate) const MAX_ACK_DELAY: Duration = Duration::from_millis(20);
