//! Whose turn it is, among places of many sources: fair queueing, in two levels.
//!
//! Networks take turns, the sources of a network take the turns of their network, and the places of a source
//! go in the order in which they came. So a source that takes a thousand places is served as often as one
//! that takes one, and a network with a thousand addresses as often as a home. Whoever comes later, or was
//! served, is behind all that wait already.
//!
//! When there are too many places, the group with the most loses its newest to a group with fewer ("longest
//! queue drop"). The invariants: each order holds exactly the parts that it should, and nothing here looks
//! at all places, except for [`Group::in_order`].

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::{self, Vec};

use super::admission::Prefix;

/// The groups that a place is in, from the outside in: its network, and its source.
pub(super) type Groups = [Prefix; 2];

/// The places of all, of a network, or of a source.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// When it had its last turn or began to wait, in turns of all.
    turn: u64,
    /// Its places, those of its parts included, and those of them that wait for a call.
    len: usize,
    waiting: usize,
    /// The sources of a network, the networks of all. A source has none.
    parts: BTreeMap<Prefix, Self>,
    /// The parts with waiting places, in the order of their turns.
    by_turn: BTreeSet<(u64, Prefix)>,
    /// The parts in the order of their numbers of places.
    by_len: BTreeSet<(usize, Prefix)>,
    /// A source's places, and those of them that wait.
    places: BTreeSet<u64>,
    waits: BTreeSet<u64>,
}

/// What happens to a place.
#[derive(Clone, Copy)]
enum Change {
    Comes,
    IsCalled,
    Leaves,
}

impl Group {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn waiting(&self) -> usize {
        self.waiting
    }

    /// A new place begins to wait. `turn` is larger than ever before.
    pub(super) fn insert(&mut self, groups: &Groups, place: u64, turn: u64) {
        self.change(groups, place, turn, Change::Comes);
    }

    /// A place is gone, whether it waited or not.
    pub(super) fn remove(&mut self, groups: &Groups, place: u64) {
        self.change(groups, place, 0, Change::Leaves);
    }

    /// The place whose turn it is. It waits no more, and its groups go to the end. `is_extra`: only if no
    /// place of its network was called before.
    pub(super) fn next(&mut self, turn: u64, is_extra: bool) -> Option<u64> {
        let (groups, place) = self.first()?;
        let [network, _] = &groups;
        let was_called = self.parts.get(network).is_some_and(|it| it.waiting < it.len);
        if is_extra && was_called {
            return None;
        }
        self.change(&groups, place, turn, Change::IsCalled);
        Some(place)
    }

    fn first(&self) -> Option<(Groups, u64)> {
        let &(_, network) = self.by_turn.first()?;
        let sources = self.parts.get(&network)?;
        let &(_, source) = sources.by_turn.first()?;
        let place = sources.parts.get(&source)?.waits.first()?;
        Some(([network, source], *place))
    }

    fn change(&mut self, groups: &[Prefix], place: u64, turn: u64, change: Change) {
        let Some((&key, inner)) = groups.split_first() else {
            self.change_own(place, change);
            return;
        };
        let part = self.parts.entry(key).or_default();
        let (len, waiting) = (part.len, part.waiting);
        self.by_len.remove(&(len, key));
        self.by_turn.remove(&(part.turn, key));
        part.change(inner, place, turn, change);
        // What was served is behind the others, and so is what has not waited until now.
        if matches!(change, Change::IsCalled) || waiting == 0 {
            part.turn = turn;
        }
        if part.waiting > 0 {
            self.by_turn.insert((part.turn, key));
        }
        (self.len, self.waiting) =
            (self.len - len + part.len, self.waiting - waiting + part.waiting);
        match part.len {
            0 => drop(self.parts.remove(&key)),
            len => drop(self.by_len.insert((len, key))),
        }
    }

    /// The change of a source.
    fn change_own(&mut self, place: u64, change: Change) {
        match change {
            Change::Comes => {
                self.places.insert(place);
                self.waits.insert(place);
            }
            Change::IsCalled => drop(self.waits.remove(&place)),
            Change::Leaves => {
                self.places.remove(&place);
                self.waits.remove(&place);
            }
        }
        (self.len, self.waiting) = (self.places.len(), self.waits.len());
    }

    /// The number of places of this group in it.
    pub(super) fn len_of(&self, groups: &[Prefix]) -> usize {
        match groups.split_first() {
            Some((key, inner)) => self.parts.get(key).map_or(0, |part| part.len_of(inner)),
            None => self.len,
        }
    }

    /// The place that makes room for a new one of these groups: the newest of the largest network, if that
    /// has more than theirs would have, or of the largest source beside theirs.
    pub(super) fn to_make_room(&self, groups: &Groups) -> Option<u64> {
        let [network, source] = groups;
        let own = self.len_of(&[*network]);
        let largest = match self.by_len.last() {
            Some((len, largest)) if *len > own + 1 => return self.parts.get(largest)?.newest(),
            _ => self.parts.get(network)?,
        };
        let own = largest.len_of(&[*source]);
        let (len, source) = largest.by_len.last()?;
        if *len > own + 1 { largest.parts.get(source)?.newest() } else { None }
    }

    /// The newest place of the largest source.
    fn newest(&self) -> Option<u64> {
        match self.by_len.last() {
            Some((_, largest)) => self.parts.get(largest)?.newest(),
            None => self.places.last().copied(),
        }
    }

    /// Those that wait, in the order of their turns.
    pub(super) fn in_order(&self) -> Vec<u64> {
        if self.parts.is_empty() {
            return self.waits.iter().copied().collect();
        }
        let parts = self.by_turn.iter().filter_map(|(_, key)| self.parts.get(key));
        let mut parts: Vec<vec::IntoIter<u64>> =
            parts.map(|it| it.in_order().into_iter()).collect();
        let mut order = Vec::with_capacity(self.waiting);
        while !parts.is_empty() {
            parts.retain_mut(|part| part.next().inspect(|&place| order.push(place)).is_some());
        }
        order
    }

    pub(super) fn check_invariants(&self) {
        let parts = self.parts.iter();
        let by_len: BTreeSet<_> = parts.clone().map(|(&key, it)| (it.len, key)).collect();
        assert_eq!(self.by_len, by_len, "by how many they have");
        let waiting = parts.clone().filter(|(_, it)| it.waiting > 0);
        let by_turn: BTreeSet<_> = waiting.map(|(&key, it)| (it.turn, key)).collect();
        assert_eq!(self.by_turn, by_turn, "by turns");
        let sum = |of: fn(&Self) -> usize| parts.clone().map(|(_, it)| of(it)).sum::<usize>();
        assert_eq!(self.len, sum(|it| it.len) + self.places.len(), "places");
        assert_eq!(self.waiting, sum(|it| it.waiting) + self.waits.len(), "that wait");
        assert!(self.waits.is_subset(&self.places) && parts.clone().all(|(_, it)| it.len > 0));
        self.parts.values().for_each(Self::check_invariants);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(network: u8, host: u8) -> Groups {
        let prefix = Prefix::of(([10, 0, network, host], 1).into());
        [prefix.network(), prefix]
    }

    fn fill(all: &mut Group, places: impl IntoIterator<Item = (u8, u8)>) {
        for (n, (network, host)) in (1..).zip(places) {
            all.insert(&source(network, host), n, n);
            all.check_invariants();
        }
    }

    /// Served one by one, they come in the order that was foretold.
    fn served(all: &mut Group) -> Vec<u64> {
        let foretold = all.in_order();
        let served: Vec<_> = (1_000..).map_while(|turn| all.next(turn, false)).collect();
        all.check_invariants();
        assert_eq!(served, foretold);
        served
    }

    #[test]
    fn networks_take_turns_and_in_each_its_sources() {
        let mut all = Group::default();
        fill(&mut all, [(1, 1), (1, 1), (1, 1), (1, 2), (2, 1), (3, 1), (3, 1)]);
        assert_eq!(served(&mut all), [1, 5, 6, 4, 7, 2, 3]);
        assert_eq!((all.len(), all.waiting()), (7, 0));
        (1..=7).zip([(1, 1), (1, 1), (1, 1), (1, 2), (2, 1), (3, 1), (3, 1)]).for_each(
            |(n, of)| {
                all.remove(&source(of.0, of.1), n);
                all.check_invariants();
            },
        );
        assert_eq!(all.len(), 0);
    }

    /// A source that was served, or was away, is behind those that wait.
    #[test]
    fn to_come_back_gains_nothing() {
        let mut all = Group::default();
        fill(&mut all, [(1, 1), (2, 1)]);
        assert_eq!(all.next(10, false), Some(1));
        all.insert(&source(3, 1), 11, 11);
        all.insert(&source(1, 1), 12, 12);
        all.check_invariants();
        assert_eq!(all.next(13, true), Some(2));
        all.insert(&source(2, 1), 14, 14);
        assert_eq!(all.next(15, true), Some(11));
        assert_eq!(all.next(16, true), None, "of these networks some were called");
        assert_eq!(served(&mut all), [12, 14]);
    }

    /// The largest loses its newest, to one that has fewer.
    #[test]
    fn the_largest_makes_room() {
        let mut all = Group::default();
        fill(&mut all, [(1, 1), (1, 1), (1, 2), (2, 1), (2, 2)]);
        assert_eq!(
            all.to_make_room(&source(3, 1)),
            Some(2),
            "of the largest source of the largest"
        );
        assert_eq!(all.to_make_room(&source(1, 3)), Some(2), "inside its own network");
        assert_eq!(all.to_make_room(&source(1, 1)), None, "it is the largest itself");
        assert_eq!(all.to_make_room(&source(2, 1)), None, "it would be as large");
    }
}
