//! The numbers that all workers of a server read and change without asking the desk.
//!
//! Each is one atomic number, and nothing else depends on the order in which they are seen: memory and the
//! uplink are sums, and the other numbers say that a worker has a question for the desk; a worker that does
//! not see that in this round asks in the next. The invariant: with one worker they are exactly the numbers
//! that this worker would keep for itself.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use core::time::Duration;

use super::crowd::Crowd;
use crate::Instant;

/// The numbers.
#[derive(Debug)]
pub(super) struct Board {
    /// Bytes that clients make all workers hold.
    held: AtomicUsize,
    /// The time at which the uplink's budget covers everything sent, in nanoseconds of the machines' time.
    paid_at: AtomicU64,
    /// The budget that a crowd finds out.
    crowd: Crowd,
    /// The number of times that the reset key was replaced.
    reset_keys: AtomicU64,
    /// For each worker, whether the desk has an order for it.
    orders: Box<[AtomicBool]>,
}

impl Board {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            held: AtomicUsize::new(0),
            paid_at: AtomicU64::new(0),
            crowd: Crowd::new(),
            reset_keys: AtomicU64::new(0),
            orders: (0..workers).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    pub(super) fn workers(&self) -> usize {
        self.orders.len()
    }

    pub(super) fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// A worker holds `now` bytes, where it held `before`.
    pub(super) fn hold(&self, before: usize, now: usize) {
        if before != now {
            // Wraps around below zero, and back.
            self.held.fetch_add(now.wrapping_sub(before), Relaxed);
        }
    }

    pub(super) fn paid_at(&self) -> Instant {
        Instant::from_nanos(self.paid_at.load(Relaxed))
    }

    /// A datagram takes this time of the uplink, from `now` on or after what was sent before.
    pub(super) fn pay(&self, now: Instant, cost: Duration) {
        let pay = |at| Some((Instant::from_nanos(at).max(now) + cost).as_nanos());
        let _paid = self.paid_at.fetch_update(Relaxed, Relaxed, pay);
    }

    pub(super) const fn crowd(&self) -> &Crowd {
        &self.crowd
    }

    pub(super) fn reset_keys(&self) -> u64 {
        self.reset_keys.load(Relaxed)
    }

    pub(super) fn count_reset_key(&self) {
        self.reset_keys.fetch_add(1, Relaxed);
    }

    /// There is something for this worker at the desk.
    pub(super) fn order(&self, worker: usize) {
        self.orders.get(worker).inspect(|flag| flag.store(true, Relaxed));
    }

    /// Whether there is something at the desk; asked once.
    pub(super) fn take_order(&self, worker: usize) -> bool {
        let flag = self.orders.get(worker);
        flag.is_some_and(|flag| flag.load(Relaxed) && flag.swap(false, Relaxed))
    }
}
