//! How much the link itself loses: what is lost beyond that is dropped because of what is sent.
//!
//! Wireless links lose datagrams at any rate, and a queue that is too short to be seen, or a policer, those
//! above its rate. Which of the two it is shows at a lower rate: what is lost there too is the link's own.
//! The invariant: nothing is learned at a rate that may be too high, so that a flow never takes the losses
//! that it makes for usual ones.

use libm::sqrt;

use super::super::tuning::usual::{EXCESS, MEMORY, PRIOR, PRIOR_PACKETS, SIGMAS, SINGLE};
use super::seen::Seen;

/// The link's own losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usual {
    lost: f64,
    seen: f64,
}

impl Usual {
    /// Before anything is known.
    pub(super) const fn new() -> Self {
        Self { lost: PRIOR * PRIOR_PACKETS, seen: PRIOR_PACKETS }
    }

    /// Of all datagrams.
    pub(super) fn share(&self) -> f64 {
        self.lost / self.seen
    }

    /// These were sent at a rate that the link is known to pass.
    pub(super) fn learn(&mut self, seen: Seen) {
        self.lost += seen.lost();
        self.seen += f64::from(seen.total());
        let kept = (MEMORY / self.seen).min(1.0);
        (self.lost, self.seen) = (kept * self.lost, kept * self.seen);
    }

    /// A much lower rate has not ended these losses: all that was known before is out of date.
    pub(super) fn replace(&mut self, seen: Seen) {
        *self = Self { lost: seen.lost(), seen: f64::from(seen.total().max(1)) };
    }

    /// So much was lost at whatever rate: the link itself loses no more.
    pub(super) fn bound(&mut self, seen: Seen) {
        let (n, usual) = (f64::from(seen.total()), self.share());
        let spread = usual * (1.0 - usual) * n * seen.inflation();
        if seen.lost() < usual * n - SIGMAS * sqrt(spread) - SINGLE {
            self.replace(seen);
        }
    }

    /// By how much more than usual was lost, if that is no chance.
    pub(super) fn excess(&self, seen: Seen) -> Option<f64> {
        let (n, usual) = (f64::from(seen.total()), self.share());
        let spread = usual * (1.0 - usual) * n * (1.0 + n / self.seen) * seen.inflation();
        let expected = usual * n + EXCESS * n + SIGMAS * sqrt(spread) + SINGLE;
        (seen.lost() > expected).then(|| seen.share() - usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many datagrams, of which each one in `nth` is lost; none with 0.
    fn seen(datagrams: u32, nth: u32) -> Seen {
        let mut seen = Seen::new();
        (1..=datagrams).for_each(|n| seen.on_settled(nth > 0 && n.is_multiple_of(nth)));
        seen
    }

    #[test]
    fn a_tenth_is_an_excess_until_it_is_usual() {
        let mut usual = Usual::new();
        let excess = usual.excess(seen(100, 10)).unwrap();
        assert!((excess - 0.1).abs() < 0.01, "{excess}");
        usual.replace(seen(100, 10));
        assert_eq!(usual.excess(seen(100, 10)), None);
        assert_eq!(usual.excess(seen(100, 7)), None, "14 of 100 are chance");
        assert!(usual.excess(seen(100, 3)).is_some());
    }

    #[test]
    fn a_single_loss_is_chance() {
        assert_eq!(Usual::new().excess(seen(20, 20)), None);
    }

    /// A flow that took its own losses for usual ones loses nothing once it sends less.
    #[test]
    fn less_loss_at_any_rate_takes_back_what_was_believed() {
        let mut usual = Usual::new();
        usual.replace(seen(100, 2));
        usual.bound(seen(40, 0));
        assert!(usual.share() < 0.01, "{}", usual.share());
    }

    #[test]
    fn what_is_lost_in_drains_is_learned() {
        let mut usual = Usual::new();
        (0..20).for_each(|_| usual.learn(seen(40, 20)));
        assert!((usual.share() - 0.05).abs() < 0.01, "{}", usual.share());
    }
}
