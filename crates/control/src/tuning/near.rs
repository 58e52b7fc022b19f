//! Constants of near paths, as in a local network: there what was sent is known to have passed before a
//! queue has formed, so that more is tried with each ack.
//!
//! The invariant: on other paths nothing here has an effect.

use core::time::Duration;

use super::TICK;
use crate::units::{Bytes, Rate, Span};

/// The round trip below which a path is near.
pub(crate) const NEAR: Span = Span::from_millis(5);

/// On links that pass more than this many packets in a [`TICK`], one is as long as these take: as many fit
/// one call of the operating system, and the queue of a switch.
const TICK_PACKETS: f64 = 32.0;

/// The minimum tick: what the timers of operating systems can keep.
const MIN_TICK: Span = Span(100.0);

/// The minimum tick where a queue is not seen to hold more: that is passed on in two lots, if the caller is
/// in time. One that sleeps with its system's timers comes later, and makes up for it as far as fits.
const MIN_SHORT_TICK: Span = Span(25.0);

/// After each ack of datagrams that filled the longest queue seen, a queue longer by this factor is tried,
/// until packets are dropped: a switch that cannot hold it drops a third of it, once.
pub(crate) const GROWTH: f64 = 1.5;

/// A caller that is called in time needs no more of the queue than this many ticks: one, and what the timer
/// may be late. Up to 130 Mbit/s that is less than any queue is assumed to hold.
pub(crate) const QUEUE_TICKS: f64 = 1.25;

/// The maximum factor by which a train raises the rate of a fast link: it is known a round trip later if that
/// was too much.
pub(crate) const FASTER: f64 = 2.0;

/// The tick at this rate.
pub(crate) fn tick(rate: Rate, packet: Bytes) -> Duration {
    (TICK_PACKETS * packet / rate).clamp(MIN_TICK, TICK.into()).duration()
}

/// The tick at this rate through a queue that is known to hold `room`: shorter where two ticks pass more than
/// that.
pub(crate) fn tick_through(rate: Rate, packet: Bytes, room: Bytes) -> Duration {
    let half = (room / rate / 2.0).max(MIN_SHORT_TICK).duration();
    half.min(tick(rate, packet))
}

/// Whether a link of this rate has shorter ticks.
pub(crate) fn is_fast(rate: Rate, packet: Bytes) -> bool {
    tick(rate, packet) < TICK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_shorter_on_fast_links() {
        let micros = |mbit: u32| tick(Rate::from_kbps(mbit * 1_000), Bytes(1_250.0)).as_micros();
        let ticks = [1, 100, 320, 640, 1_000, 3_200, 10_000].map(micros);
        assert_eq!(ticks, [1_000, 1_000, 1_000, 500, 320, 100, 100]);
    }

    #[test]
    fn ticks_are_shorter_where_a_queue_is_not_seen_to_hold_two() {
        let micros = |mbit: u32, kb: u32| {
            let (rate, room) = (Rate::from_kbps(mbit * 1_000), Bytes(1e3 * f64::from(kb)));
            tick_through(rate, Bytes(1_250.0), room).as_micros()
        };
        assert_eq!(micros(1_000, 80), 320);
        assert_eq!([60, 120, 250, 500].map(|kb| micros(10_000, kb)), [25, 48, 100, 100]);
    }
}
