//! The remembered rate and loss of a path, from an earlier block or an earlier visit from the same address.
//!
//! This follows Careful Resume (RFC 9959): a remembered rate is a starting point and not a guarantee. It is
//! halved after a minute, forgotten after ten, and forgotten at once when the path changes.

use super::loss::LossEstimate;
use super::tuning::known::{FRESH, USABLE};
use super::units::Rate;
use crate::Instant;

/// Rate and loss of a path, and when they were measured.
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

    /// What to assume of it at `now`, reduced by age.
    pub(crate) fn discounted(self, now: Instant) -> Self {
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
    fn the_rate_is_halved_with_age_and_then_forgotten() {
        let known = Known { rate: Some(Rate(8.0)), ..Known::NOTHING };
        let rate = |seconds: u64| known.discounted(Instant::from_millis(seconds * 1000)).rate;
        assert_eq!([rate(0), rate(60)], [Some(Rate(8.0)); 2]);
        assert_eq!([rate(61), rate(600)], [Some(Rate(4.0)); 2]);
        assert_eq!(rate(601), None);
    }
}
