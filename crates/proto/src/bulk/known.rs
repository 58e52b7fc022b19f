//! What is known of a path from before: by an earlier block, or an earlier visit from the same address.
//!
//! Careful Resume (RFC 9959) is the model: what was measured is a start and not a promise, it loses half of
//! its worth with age, is forgotten in the end, and at once when the path changes.

use core::time::Duration;

use super::loss::LossEstimate;
use crate::Instant;

/// For so long a rate is believed as it was measured.
const FRESH: Duration = Duration::from_secs(60);

/// For so long half of it is. Half costs a fifth of a join if nothing has changed; all of it costs a queue if
/// the path has come down.
const USABLE: Duration = Duration::from_secs(600);

/// Rate and losses of a path, and when they were true.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Known {
    /// Bytes per microsecond.
    pub(crate) rate: Option<f64>,
    pub(crate) loss: LossEstimate,
    pub(crate) at: Instant,
}

impl Known {
    pub(crate) const NOTHING: Self =
        Self { rate: None, loss: LossEstimate::new(), at: Instant::ZERO };

    /// The rate in bits per second.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    pub(crate) fn bandwidth_bps(&self) -> Option<u64> {
        self.rate.map(|rate| (rate * 8e6) as u64)
    }

    /// What of it is to be believed now.
    pub(crate) fn distrusted(self, now: Instant) -> Self {
        let age = now.since(self.at);
        if age <= FRESH {
            self
        } else if age <= USABLE {
            Self { rate: self.rate.map(|rate| rate / 2.0), ..self }
        } else {
            Self::NOTHING
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fades_and_is_forgotten() {
        let known = Known { rate: Some(8.0), ..Known::NOTHING };
        let rate = |seconds: u64| known.distrusted(Instant::from_millis(seconds * 1000)).rate;
        assert_eq!([rate(0), rate(60)], [Some(8.0); 2]);
        assert_eq!([rate(61), rate(600)], [Some(4.0); 2]);
        assert_eq!(rate(601), None);
    }
}
