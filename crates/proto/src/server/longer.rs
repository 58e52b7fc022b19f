//! A path that has become longer, for the connections of one address: what two of them have found out holds
//! for the others, too.
//!
//! A connection finds it out when it sends less and its delay stays (`law/windowed/others.rs` of the sender).
//! Connections that take turns in one window never send that much less. They saw a queue that did not end,
//! those that had found it out saw none, and the window of all went to and fro between four datagrams and a
//! fifth of the path. Each client has a clock of its own, so a member is given the difference, and not a
//! delay. It takes two, for one may lie; and a member forgets it when its delay becomes shorter.

/// The part of the difference that another must have found, and that a member must have as its queue.
const SAME: f64 = 0.75;

/// The part of a member's delay that is the path and no queue, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Longer(f64);

impl Longer {
    pub(super) const NOT: Self = Self(0.0);

    /// The queueing delay of a member that seems to have this one, in seconds.
    pub(super) fn queue(&mut self, seen: f64) -> f64 {
        self.0 = self.0.min(seen);
        seen - self.0
    }

    /// Two members have found that the path is longer `by` this, in seconds. This one has such a queue.
    pub(super) fn on_told(&mut self, by: f64, queue: f64) {
        if is_same(queue, by) {
            self.0 = self.0.max(by.min(queue));
        }
    }
}

/// Whether this is as much as one has found, or more.
pub(super) fn is_same(found: f64, by: f64) -> bool {
    found >= SAME * by
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_that_others_found_to_be_the_paths_is_no_queue_until_it_is_shorter() {
        let mut longer = Longer::NOT;
        longer.on_told(0.05, 0.01);
        assert_eq!(longer.queue(0.06), 0.06, "its own queue is shorter than that");
        longer.on_told(0.05, 0.06);
        assert!((longer.queue(0.06) - 0.01).abs() < 1e-9);
        assert_eq!(longer.queue(f64::INFINITY), f64::INFINITY, "nothing was heard");
        assert_eq!(longer.queue(0.02), 0.0);
        assert!((longer.queue(0.06) - 0.04).abs() < 1e-9, "the path was never longer than that");
    }
}
