//! Losses that sending less ends: those of a policer.
//!
//! Losses alone say nothing of a rate, for a wireless link loses whatever is sent. So where far more than
//! usual is lost and nothing waits, less is sent for a while: if that ends the losses it stays so.

use super::super::tuning::delay::GIVEN;
use super::super::tuning::policer::{
    ENDED, FUTILE, LEARNED, POLICED, POLICED_WINDOW, UNUSUAL, WINDOW,
};
use super::super::units::Rate;

/// What became of datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    received: u32,
    lost: u32,
}

impl Seen {
    pub(super) fn on_settled(&mut self, is_lost: bool) {
        self.received += u32::from(!is_lost);
        self.lost += u32::from(is_lost);
    }

    pub(super) const fn total(&self) -> u32 {
        self.received + self.lost
    }

    pub(super) fn lost(&self) -> f64 {
        f64::from(self.lost)
    }
}

/// Less is sent, to see whether that ends the losses.
#[derive(Clone, Copy, Debug)]
struct Trial {
    rate: Rate,
    loss: f64,
}

/// What the losses say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Finding {
    /// Nothing, or not yet.
    Nothing,
    /// There is one, and the rate is what it lets pass.
    Policed,
    /// The rate to try, or to go back to.
    Change(Rate),
}

/// What is known of one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    /// Losses that sending less does not end.
    usual: f64,
    trial: Option<Trial>,
    is_found: bool,
    is_futile: bool,
}

impl Policer {
    /// The share of losses that is not the sender's doing.
    pub(super) const fn usual(&self) -> f64 {
        self.usual
    }

    pub(super) const fn is_found(&self) -> bool {
        self.is_found
    }

    /// Whether so much is lost that sending more would be more of the same.
    pub(super) const fn is_futile(&self) -> bool {
        self.is_futile
    }

    /// Looks at what was seen of a flow of this rate, and begins anew with it once it was enough.
    /// `is_unqueued`: nothing waits, so no full queue explains the losses.
    pub(super) fn judge(&mut self, seen: &mut Seen, rate: Rate, is_unqueued: bool) -> Finding {
        let (window, unusual) = match self.is_found || self.trial.is_some() {
            true => (POLICED_WINDOW, POLICED),
            false => (WINDOW, UNUSUAL),
        };
        if seen.total() < window {
            return Finding::Nothing;
        }
        let loss = seen.lost() / f64::from(seen.total());
        *seen = Seen::default();
        self.is_futile = loss > FUTILE;
        if let Some(trial) = self.trial.take() {
            self.is_found = loss < ENDED * (self.usual + trial.loss);
            if self.is_found {
                return Finding::Policed;
            }
            // It was chance, or whatever it was: it is usual now.
            self.usual = trial.loss;
            return Finding::Change(trial.rate);
        }
        if loss > self.usual + unusual && is_unqueued {
            self.trial = Some(Trial { rate, loss });
            return Finding::Change((1.0 - GIVEN) * rate * (1.0 - loss) / (1.0 - self.usual));
        }
        if !self.is_found {
            self.usual += LEARNED * (loss - self.usual);
        }
        Finding::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_kbps(10_000);

    /// What is found after this many datagrams, of which so many percent are lost.
    fn judge(policer: &mut Policer, datagrams: u32, percent: u32) -> Finding {
        let mut seen = Seen::default();
        (0..datagrams).for_each(|n| seen.on_settled(n % 100 < percent));
        policer.judge(&mut seen, RATE, true)
    }

    #[test]
    fn losses_that_end_with_less_are_a_policers() {
        let mut policer = Policer::default();
        let Finding::Change(less) = judge(&mut policer, 300, 50) else { panic!("no trial") };
        assert!((0.40..0.47).contains(&(less / RATE)), "{less:?}");
        assert_eq!(judge(&mut policer, 100, 2), Finding::Policed);
        assert!(policer.is_found());
    }

    #[test]
    fn losses_that_stay_are_usual_and_the_rate_is_taken_again() {
        let mut policer = Policer::default();
        assert_ne!(judge(&mut policer, 300, 50), Finding::Nothing);
        assert_eq!(judge(&mut policer, 100, 50), Finding::Change(RATE));
        assert!(!policer.is_found() && policer.usual() > 0.45);
        assert_eq!(judge(&mut policer, 300, 50), Finding::Nothing, "no second trial");
    }

    #[test]
    fn while_most_is_lost_to_send_more_is_futile() {
        let mut policer = Policer::default();
        judge(&mut policer, 300, 60);
        assert!(policer.is_futile());
    }

    #[test]
    fn a_queue_explains_them() {
        let mut seen = Seen::default();
        (0..300).for_each(|n| seen.on_settled(n % 2 == 0));
        assert_eq!(Policer::default().judge(&mut seen, RATE, false), Finding::Nothing);
    }
}
