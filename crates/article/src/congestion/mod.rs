//! How often to send: congestion avoidance behind a small interface.
//!
//! An endpoint reports to a [`CongestionController`] what happened to its packets and what the round trip
//! is; the controller answers with one number. [`GoodBad`] is that of the article.

mod good_bad;

pub use good_bad::{CongestionMode, CongestionTrigger, GoodBad, GoodBadConfig};

use core::fmt::Debug;
use core::time::Duration;

use crate::Instant;

/// Decides how often to send.
///
/// Only [`on_conditions`](Self::on_conditions) and [`send_interval`](Self::send_interval) are required; the
/// other methods are for controllers that count packets.
pub trait CongestionController: Debug {
    /// A packet of `bytes` bytes on the wire was sent.
    fn on_sent(&mut self, _now: Instant, _bytes: usize) {}

    /// A packet of `bytes` bytes on the wire was acked.
    fn on_acked(&mut self, _now: Instant, _bytes: usize) {}

    /// A packet of `bytes` bytes on the wire was lost.
    fn on_lost(&mut self, _now: Instant, _bytes: usize) {}

    /// The present round trip. Called every 100 ms while there is traffic, once there is an estimate.
    fn on_conditions(&mut self, now: Instant, rtt: Duration);

    /// How long to wait from one packet to the next. This is advice: the endpoint sends whatever it is
    /// given.
    fn send_interval(&self) -> Duration;
}
