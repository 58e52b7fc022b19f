//! Which worker had a connection that has ended, while its client may still repeat its request.
//!
//! The worker itself remembers more (`lingering.rs`) and answers; here is only whose it was, for the case
//! that a copy of the request reaches another worker. The invariant: never more than the server may have
//! connections.

use alloc::collections::{BTreeMap, BTreeSet};

use super::memory::RequestName;
use crate::Instant;

/// The requests of connections that have ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    capacity: usize,
    workers: BTreeMap<RequestName, u8>,
    by_end: BTreeSet<(Instant, RequestName)>,
}

impl Ended {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { capacity, workers: BTreeMap::new(), by_end: BTreeSet::new() }
    }

    /// Remembers whose it was until then. If there are too many, the first to be forgotten makes room.
    pub(super) fn insert(&mut self, name: RequestName, worker: u8, until: Instant) {
        if self.workers.insert(name, worker).is_some() {
            return;
        }
        self.by_end.insert((until, name));
        if self.workers.len() > self.capacity {
            self.forget_first();
        }
    }

    pub(super) fn forget_old(&mut self, now: Instant) {
        while self.by_end.first().is_some_and(|(until, _)| *until <= now) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, name)) = self.by_end.pop_first() {
            self.workers.remove(&name);
        }
    }

    pub(super) fn worker_of(&self, name: &RequestName) -> Option<usize> {
        self.workers.get(name).copied().map(usize::from)
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.workers.len() <= self.capacity && self.by_end.len() == self.workers.len());
    }
}
