//! A server's memory of the paths to its clients, so that the path of a returning client need not be measured
//! again.
//!
//! The reports of one client must not harm another. So a client that its token names has an entry of its own
//! for its address. The paths of other clients there are remembered for the address alone, and can only make
//! the start faster, up to the rate that the address was seen to take. The number of entries is fixed; an
//! attacker with many addresses can displace others, whose paths are then measured again: the only effect.

use alloc::collections::{BTreeMap, VecDeque};
use core::net::IpAddr;

use haulier_control::Known;

use super::admission::ClientName;
use crate::Instant;

/// Entries, some 200 bytes each.
const MAX_ENTRIES: usize = 4096;

/// An address, and the client there if a token named it. The port is left out: it changes with every visit.
type Key = (IpAddr, Option<ClientName>);

/// Paths by the address and the client.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    min_rate_bps: u64,
    known: BTreeMap<Key, Known>,
    order: VecDeque<Key>,
}

impl Paths {
    /// No rate that is recalled is below this minimum, in bit/s.
    pub(super) const fn new(min_rate_bps: u64) -> Self {
        Self { min_rate_bps, known: BTreeMap::new(), order: VecDeque::new() }
    }

    /// Remembers what was measured of the path to this client, if it is newer than what is known: a client
    /// that was sent nothing has only the recalled values, and these must not be discounted twice. For an
    /// address alone, the entry with the higher proven rate stays. The oldest entry is removed to make room.
    pub(super) fn remember(&mut self, to: IpAddr, client: Option<ClientName>, known: Known) {
        if known.rate.is_none() {
            return;
        }
        let key = (to.to_canonical(), client);
        if let Some(old) = self.known.get(&key) {
            let is_more =
                client.is_none() && old.discounted(known.at).proven.rate > known.proven.rate;
            if known.at <= old.at || is_more {
                return;
            }
        }
        if self.known.insert(key, known).is_none() {
            self.order.push_back(key);
        }
        if self.known.len() > MAX_ENTRIES
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// What to assume of the path to this client, discounted by its age.
    pub(super) fn recall(&self, now: Instant, to: IpAddr, client: Option<ClientName>) -> Known {
        let Some(known) = self.known.get(&(to.to_canonical(), client)) else {
            return Known::NOTHING;
        };
        let known = known.discounted(now);
        match client {
            Some(_) => known.of_earlier_visit(self.min_rate_bps),
            None => known.of_address(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haulier_control::{Bytes, Proven, Rate};

    fn known(mbit: f64, proven: f64, millis: u64) -> Known {
        Known {
            rate: Some(Rate(mbit / 8.0)),
            proven: Proven { bytes: Bytes(1.0), rate: Rate(proven / 8.0) },
            at: Instant::from_millis(millis),
            ..Known::NOTHING
        }
    }

    fn address(n: u32) -> IpAddr {
        IpAddr::from(n.to_be_bytes())
    }

    #[test]
    fn returning_clients_are_known_and_memory_is_bounded() {
        let mut paths = Paths::new(0);
        let ana = Some([1; 8]);
        for n in 0..5000 {
            paths.remember(address(n), ana, known(f64::from(n), 0.0, 0));
            paths.remember(address(n), ana, known(f64::from(n) + 8.0, 0.0, 1));
            paths.remember(address(n), ana, known(1.0, 0.0, 1));
        }
        assert_eq!((paths.known.len(), paths.order.len()), (MAX_ENTRIES, MAX_ENTRIES));
        let rate = |n, now| paths.recall(now, address(n), ana).rate;
        assert_eq!(rate(4999, Instant::ZERO), Some(Rate(5007.0 / 8.0)));
        assert_eq!(rate(1, Instant::ZERO), None);
        assert_eq!(rate(4999, Instant::from_millis(3_600_000)), None);
        paths.remember(address(9999), ana, Known::NOTHING);
        assert_eq!(paths.known.len(), MAX_ENTRIES);
    }

    /// What one client reports of its address slows down itself only.
    #[test]
    fn a_client_is_not_slowed_down_by_another_behind_its_address() {
        let mut paths = Paths::new(200_000);
        let (home, ana, ben) = (address(1), Some([1; 8]), Some([2; 8]));
        paths.remember(home, ana, known(0.01, 0.0, 1));
        paths.remember(home, None, known(100.0, 60.0, 1));
        paths.remember(home, None, known(0.01, 0.01, 2));
        paths.remember(home, None, known(900.0, 0.01, 3));
        let rate = |client| paths.recall(Instant::from_millis(4), home, client).rate;
        assert_eq!(rate(ben), None);
        assert_eq!(rate(ana), Some(Rate(0.025)), "its own, and not below the minimum");
        assert_eq!(rate(None), Some(Rate(12.5)), "the entry with which the most was proven");
    }
}
