//! The smoothed round trip and the retransmission timeout: RFC 6298 with Linux's minimum.

use std::time::Duration;

use haulier_proto::Instant;

/// The minimum retransmission timeout: Linux's, where RFC 6298 has a second.
const MIN_RTO: Duration = Duration::from_millis(200);

/// The timeout before the first RTT sample (RFC 6298, 2.1).
const INITIAL_RTO: Duration = Duration::from_secs(1);

/// The maximum number of doublings of the timeout, so that a recovered link is noticed.
const MAX_BACKOFF: u32 = 6;

/// When nothing has arrived for too long.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Timer {
    srtt: Option<Duration>,
    rttvar: Duration,
    backoff: u32,
    due: Option<Instant>,
}

impl Timer {
    /// The smoothed RTT.
    pub(in super::super) const fn smoothed_rtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// Something new arrived, after this round trip: the timeout starts anew, if anything is still out.
    pub(in super::super) fn on_arrival(&mut self, now: Instant, rtt: Duration, has_more: bool) {
        if let Some(srtt) = self.srtt {
            self.rttvar = (self.rttvar * 3 + srtt.abs_diff(rtt)) / 4;
            self.srtt = Some((srtt * 7 + rtt) / 8);
        } else {
            (self.srtt, self.rttvar) = (Some(rtt), rtt / 2);
        }
        self.backoff = 0;
        self.due = has_more.then(|| now + self.rto());
    }

    /// Something was sent.
    pub(in super::super) fn on_sent(&mut self, now: Instant) {
        if self.due.is_none() {
            self.due = Some(now + self.rto());
        }
    }

    /// Whether it expires now; if so, the next one takes twice as long.
    pub(in super::super) fn expires(&mut self, now: Instant) -> bool {
        let is_over = self.due.is_some_and(|at| at <= now);
        if is_over {
            self.backoff += 1;
            self.due = Some(now + self.rto());
        }
        is_over
    }

    /// When it expires.
    pub(in super::super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    fn rto(&self) -> Duration {
        let rto = self.srtt.map_or(INITIAL_RTO, |srtt| srtt + (self.rttvar * 4).max(MIN_RTO));
        rto * (1 << self.backoff.min(MAX_BACKOFF))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_doubles_until_something_arrives() {
        let ms = Instant::from_millis;
        let mut timer = Timer::default();
        timer.on_sent(ms(0));
        timer.on_sent(ms(500));
        assert!(!timer.expires(ms(999)) && timer.expires(ms(1_000)));
        assert_eq!(timer.due(), Some(ms(3_000)));
        timer.on_arrival(ms(1_100), Duration::from_millis(100), true);
        // The first sample, and four times half of it.
        assert_eq!(timer.due(), Some(ms(1_400)));
        timer.on_arrival(ms(1_200), Duration::from_millis(100), false);
        assert_eq!(timer.due(), None);
    }
}
