//! What a server remembers of the ways to its clients, so that who comes back need not be measured again.
//!
//! Only what a proven address has acknowledged gets here, and no more than a fixed number of addresses: who
//! has many can push others out, and gains that they are measured anew.

use alloc::collections::{BTreeMap, VecDeque};
use core::net::IpAddr;

use crate::Instant;
use crate::bulk::Known;

/// Addresses remembered: some 150 bytes each.
const MOST: usize = 4096;

/// Paths by the client's address; ports change with every visit.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths {
    known: BTreeMap<IpAddr, Known>,
    order: VecDeque<IpAddr>,
}

impl Paths {
    /// Keeps what was learned of the way to this address, if that is news: who came and got nothing has only
    /// what was recalled, and that must not fade twice. The oldest address makes room.
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
        if self.known.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// What of that is to be believed now.
    pub(super) fn recall(&self, now: Instant, to: IpAddr) -> Known {
        let known = self.known.get(&to.to_canonical());
        known.map_or(Known::NOTHING, |known| known.distrusted(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(rate: f64, millis: u64) -> Known {
        Known { rate: Some(rate), at: Instant::from_millis(millis), ..Known::NOTHING }
    }

    #[test]
    fn who_comes_back_is_known_and_memory_is_bounded() {
        let mut paths = Paths::default();
        let address = |n: u32| IpAddr::from(n.to_be_bytes());
        for n in 0..5000 {
            paths.remember(address(n), known(f64::from(n), 0));
            paths.remember(address(n), known(f64::from(n) + 0.5, 1));
            paths.remember(address(n), known(1.0, 1));
        }
        assert_eq!(paths.known.len(), MOST);
        assert_eq!(paths.order.len(), MOST);
        assert_eq!(paths.recall(Instant::ZERO, address(4999)).rate, Some(4999.5));
        assert_eq!(paths.recall(Instant::ZERO, address(1)).rate, None);
        let hour = Instant::from_millis(3_600_000);
        assert_eq!(paths.recall(hour, address(4999)).rate, None);
        paths.remember(address(9999), Known::NOTHING);
        assert_eq!(paths.known.len(), MOST);
    }
}
