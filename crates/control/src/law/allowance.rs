//! How much may be in flight before there is a window.
//!
//! A guess, or the rate that a train shows, is that of the link: in a crowd each flow went on at it until its
//! losses were heard of, which a long queue delays, and replaced at once what was lost. So what is in flight
//! has a bound. Until losses are heard of a guess has [`GUESS`]; then it is the first flight, or what the
//! rate passes in a round trip if that is more. What is lost beside a queue is not replaced, as in Relentless
//! Congestion Control (Mathis, 2009), and each arrival makes room for [`GROWTH`] more, as in a slow start.
//! Alone on a link that is no limit, for as many arrive as are sent. What is lost without a queue may be the
//! path's own, unless it is most of what was sent.

use super::seen::Seen;
use crate::tuning::allowance::{GROWTH, GUESS, LEAST, WINDOW};
use crate::tuning::blind::{FIRST_WINDOW, FLOODED};

/// The datagrams that may be in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// The most that were in flight at a guess, before anything was lost.
    first: f64,
    /// As many as may be if nothing was lost and nothing has grown, and how many fewer it is since.
    most: f64,
    fewer: f64,
    /// What became of the newest, whether most of those before them were lost, and whether what arrived last
    /// met a queue.
    seen: Seen,
    is_flooded: bool,
    is_queued: bool,
}

impl Allowance {
    pub(super) const fn new() -> Self {
        Self {
            first: 0.0,
            most: GUESS,
            fewer: 0.0,
            seen: Seen::new(),
            is_flooded: false,
            is_queued: false,
        }
    }

    /// At a guess this number is in flight, and this is what the path holds if the guess is right.
    pub(super) fn guess(&mut self, in_flight: u32, holds: f64) {
        if self.fewer > 0.0 {
            self.set_holds(holds);
        } else {
            self.first = self.first.max(in_flight.into());
        }
    }

    /// The path holds this many, at the rate that it is known to have.
    pub(super) fn set_holds(&mut self, datagrams: f64) {
        self.most = self.first.max(datagrams) + LEAST;
    }

    /// The fate of a datagram is settled.
    pub(super) fn on_settled(&mut self, is_lost: bool) {
        self.seen.on_settled(is_lost);
        let window = if self.fewer > 0.0 { WINDOW } else { FIRST_WINDOW };
        if self.seen.total() >= window {
            self.is_flooded = core::mem::take(&mut self.seen).share() > FLOODED;
        }
        if !is_lost {
            self.fewer -= GROWTH;
        } else if self.is_queued || self.is_flooded {
            self.fewer = (self.fewer + 1.0).min(self.most - LEAST);
        }
    }

    /// A datagram has arrived, and met a queue or not.
    pub(super) const fn on_arrival(&mut self, is_queued: bool) {
        self.is_queued = is_queued;
    }

    /// One of those that count as lost has arrived.
    pub(super) fn on_spurious(&mut self) {
        self.seen.on_spurious();
        self.fewer -= 1.0 + GROWTH;
    }

    /// Whether no more may be sent, with this number in flight.
    pub(super) fn is_spent(&self, in_flight: u32) -> bool {
        f64::from(in_flight) >= (self.most - self.fewer).max(LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends as many as it may while this share of what was sent a round trip before is lost, evenly. Returns
    /// the flights.
    fn flights<const N: usize>(lost: f64, is_queued: bool) -> [u32; N] {
        let (mut allowance, mut flight) = (Allowance::new(), 100_u32);
        allowance.on_arrival(is_queued);
        allowance.guess(flight, 50.0);
        core::array::from_fn(|_| {
            for n in 0..flight {
                let is_lost = (lost * f64::from(n)).fract() + lost >= 1.0 - 1e-9;
                allowance.on_settled(is_lost);
            }
            allowance.set_holds(50.0);
            flight = (0..10_000).find(|&more| allowance.is_spent(more)).unwrap();
            flight
        })
    }

    #[test]
    fn alone_it_is_no_limit() {
        assert_eq!(flights(0.0, true), [160, 240, 360, 540]);
    }

    /// Ten flows of a crowd replaced what was lost, nine tenths of each flight.
    #[test]
    fn what_is_lost_is_not_replaced() {
        assert_eq!(flights(0.9, false), [31, 11, 11]);
        assert_eq!(flights(0.33, true), [111, 112, 114], "a third may be lost");
        assert_eq!(flights(0.4, true), [100, 90, 81]);
    }

    /// A link that loses a fifth on its own had half of its rate.
    #[test]
    fn losses_without_a_queue_are_the_paths_own_unless_most_is_lost() {
        assert_eq!(flights(0.2, false), [150, 210, 294]);
    }

    /// [H-4.5a] A server sent to an address that never answered for as long as the transfer's patience.
    #[test]
    fn of_a_guess_512_are_in_flight() {
        let allowance = Allowance::new();
        assert!(!allowance.is_spent(511) && allowance.is_spent(512));
    }

    #[test]
    fn a_higher_rate_and_what_was_late_make_room() {
        let mut allowance = Allowance::new();
        allowance.on_arrival(true);
        allowance.guess(40, 20.0);
        allowance.set_holds(20.0);
        (0..40).for_each(|_| allowance.on_settled(true));
        assert!(allowance.is_spent(10) && !allowance.is_spent(9));
        allowance.set_holds(100.0);
        assert!(allowance.is_spent(70) && !allowance.is_spent(69));
        (0..20).for_each(|_| allowance.on_spurious());
        assert!(allowance.is_spent(100) && !allowance.is_spent(99));
    }
}
