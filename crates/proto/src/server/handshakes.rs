//! The handshakes in progress, and which of them makes room for another when there are as many as allowed.

use alloc::collections::BTreeMap;
use core::time::Duration;

use super::ConnectionId;
use super::admission::Prefix;
use super::desk::Desk;
use super::memory::RequestName;
use crate::Instant;

/// A handshake that is older than this may be ended to make room: three round trips of a distant player.
const MIN_AGE_TO_EVICT: Duration = Duration::from_secs(1);

/// One handshake in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake {
    pub(super) prefix: Prefix,
    /// Counts among those whose address is in their token.
    pub(super) has_credit: bool,
    started: Instant,
    /// Its place in the order of their starts.
    number: u64,
    /// Its connection, once its worker has said so.
    id: Option<ConnectionId>,
}

/// All handshakes in progress, of all workers.
#[derive(Clone, Debug, Default)]
pub(super) struct Handshakes {
    by_name: BTreeMap<RequestName, Handshake>,
    begun: u64,
}

impl Handshakes {
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Those whose address is in their token.
    pub(super) fn credited(&self) -> usize {
        self.by_name.values().filter(|handshake| handshake.has_credit).count()
    }

    pub(super) fn begin(
        &mut self,
        now: Instant,
        name: RequestName,
        prefix: Prefix,
        has_credit: bool,
    ) {
        let (started, number) = (now, self.begun);
        self.begun += 1;
        self.by_name.insert(name, Handshake { prefix, has_credit, started, number, id: None });
    }

    /// The connection of this handshake.
    pub(super) fn seat(&mut self, name: &RequestName, id: ConnectionId) {
        if let Some(handshake) = self.by_name.get_mut(name) {
            handshake.id = Some(id);
        }
    }

    pub(super) fn remove(&mut self, name: &RequestName) -> Option<Handshake> {
        self.by_name.remove(name)
    }

    /// The one that makes room for a handshake from this prefix.
    fn to_evict(&self, now: Instant, prefix: Prefix) -> Option<(RequestName, ConnectionId)> {
        let mut counts = BTreeMap::<Prefix, usize>::new();
        for handshake in self.by_name.values() {
            *counts.entry(handshake.prefix).or_default() += 1;
        }
        let own = counts.get(&prefix).copied().unwrap_or_default();
        let largest = counts.iter().max_by_key(|(_, count)| **count);
        let largest = largest.filter(|(_, count)| **count > own + 1).map(|(&prefix, _)| prefix);
        let goes = |handshake: &Handshake| match largest {
            Some(largest) => handshake.prefix == largest,
            None => now.since(handshake.started) >= MIN_AGE_TO_EVICT,
        };
        let all = self.by_name.iter().filter(|(_, handshake)| goes(handshake));
        let all =
            all.filter_map(|(&name, handshake)| Some((handshake.number, name, handshake.id?)));
        all.min_by_key(|&(number, ..)| number).map(|(_, name, id)| (name, id))
    }
}

impl Desk {
    /// Makes room for a handshake from this prefix, and returns the connection that is to be ended for it. An
    /// attacker with the secret can fill the server with handshakes that it never completes, while an honest
    /// client completes its own in a round trip. So the prefix with the most handshakes loses one to a prefix
    /// with fewer; among equals, the oldest handshake ends if it is a second old.
    /// If it is another worker's than the one that asks, that is told to end it; it counts no more at once.
    pub(super) fn make_room(
        &mut self,
        now: Instant,
        prefix: Prefix,
        worker: u8,
    ) -> Option<ConnectionId> {
        let (name, id) = self.handshakes.to_evict(now, prefix)?;
        self.end_handshake(&name);
        if id.worker() != usize::from(worker) {
            self.order_end(id);
        }
        Some(id)
    }
}
