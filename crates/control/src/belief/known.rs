//! The remembered rate and loss of a path, from an earlier block or an earlier visit from the same address.
//!
//! This follows Careful Resume (RFC 9959): a remembered rate is a starting point and not a guarantee. It is
//! halved after a minute, forgotten after ten, and forgotten at once when the path changes. The rate of an
//! earlier visit is believed as far as it was proven, because the visitor may have lied ([`Trust`]).

use super::delivered::Proven;
use super::loss::LossEstimate;
use crate::tuning::blind::FIRST_RATE;
use crate::tuning::known::{FRESH, USABLE};
use crate::units::Rate;
use haulier_core::Instant;

/// Where a measurement comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// This connection.
    Own,
    /// An earlier one.
    Earlier,
}

/// Rate and loss of a path, and when they were measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// From the arrival times that the receiver reported.
    pub rate: Option<Rate>,
    /// It was used without any queue, beside a game: the path may have much more.
    pub is_least: bool,
    /// What the path was seen to deliver, by the sender's own clock.
    pub proven: Proven,
    /// Bytes that its queue was seen to hold, believed by the same connection only.
    pub queue_bytes: u32,
    /// The losses on it.
    pub loss: LossEstimate,
    /// When that was heard last.
    pub at: Instant,
    /// Whose measurement it is.
    pub trust: Trust,
}

impl Known {
    /// Nothing is known.
    pub const NOTHING: Self = Self {
        rate: None,
        is_least: false,
        proven: Proven::NOTHING,
        queue_bytes: 0,
        loss: LossEstimate::new(),
        at: Instant::ZERO,
        trust: Trust::Own,
    };

    /// The rate in bits per second.
    pub fn bandwidth_bps(&self) -> Option<u64> {
        self.rate.map(Rate::bps)
    }

    /// For another connection of the same client: at least the configured minimum, as for any transfer.
    pub fn of_earlier_visit(self, min_rate_bps: u64) -> Self {
        let floor = Rate::from_bps(min_rate_bps);
        Self { rate: self.rate.map(|rate| rate.max(floor)), trust: Trust::Earlier, ..self }
    }

    /// For any other client behind the same address: only what is faster than the start without memory, so
    /// that no client can slow others down, and no losses.
    pub fn of_address(self) -> Self {
        if self.rate.is_none_or(|rate| rate <= FIRST_RATE) {
            return Self::NOTHING;
        }
        Self { loss: LossEstimate::new(), trust: Trust::Earlier, ..self }
    }

    /// What to assume of it at `now`, reduced by age.
    pub fn discounted(self, now: Instant) -> Self {
        let age = now.since(self.at);
        if age <= FRESH {
            self
        } else if age <= USABLE {
            let Proven { bytes, rate } = self.proven;
            let proven = Proven { bytes: bytes / 2.0, rate: rate / 2.0 };
            Self { rate: self.rate.map(|rate| rate / 2.0), proven, queue_bytes: 0, ..self }
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

    #[test]
    fn a_low_rate_counts_for_the_client_that_had_it_only_and_not_below_the_minimum() {
        let known = |kbps| Known { rate: Some(Rate::from_kbps(kbps)), ..Known::NOTHING };
        assert_eq!(known(20_000).of_address(), Known::NOTHING);
        assert_eq!(known(21_000).of_address().rate, Some(Rate::from_kbps(21_000)));
        let visit = known(8).of_earlier_visit(200_000);
        assert_eq!((visit.rate, visit.trust), (Some(Rate::from_kbps(200)), Trust::Earlier));
    }
}
