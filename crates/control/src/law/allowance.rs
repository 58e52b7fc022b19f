//! How much may be in flight before there is a window.
//!
//! A guess, or the rate that a train shows, is that of the link: in a crowd each flow went on at it until its
//! losses were heard of, which a long queue delays, and replaced at once what was lost. So what is in flight
//! has a bound. Until losses are heard of a guess has [`GUESS`]; then it is the first flight, or what the
//! rate passes in a round trip if that is more. What is lost beside a queue is not replaced, as in Relentless
//! Congestion Control (Mathis, 2009), and each arrival makes room for [`GROWTH`] more, as in a slow start.
//! Alone on a link that is no limit, for as many arrive as are sent. What is lost without a queue may be the
//! path's own, unless it is most of what was sent.
//!
//! Nothing tells a flow that begins whether it is alone. What it sends on trust is lost if it is not, and
//! saves time if it is, and either is a share of the transfer: so a transfer of one chunk is sent on trust as
//! a whole, and a longer one has a [`ramp`](Ramp) (docs/decisions/0024-ramp.md).

use super::seen::Seen;
use crate::tuning::FULL_PACKET;
use crate::tuning::allowance::{
    CHUNK, GROWTH, GUESS, LEAST, ON_TRUST, PARTS, SLICES, TWICE, WINDOW,
};
use crate::tuning::blind::{FIRST_WINDOW, FLOODED};
use crate::units::Bytes;

/// How a transfer of more than a chunk begins: the number of datagrams that are sent on trust.
#[derive(Clone, Copy, Debug)]
struct Ramp {
    /// Those of the whole transfer.
    total: f64,
    /// As many as go before anything is heard.
    first: f64,
}

impl Ramp {
    /// That of a transfer of this length; `None` if it is sent on trust as a whole.
    fn new(bytes: Bytes) -> Option<Self> {
        let (total, chunks) = (bytes / FULL_PACKET, bytes / CHUNK);
        let first = (SLICES / (chunks * chunks)).max(total / PARTS).max(ON_TRUST);
        (chunks > 1.0).then_some(Self { total, first })
    }

    /// How many go on a path that holds this many: of one that holds much of the transfer a larger part, for
    /// there a ramp takes most of its time.
    fn on_trust(self, holds: f64) -> f64 {
        self.first.max((holds / (TWICE * self.total)).min(1.0) * holds)
    }
}

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
    /// The bytes of the transfer, the part of it that is sent on trust, and the maximum of what the path was
    /// known to hold.
    total: Bytes,
    ramp: Option<Ramp>,
    holds: f64,
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
            ramp: None,
            holds: 0.0,
        }
    }

    /// The transfer has this many bytes, if it is longer than it was.
    pub(super) fn set_total(&mut self, bytes: Bytes) {
        if bytes > self.total {
            (self.total, self.ramp) = (bytes, Ramp::new(bytes));
        }
    }

    /// The path needs no ramp: it is short, or its rate is remembered.
    pub(super) const fn trust(&mut self) {
        (self.total, self.ramp) = (Bytes(f64::INFINITY), None);
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
        self.holds = self.holds.max(datagrams);
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
        let most = self.ramp.map_or(self.most, |ramp| self.most.min(ramp.on_trust(self.holds)));
        (most - self.fewer).max(LEAST)
    }

    /// Whether no more may be sent, with this number in flight.
    pub(super) fn is_spent(&self, in_flight: u32) -> bool {
        f64::from(in_flight) >= self.datagrams()
    }

    /// As many as may be in flight, if a ramp is what bounds them.
    pub(super) fn ramp(&self) -> Option<f64> {
        let ramp = self.ramp?;
        (ramp.on_trust(self.holds) - self.fewer < self.most).then(|| self.datagrams())
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

    /// Of a block of 16 MiB a flow of a crowd sent what the link holds before it had heard of the others.
    #[test]
    fn a_long_transfer_goes_on_trust_in_part() {
        const KIB: f64 = 1_024.0;
        let first = |kib: f64| {
            let mut allowance = Allowance::new();
            allowance.set_total(Bytes(kib * KIB));
            (0..1_000).find(|&more| allowance.is_spent(more)).unwrap()
        };
        let kib = [256.0, 288.0, 384.0, 512.0, 1_024.0, 4_096.0, 16_384.0];
        assert_eq!(kib.map(first), [512, 203, 114, 64, 32, 54, 214]);
    }

    /// Where a path holds twice the transfer all of that is sent at once, as long as nothing is lost.
    #[test]
    fn more_goes_on_trust_where_a_ramp_would_take_most_of_the_time() {
        let flight = |holds: &[f64]| {
            let mut allowance = Allowance::new();
            allowance.set_total(1_024.0 * FULL_PACKET);
            holds.iter().for_each(|&holds| allowance.set_holds(holds));
            allowance.ramp().map(f64::round)
        };
        assert_eq!(flight(&[100.0]), Some(32.0));
        assert_eq!(flight(&[1_024.0]), Some(512.0));
        assert_eq!(flight(&[1_024.0, 900.0]), Some(512.0), "a rate that falls is often jitter");
        assert_eq!(
            [2_048.0, 4_096.0].map(|holds| flight(&[holds])),
            [Some(2_048.0), Some(4_096.0)]
        );
    }

    /// Each arrival makes room for half a datagram more, until the path is full.
    #[test]
    fn a_ramp_ends_when_the_path_is_full() {
        let mut allowance = Allowance::new();
        allowance.set_total(1_024.0 * FULL_PACKET);
        allowance.set_holds(100.0);
        (0..100).for_each(|_| allowance.on_settled(false));
        assert!(allowance.is_rising() && allowance.is_spent(82) && !allowance.is_spent(81));
        (0..60).for_each(|_| allowance.on_settled(false));
        assert!(!allowance.is_rising());
        let mut trusted = Allowance::new();
        trusted.trust();
        trusted.set_total(1_024.0 * FULL_PACKET);
        assert!(!trusted.is_rising() && !trusted.is_spent(100));
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
