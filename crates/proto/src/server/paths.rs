//! What a server remembers of the paths to its clients, so that the path of a returning client need not be
//! measured again.
//!
//! Only what a validated address has acknowledged is remembered, and for a fixed number of addresses. An
//! attacker with many addresses can displace others, with the only effect that their paths are measured
//! again.

use alloc::collections::{BTreeMap, VecDeque};
use core::net::IpAddr;

use crate::Instant;
use crate::bulk::Known;

/// Addresses remembered, some 150 bytes each.
const MAX_ADDRESSES: usize = 4096;

/// Paths by the client's IP address; its port is another one for every visit.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    known: BTreeMap<IpAddr, Known>,
    order: VecDeque<IpAddr>,
}

impl Paths {
    /// Remembers what was measured of the path to this address, if it is newer than what is known: a client
    /// that was sent nothing has only what was recalled, and that must not be discounted twice. The oldest
    /// address makes room.
    pub(super) fn remember(&mut self, to: IpAddr, known: Known) {
        if known.rate.is_none() {
            return;
        }
        let to = to.to_canonical();
        if self.known.get(&to).is_some_and(|old| known.at <= old.at) {
            return;
        }
        if self.known.insert(to, known).is_none() {
            self.order.push_back(to);
        }
        if self.known.len() > MAX_ADDRESSES
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// What was remembered, discounted by its age.
    pub(super) fn recall(&self, now: Instant, to: IpAddr) -> Known {
        let known = self.known.get(&to.to_canonical());
        known.map_or(Known::NOTHING, |known| known.distrusted(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::Rate;

    fn known(rate: f64, millis: u64) -> Known {
        Known { rate: Some(Rate(rate)), at: Instant::from_millis(millis), ..Known::NOTHING }
    }

    #[test]
    fn returning_clients_are_known_and_memory_is_bounded() {
        let mut paths = Paths::default();
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        for n in 0..5000 {
            paths.remember(address(n), known(f64::from(n), 0));
            paths.remember(address(n), known(f64::from(n) + 0.5, 1));
            paths.remember(address(n), known(1.0, 1));
        }
        assert_eq!(paths.known.len(), MAX_ADDRESSES);
        assert_eq!(paths.order.len(), MAX_ADDRESSES);
        assert_eq!(paths.recall(Instant::ZERO, address(4999)).rate, Some(Rate(4999.5)));
        assert_eq!(paths.recall(Instant::ZERO, address(1)).rate, None);
        let hour = Instant::from_millis(3_600_000);
        assert_eq!(paths.recall(hour, address(4999)).rate, None);
        paths.remember(address(9999), Known::NOTHING);
        assert_eq!(paths.known.len(), MAX_ADDRESSES);
    }
}
