//! CoDel, the queue manager of many home routers (RFC 8289): once packets have waited too long for some time,
//! it drops some, and ever more often until the queue is short.
//!
//! A link knows when a packet will leave the queue when it joins it, so the verdict is made then, for that
//! time. There is one difference to the RFC: a queue of at most one packet, which is never dropped from, is
//! the queue that the packet found and not the one that it leaves behind.

use std::time::Duration;

use haulier_proto::Instant;

/// Bytes of a full packet: a queue of at most this does not count as a queue.
const MAX_PACKET_BYTES: u64 = 1500;

/// After this many intervals without a drop it begins anew (RFC 8289, 5.4).
const FORGETS_AFTER: u32 = 16;

/// The settings of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// The queueing delay that may last.
    pub target: Duration,
    /// How long a larger delay is accepted: about the longest round trip.
    pub interval: Duration,
}

/// 5 ms and 100 ms (RFC 8289, 4.2 and 4.3).
impl Default for CoDel {
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100) }
    }
}

impl CoDel {
    /// The usual settings for a link of this rate: the target is at least the time of one and a half packets.
    #[must_use]
    pub fn for_rate(bps: u64) -> Self {
        let packet = Duration::from_nanos(MAX_PACKET_BYTES * 8 * 1_000_000_000 / bps.max(1));
        let usual = Self::default();
        Self { target: usual.target.max(packet * 3 / 2), ..usual }
    }
}

/// What it remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CoDelState {
    /// When the delay will have been above the target for an interval.
    first_above: Option<Instant>,
    is_dropping: bool,
    drop_next: Instant,
    count: u64,
    last_count: u64,
}

impl CoDelState {
    /// Whether a packet is dropped that leaves the queue at `now` and `waited` in it. When it came, the queue
    /// held `found_bytes`. Called in the order in which packets leave.
    pub(crate) fn drops(
        &mut self,
        codel: &CoDel,
        now: Instant,
        waited: Duration,
        found_bytes: u64,
    ) -> bool {
        let is_above = self.is_above(codel, now, waited, found_bytes);
        if self.is_dropping {
            self.is_dropping = is_above;
            let is_due = is_above && now >= self.drop_next;
            if is_due {
                self.count += 1;
                self.drop_next = self.drop_next + self.spacing(codel);
            }
            return is_due;
        }
        if is_above {
            // If it stopped dropping a moment ago, it goes on at the pace that it had.
            let since = self.count - self.last_count;
            let is_recent = now.since(self.drop_next) < codel.interval * FORGETS_AFTER;
            self.count = if since > 1 && is_recent { since } else { 1 };
            self.last_count = self.count;
            self.is_dropping = true;
            self.drop_next = now + self.spacing(codel);
        }
        is_above
    }

    fn is_above(
        &mut self,
        codel: &CoDel,
        now: Instant,
        waited: Duration,
        found_bytes: u64,
    ) -> bool {
        if waited < codel.target || found_bytes <= MAX_PACKET_BYTES {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + codel.interval)
    }

    /// The interval over the root of the count, in integers.
    fn spacing(&self, codel: &CoDel) -> Duration {
        let nanos = u64::try_from(codel.interval.as_nanos()).unwrap_or(u64::MAX >> 10);
        Duration::from_nanos(nanos.saturating_mul(1 << 10) / (self.count << 20).isqrt())
    }
}

#[cfg(test)]
mod tests {
    use haulier_core::Ecn;

    use super::*;
    use crate::{EcnPath, Fate, Link, LinkConfig};

    /// 8 Mbit/s, so that a packet of 1000 bytes takes a millisecond, offered twice as fast for three seconds:
    /// the times in ms at which one was dropped.
    fn drops(link: LinkConfig, ecn: Ecn) -> (Vec<u64>, Link) {
        let mut link = Link::new(link, 1);
        let mut dropped = Vec::new();
        for half in 0..6_000 {
            let now = Instant::from_nanos(half * 500_000);
            if link.offer_marked(now, &[0; 972], 0, ecn) == Fate::Managed {
                dropped.push(half / 2);
            }
        }
        link.check_conservation();
        (dropped, link)
    }

    fn link() -> LinkConfig {
        let codel = Some(CoDel::default());
        LinkConfig { codel, ..LinkConfig::new(8_000_000, Duration::ZERO) }
    }

    #[test]
    fn it_drops_ever_more_often_while_the_queue_is_long() {
        let (dropped, link) = drops(link(), Ecn::NotEct);
        // Above the target after 10 ms, for an interval until a packet leaves after it; then an interval
        // over 1, root 2, root 3 in the time of leaving, of which half a millisecond passes for each sent.
        assert!((55..70).contains(&dropped[0]), "{dropped:?}");
        let apart: Vec<u64> = dropped.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((45..55).contains(&apart[0]) && (30..40).contains(&apart[1]), "{apart:?}");
        assert!(apart.last() < Some(&20), "{apart:?}");
        assert_eq!(link.stats().managed, dropped.len() as u64);
    }

    #[test]
    fn a_short_queue_is_left_alone() {
        let mut link = Link::new(link(), 1);
        for ms in 0..2_000 {
            assert_eq!(link.offer(Instant::from_millis(ms), &[0; 972]), Fate::Carried);
        }
        assert_eq!(CoDel::for_rate(100_000_000), CoDel::default());
        // A packet takes 30 ms.
        assert_eq!(CoDel::for_rate(400_000).target, Duration::from_millis(45));
    }

    #[test]
    fn what_is_capable_is_marked_instead() {
        let marking = LinkConfig { ecn: EcnPath::Carried, ..link() };
        let (dropped, link) = drops(marking, Ecn::Ect0);
        assert!(dropped.is_empty() && link.stats().marked > 20, "{:?}", link.stats());
    }
}
