//! Deadlines for a sender that is gone or too slow: a block that holds memory must come to an end (H-5.1b).
//!
//! The invariant: time does not count in which the sender waits for this application, in which nothing at all
//! is received, or in which no memory is held for blocks that were begun: a sender whose own program has
//! nothing to send for an hour costs no more than an idle one.

use core::time::Duration;

use super::slots::Slots;
use super::{Fault, IncomingBlocks};
use crate::Instant;
use crate::stall::{StallClock, max_block_time};
use crate::time::earliest;

/// The receiver waits this many times as long as the sender: the sender knows better, and an honest sender
/// gives up first.
const PATIENCE: u32 = 2;

/// How long nothing new has arrived.
#[derive(Debug)]
pub(super) struct Patience {
    /// Since the last new slice arrived.
    stall: StallClock,
    /// Since when time does not count.
    paused_since: Option<Instant>,
}

impl Patience {
    pub(super) const fn new(now: Instant, idle_timeout: Duration) -> Self {
        Self { stall: StallClock::new(now, idle_timeout), paused_since: None }
    }

    /// Whether no block is in progress, so that nothing is waited for.
    pub(super) fn is_idle(&self, slots: &Slots) -> bool {
        slots.blocks().next().is_none()
    }

    pub(super) const fn on_progress(&mut self, now: Instant) {
        self.stall.on_progress(now);
    }

    pub(super) fn on_heard(&mut self, now: Instant) {
        let _was_silent = self.stall.on_heard(now);
    }

    /// Notes whether time counts. At the end of a pause, returns its length.
    pub(super) fn on_pause(&mut self, now: Instant, is_paused: bool) -> Option<Duration> {
        match (self.paused_since, is_paused) {
            (None, true) => self.paused_since = Some(now),
            (Some(since), false) => {
                self.paused_since = None;
                let pause = now.since(since);
                self.stall.on_pause(now, pause);
                return Some(pause);
            }
            _ => {}
        }
        None
    }
}

impl IncomingBlocks {
    /// Why the connection has to close, if it has to.
    pub(crate) fn failure(&self, now: Instant) -> Option<Fault> {
        if self.is_stuck() {
            return Some(Fault::Resources);
        }
        self.late_at().filter(|&at| at <= now).map(|_| Fault::NoProgress)
    }

    /// When [`failure`](Self::failure) or [`handle_timeout`](Self::handle_timeout) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.is_stuck() {
            return Some(Instant::ZERO);
        }
        earliest(self.late_at(), self.abandon_at())
    }

    /// Abandons slices whose announcement never came.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.abandon_at().is_some_and(|at| at <= now) {
            self.staging.clear();
        }
    }

    fn wait(&self) -> Duration {
        self.config.no_progress_timeout.saturating_mul(PATIENCE)
    }

    fn abandon_at(&self) -> Option<Instant> {
        self.staging.newest_at().map(|at| at + self.wait())
    }

    /// When a block has made no progress, or too little, for too long.
    fn late_at(&self) -> Option<Instant> {
        if self.patience.paused_since.is_some() || self.patience.is_idle(&self.slots) {
            return None;
        }
        let stalled = self.patience.stall.stalled_at(self.wait());
        let rate = Some(self.config.min_block_rate_bps).filter(|&rate| rate > 0);
        let crawled = self.slots.blocks().filter_map(|(_, block)| {
            let most = max_block_time(block.length, rate?, self.config.idle_timeout);
            Some(block.started()? + most.saturating_mul(PATIENCE))
        });
        earliest(Some(stalled), crawled.min())
    }

    /// The blocks in progress take all the memory, none of their chunks is in progress, and the application
    /// has nothing to read: nothing can ever go on.
    fn is_stuck(&self) -> bool {
        self.credit.left() == 0
            && self.credit.in_progress() == 0
            && self.ready.is_empty()
            && !self.patience.is_idle(&self.slots)
    }
}
