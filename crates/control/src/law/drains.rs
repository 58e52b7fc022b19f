//! When the flows of a queue drain it: all at the same time, although none knows of the others.
//!
//! All of them see the queue become empty at the same moment at the bottleneck. So each flow drains a fixed
//! time after it sent the datagram that met the empty queue, and again after that time, until it sees the
//! queue become empty anew. The invariant: a flow that has seen the queue become empty is in step with all
//! others that have.

use crate::tuning::delay::{DRAIN_AFTER, MIN_EMPTY};
use crate::units::Span;

/// The times of the drains, by the sender's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drains {
    /// When the queue was last seen empty.
    empty_at: Span,
    next_at: Span,
}

impl Drains {
    /// The queue is empty now, as far as is known.
    pub(super) fn new(now: Span) -> Self {
        Self { empty_at: now, next_at: now + DRAIN_AFTER }
    }

    /// A datagram sent at this time met an empty queue. `fell` is by how much its delay is below the minimum
    /// before, which then was the delay of a queue.
    pub(super) fn on_empty(&mut self, sent: Span, fell: Span) {
        if sent - self.empty_at > DRAIN_AFTER / 4.0 || fell > MIN_EMPTY {
            self.next_at = sent + DRAIN_AFTER;
        }
        self.empty_at = self.empty_at.max(sent);
    }

    /// Whether it is time to drain. A queue that was empty since need not be drained.
    pub(super) fn poll(&mut self, now: Span) -> bool {
        if now < self.next_at {
            return false;
        }
        let passed = (now - self.next_at) / DRAIN_AFTER;
        self.next_at += libm::floor(passed + 1.0) * DRAIN_AFTER;
        now - self.empty_at > DRAIN_AFTER / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Span = Span::from_millis(1);

    /// The times in milliseconds at which a flow drains until 20 s.
    fn drains(mut drains: Drains, mut empties: impl FnMut(u16) -> bool) -> alloc::vec::Vec<u16> {
        let mut at = alloc::vec::Vec::new();
        for ms in 1..20_000 {
            let now = Span::from_millis(ms);
            if empties(ms) {
                drains.on_empty(now, Span::ZERO);
            }
            if drains.poll(now) {
                at.push(ms);
            }
        }
        at
    }

    #[test]
    fn flows_that_begin_apart_drain_in_step_once_the_queue_was_empty() {
        let empties = |ms| ms == 3_000;
        let [a, b] = [MS, 700.0 * MS].map(|at| drains(Drains::new(at), empties));
        assert_eq!((&a, &a[..]), (&b, &[7_000, 11_000, 15_000, 19_000][..]));
    }

    #[test]
    fn a_queue_that_is_empty_anyway_is_not_drained() {
        assert!(drains(Drains::new(MS), |ms| ms % 100 == 0).is_empty());
    }

    /// A newcomer took a queue for the base, until it fell.
    #[test]
    fn a_base_that_was_too_high_puts_a_newcomer_in_step() {
        let mut it = Drains::new(MS);
        it.on_empty(500.0 * MS, 5.0 * MS);
        assert_eq!(it.next_at, 500.0 * MS + DRAIN_AFTER);
    }
}
