//! A guess that losses have reduced is taken back where they were none.

use super::super::seen::Seen;
use super::{Blind, Rate};

/// What losses change of a guess.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Guess {
    share: Option<Rate>,
    cuts: u32,
    calm: u32,
    seen: Seen,
}

impl Guess {
    /// What was lost of the datagrams by which it is judged next.
    pub(in super::super) fn lost(&self) -> f64 {
        self.seen.lost()
    }
}

impl Blind {
    /// What losses change of it.
    pub(in super::super) const fn guess(&self) -> Guess {
        let Self { share, cuts, calm, seen, .. } = *self;
        Guess { share, cuts, calm, seen }
    }

    /// Whether losses have reduced it since it was this.
    pub(in super::super) const fn is_cut_from(&self, before: &Guess) -> bool {
        self.cuts > before.cuts
    }

    /// A datagram that counted as lost has arrived.
    pub(in super::super) const fn on_spurious(&mut self, number: u64) {
        if number >= self.fresh_from {
            self.seen.on_spurious();
        }
    }

    /// Losses that have reduced it since it was this were none.
    pub(in super::super) const fn take_back(&mut self, before: &Guess) {
        (self.share, self.cuts, self.calm) = (before.share, before.cuts, before.calm);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::super::units::Span;
    use super::super::super::blamed::Blamed;
    use super::*;

    /// Of the first eight datagrams at a guess four count as lost, and it is halved. Two of them arrive.
    #[test]
    fn a_guess_that_was_cut_for_nothing_is_what_it_was() {
        let mut blind = Blind::new(Rate::from_kbps(200), None);
        let before = blind.rate();
        let mut cut = None;
        for number in 0..8 {
            let guess = blind.guess();
            blind.on_settled(number, number % 2 == 0, 8, Span::from_millis(50));
            if blind.is_cut_from(&guess) {
                cut = Some((guess, Blamed::new(8, guess.lost())));
            }
        }
        assert!(blind.rate() < before);
        let (guess, mut losses) = cut.unwrap();
        assert!(!losses.is_refuted_by(9) && !losses.is_refuted_by(0) && losses.is_refuted_by(2));
        blind.take_back(&guess);
        assert_eq!(blind.rate(), before);
        for number in 8..16 {
            blind.on_settled(number, number % 2 == 0, 16, Span::from_millis(50));
            if number % 2 == 0 {
                blind.on_spurious(number);
            }
        }
        assert_eq!(blind.rate(), before, "what is late before it is judged was no loss");
    }
}
