//! The loss rate of a path, its uncertainty, and the burstiness of the losses.
//!
//! A loss share measured over `n` packets is an estimate, and the number of repair slices depends on its
//! error. So the estimate is a Beta distribution with a prior, and its variance is part of the margin, like
//! the variance of the losses themselves. Bursty losses have a larger variance: a two-state Markov chain
//! (Gilbert 1960) fitted to the mean run length gives the factor.

use crate::tuning::loss::{
    MAX_INFLATION, MAX_LOSS, MEMORY_PACKETS, PRIOR_LOSS, PRIOR_PACKETS, PRIOR_RUN, PRIOR_RUNS,
};

/// The loss estimate of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossEstimate {
    seen: f64,
    lost: f64,
    runs: f64,
    was_lost: bool,
}

/// The share of lost packets, the weight of that estimate, and the relative variance.
#[derive(Clone, Copy, Debug)]
pub struct Losses {
    /// The share that is lost, 0 to 0.6.
    pub share: f64,
    /// The share that is assumed of those in flight, whatever was measured.
    pub in_flight: f64,
    /// The weight of the estimate in packets, including those that are assumed at first.
    pub packets: f64,
    /// The variance of losses relative to that of independent ones: 1 to 12.
    pub inflation: f64,
}

impl Default for LossEstimate {
    fn default() -> Self {
        Self::new()
    }
}

impl LossEstimate {
    /// Nothing was seen yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { seen: 0.0, lost: 0.0, runs: 0.0, was_lost: false }
    }

    /// The fate of the next packet, in the order of sending.
    pub fn on_packet(&mut self, lost: bool) {
        if self.seen >= MEMORY_PACKETS {
            (self.seen, self.lost, self.runs) = (self.seen / 2.0, self.lost / 2.0, self.runs / 2.0);
        }
        self.seen += 1.0;
        if lost {
            self.lost += 1.0;
            self.runs += f64::from(u8::from(!self.was_lost));
        }
        self.was_lost = lost;
    }

    /// A packet that was counted as lost was acknowledged after all.
    pub fn on_late(&mut self) {
        self.lost = (self.lost - 1.0).max(0.0);
        self.runs = (self.runs - 0.5).max(0.0);
    }

    /// The estimated share of lost packets, 0 to 0.6.
    #[must_use]
    pub fn share(&self) -> f64 {
        let lost = PRIOR_LOSS * PRIOR_PACKETS + self.lost;
        (lost / self.packets()).min(MAX_LOSS)
    }

    /// All that decides about a margin, computed once for many chunks.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let share = self.share();
        Losses { share, in_flight: share, packets: self.packets(), inflation: self.inflation() }
    }

    /// As [`losses`](Self::losses), but without the losses assumed at first: if no loss was seen, none is
    /// expected.
    #[must_use]
    pub fn measured(&self) -> Losses {
        Losses { share: (self.lost / self.packets()).min(MAX_LOSS), ..self.losses() }
    }

    /// The weight of the estimate in packets, including the prior.
    pub(crate) fn packets(&self) -> f64 {
        PRIOR_PACKETS + self.seen
    }

    /// The variance of the number of losses relative to that of independent losses: 1 to 12. For a chain
    /// with correlation `c` between successive packets it is (1 + c) / (1 - c).
    pub(crate) fn inflation(&self) -> f64 {
        let p = self.share();
        let alone = 1.0 / (1.0 - p);
        let run = (self.lost + PRIOR_RUNS * PRIOR_RUN.max(alone)) / (self.runs + PRIOR_RUNS);
        let correlation = 1.0 - 1.0 / run - p / (run * (1.0 - p));
        let inflation = (1.0 + correlation) / (1.0 - correlation).max(0.01);
        inflation.clamp(1.0, MAX_INFLATION)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(fates: impl IntoIterator<Item = bool>) -> LossEstimate {
        let mut loss = LossEstimate::new();
        fates.into_iter().for_each(|lost| loss.on_packet(lost));
        loss
    }

    #[test]
    fn the_estimate_moves_from_the_prior_to_the_measured_share() {
        assert!((after([]).share() - PRIOR_LOSS).abs() < 1e-9);
        let tenth = after((0..1000).map(|n| n % 10 == 0));
        assert!((tenth.share() - 0.1).abs() < 0.005);
        assert!(tenth.inflation() < 1.05, "single losses");
        assert!(after((0..100).map(|_| true)).share() <= MAX_LOSS);
    }

    #[test]
    fn runs_of_losses_inflate_the_variance() {
        let bursts = after((0..960).map(|n| n % 160 < 8));
        assert!((bursts.share() - 0.05).abs() < 0.005);
        assert!(bursts.inflation() > 3.0, "{}", bursts.inflation());
    }

    #[test]
    fn late_packets_are_subtracted_from_the_losses() {
        let mut loss = after((0..100).map(|n| n % 5 == 0));
        (0..20).for_each(|_| loss.on_late());
        assert!(loss.share() < 0.01);
    }

    #[test]
    fn old_losses_fade() {
        let fates = (0..2000).map(|n| n < 1000 && n % 3 == 0);
        assert!(after(fates).share() < 0.12);
    }
}
