//! Runs of acknowledged records: nearly all that an ack names was in the ack before, and is passed in one
//! step.
//!
//! The invariant: from each acknowledged record on, at least as many are as its run says. A record that is
//! acknowledged stays so, so runs only get longer.

use alloc::collections::VecDeque;

use super::datagram::{Datagram, Fate};

/// Moves a place to the first that is not acknowledged, and returns the steps it took. Each record on the way
/// then leads there, so that the next walk takes one step where this one took many: amortised, a record is
/// passed a few times, however many acks name it.
pub(super) fn pass_acked(records: &mut VecDeque<Datagram>, place: &mut usize) -> u64 {
    let run_of =
        |record: &Datagram| (record.fate == Fate::Acked).then_some(record.acked_run as usize);
    let (start, mut steps) = (*place, 0);
    while let Some(run) = records.get(*place).and_then(run_of) {
        (*place, steps) = (*place + run, steps + 1);
    }
    let mut at = start;
    while let Some(record) = records.get_mut(at).filter(|_| at < *place) {
        let whole = u32::try_from(*place - at).unwrap_or(record.acked_run);
        at += core::mem::replace(&mut record.acked_run, whole) as usize;
    }
    steps
}

/// Panics if a run has a record that is not acknowledged.
pub(super) fn check_invariants(records: &VecDeque<Datagram>) {
    let mut acked_until = 0;
    for (place, record) in records.iter().enumerate() {
        let is_acked = record.fate == Fate::Acked;
        assert!(is_acked || place >= acked_until, "in a run of acknowledged ones");
        assert!(record.acked_run > 0, "a run of none");
        if is_acked {
            acked_until = acked_until.max(place + record.acked_run as usize);
        }
    }
}
