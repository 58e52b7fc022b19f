//! Variable link rates: a token bucket, and rate changes.
//!
//! Both are computed in advance and exactly: the departure of a packet is known on arrival, and later
//! packets never leave before it.

use std::time::Duration;

use haulier_proto::Instant;

/// A change of the serializer's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateChange {
    /// When. A packet being sent then continues at the new rate.
    pub at: Instant,
    /// Bits per second at IP level from then on.
    pub rate_bps: u64,
}

/// A token bucket in front of a link: a burst at line rate, then the bucket's rate. Providers use it to
/// police upstream traffic, or to shape downstream traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Bits per second at IP level at which the bucket fills.
    pub rate_bps: u64,
    /// Bytes that it holds. A larger packet than this never passes a policer.
    pub burst_bytes: u64,
    /// What happens to a packet without enough tokens.
    pub excess: Excess,
}

/// What happens to a packet above the rate of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// It is dropped: a policer.
    Dropped,
    /// It waits for its tokens in the link's queue: a shaper.
    Queued,
}

/// The level of a token bucket, as the time at which it will be full again: filling then needs no steps and
/// no fractions (the virtual scheduling of ITU-T I.371).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BucketLevel {
    full_at: Instant,
}

impl BucketLevel {
    /// Takes the tokens for a packet; returns when it may be sent, or `None` if it is dropped.
    pub(crate) fn take(
        &mut self,
        bucket: &TokenBucket,
        now: Instant,
        bytes: u64,
    ) -> Option<Instant> {
        let time = |bytes: u64| sending_time(bytes, bucket.rate_bps);
        let full_at = self.full_at.max(now) + time(bytes);
        let released = now.max(before(full_at, time(bucket.burst_bytes)));
        if released > now && bucket.excess == Excess::Dropped {
            return None;
        }
        self.full_at = full_at;
        Some(released)
    }
}

/// When the last bit of a packet leaves whose first one leaves at `starts`, at a rate with its changes in
/// order of time.
pub(crate) fn leaves(starts: Instant, bytes: u64, rate: u64, changes: &[RateChange]) -> Instant {
    const NANOS: u128 = 1_000_000_000;
    let mut at = starts;
    let mut rate = rate;
    // In bits times nanoseconds per second, so that only the result is rounded.
    let mut left = u128::from(bytes) * 8 * NANOS;
    for change in changes {
        if change.at > at {
            let sent = u128::from(change.at.since(at).as_nanos() as u64) * u128::from(rate.max(1));
            if sent >= left {
                break;
            }
            left -= sent;
            at = change.at;
        }
        rate = change.rate_bps;
    }
    let nanos = left / u128::from(rate.max(1));
    at + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn sending_time(bytes: u64, rate_bps: u64) -> Duration {
    leaves(Instant::ZERO, bytes, rate_bps, &[]).since(Instant::ZERO)
}

fn before(at: Instant, by: Duration) -> Instant {
    Instant::ZERO + at.since(Instant::ZERO).saturating_sub(by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fate, Link, LinkConfig};

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Packets of 1000 bytes at IP level.
    const PACKET: [u8; 972] = [0; 972];

    /// 8 Mbit/s, so that a packet takes a millisecond, on a line of 80.
    fn bucket(excess: Excess) -> LinkConfig {
        let bucket = TokenBucket { rate_bps: 8_000_000, burst_bytes: 3_000, excess };
        LinkConfig { rate_bps: Some(80_000_000), bucket: Some(bucket), ..LinkConfig::default() }
    }

    fn arrivals(link: &mut Link) -> Vec<u64> {
        let mut datagram = Vec::new();
        let mut out = Vec::new();
        while let Some(at) = link.poll_timeout() {
            assert!(link.poll_delivery(at, &mut datagram));
            out.push(at.as_nanos() / 100_000);
        }
        link.check_conservation();
        out
    }

    #[test]
    fn a_policer_passes_a_burst_and_then_the_rate() {
        let mut link = Link::new(bucket(Excess::Dropped), 1);
        let burst: Vec<_> = (0..5).map(|_| link.offer(ms(0), &PACKET)).collect();
        assert_eq!(
            burst,
            [Fate::Carried, Fate::Carried, Fate::Carried, Fate::Policed, Fate::Policed]
        );
        // Every millisecond there are tokens for one more; offered twice as fast, half is dropped.
        let half = |n: u64| Instant::from_nanos(n * 500_000);
        let later: Vec<_> = (2..10).map(|n| link.offer(half(n), &PACKET)).collect();
        assert_eq!(later.iter().filter(|fate| **fate == Fate::Carried).count(), 4, "{later:?}");
        assert_eq!(link.stats().policed, 6);
        assert_eq!(arrivals(&mut link), [1, 2, 3, 11, 21, 31, 41]);
    }

    #[test]
    fn a_shaper_queues_what_a_policer_drops() {
        let mut link = Link::new(bucket(Excess::Queued), 1);
        (0..5).for_each(|_| assert_eq!(link.offer(ms(0), &PACKET), Fate::Carried));
        assert_eq!(link.stats().policed, 0);
        assert_eq!(arrivals(&mut link), [1, 2, 3, 11, 21]);
        // Empty for long, the bucket holds its burst again and no more.
        (0..4).for_each(|_| assert_eq!(link.offer(ms(100), &PACKET), Fate::Carried));
        assert_eq!(arrivals(&mut link), [1001, 1002, 1003, 1011]);
    }

    #[test]
    fn a_shapers_queue_is_that_of_the_link() {
        let config = LinkConfig { queue_bytes: Some(4_000), ..bucket(Excess::Queued) };
        let mut link = Link::new(LinkConfig { rate_bps: None, ..config }, 1);
        let fates: Vec<_> = (0..8).map(|_| link.offer(ms(0), &PACKET)).collect();
        let carried = fates.iter().filter(|fate| **fate == Fate::Carried).count();
        // On a line without limit, the three of the burst were gone at once.
        assert_eq!((carried, link.stats().queue_full), (7, 1), "{fates:?}");
    }

    #[test]
    fn a_rate_change_applies_to_the_queue_and_keeps_the_order() {
        let to = |rate_bps| RateChange { at: ms(2), rate_bps };
        for (rate, arrives) in [(4_000_000, [10, 20, 40, 60]), (16_000_000, [10, 20, 25, 30])] {
            let config = LinkConfig {
                rate_bps: Some(8_000_000),
                rate_changes: vec![to(rate)],
                ..LinkConfig::default()
            };
            let mut link = Link::new(config, 1);
            (0..4).for_each(|_| assert_eq!(link.offer(ms(0), &PACKET), Fate::Carried));
            assert_eq!(arrivals(&mut link), arrives);
        }
    }

    #[test]
    fn a_packet_in_the_serializer_continues_at_the_new_rate() {
        let changes = [
            RateChange { at: Instant::from_nanos(500_000), rate_bps: 4_000_000 },
            RateChange { at: ms(1), rate_bps: 16_000_000 },
        ];
        // Half of it in half a millisecond, a quarter in the next, a quarter in an eighth.
        assert_eq!(leaves(ms(0), 1_000, 8_000_000, &changes), Instant::from_nanos(1_125_000));
        assert_eq!(leaves(ms(5), 1_000, 8_000_000, &changes), Instant::from_nanos(5_500_000));
    }
}
