//! How long to wait: RFC 9002, 6.1.2 and 6.2.1, over the round trip of section 5.

use core::time::Duration;

use super::MAX_ACK_DELAY;
use crate::RttEstimator;

/// The round trip before the first sample, 333 ms (RFC 9002, 6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// The finest wait, 1 ms (RFC 9002, 6.1.2): what timers keep.
const GRANULARITY: Duration = Duration::from_millis(1);

/// No wait is longer, 2 s: a player sees a second of silence as a fault, and three lost probes must
/// fit into an idle time-out of 10 s. It also ends what a clock that jumped has done to the round
/// trip.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A longer round trip is no sample but a clock that jumped, or an ack that was on nobody's mind:
/// by then everything was probed for several times.
const LONGEST_SAMPLE: Duration = Duration::from_secs(10);

/// The round trip, and the waits that follow from it.
#[derive(Clone, Debug)]
pub(super) struct Timing {
    rtt: RttEstimator,
    /// Probes since the last ack that brought news.
    probes: u8,
}

impl Timing {
    pub(super) const fn new() -> Self {
        Self { rtt: RttEstimator::new(), probes: 0 }
    }

    pub(super) const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Takes a sample, and returns whether it is one. RFC 9002, 5.3, cuts the peer's delay to its
    /// promised longest; here an ack may have to wait for datagrams that pay for it [H-4.1c], and
    /// then says so truly. A lie gains nothing: no delay brings a sample below the smallest one.
    pub(super) fn on_sample(&mut self, sample: Duration, ack_delay: Duration) -> bool {
        let is_sample = sample <= LONGEST_SAMPLE;
        if is_sample {
            self.rtt.on_sample(sample, ack_delay);
        }
        is_sample
    }

    pub(super) const fn on_news(&mut self) {
        self.probes = 0;
    }

    pub(super) const fn on_probe(&mut self) {
        self.probes = self.probes.saturating_add(1);
    }

    /// After how long a datagram is lost if a later one was acked: 9/8 round trips.
    pub(super) fn loss_delay(&self) -> Duration {
        let longer = self.rtt.smoothed_rtt().max(self.rtt.latest_rtt()).unwrap_or(INITIAL_RTT);
        longer.saturating_add(longer / 8).clamp(GRANULARITY, LONGEST_WAIT)
    }

    /// The probe time-out without back-off.
    pub(super) fn probe_timeout(&self) -> Duration {
        let smoothed = self.rtt.smoothed_rtt().unwrap_or(INITIAL_RTT);
        let rttvar = self.rtt.rttvar().unwrap_or(INITIAL_RTT / 2);
        let spread = rttvar.saturating_mul(4).max(GRANULARITY);
        smoothed.saturating_add(spread).saturating_add(MAX_ACK_DELAY).min(LONGEST_WAIT)
    }

    /// The probe time-out, doubled with each probe that had no answer.
    pub(super) fn backed_off_timeout(&self) -> Duration {
        let factor = 1_u32.checked_shl(u32::from(self.probes)).unwrap_or(u32::MAX);
        self.probe_timeout().saturating_mul(factor).min(LONGEST_WAIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_formulas_of_rfc_9002() {
        let mut timing = Timing::new();
        assert_eq!(timing.probe_timeout(), ms(333 + 4 * 333 / 2 + 20));
        assert_eq!(timing.loss_delay(), ms(333) + ms(333) / 8);
        assert!(timing.on_sample(ms(80), ms(0)));
        assert_eq!(timing.probe_timeout(), ms(80 + 4 * 40 + 20));
        assert_eq!(timing.loss_delay(), ms(90));
        assert!(timing.on_sample(ms(160), ms(0)));
        assert_eq!(timing.loss_delay(), ms(180), "the latest is the larger");
    }

    #[test]
    fn probes_double_up_to_2_s() {
        let mut timing = Timing::new();
        assert!(timing.on_sample(ms(80), ms(0)));
        for expected in [260, 520, 1040, 2000, 2000] {
            assert_eq!(timing.backed_off_timeout(), ms(expected));
            timing.on_probe();
        }
        (0..300).for_each(|_| timing.on_probe());
        assert_eq!(timing.backed_off_timeout(), ms(2000));
        timing.on_news();
        assert_eq!(timing.backed_off_timeout(), ms(260));
    }

    #[test]
    fn hours_are_no_round_trip() {
        let mut timing = Timing::new();
        assert!(!timing.on_sample(Duration::MAX, Duration::MAX));
        assert_eq!(timing.rtt().latest_rtt(), None);
        assert!(timing.on_sample(ms(10_000), ms(0)));
        assert_eq!(timing.loss_delay(), ms(2000));
        assert_eq!(timing.probe_timeout(), ms(2000));
    }
}
