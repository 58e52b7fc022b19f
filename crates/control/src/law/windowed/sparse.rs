//! Fewer datagrams in a round trip than a window can pace: AIMD in their number.
//!
//! A window has [`MIN_WINDOW`](super::window::MIN_WINDOW) datagrams in flight at least, and fifty flows on a
//! small link have room for one each: there the pace alone decides. Each arrival adds a part of a datagram to
//! the number per round trip, and more the longer nothing is lost; each loss beyond the usual takes away a
//! part of this number.

/// What an arrival adds, of a datagram, and at most where nothing is lost: it doubles after [`CALM`] of them.
const ADDED: f64 = 0.1;
const MAX_ADDED: f64 = 4.0;
const CALM: u32 = 8;

/// The part that a loss takes: CUBIC's.
const CUT: f64 = 0.3;

/// The weight of a fate in the share that is lost.
const WEIGHT: f64 = 1.0 / 16.0;

/// Its growth, and the share that is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sparse {
    added: f64,
    calm: u32,
    lost: f64,
}

impl Sparse {
    pub(super) const NEW: Self = Self { added: ADDED, calm: 0, lost: 0.0 };

    /// The number of datagrams of a round trip after one of them has arrived or was lost, on a path that
    /// loses a `usual` share.
    pub(super) fn next(&mut self, datagrams: f64, is_lost: bool, usual: f64) -> f64 {
        self.lost += WEIGHT * (f64::from(u8::from(is_lost)) - self.lost);
        if is_lost {
            (self.added, self.calm) = (ADDED, 0);
            let beyond = (1.0 - usual / self.lost).max(0.0);
            return datagrams * (1.0 - CUT * beyond);
        }
        self.calm += 1;
        if self.calm == CALM {
            (self.added, self.calm) = ((2.0 * self.added).min(MAX_ADDED), 0);
        }
        datagrams + self.added / datagrams.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean number of datagrams where each `of`th is lost.
    fn mean(of: u32, usual: f64) -> f64 {
        let (mut sparse, mut datagrams, mut sum) = (Sparse::NEW, 2.0, 0.0);
        for n in 0..4_000 {
            datagrams = sparse.next(datagrams, n % of == 0, usual).clamp(1.0, 4.0);
            sum += datagrams;
        }
        sum / 4_000.0
    }

    #[test]
    fn with_more_losses_there_are_fewer_and_what_is_usual_is_none() {
        let (third, tenth) = (mean(3, 0.0), mean(10, 0.0));
        assert!(third < 1.5 && tenth > 1.5 * third, "{third} {tenth}");
        assert!(mean(3, 0.34) > 3.0);
    }

    /// Two of them with the same losses become equal.
    #[test]
    fn shares_become_equal() {
        let (mut few, mut many) = ((Sparse::NEW, 1.0), (Sparse::NEW, 4.0));
        for n in 0..100 {
            for (sparse, datagrams) in [&mut few, &mut many] {
                *datagrams = sparse.next(*datagrams, n % 4 == 0, 0.0).max(1.0);
            }
        }
        assert!(many.1 / few.1 < 1.1, "{few:?} {many:?}");
    }
}
