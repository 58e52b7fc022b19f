//! The round-trip time as RFC 9002, section 5, keeps it.

use core::time::Duration;

/// The four values of RFC 9002: `latest_rtt`, `min_rtt`, `smoothed_rtt`, `rttvar`. Before the first sample
/// each has the value `None`.
///
/// ```
/// # use core::time::Duration;
/// use haulier_core::RttEstimator;
///
/// let mut rtt = RttEstimator::new();
/// rtt.on_sample(Duration::from_millis(100), Duration::ZERO);
/// rtt.on_sample(Duration::from_millis(180), Duration::ZERO);
/// assert_eq!(rtt.smoothed_rtt(), Some(Duration::from_millis(110)));
/// assert_eq!(rtt.min_rtt(), Some(Duration::from_millis(100)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttEstimator {
    values: Option<Values>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Values {
    latest_rtt: Duration,
    min_rtt: Duration,
    smoothed_rtt: Duration,
    rttvar: Duration,
}

impl RttEstimator {
    /// No sample yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { values: None }
    }

    /// Takes a sample. `ack_delay` is how long the peer says that it delayed the ack (RFC 9002 §5.3); zero
    /// if the wire has no such field.
    pub fn on_sample(&mut self, latest_rtt: Duration, ack_delay: Duration) {
        let Some(old) = self.values else {
            // §5.2 and §5.3: the first sample is taken as it is, without its ack delay.
            self.values = Some(Values {
                latest_rtt,
                min_rtt: latest_rtt,
                smoothed_rtt: latest_rtt,
                rttvar: latest_rtt / 2,
            });
            return;
        };
        let min_rtt = old.min_rtt.min(latest_rtt);
        // §5.3: the delay is subtracted only if that does not bring the sample below the minimum.
        let adjusted = match latest_rtt.checked_sub(ack_delay) {
            Some(adjusted) if adjusted >= min_rtt => adjusted,
            _ => latest_rtt,
        };
        let deviation = old.smoothed_rtt.abs_diff(adjusted);
        self.values = Some(Values {
            latest_rtt,
            min_rtt,
            smoothed_rtt: weighted(old.smoothed_rtt, adjusted, 8),
            rttvar: weighted(old.rttvar, deviation, 4),
        });
    }

    /// The latest sample.
    #[must_use]
    pub fn latest_rtt(&self) -> Option<Duration> {
        self.values.map(|values| values.latest_rtt)
    }

    /// The smallest sample.
    #[must_use]
    pub fn min_rtt(&self) -> Option<Duration> {
        self.values.map(|values| values.min_rtt)
    }

    /// The moving average: each sample, less its ack delay, moves it an eighth of the way.
    #[must_use]
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        self.values.map(|values| values.smoothed_rtt)
    }

    /// The mean deviation of the samples from the average: each moves it a quarter of the way.
    #[must_use]
    pub fn rttvar(&self) -> Option<Duration> {
        self.values.map(|values| values.rttvar)
    }
}

/// `(parts - 1) / parts` of the old value and `1 / parts` of the new one.
fn weighted(old: Duration, new: Duration, parts: u32) -> Duration {
    if new >= old { old + (new - old) / parts } else { old - (old - new) / parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Worked by hand from the formulas of §5.3.
    #[test]
    fn the_formulas_of_section_5_3() {
        let mut rtt = RttEstimator::new();
        assert_eq!((rtt.latest_rtt(), rtt.min_rtt(), rtt.rttvar()), (None, None, None));
        rtt.on_sample(ms(100), ms(40));
        assert_eq!((rtt.smoothed_rtt(), rtt.rttvar()), (Some(ms(100)), Some(ms(50))));
        // adjusted 160: rttvar = 3/4 * 50 + 1/4 * 60, smoothed = 7/8 * 100 + 1/8 * 160.
        rtt.on_sample(ms(180), ms(20));
        assert_eq!(rtt.rttvar(), Some(Duration::from_micros(52_500)));
        assert_eq!(rtt.smoothed_rtt(), Some(Duration::from_micros(107_500)));
        assert_eq!((rtt.latest_rtt(), rtt.min_rtt()), (Some(ms(180)), Some(ms(100))));
    }

    #[test]
    fn an_ack_delay_never_brings_a_sample_below_the_minimum() {
        let mut rtt = RttEstimator::new();
        rtt.on_sample(ms(100), ms(0));
        rtt.on_sample(ms(120), ms(40));
        assert_eq!(rtt.smoothed_rtt(), Some(Duration::from_micros(102_500)));
        rtt.on_sample(ms(60), ms(1_000));
        assert_eq!(rtt.min_rtt(), Some(ms(60)));
    }
}
