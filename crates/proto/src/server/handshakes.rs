//! The handshakes in progress, and which of them makes room for another when there are as many as allowed.
//!
//! There may be thousands, and an attacker may have one ended with each of its requests, so nothing here
//! looks at all of them. The invariant: the orders hold each handshake once, and agree with the counts.

use alloc::collections::{BTreeMap, BTreeSet};
use core::time::Duration;

use super::ConnectionId;
use super::admission::Prefix;
use super::desk::Desk;
use super::memory::RequestName;
use crate::Instant;

/// A handshake that is older than this may be ended to make room: three round trips of a distant player.
const MIN_AGE_TO_EVICT: Duration = Duration::from_secs(1);

/// A handshake that is older than this is ended if it keeps a seat from clients in line: ten round
/// trips of a distant player.
const MAX_AGE_WHILE_OTHERS_WAIT: Duration = Duration::from_secs(3);

/// One handshake in progress.
#[derive(Clone, Copy, Debug)]
struct Handshake {
    prefix: Prefix,
    /// Counts among those whose address is in their token.
    has_credit: bool,
    started: Instant,
    /// Its place in the order of their starts.
    number: u64,
    /// Its connection, once its worker has said so. Only then can it be ended.
    id: Option<ConnectionId>,
}

/// What one source prefix has of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OfPrefix {
    pub(super) handshakes: usize,
    /// Of these, those with the larger credit of an address in their token.
    pub(super) credited: usize,
}

/// All handshakes in progress, of all workers.
#[derive(Clone, Debug, Default)]
pub(super) struct Handshakes {
    by_name: BTreeMap<RequestName, Handshake>,
    begun: u64,
    prefixes: BTreeMap<Prefix, OfPrefix>,
    /// The prefixes in the order of their numbers of handshakes.
    by_count: BTreeSet<(usize, Prefix)>,
    /// Those with a connection, in the order of their starts: of each prefix, and of all.
    by_prefix: BTreeSet<(Prefix, u64, RequestName)>,
    by_age: BTreeSet<(u64, RequestName)>,
    /// Those of them with a seat: one that the program has refused has none.
    seated: BTreeSet<(u64, RequestName)>,
}

impl Handshakes {
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// What this prefix has of them.
    pub(super) fn of(&self, prefix: Prefix) -> OfPrefix {
        self.prefixes.get(&prefix).copied().unwrap_or_default()
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
        self.count(prefix, |of| {
            of.handshakes += 1;
            of.credited += usize::from(has_credit);
        });
    }

    /// The connection of this handshake.
    pub(super) fn seat(&mut self, name: &RequestName, id: ConnectionId) {
        if let Some(handshake) = self.by_name.get_mut(name) {
            handshake.id = Some(id);
            self.by_prefix.insert((handshake.prefix, handshake.number, *name));
            self.by_age.insert((handshake.number, *name));
            self.seated.insert((handshake.number, *name));
        }
    }

    /// It has ended without being completed, and needs no seat. It counts until its connection is gone.
    pub(super) fn unseat(&mut self, name: &RequestName) {
        if let Some(handshake) = self.by_name.get(name) {
            self.seated.remove(&(handshake.number, *name));
        }
    }

    /// It is over, however it ended.
    pub(super) fn end(&mut self, name: &RequestName) {
        let Some(ended) = self.by_name.remove(name) else { return };
        self.by_prefix.remove(&(ended.prefix, ended.number, *name));
        self.by_age.remove(&(ended.number, *name));
        self.seated.remove(&(ended.number, *name));
        self.count(ended.prefix, |of| {
            of.handshakes -= 1;
            of.credited -= usize::from(ended.has_credit);
        });
    }

    fn count(&mut self, prefix: Prefix, change: impl FnOnce(&mut OfPrefix)) {
        let of = self.prefixes.entry(prefix).or_default();
        self.by_count.remove(&(of.handshakes, prefix));
        change(of);
        match of.handshakes {
            0 => drop(self.prefixes.remove(&prefix)),
            handshakes => drop(self.by_count.insert((handshakes, prefix))),
        }
    }

    /// The one that makes room for a handshake from this prefix.
    fn to_evict(&self, now: Instant, prefix: Prefix) -> Option<(RequestName, ConnectionId)> {
        let own = self.of(prefix).handshakes;
        let name = match self.by_count.last() {
            Some(&(count, largest)) if count > own + 1 => {
                let first = self.by_prefix.range((largest, 0, [0; 16])..).next();
                first.filter(|(of, ..)| *of == largest).map(|&(_, _, name)| name)
            }
            _ => self.by_age.first().map(|&(_, name)| name).filter(|name| {
                let handshake = self.by_name.get(name);
                handshake.is_some_and(|it| now.since(it.started) >= MIN_AGE_TO_EVICT)
            }),
        }?;
        Some((name, self.by_name.get(&name)?.id?))
    }

    /// The oldest that has kept a seat for too long, if others wait.
    fn overdue(&self, now: Instant) -> Option<(RequestName, ConnectionId)> {
        let (_, name) = self.seated.first()?;
        let oldest = self.by_name.get(name)?;
        let is_overdue = now.since(oldest.started) >= MAX_AGE_WHILE_OTHERS_WAIT;
        Some((*name, oldest.id?)).filter(|_| is_overdue)
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.seated.is_subset(&self.by_age), "those with a seat");
        let mut prefixes = BTreeMap::<Prefix, OfPrefix>::new();
        for (&name, it) in &self.by_name {
            let of = prefixes.entry(it.prefix).or_default();
            of.handshakes += 1;
            of.credited += usize::from(it.has_credit);
            let has_id = it.id.is_some();
            let place = (it.prefix, it.number, name);
            assert_eq!(self.by_prefix.contains(&place), has_id, "in the order of its prefix");
            assert_eq!(self.by_age.contains(&(it.number, name)), has_id, "in the order of all");
        }
        assert_eq!(self.by_prefix.len(), self.by_age.len(), "each once");
        assert!(self.by_age.len() <= self.by_name.len(), "none that is over");
        let by_count = prefixes.iter().map(|(&prefix, of)| (of.handshakes, prefix)).collect();
        assert_eq!(self.by_count, by_count, "the prefixes in order");
        assert_eq!(self.prefixes, prefixes, "what each prefix has");
    }
}

impl Desk {
    /// Makes room for a handshake from this prefix, and returns the connection that is to be ended for it. An
    /// attacker with the secret can fill the server with handshakes that it never completes, while an honest
    /// client completes its own in a round trip. So the prefix with the most handshakes loses one to a prefix
    /// with fewer; among equals, the oldest handshake ends if it is a second old.
    /// If another worker than `worker`, which asks, has that handshake, it gets the order to end it. The
    /// handshake ceases to count at once.
    pub(super) fn make_room(
        &mut self,
        now: Instant,
        prefix: Prefix,
        worker: u8,
    ) -> Option<ConnectionId> {
        let to_evict = self.handshakes.to_evict(now, prefix)?;
        Some(self.end_for_others(to_evict, worker))
    }

    /// The handshake to be ended because it keeps a seat from those in line. Its seat is free when its worker
    /// reports the end: the handshake may be completed meanwhile.
    pub(super) fn end_overdue(&mut self, now: Instant, worker: u8) -> Option<ConnectionId> {
        let overdue = self.handshakes.overdue(now).filter(|_| self.free_seats() == 0)?;
        Some(self.end_for_others(overdue, worker))
    }

    fn end_for_others(&mut self, (name, id): (RequestName, ConnectionId), by: u8) -> ConnectionId {
        self.handshakes.end(&name);
        if id.worker() != usize::from(by) {
            self.order_end(id);
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::net::SocketAddr;

    use slotmap::SlotMap;

    use super::*;

    /// What `to_evict` says by looking at each of them.
    fn expected(all: &Handshakes, now: Instant, prefix: Prefix) -> Option<RequestName> {
        let count = |of: Prefix| all.by_name.values().filter(|it| it.prefix == of).count();
        let largest = all.by_name.values().map(|it| (count(it.prefix), it.prefix)).max()?;
        let goes = |it: &Handshake| match largest {
            (most, largest) if most > count(prefix) + 1 => it.prefix == largest,
            _ => now.since(it.started) >= MIN_AGE_TO_EVICT,
        };
        let those = all.by_name.iter().filter(|(_, it)| goes(it) && it.id.is_some());
        those.min_by_key(|(_, it)| it.number).map(|(&name, _)| name)
    }

    /// Handshakes of five prefixes come and go, some without a connection yet.
    #[test]
    fn the_orders_find_what_a_look_at_each_would_find() {
        let mut slots = SlotMap::new();
        let (mut all, mut present) = (Handshakes::default(), Vec::new());
        let mut random = 7_u64;
        let mut draw = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::from(random.to_le_bytes()[7]) % below
        };
        let mut evicted = [0; 2];
        for step in 0..2_000_u64 {
            let now = Instant::from_millis(step * 10);
            let prefix =
                Prefix::of(SocketAddr::from(([10, 0, 0, u8::try_from(draw(5)).unwrap()], 1)));
            let found = all.to_evict(now, prefix);
            assert_eq!(found.map(|(name, _)| name), expected(&all, now, prefix));
            if let Some((name, _)) = found {
                let is_of_largest =
                    all.by_count.last().is_some_and(|it| it.0 > all.of(prefix).handshakes + 1);
                evicted[usize::from(is_of_largest)] += 1;
                if draw(3) == 0 {
                    all.end(&name);
                    present.retain(|other| *other != name);
                }
            }
            let mut name = [0; 16];
            name[0] = u8::try_from(draw(256)).unwrap();
            name[8..].copy_from_slice(&step.to_le_bytes());
            all.begin(now, name, prefix, draw(2) == 0);
            present.push(name);
            if draw(4) > 0 {
                all.seat(&name, ConnectionId::new(0, slots.insert(())));
            }
            if draw(3) > 0 {
                let place = draw(present.len());
                all.end(&present.swap_remove(place));
            }
            all.check_invariants();
        }
        assert!(evicted.iter().all(|&times| times > 20), "{evicted:?}");
    }
}
