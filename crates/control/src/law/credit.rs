//! How much a start may send beside what has arrived.
//!
//! A guess, or the rate that a train shows, is that of the link: in a crowd each flow went on at it until its
//! losses were heard of, which a long queue delays, and what was lost was replaced at once. So from the first
//! feedback on what is in flight or lost is at most the first flight, or what the rate passes in a round
//! trip, and [`SLACK`], and [`GROWTH`] for each datagram that has arrived. Alone on a link that is no limit,
//! for as many arrive as are sent. A window replaces what is lost, for it is smaller after losses.

use crate::tuning::credit::{GROWTH, SLACK};

/// What has become of the datagrams of a path since it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    /// The datagrams in flight when the first fate was heard of; `None` before.
    first: Option<u32>,
    arrived: u32,
    lost: u32,
}

impl Credit {
    pub(super) const fn new() -> Self {
        Self { first: None, arrived: 0, lost: 0 }
    }

    /// The fate of a datagram is settled, while this number is in flight.
    pub(super) fn on_settled(&mut self, is_lost: bool, in_flight: u32) {
        self.first.get_or_insert(in_flight);
        self.lost = self.lost.saturating_add(is_lost.into());
        self.arrived = self.arrived.saturating_add((!is_lost).into());
    }

    /// One of those that count as lost has arrived.
    pub(super) const fn on_spurious(&mut self) {
        if self.lost > 0 {
            (self.lost, self.arrived) = (self.lost - 1, self.arrived + 1);
        }
    }

    /// Nothing is in flight any more: what is lost in a silence takes no credit from what follows it.
    pub(super) const fn on_idle(&mut self) {
        self.lost = 0;
    }

    /// What part has arrived of all whose fate is known.
    pub(super) fn kept(&self) -> f64 {
        f64::from(self.arrived) / f64::from(self.arrived.saturating_add(self.lost).max(1))
    }

    /// Whether no more may be sent, with this number in flight, on a path that holds this many at the rate at
    /// which they go.
    pub(super) fn is_spent(&self, in_flight: u32, holds: f64) -> bool {
        let Some(first) = self.first else { return false };
        let most = holds.max(first.into()) + SLACK + GROWTH * f64::from(self.arrived);
        f64::from(in_flight) + f64::from(self.lost) >= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends as many as it may while this part arrives of what was sent a round trip before; returns the
    /// flights.
    fn flights<const N: usize>(arrives: f64) -> [u32; N] {
        let (mut credit, mut flight) = (Credit::new(), 100);
        core::array::from_fn(|_| {
            for n in 0..flight {
                credit.on_settled(f64::from(n) >= arrives * f64::from(flight), flight);
            }
            flight = (0..10_000).find(|&more| credit.is_spent(more, 100.0)).unwrap();
            flight
        })
    }

    #[test]
    fn alone_it_is_no_limit() {
        assert_eq!(flights(1.0), [157, 197, 246, 307]);
        let nothing_heard = Credit::new();
        assert!(!nothing_heard.is_spent(100_000, 0.0));
    }

    /// Ten flows of a crowd replaced what was lost, nine tenths of each flight.
    #[test]
    fn what_is_lost_is_not_replaced() {
        assert_eq!(flights(0.1), [45, 6, 1]);
    }

    #[test]
    fn what_was_late_and_a_silence_give_it_back() {
        let mut credit = Credit::new();
        (0..100).for_each(|_| credit.on_settled(true, 50));
        assert!(credit.is_spent(0, 0.0));
        (0..50).for_each(|_| credit.on_spurious());
        assert!(!credit.is_spent(0, 0.0) && credit.is_spent(50, 0.0));
        assert!((credit.kept() - 0.5).abs() < 1e-9);
        credit.on_idle();
        assert!(!credit.is_spent(50, 0.0));
    }
}
