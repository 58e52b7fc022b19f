//! What is sent while no rate is known: a guess, and less of it the longer nothing is measured.
//!
//! A train that is dropped at a full queue tells no rate, and a flow that goes on with its guess keeps that
//! queue full: ten of them on one link dropped 82 % of what they sent. So the guess holds for a chunk and a
//! round trip. After that it is halved with each half chunk, down to the floor, until a rate is measured: a
//! train looks for one again where what was sent gets through.

use core::time::Duration;

use super::units::micros;
use crate::Instant;

/// What is sent while nothing is known: 20 Mbit/s for 0.6 chunks, then 4 Mbit/s. In bytes per microsecond.
const FIRST_RATE: f64 = 2.5;
const FIRST_SLICES: usize = 154;
pub(super) const LATER_RATE: f64 = 0.5;

/// Of what the way back carries so much is used: somewhat less, for it is believed for a round trip.
const HINT_GAIN: f64 = 0.95;

/// Slices that are sent at the first guess in any case. A single chunk over a queue that no train
/// fits into is through soonest that way.
const BELIEVED_SLICES: usize = 256;

/// After those, and a round trip, the rate is halved with each so many slices.
const HALVED_AFTER: usize = 128;

/// Halvings at most, where no floor is set.
const MAX_HALVINGS: usize = 10;

/// What is sent may be ahead of its rate by this much, in microseconds: a tick's worth.
const AHEAD: f64 = 1_000.0;

/// Once the rate was halved, trains are this far apart: at the default floor a train is as much as is sent
/// between two.
const TRAIN_INTERVAL: Duration = Duration::from_secs(1);

/// Pacing without a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blind {
    /// Bytes per microsecond, as all rates here.
    floor: f64,
    /// A rate to begin with.
    hint: Option<f64>,
    /// Slices sent, and when the first of them was.
    sent: usize,
    since: Option<Instant>,
    /// Slices sent although a rate should have been measured by then.
    late: usize,
    /// When what was sent is through, at the rate it was sent at, in microseconds.
    paced_at: f64,
    train_at: Instant,
}

impl Blind {
    pub(super) fn new(floor_bps: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a floor is not that exact")]
        let floor = floor_bps as f64 / 8e6;
        Self {
            floor,
            hint: None,
            sent: 0,
            since: None,
            late: 0,
            paced_at: 0.0,
            train_at: Instant::ZERO,
        }
    }

    /// What the way back can carry.
    pub(super) const fn set_hint(&mut self, rate: f64) {
        self.hint = Some(rate);
    }

    /// A slice went out while no rate was known. A limit that was set and is below the guess is none: then no
    /// train can go, and nothing is wrong with having measured nothing.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: f64, rtt: Duration, limit: f64) {
        self.sent += 1;
        let since = *self.since.get_or_insert(now);
        let rate = self.rate();
        let is_late = self.sent > BELIEVED_SLICES && now.since(since) > rtt;
        self.late += usize::from(is_late && rate < limit);
        self.paced_at = self.paced_at.max(micros(now)) + bytes / rate;
    }

    /// The same for a slice of a train, which goes whatever the rate.
    pub(super) fn on_train_sent(&mut self, now: Instant) {
        self.sent += 1;
        self.since.get_or_insert(now);
    }

    /// Whether the next slice must wait, for a caller that is late by so many microseconds.
    pub(super) fn is_early(&self, now: Instant, late: f64) -> bool {
        self.paced_at > micros(now) + AHEAD + late
    }

    /// Whether a train should look for the rate again, now that slices get through.
    pub(super) fn poll_train(&mut self, now: Instant) -> bool {
        let is_due = self.halvings() > 0 && now >= self.train_at;
        if is_due {
            self.train_at = now + TRAIN_INTERVAL;
        }
        is_due
    }

    /// Bytes per microsecond.
    pub(super) fn rate(&self) -> f64 {
        let unhinted = if self.sent < FIRST_SLICES { FIRST_RATE } else { LATER_RATE };
        let first = self.hint.map_or(unhinted, |hint| hint * HINT_GAIN);
        let halved = (0..self.halvings()).fold(first, |rate, _| rate / 2.0);
        halved.max(self.floor.min(first))
    }

    fn halvings(&self) -> usize {
        (self.late / HALVED_AFTER).min(MAX_HALVINGS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    /// Sends so many slices under this limit, each when it may go. Returns when the last went, in ms.
    fn send(blind: &mut Blind, from_ms: u64, slices: usize, limit: f64) -> u64 {
        let mut ms = from_ms;
        for _ in 0..slices {
            while blind.is_early(Instant::from_millis(ms), 0.0) {
                ms += 1;
            }
            blind.on_sent(Instant::from_millis(ms), 1_088.0, RTT, limit);
        }
        ms
    }

    fn mbit(blind: &Blind) -> f64 {
        blind.rate() * 8.0
    }

    #[test]
    fn a_guess_is_believed_for_a_round_trip() {
        let mut blind = Blind::new(200_000);
        blind.set_hint(100.0 / 8.0);
        // 95 Mbit/s are 10.9 slices in a millisecond.
        let ms = send(&mut blind, 1_000, 540, f64::INFINITY);
        assert!((1_045..=1_050).contains(&ms) && (mbit(&blind) - 95.0).abs() < 0.1, "{ms}");
        assert!(!blind.poll_train(Instant::from_millis(ms)));
        let ms = send(&mut blind, ms, 20 + 128, f64::INFINITY);
        assert!((mbit(&blind) - 47.5).abs() < 0.1, "{}", mbit(&blind));
        send(&mut blind, ms, 128, f64::INFINITY);
        assert!((mbit(&blind) - 23.75).abs() < 0.1, "{}", mbit(&blind));
    }

    #[test]
    fn a_chunk_goes_at_the_first_guess_and_no_second_one() {
        let mut blind = Blind::new(200_000);
        send(&mut blind, 0, 256, f64::INFINITY);
        assert!((mbit(&blind) - 4.0).abs() < 1e-9);
        send(&mut blind, 1_000, 128, f64::INFINITY);
        assert!((mbit(&blind) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn halving_ends_at_the_floor() {
        let after = |floor_bps| {
            let mut blind = Blind::new(floor_bps);
            send(&mut blind, 0, 5_000, f64::INFINITY);
            mbit(&blind)
        };
        assert!((after(200_000) - 0.2).abs() < 1e-9);
        assert!(after(0) > 0.003, "without a floor it goes on, too");
        assert!((after(50_000_000) - 4.0).abs() < 1e-9, "a floor makes no guess larger");
    }

    /// Under a limit that lets no train pass no rate is ever measured, and that is nobody's fault.
    #[test]
    fn a_limit_below_the_guess_is_kept_and_not_halved() {
        let mut blind = Blind::new(200_000);
        send(&mut blind, 0, 5_000, 0.25);
        assert!((mbit(&blind) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn trains_look_for_the_rate_again_once_a_second() {
        let mut blind = Blind::new(200_000);
        let ms = send(&mut blind, 0, 1_000, f64::INFINITY);
        let trains = (ms..ms + 5_000).filter(|&ms| blind.poll_train(Instant::from_millis(ms)));
        assert_eq!(trains.count(), 5);
    }
}
