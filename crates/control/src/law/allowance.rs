//! How much may be in flight before there is a window.
//!
//! A guess, or the rate that a train shows, is that of the whole link: in a crowd each flow kept this rate
//! until it heard of its losses, which a long queue delays, and replaced lost datagrams at once. So the
//! datagrams in flight have a bound. For a guess this is [`GUESS`] until the sender hears of losses; then it
//! is the first flight, or what the rate passes in a round trip if that is more. Datagrams lost beside a
//! queue are not replaced, as in Relentless Congestion Control (Mathis, 2009), and each arrival makes room
//! for [`GROWTH`] more, as in a slow start. Alone on a link that is no limit, for as many arrive as are sent.
//! Losses without a queue may be the path's own, unless they are most of the datagrams sent.
//!
//! The datagrams that a flow sends before it knows whether it is alone are lost if it is not alone, and save
//! time if it is. Either effect is a share of the transfer: so a transfer of one chunk is sent on [`Trust`]
//! as a whole, and a part of a longer one, until its [`stretch`](super::stretch) shows no other flow
//! (docs/decisions/0024-ramp.md).

use super::seen::Seen;
use super::stretch::Found;
use crate::tuning::FULL_PACKET;
use crate::tuning::allowance::{CHUNK, GROWTH, GUESS, LEAST, ON_TRUST, PARTS, WINDOW};
use crate::tuning::blind::{FIRST_WINDOW, FLOODED};
use crate::units::Bytes;

/// How many datagrams a transfer sends before it knows whether it is alone.
#[derive(Clone, Copy, Debug)]
enum Trust {
    /// All of its datagrams, because it is short.
    Whole,
    /// This number.
    Part(f64),
    /// This number, and others are on the link.
    Shared(f64),
    /// Any number: it is alone, or the path is known.
    Free,
}

impl Trust {
    /// That of a transfer of this length.
    fn of(bytes: Bytes) -> Self {
        let part = (bytes / FULL_PACKET / PARTS).max(ON_TRUST);
        if bytes > CHUNK { Self::Part(part) } else { Self::Whole }
    }

    fn on_found(self, found: Found) -> Self {
        match (self, found) {
            (Self::Free | Self::Shared(_), _) => self,
            (Self::Whole | Self::Part(_), Found::Nobody) => Self::Free,
            (Self::Whole, Found::Others) => Self::Shared(ON_TRUST),
            (Self::Part(part), Found::Others) => Self::Shared(part),
        }
    }

    const fn bound(self) -> Option<f64> {
        match self {
            Self::Part(part) | Self::Shared(part) => Some(part),
            Self::Whole | Self::Free => None,
        }
    }
}

/// The datagrams that may be in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// The maximum number in flight at a guess, before anything was lost.
    first: f64,
    /// The bound if nothing was lost and nothing has grown, and by how many the bound is lower since then.
    most: f64,
    fewer: f64,
    /// What became of the newest, whether most of those before them were lost, and whether what arrived last
    /// met a queue.
    seen: Seen,
    is_flooded: bool,
    is_queued: bool,
    /// The bytes of the transfer, and what of them goes on trust.
    total: Bytes,
    trust: Trust,
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
            total: Bytes::ZERO,
            trust: Trust::Whole,
        }
    }

    /// The transfer has this many bytes, if it is longer than it was.
    pub(super) fn set_total(&mut self, bytes: Bytes) {
        if bytes > self.total {
            self.total = bytes;
            if matches!(self.trust, Trust::Whole | Trust::Part(_)) {
                self.trust = Trust::of(bytes);
            }
        }
    }

    /// The path needs no ramp: it is short, its rate is remembered, or arrivals show nothing there.
    pub(super) const fn trust(&mut self) {
        self.trust = Trust::Free;
    }

    /// The stretch of arrivals shows this.
    pub(super) fn on_found(&mut self, found: Found) {
        self.trust = self.trust.on_found(found);
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

    /// As many as may be in flight.
    pub(super) fn datagrams(&self) -> f64 {
        let most = self.trust.bound().map_or(self.most, |part| self.most.min(part));
        (most - self.fewer).max(LEAST)
    }

    /// Whether no more may be sent, with this number in flight.
    pub(super) fn is_spent(&self, in_flight: u32) -> bool {
        f64::from(in_flight) >= self.datagrams()
    }

    /// As many as may be in flight, if a ramp is what bounds them.
    pub(super) fn ramp(&self) -> Option<f64> {
        (self.trust.bound()? - self.fewer < self.most).then(|| self.datagrams())
    }

    /// Whether a ramp bounds them, and rises: no more is lost to a queue than arrives.
    pub(super) fn is_rising(&self) -> bool {
        self.fewer <= 0.0 && self.ramp().is_some()
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

    /// One that goes on trust in part, over a path that holds a hundred.
    fn of_1024() -> Allowance {
        let mut allowance = Allowance::new();
        allowance.set_total(1_024.0 * FULL_PACKET);
        allowance.set_holds(100.0);
        allowance
    }

    fn bound(allowance: &Allowance) -> u32 {
        (0..1_000).find(|&more| allowance.is_spent(more)).unwrap()
    }

    /// Of a block of 16 MiB a flow of a crowd sent what the link holds before it had heard of the others.
    #[test]
    fn a_long_transfer_goes_on_trust_in_part() {
        let first = |kib: f64| {
            let mut allowance = Allowance::new();
            allowance.set_total(Bytes(kib * 1_024.0));
            bound(&allowance)
        };
        let kib = [256.0, 257.0, 1_024.0, 4_096.0, 16_384.0];
        assert_eq!(kib.map(first), [512, 40, 40, 54, 214]);
    }

    /// Each arrival makes room for half a datagram more, until the path is full.
    #[test]
    fn a_ramp_ends_when_the_path_is_full() {
        let mut allowance = of_1024();
        (0..100).for_each(|_| allowance.on_settled(false));
        assert!(allowance.is_rising() && bound(&allowance) == 90);
        (0..40).for_each(|_| allowance.on_settled(false));
        assert!(!allowance.is_rising());
    }

    #[test]
    fn a_ramp_ends_where_nobody_else_is() {
        let mut allowance = of_1024();
        allowance.on_found(Found::Nobody);
        assert!(!allowance.is_rising() && bound(&allowance) == 110);
        let mut shared = of_1024();
        shared.on_found(Found::Others);
        shared.on_found(Found::Nobody);
        assert!(shared.is_rising(), "others pause");
        allowance.set_total(2_048.0 * FULL_PACKET);
        assert_eq!(bound(&allowance), 110, "it stays alone");
    }

    /// Of 24 joins of 276 KiB on 8.4 Mbit/s each sent the whole block: 47 % was dropped.
    #[test]
    fn where_others_are_found_a_short_transfer_has_a_ramp_too() {
        let mut allowance = Allowance::new();
        allowance.set_total(CHUNK);
        allowance.set_holds(100.0);
        assert_eq!(bound(&allowance), 110);
        allowance.on_found(Found::Others);
        assert_eq!(bound(&allowance), 40);
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
