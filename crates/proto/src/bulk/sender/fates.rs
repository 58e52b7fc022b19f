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

use super::super::path::PathState;
use super::super::tuning::{REPLAYED, REPLAYED_FOR_EACH, REPLAYED_PER_TICK, TICK};
use super::Sender;
use crate::transit::{Datagram, Fate, Ledger};

impl Sender {
    /// What is expected of the datagrams in flight may have changed: until it is settled nothing more is
    /// missing.
    pub(super) fn set_stale(&mut self) {
        self.is_stale = true;
        self.chunks.rescan_margins();
    }

    /// Called before fates are settled. After feedback it corrects the backlog of each datagram, which
    /// decides how the missing ones were lost.
    pub(crate) fn begin_settling(&self, path: &mut PathState, ledger: &mut Ledger) {
        if self.is_stale {
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
        if !self.is_stale {
            return 0;
        }
        let is_decisive = self.is_model_decisive(path, ledger);
        if is_decisive && self.now < self.replay_at {
            return 0;
        }
        self.is_stale = false;
        let news = core::mem::take(&mut self.news) as usize;
        let looked_at = if is_decisive {
            self.replay_all(path, ledger)
        } else {
            path.bottleneck.replay_some(ledger, REPLAYED + REPLAYED_FOR_EACH * news)
        };
        looked_at as u64
    }

    /// Whether anything depends on what the model says of each datagram in flight: the pacing, or which
    /// slices are expected to arrive.
    fn is_model_decisive(&self, path: &PathState, ledger: &Ledger) -> bool {
        let has_rate = path.bottleneck.rate().is_some();
        let is_believed = || {
            let below = self.model_believed_below(path);
            ledger.first_unsettled().is_some_and(|number| number < below)
        };
        self.has_unexpected || has_rate && (path.pacing.is_modelled() || is_believed())
    }

    /// Replays all that is in flight: the more that is, the less often.
    fn replay_all(&mut self, path: &mut PathState, ledger: &mut Ledger) -> usize {
        let believed_below = self.model_believed_below(path);
        let Self { chunks, has_unexpected, .. } = self;
        *has_unexpected = false;
        let mut has_changed = false;
        let looked_at = path.bottleneck.replay_in_flight(ledger, |datagram, passes| {
            let is_expected = passes || datagram.number >= believed_below;
            if datagram.slice.is_some() && datagram.is_expected != is_expected {
                datagram.is_expected = is_expected;
                chunks.set_expected(datagram, is_expected);
                has_changed = true;
            }
            *has_unexpected |= datagram.slice.is_some() && !is_expected;
        });
        if has_changed {
            chunks.rescan_margins();
        }
        let ticks = u32::try_from(looked_at).unwrap_or(u32::MAX) / REPLAYED_PER_TICK;
        self.replay_at = self.now + TICK * ticks;
        looked_at
    }

    /// Of datagrams below this number the model says which are dropped at the bottleneck's queue, before that
    /// is known. While there are chunks to open none of that matters: what is dropped is known long before
    /// the end, and what was not would be sent twice.
    pub(super) fn model_believed_below(&self, path: &PathState) -> u64 {
        if self.chunks.has_unopened() { 0 } else { path.pacing.own_from() }
    }
}
