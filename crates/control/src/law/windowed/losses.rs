//! Losses: which of them are the path's own, and which are those of a full queue.
//!
//! Losses beyond the usual by more than chance are an excess, and the window is cut. If as much is lost with
//! the smaller window, the losses are the path's, and usual from then on; if it is not, the queue was full.
//! Losses that come in runs are fewer events than datagrams: all that chance explains grows with the mean
//! length of a run.

use libm::sqrt;

use super::window::Seen;

/// This share may be lost beyond the usual one, as in BBR version 2; and this number of standard deviations.
pub(super) const MAX_EXCESS: f64 = 0.02;
const SIGMAS: f64 = 3.0;

/// The weight of the usual share at first, in datagrams, and the number after which recent ones count half.
const PRIOR: f64 = 50.0;
const RECENT: f64 = 256.0;

/// A trial is over when less than this part of the excess goes on, or when this number of runs of losses
/// should have been seen, or this number of datagrams for each datagram of a run.
const ENDED: f64 = 0.4;
const TRIAL_LOST: f64 = 6.0;
const MAX_TRIAL: f64 = 200.0;

/// Losses and datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    usual: (f64, f64),
    recent: (f64, f64),
    /// Losses, and runs of them.
    runs: (f64, f64),
}

impl Losses {
    /// Of `all` datagrams the path itself has lost `lost`.
    pub(super) const fn new(lost: f64, all: f64) -> Self {
        Self { usual: (lost, all + PRIOR), recent: (0.0, 0.0), runs: (1.0, 1.0) }
    }

    /// Counts anew.
    pub(super) const fn begin(&mut self) {
        self.recent = (0.0, 0.0);
    }

    /// Datagrams since [`begin`](Self::begin), or lately.
    pub(super) const fn recent(&self) -> f64 {
        self.recent.1
    }

    /// Datagrams lost since [`begin`](Self::begin), or lately.
    pub(super) const fn recent_lost(&self) -> f64 {
        self.recent.0
    }

    /// The share that is the path's own.
    pub(super) fn usual(&self) -> f64 {
        self.usual.0 / self.usual.1
    }

    /// The mean length of a run.
    pub(super) fn run(&self) -> f64 {
        (self.runs.0 / self.runs.1).max(1.0)
    }

    /// The standard deviation of the losses of `all` datagrams.
    fn chance(&self, all: f64) -> f64 {
        let usual = self.usual();
        sqrt(self.run() * usual * (1.0 - usual) * all)
    }

    /// A datagram that counted as lost was only late.
    pub(super) const fn on_spurious(&mut self) {
        self.recent.0 = (self.recent.0 - 1.0).max(0.0);
    }

    /// The excess over the usual losses including this round, if it is not chance.
    pub(super) fn excess(&mut self, seen: &Seen, is_trial: bool) -> Option<f64> {
        self.runs = (self.runs.0 + seen.lost as f64, self.runs.1 + seen.runs as f64);
        self.recent =
            (self.recent.0 + seen.lost as f64, self.recent.1 + (seen.acked + seen.lost) as f64);
        let ((lost, all), usual) = (self.recent, self.usual());
        // What is usual is not known better than from what it was counted on.
        let spread = self.chance(all) * sqrt(1.0 + all / self.usual.1);
        let expected = (usual + MAX_EXCESS) * all + SIGMAS * spread + self.run();
        if lost < usual * all - SIGMAS * self.chance(all) - self.run() {
            self.learn();
        } else if all > RECENT && !is_trial {
            self.recent = (lost / 2.0, all / 2.0);
        }
        (lost > expected).then_some(lost / all - usual)
    }

    /// Whether more than usual is lost in this round.
    pub(super) fn is_any(&self, seen: &Seen) -> bool {
        let all = (seen.acked + seen.lost) as f64;
        seen.lost as f64 > self.usual() * all + SIGMAS * self.chance(all)
    }

    /// Whether an excess goes on at a smaller window; `None` while that is not known.
    pub(super) fn goes_on(&self, excess: f64) -> Option<bool> {
        let ((lost, all), run) = (self.recent, self.run());
        let (expected, more) = (excess * all, lost - self.usual() * all);
        if more < ENDED * expected - 1.2 * run {
            return Some(false);
        }
        let is_told = expected >= TRIAL_LOST * run || all > MAX_TRIAL * run;
        is_told.then_some(more > ENDED * expected)
    }

    /// What was lost since [`begin`](Self::begin) is the path's own.
    pub(super) const fn learn(&mut self) {
        self.usual = self.recent;
        self.begin();
    }
}
