//! TCP in outline: a window of 10 packets that doubles each round trip, is reduced to 0.7 once in a round
//! trip with loss, and starts over after a timeout. Selective acks, no repair slices.

use std::time::Duration;

use haulier_proto::Instant;

use super::receiver::AckPolicy;
use super::{ALL_SLICES, AckResult, Desk, Model, SliceIndex};

/// A delayed ack: every second packet, or 25 ms (RFC 9000, 13.2.1).
pub(super) const ACKS: AckPolicy =
    AckPolicy { period: Duration::from_millis(25), every: 2, is_eager: false };

/// Packets of the first window (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;

/// Packets of the window after a timeout.
const LEAST_WINDOW: f64 = 2.0;

/// The factor of the window in a round trip with loss (RFC 9438, 4.6).
const CUT: f64 = 0.7;

/// The minimum timeout.
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct SlowStart {
    window: f64,
    threshold: f64,
    next_new: SliceIndex,
    /// Slices to retransmit, the last one first.
    again: Vec<SliceIndex>,
    /// The window was already reduced for losses before this packet.
    cut_at: usize,
    seen: Instant,
    smoothed: Option<Duration>,
}

impl Default for SlowStart {
    fn default() -> Self {
        Self {
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            next_new: 0,
            again: Vec::new(),
            cut_at: 0,
            seen: Instant::ZERO,
            smoothed: None,
        }
    }
}

impl SlowStart {
    fn timeout(&self, desk: &Desk) -> Duration {
        (self.smoothed.unwrap_or(desk.rtt) * 2).max(LEAST_TIMEOUT)
    }

    fn next_slice(&mut self, desk: &Desk) -> Option<SliceIndex> {
        while let Some(slice) = self.again.pop() {
            if !desk.is_acked(slice) {
                return Some(slice);
            }
        }
        let slice = Some(self.next_new).filter(|slice| ALL_SLICES.contains(slice))?;
        self.next_new += 1;
        Some(slice)
    }

    /// Fills the window.
    fn pump(&mut self, desk: &mut Desk) {
        while (desk.in_flight() as f64) < self.window
            && let Some(slice) = self.next_slice(desk)
        {
            desk.send(slice);
        }
        desk.wake_at(self.seen + self.timeout(desk));
    }
}

impl Model for SlowStart {
    fn start(&mut self, desk: &mut Desk) {
        self.pump(desk);
    }

    fn wake(&mut self, desk: &mut Desk) {
        self.seen = desk.now;
        self.threshold = (self.window / 2.0).max(LEAST_WINDOW);
        self.window = LEAST_WINDOW;
        self.again.extend(desk.forget_flight());
        self.pump(desk);
    }

    fn on_ack(&mut self, desk: &mut Desk, result: &AckResult) {
        self.seen = desk.now;
        let sample = desk.now.since(desk.sent[result.largest].at);
        self.smoothed = Some((self.smoothed.unwrap_or(desk.rtt) * 7 + sample) / 8);
        self.again.extend(result.lost.iter().map(|&number| desk.sent[number].slice));
        if result.lost.last().is_some_and(|&last| last >= self.cut_at) {
            self.threshold = (self.window * CUT).max(LEAST_WINDOW);
            self.window = self.threshold;
            self.cut_at = desk.sent.len();
        }
        let received = result.received as f64;
        self.window += if self.window < self.threshold { received } else { received / self.window };
        self.pump(desk);
    }
}
