//! What is known of a path from before: by an earlier block, or an earlier visit from the same address.
//!
//! Careful Resume (RFC 9959) is the model: what was measured is a start and not a promise, it loses half of
//! its worth with age, is forgotten in the end, and at once when the path changes.

use super::loss::LossEstimate;
use super::tuning::known::{FRESH, USABLE};
use super::units::Rate;
use crate::Instant;

/// Rate and losses of a path, and when they were true.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Known {
    pub(crate) rate: Option<Rate>,
    pub(crate) loss: LossEstimate,
    pub(crate) at: Instant,
}

impl Known {
    pub(crate) const NOTHING: Self =
        Self { rate: None, loss: LossEstimate::new(), at: Instant::ZERO };

    /// The rate in bits per second.
    pub(crate) fn bandwidth_bps(&self) -> Option<u64> {
        self.rate.map(Rate::bps)
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
        let known = Known { rate: Some(Rate(8.0)), ..Known::NOTHING };
        let rate = |seconds: u64| known.distrusted(Instant::from_millis(seconds * 1000)).rate;
        assert_eq!([rate(0), rate(60)], [Some(Rate(8.0)); 2]);
        assert_eq!([rate(61), rate(600)], [Some(Rate(4.0)); 2]);
        assert_eq!(rate(601), None);
    }
}
