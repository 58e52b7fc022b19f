//! Datagrams that arrived after later ones: each is named in two acks, however many gaps there are between
//! them.
//!
//! An ack has 31 runs. In a little disorder the newest 32 hold all that is news; where datagrams are held up
//! by more than a round trip, each of hundreds is a run of its own, and one that is filled late is far below
//! the newest. So it is written down here, until two acks have named it.
//!
//! The invariant: it is bounded, and exists only while a block is received of which some datagram was
//! overtaken.

use alloc::collections::VecDeque;

use super::ack_frame::MAX_ACK_RUNS;

/// Numbers that no ack has named: more arrive in one call only above a Gbit/s.
const MAX_FRESH: usize = 512;

/// Numbers that one ack has named: what two acks have room for.
const MAX_NAMED: usize = 2 * MAX_ACK_RUNS;

/// So many that no ack has named make one due: with those of the ack before they fit its runs.
const MAX_WAITING: usize = MAX_ACK_RUNS / 2;

/// For at least so many numbers after a datagram that came late, a gap shows nothing.
const DISORDERED: u64 = 256;

/// The datagrams that arrived late.
#[derive(Clone, Debug, Default)]
pub(super) struct Late {
    /// Gaps below this number are of datagrams that may be on the way.
    disordered_below: u64,
    /// Those that no ack has named, and those that one has, in the order of arrival.
    fresh: VecDeque<u64>,
    named: VecDeque<u64>,
}

impl Late {
    /// A datagram arrived: one that was overtaken, or that left a gap.
    pub(super) fn on_arrival(&mut self, number: u64) {
        match self.fresh.back_mut() {
            // It is in the same run.
            Some(last) if last.checked_add(1) == Some(number) => *last = number,
            _ => push(&mut self.fresh, number, MAX_FRESH),
        }
    }

    /// This many later ones had arrived before it.
    pub(super) fn on_overtaken(&mut self, largest: u64, later: u64) {
        self.disordered_below = largest.saturating_add(later.max(DISORDERED));
    }

    /// Whether a gap below this number may be of datagrams that are still on the way.
    pub(super) const fn is_disordered(&self, number: u64) -> bool {
        number < self.disordered_below
    }

    /// The numbers that the next ack is to name, at most 31.
    pub(super) fn wanted(&self) -> impl Iterator<Item = u64> + '_ {
        self.fresh.iter().chain(&self.named).copied().take(MAX_ACK_RUNS)
    }

    /// Whether so many wait that an ack is due.
    pub(super) fn is_due(&self) -> bool {
        self.fresh.len() >= MAX_WAITING
    }

    /// Whether there are some that no ack has named.
    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// An ack named those that were [`wanted`](Self::wanted).
    pub(super) fn on_named(&mut self) {
        let news = self.fresh.len().min(MAX_ACK_RUNS);
        let again = (MAX_ACK_RUNS - news).min(self.named.len());
        self.named.drain(..again);
        for number in self.fresh.drain(..news) {
            push(&mut self.named, number, MAX_NAMED);
        }
    }
}

fn push(numbers: &mut VecDeque<u64>, number: u64, max: usize) {
    if numbers.len() >= max {
        numbers.pop_front();
    }
    numbers.push_back(number);
}
