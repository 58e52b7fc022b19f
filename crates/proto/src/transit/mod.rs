//! Which datagrams of a connection arrived (`docs/STANDARD-1.md`, sections 2.2 and 4.1).
//!
//! [`ReceivedDatagrams`] remembers what came, refuses what came before, and knows when an ack is
//! due. An [`AckFrame`] carries it over. [`SentDatagrams`] remembers what went out with what was in
//! it, and hands each content back once: acked or lost. What the contents are, and what to do about
//! a lost one, is left to those who put them in.
//!
//! ```
//! use core::time::Duration;
//! use haulier_proto::Instant;
//! use haulier_proto::internals::{ReceivedDatagrams, SentDatagrams};
//!
//! let (mut sent, mut received) = (SentDatagrams::new(), ReceivedDatagrams::new());
//! for name in ["a", "b"] {
//!     let number = sent.next_number();
//!     assert!(sent.on_sent(Instant::ZERO, number, 100, Some(name)).is_none());
//! }
//! let now = Instant::from_millis(20);
//! received.on_verified(now, 1, true); // number 0 is lost
//! assert_eq!(received.ack_due(), Some(now));
//! let ack = received.ack_frame(now).unwrap();
//! received.on_ack_sent(now, true);
//!
//! let now = Instant::from_millis(40);
//! let mut acked = Vec::new();
//! let outcome = sent.on_ack(now, &ack, |datagram| acked.push(datagram.contents))?;
//! assert_eq!(acked, ["b"]);
//! assert_eq!(outcome.rtt_sample, Some(Duration::from_millis(40)));
//! assert!(sent.poll_lost(now).is_none());
//! assert_eq!(sent.poll_timeout(), Some(Instant::from_millis(45)));
//! assert_eq!(sent.poll_lost(Instant::from_millis(45)).unwrap().contents, "a");
//! # Ok::<(), haulier_proto::internals::NeverSent>(())
//! ```

mod ack_frame;
mod arrivals;
mod number;
mod received;
mod sent;
mod skipped;
#[cfg(test)]
mod tests;
mod timing;
mod window;

pub use ack_frame::{ACK_SPAN, AckFrame, AckRanges, MAX_ACK_RUNS};
pub use arrivals::{Arrivals, ArrivalsFrame, MAX_EARLIER_ARRIVALS};
pub use number::expand_number;
pub use received::ReceivedDatagrams;
pub use sent::{AckOutcome, MAX_SENT_RECORDS, NeverSent, SentDatagram, SentDatagrams, SentStats};
pub use window::REPLAY_WINDOW;

use core::time::Duration;

/// The longest an end keeps an ack back, 20 ms [H-4.1b]: a frame of a game at 50 a second. Both
/// ends know it, so nobody tells the other.
pub const MAX_ACK_DELAY: Duration = Duration::from_millis(20);
