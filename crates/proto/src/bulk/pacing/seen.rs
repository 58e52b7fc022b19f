//! What became of datagrams: how many were received and lost, and in what runs.
//!
//! The laws judge losses by these counts. The invariant: nothing of nothing is no loss.

use super::super::tuning::loss::MAX_INFLATION;

/// Counts of datagrams received and lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    received: u32,
    lost: u32,
    /// Runs of lost datagrams, and whether the last one is in one.
    runs: u32,
    is_in_run: bool,
}

impl Seen {
    pub(super) const fn new() -> Self {
        Self { received: 0, lost: 0, runs: 0, is_in_run: false }
    }

    pub(super) fn on_settled(&mut self, is_lost: bool) {
        self.received += u32::from(!is_lost);
        self.lost += u32::from(is_lost);
        self.runs += u32::from(is_lost && !self.is_in_run);
        self.is_in_run = is_lost;
    }

    /// How much wider losses in such runs spread than independent ones.
    pub(super) fn inflation(&self) -> f64 {
        let run = self.lost() / f64::from(self.runs.max(1));
        (2.0 * run * (1.0 - self.share()) - 1.0).clamp(1.0, MAX_INFLATION)
    }

    /// Older ones count half.
    pub(super) const fn halve(&mut self) {
        (self.received, self.lost, self.runs) = (self.received / 2, self.lost / 2, self.runs / 2);
    }

    pub(super) const fn total(&self) -> u32 {
        self.received + self.lost
    }

    /// The share that is lost; nothing of nothing.
    pub(super) fn share(&self) -> f64 {
        self.lost() / f64::from(self.total().max(1))
    }

    pub(super) fn lost(&self) -> f64 {
        f64::from(self.lost)
    }
}
