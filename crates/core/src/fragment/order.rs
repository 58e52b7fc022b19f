//! Values behind keys, and queues of them, oldest first: the bookkeeping of a fragment pool.
//!
//! Every access is by [`Key`], and the key of a removed value finds nothing: a reassembler may hold the key
//! of a packet that the pool has evicted to make room for another peer.

use alloc::vec::Vec;
use core::num::NonZeroU32;

/// Names a value in a [`Slab`], until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    place: u32,
    /// Not zero, so that an `Option<Key>` is no larger.
    generation: NonZeroU32,
}

#[derive(Clone, Debug)]
struct Place<T> {
    generation: NonZeroU32,
    value: Option<T>,
}

/// Values by key. Grows to the largest number of values it held, and reuses places, until it is cleared.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
    /// Of new places: above that of every place there ever was.
    first_generation: NonZeroU32,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new(), first_generation: NonZeroU32::MIN }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Places for values, taken or free.
    pub(super) const fn places(&self) -> usize {
        self.places.len()
    }

    pub(super) fn insert(&mut self, value: T) -> Key {
        let reused = self.free.pop();
        if let Some((place, slot)) =
            reused.and_then(|place| Some((place, self.places.get_mut(place as usize)?)))
        {
            slot.value = Some(value);
            return Key { place, generation: slot.generation };
        }
        let place = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
        let generation = self.first_generation;
        self.places.push(Place { generation, value: Some(value) });
        Key { place, generation }
    }

    pub(super) fn get(&self, key: Key) -> Option<&T> {
        let place = self.places.get(key.place as usize)?;
        place.value.as_ref().filter(|_| place.generation == key.generation)
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.places.get_mut(key.place as usize)?;
        place.value.as_mut().filter(|_| place.generation == key.generation)
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.places.get_mut(key.place as usize)?;
        if place.generation != key.generation {
            return None;
        }
        let value = place.value.take()?;
        place.generation = place.generation.checked_add(1).unwrap_or(NonZeroU32::MIN);
        self.free.push(key.place);
        Some(value)
    }

    /// Gives the memory back, if there is no value. Old keys still find nothing.
    pub(super) fn clear_if_empty(&mut self) {
        if self.len() == 0 {
            let generations = self.places.iter().map(|place| place.generation);
            self.first_generation = generations.max().unwrap_or(self.first_generation);
            (self.places, self.free) = (Vec::new(), Vec::new());
        }
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| place.value.as_ref())
    }
}

/// The neighbours of a value in one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Links {
    older: Option<Key>,
    newer: Option<Key>,
}

impl Links {
    /// The next newer value of the queue.
    pub(super) const fn newer(&self) -> Option<Key> {
        self.newer
    }
}

/// A queue of values in a slab, linked through the values themselves, so that any of them is removed in one
/// step. `pick` selects the links of this queue in a value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Order {
    oldest: Option<Key>,
    newest: Option<Key>,
}

type Pick<T> = fn(&mut T) -> &mut Links;

impl Order {
    pub(super) const fn new() -> Self {
        Self { oldest: None, newest: None }
    }

    pub(super) const fn oldest(&self) -> Option<Key> {
        self.oldest
    }

    /// Appends a value of the slab, as the newest.
    pub(super) fn push<T>(&mut self, slab: &mut Slab<T>, pick: Pick<T>, key: Key) {
        let older = self.newest;
        if let Some(value) = slab.get_mut(key) {
            *pick(value) = Links { older, newer: None };
        }
        match older.and_then(|older| slab.get_mut(older)) {
            Some(value) => pick(value).newer = Some(key),
            None => self.oldest = Some(key),
        }
        self.newest = Some(key);
    }

    /// Removes a value, which must be in this queue.
    pub(super) fn remove<T>(&mut self, slab: &mut Slab<T>, pick: Pick<T>, key: Key) {
        let Some(value) = slab.get_mut(key) else { return };
        let Links { older, newer } = core::mem::take(pick(value));
        match older.and_then(|older| slab.get_mut(older)) {
            Some(value) => pick(value).newer = newer,
            None => self.oldest = newer,
        }
        match newer.and_then(|newer| slab.get_mut(newer)) {
            Some(value) => pick(value).older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(value: &mut (u32, Links)) -> &mut Links {
        &mut value.1
    }

    fn drain(order: &mut Order, slab: &mut Slab<(u32, Links)>) -> Vec<u32> {
        let mut values = Vec::new();
        while let Some(key) = order.oldest() {
            order.remove(slab, links, key);
            values.extend(slab.remove(key).map(|(value, _)| value));
        }
        values
    }

    #[test]
    fn values_are_removed_from_anywhere_in_a_queue() {
        for gone in 0..4usize {
            let (mut slab, mut order) = (Slab::new(), Order::default());
            let keys: Vec<Key> = (0..4).map(|i| slab.insert((i, Links::default()))).collect();
            keys.iter().for_each(|&key| order.push(&mut slab, links, key));
            order.remove(&mut slab, links, keys[gone]);
            let rest: Vec<u32> = (0..4).filter(|&i| i as usize != gone).collect();
            assert_eq!(drain(&mut order, &mut slab), rest);
        }
    }

    #[test]
    fn an_old_key_finds_nothing() {
        let mut slab = Slab::new();
        let old = slab.insert(1);
        assert_eq!(slab.remove(old), Some(1));
        let new = slab.insert(2);
        assert_eq!((slab.get(old), slab.get(new), slab.len()), (None, Some(&2), 1));
        assert_eq!(slab.remove(old), None);
    }
}
