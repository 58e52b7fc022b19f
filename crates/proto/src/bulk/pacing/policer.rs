//! Detection of a policer: its losses end at a lower rate.
//!
//! Losses alone do not indicate the rate, because a wireless link loses packets at any rate. When far more
//! than usual is lost without a queue, a lower rate is tried: if that ends the losses, it is kept.

use super::super::tuning::flow::DECREASE;
use super::super::tuning::policer::{
    ENDED, FUTILE, LEARNED, POLICED, POLICED_WINDOW, UNUSUAL, WINDOW,
};
use super::super::units::Rate;
use super::seen::Seen;

/// A trial of a lower rate: the rate and the loss share before it.
#[derive(Clone, Copy, Debug)]
struct Trial {
    rate: Rate,
    loss: f64,
}

/// The result of judging the losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Finding {
    /// Nothing, or not yet.
    Nothing,
    /// There is a policer, and the current rate is what it passes.
    Policed,
    /// The rate to try, or to go back to.
    Change(Rate),
}

/// The state of the detection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    /// The share of losses that a lower rate does not end.
    usual: f64,
    trial: Option<Trial>,
    is_found: bool,
    is_futile: bool,
}

impl Policer {
    /// The share of losses that the sender's rate does not cause.
    #[cfg(test)]
    pub(super) const fn usual(&self) -> f64 {
        self.usual
    }

    #[cfg(test)]
    pub(super) const fn is_found(&self) -> bool {
        self.is_found
    }

    /// Whether so much is lost that a higher rate would only lose more.
    pub(super) const fn is_futile(&self) -> bool {
        self.is_futile
    }

    /// Judges the losses of a flow of this rate, and resets `seen` once the window is complete.
    /// `is_unqueued`: there is no queue, so a full queue does not explain the losses. `passed`: what the link
    /// is known to pass. What is lost above that may be our own doing, and is not learned as usual: a rate
    /// that grew made its losses usual ones, until half of it was dropped at a queue too short to be seen.
    pub(super) fn judge(
        &mut self,
        seen: &mut Seen,
        rate: Rate,
        passed: Rate,
        is_unqueued: bool,
    ) -> Finding {
        let (window, unusual) = match self.is_found || self.trial.is_some() {
            true => (POLICED_WINDOW, POLICED),
            false => (WINDOW, UNUSUAL),
        };
        if seen.total() < window {
            return Finding::Nothing;
        }
        let loss = seen.share();
        *seen = Seen::new();
        self.is_futile = loss > FUTILE;
        if let Some(trial) = self.trial.take() {
            self.is_found = loss < ENDED * (self.usual + trial.loss);
            if self.is_found {
                return Finding::Policed;
            }
            // No policer: this loss share counts as usual now.
            self.usual = trial.loss;
            return Finding::Change(trial.rate);
        }
        if loss > self.usual + unusual && is_unqueued {
            self.trial = Some(Trial { rate, loss });
            return Finding::Change((1.0 - DECREASE) * rate * (1.0 - loss) / (1.0 - self.usual));
        }
        if !self.is_found && (rate <= passed || loss < self.usual) {
            self.usual += LEARNED * (loss - self.usual);
        }
        Finding::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_kbps(10_000);

    /// The finding after this many datagrams, of which `percent` are lost.
    fn judge(policer: &mut Policer, datagrams: u32, percent: u32) -> Finding {
        let mut seen = Seen::default();
        (0..datagrams).for_each(|n| seen.on_settled(n % 100 < percent));
        policer.judge(&mut seen, RATE, RATE, true)
    }

    #[test]
    fn losses_that_end_at_a_lower_rate_are_a_policers() {
        let mut policer = Policer::default();
        let Finding::Change(less) = judge(&mut policer, 300, 50) else { panic!("no trial") };
        assert!((0.40..0.47).contains(&(less / RATE)), "{less:?}");
        assert_eq!(judge(&mut policer, 100, 2), Finding::Policed);
        assert!(policer.is_found());
    }

    #[test]
    fn losses_that_stay_are_usual_and_the_rate_is_restored() {
        let mut policer = Policer::default();
        assert_ne!(judge(&mut policer, 300, 50), Finding::Nothing);
        assert_eq!(judge(&mut policer, 100, 50), Finding::Change(RATE));
        assert!(!policer.is_found() && policer.usual() > 0.45);
        assert_eq!(judge(&mut policer, 300, 50), Finding::Nothing, "no second trial");
    }

    /// Each window loses a tenth of its rate more: half of it is lost before that is far above usual.
    #[test]
    fn losses_above_what_the_link_passed_do_not_become_usual() {
        let mut policer = Policer::default();
        let mut judge = |percent| {
            let mut seen = Seen::default();
            (0..300).for_each(|n| seen.on_settled(n % 100 < percent));
            policer.judge(&mut seen, 1.5 * RATE, RATE, true)
        };
        assert_eq!([8, 16, 24].map(&mut judge), [Finding::Nothing; 3]);
        assert!(matches!(judge(32), Finding::Change(_)));
    }

    #[test]
    fn growth_is_futile_while_most_datagrams_are_lost() {
        let mut policer = Policer::default();
        judge(&mut policer, 300, 60);
        assert!(policer.is_futile());
    }

    #[test]
    fn losses_with_a_queue_start_no_trial() {
        let mut seen = Seen::default();
        (0..300).for_each(|n| seen.on_settled(n % 2 == 0));
        assert_eq!(Policer::default().judge(&mut seen, RATE, RATE, false), Finding::Nothing);
    }
}
