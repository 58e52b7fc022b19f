//! Losses for which a law has given way, and how many of them were none.
//!
//! What counts as lost may only be late. Where half of what made a law give way was, it was no reason: the
//! law takes back what it did.

/// The losses that were a reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blamed {
    /// The number after the last datagram sent then: a later one was no reason.
    below: u64,
    lost: f64,
    spurious: f64,
}

impl Blamed {
    /// The number of losses among datagrams below this number.
    pub(super) const fn new(below: u64, lost: f64) -> Self {
        Self { below, lost, spurious: 0.0 }
    }

    /// The datagram with this number, which counted as lost, has arrived. Returns whether half of them have.
    pub(super) fn is_refuted_by(&mut self, number: u64) -> bool {
        if number < self.below {
            self.spurious += 1.0;
        }
        2.0 * self.spurious >= self.lost
    }
}
