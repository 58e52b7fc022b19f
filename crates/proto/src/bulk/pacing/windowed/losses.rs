//! Losses: which of them are the path's own, and which are those of a full queue.
//!
//! What is lost in low rounds that meet no queue is the path's own. What is lost beyond that by more than
//! chance is an excess. Losses that come in runs are fewer events than datagrams: all that chance explains
//! grows with the mean length of a run.

use libm::sqrt;

use super::window::Seen;

/// Beyond the own ones this part may be lost: BBR version 2 has the same. And so many standard deviations.
const MAX_EXCESS: f64 = 0.02;
const SIGMAS: f64 = 3.0;

/// How many datagrams what is the path's own is worth at first, and after how many the newest count less.
const PRIOR: f64 = 50.0;
const RECENT: f64 = 256.0;

/// What of its own losses is believed after a low round that met a queue.
const BELIEVED: f64 = 0.9;

/// At most this share is taken for lost behind the bottleneck.
const MAX_OWN: f64 = 0.5;

/// Losses and datagrams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    own: (f64, f64),
    recent: (f64, f64),
    /// Losses, and runs of them.
    runs: (f64, f64),
}

/// What is counted, and the newest counts more.
fn lately((lost, all): (f64, f64)) -> (f64, f64) {
    if all > RECENT { (lost / 2.0, all / 2.0) } else { (lost, all) }
}

impl Losses {
    /// The path itself has lost `lost` datagrams of the first.
    pub(super) const fn new(lost: f64) -> Self {
        Self { own: (lost, PRIOR), recent: (0.0, 0.0), runs: (1.0, 1.0) }
    }

    /// Counts anew.
    pub(super) const fn begin(&mut self) {
        self.recent = (0.0, 0.0);
    }

    /// Datagrams since [`begin`](Self::begin), or lately.
    pub(super) const fn recent(&self) -> f64 {
        self.recent.1
    }

    /// What is lost since [`begin`](Self::begin), or lately.
    pub(super) const fn recent_lost(&self) -> f64 {
        self.recent.0
    }

    /// The share that is the path's own.
    pub(super) fn own(&self) -> f64 {
        (self.own.0 / self.own.1).min(MAX_OWN)
    }

    /// The mean length of a run.
    fn run(&self) -> f64 {
        (self.runs.0 / self.runs.1).max(1.0)
    }

    /// The standard deviation of what is lost of so many.
    fn chance(&self, all: f64) -> f64 {
        let own = self.own();
        sqrt(self.run() * own * (1.0 - own) * all)
    }

    /// One was not lost, but late.
    pub(super) const fn on_spurious(&mut self) {
        self.recent.0 = (self.recent.0 - 1.0).max(0.0);
    }

    /// A low round: what is lost in it is the path's own, if it met no queue.
    pub(super) fn on_low(&mut self, seen: &Seen, is_empty: bool) {
        if is_empty {
            let (lost, all) = lately(self.own);
            self.own = (lost + seen.lost as f64, all + (seen.acked + seen.lost) as f64);
        } else {
            self.own.0 *= BELIEVED;
        }
    }

    /// What is lost beyond the path's own with this round, if that is no chance.
    pub(super) fn excess(&mut self, seen: &Seen) -> Option<f64> {
        self.runs = (self.runs.0 + seen.lost as f64, self.runs.1 + seen.runs as f64);
        self.recent =
            (self.recent.0 + seen.lost as f64, self.recent.1 + (seen.acked + seen.lost) as f64);
        let ((lost, all), own) = (self.recent, self.own());
        let expected = (own + MAX_EXCESS) * all + SIGMAS * self.chance(all) + self.run();
        self.recent = lately(self.recent);
        (lost > expected).then_some(lost / all - own)
    }

    /// Whether more than the path's own is lost in this round.
    pub(super) fn is_any(&self, seen: &Seen) -> bool {
        let all = (seen.acked + seen.lost) as f64;
        seen.lost as f64 > self.own() * all + SIGMAS * self.chance(all)
    }
}
