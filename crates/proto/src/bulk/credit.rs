//! What the receiver can take: how many chunks and announcements may be counted in all (STANDARD-1, 4.2.3).
//!
//! The invariant: no more is used than was given.

/// Credit that a block leaves unless it has no chunk open: for the announcement and the first chunk of a
/// block that is more urgent.
const RESERVE: u64 = 2;

/// The credit of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credit {
    given: u64,
    used: u64,
}

impl Credit {
    /// The credit before the first progress frame: `given` chunks and announcements.
    pub(crate) const fn new(given: u64) -> Self {
        Self { given, used: 0 }
    }

    /// The receiver gives credit for `given` chunks and announcements in all. Returns whether that is more
    /// than before.
    pub(crate) const fn raise(&mut self, given: u64) -> bool {
        let is_more = given > self.given;
        if is_more {
            self.given = given;
        }
        is_more
    }

    /// The credit that was given in all.
    pub(crate) const fn given(&self) -> u64 {
        self.given
    }

    /// The credit that is not used.
    pub(crate) const fn left(&self) -> u64 {
        self.given - self.used
    }

    pub(crate) const fn is_used_up(&self) -> bool {
        self.left() == 0
    }

    /// Whether a chunk may be opened, of a block that has others open or has not.
    pub(crate) const fn may_open(&self, has_others: bool) -> bool {
        self.left() > if has_others { RESERVE } else { 0 }
    }

    /// A chunk is opened, or a block announced. It was asked before, so that there is credit for it.
    pub(crate) fn on_used(&mut self) {
        self.used = self.given.min(self.used + 1);
    }

    /// A chunk that was opened was here before: it counts no more (STANDARD-1, 4.2.3).
    pub(crate) const fn give_back(&mut self) {
        self.used = self.used.saturating_sub(1);
    }

    pub(crate) fn check_invariants(&self) {
        assert!(self.used <= self.given, "more is used than was given");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_the_credit_is_for_other_blocks() {
        let mut credit = Credit::new(3);
        assert!(credit.may_open(true));
        credit.on_used();
        assert!(!credit.may_open(true) && credit.may_open(false));
        (0..2).for_each(|_| credit.on_used());
        assert!(!credit.may_open(false) && credit.is_used_up());
        assert!(!credit.raise(2) && credit.raise(4) && credit.left() == 1);
        credit.check_invariants();
    }
}
