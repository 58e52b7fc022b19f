//! Knowing which packets arrived (*Reliability, Ordering and Congestion Avoidance over UDP*).
//!
//! [`ReceivedPackets`] remembers what arrived and describes it in [`AckBits`]; [`SentPackets`] remembers
//! what was sent and handles them. Neither sends anything: the two fields go in the header of packets that
//! are sent anyway.
//!
//! ```
//! use core::time::Duration;
//! use haulier_article::ack::{ReceivedPackets, SentPackets};
//! use haulier_article::{Instant, Sequence};
//!
//! let (mut sent, mut received) = (SentPackets::<Sequence>::new(), ReceivedPackets::new());
//! assert_eq!(received.ack_bits(), None); // "nothing received yet" is a state of its own
//!
//! let first = sent.on_sent(Instant::ZERO, 100).sequence;
//! let second = sent.on_sent(Instant::ZERO, 100).sequence;
//! received.on_accepted(Instant::from_millis(20), second, 100); // the first is lost
//!
//! let acks = received.ack_bits().unwrap();
//! let news = sent.on_ack(Instant::from_millis(40), acks);
//! assert_eq!(news.acked(), [second]);
//! assert_eq!(news.rtt_sample, Some(Duration::from_millis(40)));
//! assert_eq!(sent.next_lost(Instant::from_millis(1_001)), Some(first));
//! ```

mod ack_bits;
mod received;
mod sent;

pub use ack_bits::AckBits;
pub use haulier_core::PACKET_WINDOW;
pub use received::ReceivedPackets;
pub use sent::{AckTrigger, PacketFate, PacketTrigger, SentPackets, SentSequence};

use core::time::Duration;

/// How far back loss and bandwidth are measured, where 256 packets reach further: 4 s. The older half is
/// from 2 to 4 s ago, so the fate of each of its packets is known.
pub const MEASURED_TIME: Duration = Duration::from_secs(4);

/// What was measured on the older half of a window of packets (STANDARD §9.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Measured {
    /// Packets in that half.
    pub packets: u32,
    /// Of those, the ones that were acked (of received packets: all).
    pub acked: u32,
    /// Of those, the ones that were lost. The rest is in flight.
    pub lost: u32,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes of those acked.
    pub acked_bytes: u64,
    /// From the first of them to the first packet after them.
    pub span: Duration,
}

impl Measured {
    /// The fraction of packets that were lost among those whose fate is known, 0 to 1; `None` if no fate is
    /// known.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let known = self.acked + self.lost;
        (known > 0).then(|| f64::from(self.lost) / f64::from(known))
    }

    /// All bytes divided by the span, in bits per second; `None` without a span.
    #[must_use]
    pub fn bps(&self) -> Option<u64> {
        rate(self.bytes, self.span)
    }

    /// The acked bytes divided by the span, in bits per second; `None` without a span.
    #[must_use]
    pub fn acked_bps(&self) -> Option<u64> {
        rate(self.acked_bytes, self.span)
    }
}

/// The comparison of *Reliability, Ordering and Congestion Avoidance over UDP*, "Handling Sequence Number
/// Wrap-Around", for numbers in `[0, max]`. With a `max` of 65,535 it disagrees with
/// [`Sequence::is_newer_than`](crate::Sequence::is_newer_than) at a distance of exactly 32,768, because
/// `max / 2` rounds down. Nothing here uses it; it is for peers that follow that article to the letter.
#[must_use]
pub const fn is_more_recent(s1: u32, s2: u32, max: u32) -> bool {
    (s1 > s2 && s1 - s2 <= max / 2) || (s2 > s1 && s2 - s1 > max / 2)
}

fn rate(bytes: u64, span: Duration) -> Option<u64> {
    let bits = u128::from(bytes) * 8 * 1_000_000_000;
    bits.checked_div(span.as_nanos()).map(|rate| u64::try_from(rate).unwrap_or(u64::MAX))
}
