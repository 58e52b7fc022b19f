//! What became of datagrams: which slices in flight are expected to arrive, and what the parts learn of those
//! that did or did not.
//!
//! A slice counts as expected from when it is sent until it is acknowledged, lost or given up, unless the
//! model says that the queue drops it, and is believed. Only while it may say so is all that is in flight
//! replayed after feedback; otherwise the counts change with each datagram alone. The invariant: the work for
//! a datagram, and for an ack, is the same however much is in flight; where all of that is replayed the work
//! is bounded in each tick.

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "numbers of a test")]
mod tests;

use super::super::chunks::Chunks;
use super::super::path::PathState;
use super::super::tuning::{REPLAYED, REPLAYED_FOR_EACH, REPLAYED_PER_TICK, TICK};
use super::Sender;
use crate::Instant;
use crate::transit::{Datagram, Fate, Ledger};

/// When what is in flight is looked at again.
#[derive(Debug)]
pub(super) struct Replay {
    /// There was feedback since the datagrams in flight were replayed, which is not done before `due_at`.
    is_stale: bool,
    due_at: Instant,
    /// Slices in flight may not be expected to arrive.
    has_unexpected: bool,
    /// Datagrams acknowledged since the last one.
    news: u32,
}

impl Replay {
    /// Nothing is in flight.
    pub(super) const fn new() -> Self {
        Self { is_stale: false, due_at: Instant::ZERO, has_unexpected: false, news: 0 }
    }

    /// Whether what is expected of the datagrams in flight is not up to date.
    pub(super) const fn is_stale(&self) -> bool {
        self.is_stale
    }

    pub(super) const fn set_stale(&mut self) {
        self.is_stale = true;
    }

    /// A datagram was acknowledged.
    pub(super) const fn on_acked(&mut self) {
        self.news += 1;
    }

    /// A slice was sent.
    pub(super) const fn on_slice_sent(&mut self, is_expected: bool) {
        self.has_unexpected |= !is_expected;
    }

    /// It does not wait: all that was in flight is given up.
    pub(super) const fn hurry(&mut self) {
        self.due_at = Instant::ZERO;
    }

    /// When it is due, if that is later.
    pub(super) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        (self.is_stale && self.due_at > now).then_some(self.due_at)
    }

    /// Brings what is expected of the datagrams in flight up to date, if that is due. Returns how many were
    /// looked at.
    fn run(
        &mut self,
        chunks: &mut Chunks,
        path: &mut PathState,
        now: Instant,
        ledger: &mut Ledger,
    ) -> usize {
        if !self.is_stale {
            return 0;
        }
        let is_decisive = self.is_model_decisive(chunks, path, ledger);
        if is_decisive && now < self.due_at {
            return 0;
        }
        self.is_stale = false;
        let news = core::mem::take(&mut self.news) as usize;
        if is_decisive {
            self.run_over_all(chunks, path, now, ledger)
        } else {
            path.bottleneck.replay_some(ledger, REPLAYED + REPLAYED_FOR_EACH * news)
        }
    }

    /// Whether anything depends on what the model says of each datagram in flight: the pacing, or which
    /// slices are expected to arrive.
    fn is_model_decisive(&self, chunks: &Chunks, path: &PathState, ledger: &Ledger) -> bool {
        let has_rate = path.bottleneck.rate().is_some();
        let is_believed = || {
            let below = model_believed_below(chunks, path);
            ledger.first_unsettled().is_some_and(|number| number < below)
        };
        self.has_unexpected || has_rate && (path.pacing.is_modelled() || is_believed())
    }

    /// The more is in flight, the less often it is all replayed.
    fn run_over_all(
        &mut self,
        chunks: &mut Chunks,
        path: &mut PathState,
        now: Instant,
        ledger: &mut Ledger,
    ) -> usize {
        let believed_below = model_believed_below(chunks, path);
        let (mut has_unexpected, mut has_changed) = (false, false);
        let looked_at = path.bottleneck.replay_in_flight(ledger, |datagram, passes| {
            let is_expected = passes || datagram.number >= believed_below;
            if datagram.slice.is_some() && datagram.is_expected != is_expected {
                datagram.is_expected = is_expected;
                chunks.set_expected(datagram, is_expected);
                has_changed = true;
            }
            has_unexpected |= datagram.slice.is_some() && !is_expected;
        });
        if has_changed {
            chunks.rescan_margins();
        }
        self.has_unexpected = has_unexpected;
        let ticks = u32::try_from(looked_at).unwrap_or(u32::MAX) / REPLAYED_PER_TICK;
        self.due_at = now + TICK * ticks;
        looked_at
    }
}

impl Sender {
    /// What is expected of the datagrams in flight may have changed: until it is settled nothing more is
    /// missing.
    pub(super) fn set_stale(&mut self) {
        self.replay.set_stale();
        self.chunks.rescan_margins();
    }

    /// Called before fates are settled. After feedback it corrects the backlog of each datagram, which
    /// decides how the missing ones were lost.
    pub(crate) fn begin_settling(&self, path: &mut PathState, ledger: &mut Ledger) {
        if self.replay.is_stale() {
            path.bottleneck.replay_settled(ledger);
        }
    }

    /// The fate of the next datagram is settled.
    pub(crate) fn on_settled(&mut self, path: &mut PathState, datagram: &Datagram) {
        if datagram.number < self.config.first_number {
            return;
        }
        if datagram.fate != Fate::Acked {
            self.set_stale();
            self.chunks.on_landed(datagram);
        }
        if path.is_of(datagram) {
            path.on_settled(datagram);
        }
    }

    /// Called after fates are settled. After feedback it updates which slices in flight are expected to
    /// arrive, and when the bottleneck will be idle. Returns how many datagrams were looked at for that.
    pub(crate) fn end_settling(&mut self, path: &mut PathState, ledger: &mut Ledger) -> u64 {
        self.note_in_flight(path, ledger);
        self.replay.run(&mut self.chunks, path, self.now, ledger) as u64
    }
}

/// Of datagrams below this number the model says which are dropped at the bottleneck's queue, before that
/// is known. While there are chunks to open none of that matters: what is dropped is known long before
/// the end, and what was not would be sent twice.
pub(super) fn model_believed_below(chunks: &Chunks, path: &PathState) -> u64 {
    if chunks.has_unopened() { 0 } else { path.pacing.own_from() }
}
