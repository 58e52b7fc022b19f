//! The connections that wait for a turn on the uplink, in the orders in which turns are given.
//!
//! The connection with the fewest bytes left comes first, which makes the mean time the shortest. But a
//! client whose own link is slow cannot catch up: if it waited until the others are done, the uplink would
//! idle in the end while that link is busy, and all together would take longer. So such a connection goes
//! before the others as soon as its link needs longer for its rest than the uplink needs for all
//! connections that wait. It takes no more of the uplink than the rate of its link. Beside small transfers a
//! large one would go first from the beginning: so a connection with more left than the others does not.
//!
//! The invariant: each order holds each waiting connection once, and the sum of bytes left is theirs.

use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;

use super::ConnectionId;
use crate::connection::Left;

/// A connection with more left than one and a half times the mean of all does not go before others.
const MAX_OF_MEAN: (u64, u64) = (3, 2);

/// The number of connections with the slowest links that are looked at: the others are large transfers.
const LOOKED_AT: usize = 8;

/// A connection that waits.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Bytes left to send.
    left: u64,
    /// The time that its own link takes for them: zero if its rate is not known.
    takes: Duration,
    /// Its number in the order in which they came.
    came: u64,
}

/// The connections that wait.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    places: BTreeMap<ConnectionId, Place>,
    by_left: BTreeSet<(u64, u64, ConnectionId)>,
    by_age: BTreeSet<(u64, ConnectionId)>,
    by_time: BTreeSet<(Duration, u64, ConnectionId)>,
    /// Bytes left to send of all together.
    left: u64,
    came: u64,
}

impl Waiting {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn has(&self, id: ConnectionId) -> bool {
        self.places.contains_key(&id)
    }

    pub(super) fn insert(&mut self, id: ConnectionId, left: Left) {
        if self.has(id) {
            return;
        }
        self.came += 1;
        let (came, takes) =
            (self.came, left.link_bps.map_or(Duration::ZERO, |bps| time(left.bytes, bps)));
        let left = left.bytes;
        self.places.insert(id, Place { left, takes, came });
        self.by_left.insert((left, came, id));
        self.by_age.insert((came, id));
        self.by_time.insert((takes, came, id));
        self.left = self.left.saturating_add(left);
    }

    pub(super) fn remove(&mut self, id: ConnectionId) {
        if let Some(Place { left, takes, came }) = self.places.remove(&id) {
            self.by_left.remove(&(left, came, id));
            self.by_age.remove(&(came, id));
            self.by_time.remove(&(takes, came, id));
            self.left = self.left.saturating_sub(left);
        }
    }

    pub(super) fn with_least_left(&self) -> Option<ConnectionId> {
        self.by_left.first().map(|&(_, _, id)| id)
    }

    pub(super) fn oldest(&self) -> Option<ConnectionId> {
        self.by_age.first().map(|&(_, id)| id)
    }

    /// The connection that would be the last of all, at this rate of the uplink, if it waited any longer.
    pub(super) fn with_most_to_lose(&self, bps: u64) -> Option<ConnectionId> {
        let all = time(self.left, bps);
        let (part, of) = MAX_OF_MEAN;
        let max_left = self.left / self.places.len().max(1) as u64 / of * part;
        let late = self.by_time.iter().rev().take_while(|&&(takes, ..)| takes > all);
        let mut late = late.take(LOOKED_AT).map(|&(_, _, id)| id);
        late.find(|id| self.places.get(id).is_some_and(|place| place.left <= max_left))
    }

    pub(super) fn check_invariants(&self) {
        for (&id, &Place { left, takes, came }) in &self.places {
            assert!(self.by_left.contains(&(left, came, id)), "in the order of what is left");
            assert!(self.by_age.contains(&(came, id)), "of age");
            assert!(self.by_time.contains(&(takes, came, id)), "and of its link");
        }
        let lengths = [self.by_left.len(), self.by_age.len(), self.by_time.len()];
        assert_eq!(lengths, [self.places.len(); 3], "each once");
        assert_eq!(self.left, self.places.values().map(|place| place.left).sum::<u64>(), "the sum");
    }
}

/// The time that these bytes take at this rate.
fn time(bytes: u64, bps: u64) -> Duration {
    Duration::from_nanos(bytes.saturating_mul(8_000).saturating_mul(1_000) / (bps / 1_000).max(1))
}

#[cfg(test)]
mod tests {
    use slotmap::SlotMap;

    use super::*;

    #[test]
    fn a_slow_link_goes_first_when_it_would_be_the_last() {
        let mut slots = SlotMap::new();
        let mut id = || ConnectionId::new(0, slots.insert(()));
        let mut waiting = Waiting::default();
        let left = |bytes, link_bps| Left { bytes, link_bps: Some(link_bps) };
        let fast = [id(), id(), id()];
        fast.iter().for_each(|&id| waiting.insert(id, left(1_000_000, 100_000_000)));
        let slow = id();
        // 4 s on its own link.
        waiting.insert(slow, left(1_000_000, 2_000_000));
        assert_eq!(waiting.with_most_to_lose(4_000_000), None, "all take 8 s");
        assert_eq!(waiting.with_most_to_lose(8_100_000), Some(slow));
        // A large transfer does not go first, though it would be the last.
        waiting.insert(id(), left(20_000_000, 2_000_000));
        assert_eq!(waiting.with_most_to_lose(200_000_000), Some(slow));
        waiting.remove(slow);
        assert_eq!(waiting.with_most_to_lose(10_000_000_000), Some(fast[2]));
        fast.iter().for_each(|&id| waiting.remove(id));
        waiting.check_invariants();
    }
}
