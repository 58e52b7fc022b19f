//! What an endpoint has counted and measured.

use crate::ack::Measured;

/// The weight of each new measurement in the smoothed one, ten times a second: a time constant of about a
/// second, on top of the 2 to 4 s that the measured packets are old.
const SMOOTHING: f64 = 0.1;

/// Counters of an endpoint, and what it measured on the older half of its windows (STANDARD §9.4).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Packets sent, fragmented ones counted once.
    pub packets_sent: u64,
    /// Packets accepted by the application.
    pub packets_received: u64,
    /// Packets sent that were reported acked.
    pub packets_acked: u64,
    /// Packets sent that were reported lost.
    pub packets_lost: u64,
    /// Packets sent that had to be cut into fragments.
    pub packets_fragmented: u64,
    /// Datagrams sent, those of fragments and ack packets included.
    pub datagrams_sent: u64,
    /// Ack packets sent, because no payload packet could carry the acks.
    pub acks_sent: u64,
    /// Times the peer was found to have restarted.
    pub restarts: u64,
    /// Events that were dropped because [`poll_event`](super::Endpoint::poll_event) was not called.
    pub events_dropped: u64,
    /// Bytes on the wire of all packets sent, UDP and IPv4 headers included.
    pub bytes_sent: u64,
    /// Bytes on the wire of all packets accepted.
    pub bytes_received: u64,
    /// The fraction of packets that are lost, 0 to 1, smoothed. Unchanged while nothing is sent.
    pub loss: f64,
    /// Bits per second sent, smoothed; 0 after some seconds without packets.
    pub sent_bps: f64,
    /// Bits per second sent and acked, in the same way.
    pub acked_bps: f64,
    /// Bits per second received, in the same way.
    pub received_bps: f64,
}

/// The four smoothed values; `None` until first measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Smoothed {
    loss: Option<f64>,
    sent_bps: Option<f64>,
    acked_bps: Option<f64>,
    received_bps: Option<f64>,
}

impl Smoothed {
    /// `pushed_out` packets have left the window unacked since the last update; the window does not show
    /// them.
    pub(super) fn update(&mut self, sent: &Measured, pushed_out: u32, received: &Measured) {
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = |bps: Option<u64>| bps.map(|bps| bps as f64);
        let sent = &Measured { lost: sent.lost + pushed_out, ..*sent };
        smooth(&mut self.loss, sent.loss());
        smooth(&mut self.sent_bps, rate(sent.bps()));
        smooth(&mut self.acked_bps, rate(sent.acked_bps()));
        smooth(&mut self.received_bps, rate(received.bps()));
    }

    /// Nothing was sent or received for some seconds.
    pub(super) fn on_idle(&mut self) {
        *self = Self { loss: self.loss, ..Self::default() };
    }

    pub(super) fn fill(&self, stats: &mut EndpointStats) {
        stats.loss = self.loss.unwrap_or(0.0);
        stats.sent_bps = self.sent_bps.unwrap_or(0.0);
        stats.acked_bps = self.acked_bps.unwrap_or(0.0);
        stats.received_bps = self.received_bps.unwrap_or(0.0);
    }
}

fn smooth(value: &mut Option<f64>, new: Option<f64>) {
    if let Some(new) = new {
        *value = Some(value.map_or(new, |old| old + (new - old) * SMOOTHING));
    }
}
