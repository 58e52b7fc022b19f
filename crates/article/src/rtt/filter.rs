//! The round-trip time, smoothed as the article does it.

use core::time::Duration;

/// A smoothed round-trip time: each sample moves it a tenth of the way (*Reliability, Ordering and
/// Congestion Avoidance over UDP*). The first sample is taken whole: from zero the estimate would be too
/// short for the first dozen packets, which matter most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArticleRtt {
    smoothed_rtt: Option<Duration>,
}

/// The divisor of a difference by which a sample moves the estimate: "10 % of the difference".
const SMOOTHING: u32 = 10;

impl ArticleRtt {
    /// No sample yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { smoothed_rtt: None }
    }

    /// Starts with an estimate, as after a first sample: the article's own code starts at zero.
    #[must_use]
    pub const fn starting_at(rtt: Duration) -> Self {
        Self { smoothed_rtt: Some(rtt) }
    }

    /// Takes a sample. It must not be that of a retransmission, because an ack does not tell which of the
    /// transmissions it answers (Karn's algorithm, RFC 6298 §3).
    pub fn on_sample(&mut self, sample: Duration) {
        let smoothed = match self.smoothed_rtt {
            None => sample,
            Some(old) if sample >= old => old + (sample - old) / SMOOTHING,
            Some(old) => old - (old - sample) / SMOOTHING,
        };
        self.smoothed_rtt = Some(smoothed);
    }

    /// The smoothed estimate; `None` before the first sample.
    #[must_use]
    pub const fn smoothed_rtt(&self) -> Option<Duration> {
        self.smoothed_rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_is_taken_whole_and_later_ones_move_a_tenth() {
        let mut rtt = ArticleRtt::new();
        assert_eq!(rtt.smoothed_rtt(), None);
        rtt.on_sample(Duration::from_millis(100));
        rtt.on_sample(Duration::from_millis(200));
        assert_eq!(rtt.smoothed_rtt(), Some(Duration::from_millis(110)));
        rtt.on_sample(Duration::from_millis(10));
        assert_eq!(rtt.smoothed_rtt(), Some(Duration::from_millis(100)));
    }
}
