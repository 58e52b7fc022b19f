//! What a disk is at work on, in virtual time: a few things at once, each as long as it takes.
//!
//! The invariant: which of two things that are done at the same time comes first is drawn, and nothing is
//! done before its time.

use std::collections::BTreeMap;
use std::time::Duration;

use haulier_core::Instant;
use haulier_sim::Rng;

/// How fast a disk is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speed {
    /// Bytes per second, of all that it does.
    pub(super) bytes_per_second: u64,
    /// What each thing takes besides.
    pub(super) seek: Duration,
}

impl Speed {
    /// What a thread needs for these bytes while the others work, too: they share the disk.
    pub(super) fn time(&self, bytes: u64) -> Duration {
        let per_second = self.bytes_per_second.max(1);
        self.seek + Duration::from_nanos(bytes * LANES as u64 * 1_000_000_000 / per_second)
    }
}

/// Threads that wait for the disk.
const LANES: usize = 3;

/// The disk's work. `J` is a job: it is taken when its time on the disk is over.
pub(super) struct Jobs<J> {
    speed: Speed,
    lanes: [Instant; LANES],
    due: BTreeMap<(Instant, u64, u64), J>,
    rng: Rng,
    count: u64,
}

impl<J> Jobs<J> {
    pub(super) fn new(speed: Speed, rng: Rng) -> Self {
        Self { speed, lanes: [Instant::ZERO; LANES], due: BTreeMap::new(), rng, count: 0 }
    }

    /// Begins a job that reads or writes `bytes` bytes, as soon as a thread is free.
    pub(super) fn add(&mut self, now: Instant, bytes: u64, job: J) {
        let lane = (0..LANES).min_by_key(|&lane| self.lanes[lane]).unwrap_or_default();
        let at = self.lanes[lane].max(now) + self.speed.time(bytes);
        self.lanes[lane] = at;
        self.count += 1;
        self.due.insert((at, self.rng.next_u64(), self.count), job);
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.due.keys().next().map(|(at, ..)| *at)
    }

    pub(super) fn take(&mut self, now: Instant) -> Option<J> {
        let entry = self.due.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &J> {
        self.due.values()
    }
}
