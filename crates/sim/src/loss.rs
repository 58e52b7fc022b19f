//! Loss models of links.

use crate::{Probability, Rng};

/// A loss model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// Nothing is lost.
    #[default]
    None,
    /// Each packet is lost independently.
    Independent(Probability),
    /// Gilbert-Elliott: runs of lost packets. In the bad state every packet is lost, in the good state none.
    Bursts {
        /// The share of packets lost in the long run.
        mean: Probability,
        /// The mean length of a run of lost packets, at least 1. At least one packet is between two runs, so
        /// a mean of p needs a length of at least p / (1 - p).
        length: u32,
    },
}

impl Loss {
    /// The share of packets lost in the long run.
    #[must_use]
    pub const fn mean(self) -> Probability {
        match self {
            Self::None => Probability::NEVER,
            Self::Independent(mean) | Self::Bursts { mean, .. } => mean,
        }
    }
}

/// The state of a loss model: draws one fate per packet, in order.
#[derive(Clone, Debug)]
pub(crate) struct LossProcess {
    rng: Rng,
    in_burst: bool,
}

impl LossProcess {
    pub(crate) const fn new(rng: Rng) -> Self {
        Self { rng, in_burst: false }
    }

    /// Whether the next packet is lost.
    pub(crate) fn is_lost(&mut self, loss: Loss) -> bool {
        match loss {
            Loss::None => false,
            Loss::Independent(mean) => self.rng.chance(mean),
            Loss::Bursts { mean, length } => {
                // Leaving with 1/length gives runs of that mean length; entering with the odds of the
                // mean gives the mean.
                let length = u64::from(length.max(1));
                let change = if self.in_burst {
                    Probability::ratio(length - 1, length)
                } else {
                    mean.odds_over(length)
                };
                self.in_burst = self.rng.chance(change);
                self.in_burst
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(loss: Loss) -> Vec<bool> {
        let mut process = LossProcess::new(Rng::new(3));
        (0..200_000).map(|_| process.is_lost(loss)).collect()
    }

    #[test]
    fn independent_loss_has_its_mean() {
        let lost = lost(Loss::Independent(Probability::percent(5)));
        assert!(lost.iter().filter(|l| **l).count().abs_diff(10_000) < 500);
    }

    #[test]
    fn bursts_have_their_mean_and_their_length() {
        let fates = lost(Loss::Bursts { mean: Probability::percent(5), length: 8 });
        let total = fates.iter().filter(|l| **l).count();
        let runs = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        assert!(total.abs_diff(10_000) < 1_000, "{total} lost");
        let length = total as f64 / runs as f64;
        assert!((7.0..9.0).contains(&length), "runs of {length}");
    }

    /// Also above one half: the odds of 70 % are more than one to one.
    #[test]
    fn heavy_bursts_have_their_mean() {
        for (percent, length) in [(50, 8), (70, 8), (90, 20)] {
            let mean = Probability::percent(percent);
            let total = lost(Loss::Bursts { mean, length }).iter().filter(|l| **l).count() as u64;
            assert!(total.abs_diff(2_000 * percent) < 4_000, "{percent} %: {total} of 200,000");
        }
    }

    #[test]
    fn a_link_without_loss_loses_nothing() {
        assert!(lost(Loss::None).iter().all(|lost| !lost));
        assert!(lost(Loss::Independent(Probability::NEVER)).iter().all(|lost| !lost));
    }
}
