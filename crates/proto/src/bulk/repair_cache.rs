//! The repair slices of a block that many connections send: encoded by the first connection that needs one,
//! then shared by all, also between threads.
//!
//! A world of gigabytes is not kept a second time for them. A connection holds the repair slices of the
//! chunks that it is sending. Beside that the cache keeps those that were used last, up to a bound, so that
//! the next connection that loses a slice finds them. It also knows all others that a connection still holds.
//! The invariants: a chunk is encoded again only if its slices are no longer in memory (or two threads begin
//! at the same moment), and the cache alone keeps no more than the bound. Encoding is outside the lock, which
//! is held for a few look-ups, once for each chunk that a connection repairs.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};

use spin::mutex::SpinMutex;

use super::cut::{Cut, SliceSize};
use super::repair::Encoded;

/// Repair slices that a block's cache keeps, in bytes, whether a connection uses them or not: those of 256
/// chunks, so that a world of 64 MiB is encoded once. A chunk of a larger world costs 0.13 ms each time its
/// slices are needed after they were dropped from the cache.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// A chunk by its place in the block, as it is cut.
type Key = (u32, SliceSize);

/// The repair slices of a block's chunks. Cheap to clone: all clones are one cache.
#[derive(Clone)]
pub(crate) struct BlockRepair(Arc<SpinMutex<Cache>>);

crate::debug_as! { BlockRepair: |repair| kept_bytes = repair.0.lock().kept_bytes }

#[derive(Default)]
struct Cache {
    max_bytes: usize,
    made: BTreeMap<Key, Made>,
    /// Those that are kept, in the order of their last use.
    kept: BTreeMap<u64, (Key, Arc<Encoded>)>,
    kept_bytes: usize,
    uses: u64,
}

/// Slices that a connection or the cache holds.
struct Made {
    slices: Weak<Encoded>,
    /// The number of their last use, by which they are kept if they are.
    used: u64,
}

impl BlockRepair {
    /// Nothing is encoded yet.
    pub(crate) fn new() -> Self {
        Self::keeping(MAX_KEPT_BYTES)
    }

    fn keeping(max_bytes: usize) -> Self {
        Self(Arc::new(SpinMutex::new(Cache { max_bytes, ..Cache::default() })))
    }

    /// Whether those of a chunk that is at this place of the block and cut this way are made.
    pub(crate) fn has(&self, place: u32, cut: Cut) -> bool {
        self.0.lock().find((place, cut.size())).is_some()
    }

    /// All repair slices of `chunk`, which is at this place of the block and cut this way.
    pub(crate) fn of_chunk(&self, place: u32, chunk: &[u8], cut: Cut) -> Arc<Encoded> {
        let key = (place, cut.size());
        let found = self.0.lock().find(key);
        let slices = found.unwrap_or_else(|| {
            let made = Arc::new(Encoded::of(chunk, cut));
            self.0.lock().find_or(key, made)
        });
        let _dropped_after_the_lock = self.0.lock().keep(key, &slices);
        slices
    }

    #[cfg(test)]
    fn kept_bytes(&self) -> usize {
        let cache = self.0.lock();
        cache.check_invariants();
        cache.kept_bytes
    }
}

impl Cache {
    fn find(&self, key: Key) -> Option<Arc<Encoded>> {
        self.made.get(&key)?.slices.upgrade()
    }

    /// The slices that another thread has made meanwhile, or else these.
    fn find_or(&mut self, key: Key, made: Arc<Encoded>) -> Arc<Encoded> {
        self.find(key).unwrap_or_else(|| {
            self.made.insert(key, Made { slices: Arc::downgrade(&made), used: 0 });
            made
        })
    }

    /// These are used: they are kept, and the longest unused ones are not if that is too much. Those are
    /// returned.
    fn keep(&mut self, key: Key, slices: &Arc<Encoded>) -> BTreeMap<u64, (Key, Arc<Encoded>)> {
        let mut dropped = BTreeMap::new();
        let Some(made) = self.made.get_mut(&key) else { return dropped };
        self.uses += 1;
        let before = core::mem::replace(&mut made.used, self.uses);
        if self.kept.remove(&before).is_none() {
            self.kept_bytes += slices.bytes();
        }
        self.kept.insert(self.uses, (key, slices.clone()));
        while self.kept_bytes > self.max_bytes
            && let Some((used, (key, slices))) = self.kept.pop_first()
        {
            self.kept_bytes -= slices.bytes();
            dropped.insert(used, (key, slices));
        }
        dropped
    }

    #[cfg(test)]
    fn check_invariants(&self) {
        let bytes: usize = self.kept.values().map(|(_, slices)| slices.bytes()).sum();
        assert_eq!(self.kept_bytes, bytes);
        assert!(bytes <= self.max_bytes);
        for (used, (key, slices)) in &self.kept {
            let made = &self.made[key];
            assert_eq!(made.used, *used);
            assert!(made.slices.upgrade().is_some_and(|made| Arc::ptr_eq(&made, slices)));
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use alloc::vec;
    use std::thread;

    use super::*;
    use crate::bulk::repair::counted::encodings;

    const CHUNK: [u8; 2000] = [7; 2000];

    fn cut(size: usize) -> Cut {
        Cut::new(CHUNK.len(), SliceSize::new(size).unwrap()).unwrap()
    }

    /// Two slices of repair in these sizes.
    fn of(repair: &BlockRepair, place: u32, size: usize) -> Arc<Encoded> {
        repair.of_chunk(place, &CHUNK, cut(size))
    }

    #[test]
    fn all_who_send_a_block_share_its_repair_slices() {
        let repair = BlockRepair::new();
        let same = repair.clone();
        let first = of(&repair, 1, 1024);
        assert!(Arc::ptr_eq(&first, &of(&same, 1, 1024)));
        assert!(!Arc::ptr_eq(&first, &of(&repair, 2, 1024)), "another chunk");
        assert!(!Arc::ptr_eq(&first, &of(&repair, 1, 1200)), "another size");
        assert_eq!(repair.kept_bytes(), 2 * (1024 + 1024 + 1200));
    }

    #[test]
    fn those_used_last_are_kept_and_the_others_while_somebody_has_them() {
        let repair = BlockRepair::keeping(3 * 2048);
        let before = encodings();
        let held = of(&repair, 0, 1024);
        (1..4).for_each(|place| drop(of(&repair, place, 1024)));
        assert_eq!((encodings() - before, repair.kept_bytes()), (4, 3 * 2048));
        assert!(Arc::ptr_eq(&held, &of(&repair, 0, 1024)), "not encoded twice");
        // By that it is kept again, and the oldest is not: 1, then 2.
        of(&repair, 3, 1024);
        of(&repair, 1, 1024);
        of(&repair, 3, 1024);
        assert_eq!((encodings() - before, repair.kept_bytes()), (5, 3 * 2048));
        of(&repair, 2, 1024);
        assert_eq!(encodings() - before, 6);
    }

    #[test]
    fn more_than_is_kept_is_used_and_forgotten() {
        let repair = BlockRepair::keeping(2047);
        let held = of(&repair, 0, 1024);
        assert_eq!((repair.kept_bytes(), held.bytes()), (0, 2048));
        assert!(Arc::ptr_eq(&held, &of(&repair, 0, 1024)));
    }

    #[test]
    fn threads_that_need_the_same_get_the_same() {
        let repair = BlockRepair::keeping(8 * 2048);
        let run = |from: u32| {
            let repair = repair.clone();
            thread::spawn(move || {
                let mut bytes = vec![];
                for n in 0..500 {
                    let place = (from + n) % 16;
                    bytes.push(of(&repair, place, 1024).slice(cut(1024), 1).unwrap().to_vec());
                }
                bytes
            })
        };
        let threads = [0, 3, 8, 8].map(run).map(|thread| thread.join().unwrap());
        let one = of(&repair, 0, 1024);
        let expected = one.slice(cut(1024), 1).unwrap();
        assert!(threads.iter().flatten().all(|bytes| bytes == expected));
        assert_eq!(repair.kept_bytes(), 8 * 2048);
    }
}
