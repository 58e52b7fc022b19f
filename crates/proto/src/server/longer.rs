//! A path that has become longer, for the connections of one address: what two of them have found out the
//! others need not.
//!
//! A connection finds it out when it sends less and its delay stays (`law/windowed/others.rs` of the sender).
//! Those that take turns in one window never send so much less: they saw a queue of the rest for good, and
//! the window of all went to and fro between four datagrams and a fifth of the path. The others' delays are
//! by clocks of their own, so what they are told is by how much. One alone may lie; and what a member is told
//! is forgotten as soon as its delay is shorter.

/// What two of a kind may differ by.
const SAME: f64 = 0.75;

/// So many have to have found it out.
const TOLD_BY: usize = 2;

/// What of a member's delay is no queue, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Longer(f64);

impl Longer {
    pub(super) const NOT: Self = Self(0.0);

    /// The queueing delay of one that seems to have this one, in seconds.
    pub(super) fn queue(&mut self, seen: f64) -> f64 {
        self.0 = self.0.min(seen);
        seen - self.0
    }

    /// Others have found that the path is longer `by` this, in seconds, and this one has such a queue.
    pub(super) fn on_told(&mut self, by: f64, queue: f64) {
        if queue >= SAME * by {
            self.0 = self.0.max(by.min(queue));
        }
    }
}

/// Whether enough of the members have found as much, by what each has found in all.
pub(super) fn is_told(found: impl Iterator<Item = f64>, by: f64) -> bool {
    found.filter(|&found| found >= SAME * by).take(TOLD_BY).count() == TOLD_BY
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

    #[test]
    fn one_alone_tells_nobody() {
        assert!(!is_told([0.0, 0.05, 0.0].into_iter(), 0.05));
        assert!(is_told([0.04, 0.05, 0.0].into_iter(), 0.05));
    }
}
