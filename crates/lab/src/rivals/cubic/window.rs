//! The congestion window: slow start with HyStart's exit, then RFC 9438.
//!
//! In floating point, but only with operations that IEEE 754 defines exactly: a seed replays everywhere.

use std::time::Duration;

use haulier_proto::Instant;

/// The growth constant C, in segments per cubic second (RFC 9438, 5).
const C: f64 = 0.4;

/// The factor of the window after a loss (RFC 9438, 4.6).
const BETA: f64 = 0.7;

/// Segments of the first window (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;

/// HyStart is active from this window on, uses the first samples of each round, and detects a rise of the
/// round trip by an eighth within these bounds: Linux's values.
const HYSTART_WINDOW: f64 = 16.0;
const HYSTART_SAMPLES: u32 = 8;
const HYSTART_RISE: (Duration, Duration) = (Duration::from_millis(4), Duration::from_millis(16));

/// The congestion window of one transfer, in segments.
#[derive(Clone, Debug)]
pub struct CubicWindow {
    cwnd: f64,
    ssthresh: f64,
    /// The window at the last loss, as fast convergence sees it.
    w_max: f64,
    /// The window at the last loss.
    prior: f64,
    epoch: Option<Epoch>,
    min_rtt: Duration,
    round: Round,
}

/// Growth since the last loss.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: Instant,
    /// Seconds until the window is `w_max` again.
    k: f64,
    /// Reno's window.
    reno: f64,
}

/// The first round trips of a window's worth of segments.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    ends_at: u32,
    samples: u32,
    min_rtt: Duration,
}

impl Default for CubicWindow {
    fn default() -> Self {
        Self {
            cwnd: INITIAL_WINDOW,
            ssthresh: f64::INFINITY,
            w_max: 0.0,
            prior: 0.0,
            epoch: None,
            min_rtt: Duration::MAX,
            round: Round::default(),
        }
    }
}

impl CubicWindow {
    /// Segments that may be in flight.
    pub const fn segments(&self) -> f64 {
        self.cwnd
    }

    /// The window at which slow start ends, or ended.
    pub const fn threshold(&self) -> f64 {
        self.ssthresh
    }

    /// Whether the window is in slow start.
    pub fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Sets the window for recovery, which sends by its own rule.
    pub(super) const fn set_segments(&mut self, segments: f64) {
        self.cwnd = segments.max(1.0);
    }

    /// A round trip was measured; `acked` are all before this segment, `next` is the next new one.
    pub(super) fn on_rtt(&mut self, rtt: Duration, acked: u32, next: u32) {
        self.min_rtt = self.min_rtt.min(rtt);
        if acked > self.round.ends_at {
            self.round = Round { ends_at: next, samples: 0, min_rtt: Duration::MAX };
        }
        if !self.is_slow_start() || self.cwnd < HYSTART_WINDOW {
            return;
        }
        if self.round.samples < HYSTART_SAMPLES {
            self.round.samples += 1;
            self.round.min_rtt = self.round.min_rtt.min(rtt);
            return;
        }
        let rise = (self.min_rtt / 8).clamp(HYSTART_RISE.0, HYSTART_RISE.1);
        if self.round.min_rtt > self.min_rtt + rise {
            self.ssthresh = self.cwnd;
        }
    }

    /// Segments arrived, and none is missing.
    pub(super) fn on_acked(&mut self, now: Instant, segments: u32, rtt: Duration) {
        let segments = f64::from(segments);
        if self.is_slow_start() {
            self.cwnd = (self.cwnd + segments).min(self.ssthresh.max(self.cwnd));
            return;
        }
        let epoch = self.epoch.get_or_insert_with(|| {
            self.w_max = self.w_max.max(self.cwnd);
            let k = libm::cbrt((self.w_max - self.cwnd) / C);
            Epoch { began: now, k, reno: self.cwnd }
        });
        // As Reno would grow with this beta, until it has caught up (RFC 9438, 4.3).
        let alpha = if epoch.reno < self.prior { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        epoch.reno += alpha * segments / self.cwnd;
        let seconds = now.since(epoch.began).as_secs_f64();
        let cubic = |t: f64| C * (t - epoch.k) * (t - epoch.k) * (t - epoch.k) + self.w_max;
        if cubic(seconds) < epoch.reno {
            self.cwnd = self.cwnd.max(epoch.reno);
            return;
        }
        let target = cubic(seconds + rtt.as_secs_f64()).clamp(self.cwnd, 1.5 * self.cwnd);
        self.cwnd += (target - self.cwnd) / self.cwnd * segments;
    }

    /// A segment was lost: the window that follows is the threshold.
    pub(super) fn on_loss(&mut self) {
        // Fast convergence: a flow that was reduced twice makes room for others (RFC 9438, 4.7).
        let is_lower = self.cwnd < self.w_max;
        self.w_max = if is_lower { self.cwnd * (1.0 + BETA) / 2.0 } else { self.cwnd };
        self.prior = self.cwnd;
        self.ssthresh = (self.cwnd * BETA).max(2.0);
        self.epoch = None;
    }

    /// The retransmission timeout expired.
    pub(super) fn on_timeout(&mut self, is_first: bool) {
        if is_first {
            self.on_loss();
        }
        self.cwnd = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// Acks a window each round trip for this long.
    fn grow(window: &mut CubicWindow, from: Instant, seconds: u64) -> Instant {
        let mut now = from;
        while now.since(from) < Duration::from_secs(seconds) {
            now = now + RTT;
            window.on_acked(now, window.segments() as u32, RTT);
        }
        now
    }

    #[test]
    fn after_a_loss_it_is_back_at_its_maximum_after_k() {
        let mut window = CubicWindow { cwnd: 1_000.0, ..CubicWindow::default() };
        window.on_loss();
        window.set_segments(window.threshold());
        assert!((window.segments() - 700.0).abs() < 1e-9);
        // K = cbrt(300 / 0.4) = 9.09 s.
        let now = grow(&mut window, Instant::ZERO, 4);
        let expected = 0.4 * (4.0f64 - 9.086).powi(3) + 1_000.0;
        assert!((window.segments() - expected).abs() < 15.0, "{}", window.segments());
        let now = grow(&mut window, now, 5);
        assert!((window.segments() - 1_000.0).abs() < 10.0, "{}", window.segments());
        grow(&mut window, now, 5);
        assert!(window.segments() > 1_040.0, "{}", window.segments());
    }

    #[test]
    fn a_second_loss_below_the_maximum_converges_faster() {
        let mut window = CubicWindow { cwnd: 100.0, w_max: 200.0, ..CubicWindow::default() };
        window.on_loss();
        assert!((window.w_max - 85.0).abs() < 1e-9, "{}", window.w_max);
    }

    #[test]
    fn a_small_window_grows_as_renos() {
        let mut window = CubicWindow { cwnd: 10.0, ..CubicWindow::default() };
        window.on_loss();
        window.set_segments(window.threshold());
        grow(&mut window, Instant::ZERO, 2);
        // From 7, 0.53 a round trip till 10 and then 1: the cubic alone would have been below 10.
        assert!(window.segments() > 16.0, "{}", window.segments());
    }

    #[test]
    fn slow_start_ends_when_the_round_trip_rises() {
        let mut window = CubicWindow { cwnd: 32.0, ..CubicWindow::default() };
        for (round, rtt) in [(1, 100), (2, 100), (3, 120)] {
            for _ in 0..9 {
                window.on_rtt(Duration::from_millis(rtt), round * 100, round * 100 + 50);
            }
            assert_eq!(window.is_slow_start(), round < 3, "round {round}");
        }
    }
}
