//! The progress frame: the receiver's whole state, and whether the sender knows which blocks are finished.
//!
//! The invariant: news that may not have reached the sender goes with each ack and ack-eliciting datagram,
//! until one of these is acknowledged; and it is bounded by the 64 blocks that may be open for the sender.
//! A lost one costs a probe of the sender at most, for a block that it takes for unfinished. Only credit
//! that was raised from nothing must arrive: nothing else would make the sender ask.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::slots::{MAX_BLOCKS, Slots};
use crate::transit::ProgressMark;
use crate::wire::frames::{
    MAX_PROGRESS_BLOCKS, MAX_PROGRESS_MAP_BYTES, ProgressEntry, ProgressFrame,
};

/// Whether a progress frame belongs in the next datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProgressDue {
    /// There is nothing to say.
    No,
    /// It goes with every ack.
    WithAck,
    /// At once, with or without an ack.
    Now,
    /// At once, in an ack-eliciting datagram, whose fate is passed back.
    MustArrive,
}

/// A finished block.
#[derive(Clone, Copy, Debug)]
struct Finished {
    serial: u64,
    number: u32,
    chunks: u32,
}

/// The news that may not have reached the sender.
#[derive(Debug)]
pub(super) struct Unheard {
    /// In the order in which they finished.
    finished: VecDeque<Finished>,
    /// Blocks finished so far.
    serial: u64,
    /// A credit that the sender may be waiting for.
    credit: Option<u64>,
    is_due: bool,
}

impl Unheard {
    pub(super) const fn new() -> Self {
        Self { finished: VecDeque::new(), serial: 0, credit: None, is_due: false }
    }

    /// A block is finished.
    pub(super) fn on_finished(&mut self, number: u32, chunks: u32) {
        self.serial += 1;
        self.finished.push_back(Finished { serial: self.serial, number, chunks });
        self.is_due = true;
    }

    /// `open` blocks are open. If these and the finished ones are more than 64, the sender has heard of those
    /// that finished first, since each frame names the first ones.
    pub(super) fn limit(&mut self, open: usize) {
        while self.finished.len() > usize::from(MAX_BLOCKS).saturating_sub(open) {
            self.finished.pop_front();
        }
        self.forget_memory();
    }

    /// The credit was raised, and the sender may have nothing left, or no block that brings the news.
    pub(super) const fn on_raised(&mut self, credit: u64) {
        self.credit = Some(credit);
        self.is_due = true;
    }

    pub(super) fn due(&self, has_open: bool) -> ProgressDue {
        match (self.is_due, has_open || !self.finished.is_empty() || self.credit.is_some()) {
            (true, _) if self.credit.is_some() => ProgressDue::MustArrive,
            (true, _) => ProgressDue::Now,
            (false, true) => ProgressDue::WithAck,
            (false, false) => ProgressDue::No,
        }
    }

    /// A frame goes out in an ack-eliciting datagram.
    pub(super) const fn on_sent(&mut self, credit: u64) -> ProgressMark {
        self.is_due = false;
        ProgressMark { finished: self.serial, credit }
    }

    /// The datagram with this frame was acknowledged.
    pub(super) fn on_heard(&mut self, mark: ProgressMark) {
        self.finished.retain(|finished| finished.serial > mark.finished);
        self.credit = self.credit.filter(|&credit| credit > mark.credit);
        self.is_due &= !self.finished.is_empty() || self.credit.is_some();
        self.forget_memory();
    }

    /// The datagram with this frame is lost. A later one may have said the same.
    pub(super) fn on_lost(&mut self, mark: ProgressMark) {
        let is_first = self.finished.front().is_some_and(|first| first.serial <= mark.finished);
        self.is_due |= is_first || self.credit.is_some_and(|credit| credit <= mark.credit);
    }

    /// The frame with all of this, in at most `room` bytes. Without room for all maps, those of the lowest
    /// blocks go first; without room for all blocks, there is no frame.
    pub(super) fn frame<'a>(
        &self,
        slots: &Slots,
        credit: u64,
        lateness_ms: u64,
        room: usize,
        entries: &'a mut Vec<u8>,
    ) -> Option<ProgressFrame<'a>> {
        entries.clear();
        let floor = slots.floor();
        let finished = self.finished.iter().filter(|finished| finished.number >= floor);
        let finished =
            finished.map(|it| ProgressEntry { block: it.number, first: it.chunks, map: &[] });
        // A full one is not finished before its sender knows what was here.
        let open = || {
            let open = slots.blocks().map(|(block, it)| (block, &it.done));
            open.filter(|(_, done)| !done.is_full())
        };
        let count = open().count();
        for entry in finished.take(MAX_PROGRESS_BLOCKS - count.min(MAX_PROGRESS_BLOCKS)) {
            entry.write(entries);
        }
        let without_map = |block, first| ProgressEntry { block, first, map: &[] };
        let heads = open().map(|(block, done)| without_map(block, done.first()).encoded_len());
        let heads = heads.sum::<usize>();
        let empty = ProgressFrame::new(credit, lateness_ms, floor, 0, &[])?.encoded_len();
        let mut rest = room.checked_sub(empty + entries.len() + heads)?;
        for (block, done) in open() {
            // The length of the map is the last byte of an entry without one.
            without_map(block, done.first()).write(entries);
            let length = entries.len() - 1;
            let written = done.write(rest.min(MAX_PROGRESS_MAP_BYTES), entries);
            rest -= written;
            if let (Some(place), Ok(bytes)) = (entries.get_mut(length), u8::try_from(written)) {
                *place = bytes;
            }
        }
        let finished = self.finished.iter().filter(|finished| finished.number >= floor).count();
        let count = count + finished.min(MAX_PROGRESS_BLOCKS - count.min(MAX_PROGRESS_BLOCKS));
        ProgressFrame::new(credit, lateness_ms, floor, count, entries)
    }

    /// Memory held, in bytes, besides itself.
    pub(super) fn memory_bytes(&self) -> usize {
        self.finished.capacity() * size_of::<Finished>()
    }

    pub(super) fn check_invariants(&self, open: usize) {
        assert!(
            self.finished.len() <= usize::from(MAX_BLOCKS).saturating_sub(open),
            "more than a sender may have open"
        );
    }

    fn forget_memory(&mut self) {
        if self.finished.is_empty() && self.finished.capacity() > 0 {
            self.finished = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_finished_is_due_until_it_is_heard() {
        let mut unheard = Unheard::new();
        assert_eq!(unheard.due(false), ProgressDue::No);
        assert_eq!(unheard.due(true), ProgressDue::WithAck);
        unheard.on_finished(0, 1);
        assert_eq!(unheard.due(false), ProgressDue::Now);
        let first = unheard.on_sent(32);
        unheard.on_finished(1, 1);
        let second = unheard.on_sent(32);
        assert_eq!(unheard.due(false), ProgressDue::WithAck);
        unheard.on_lost(second);
        assert_eq!(unheard.due(false), ProgressDue::Now);
        unheard.on_heard(first);
        assert_eq!(unheard.due(false), ProgressDue::Now, "the second was not heard");
        let third = unheard.on_sent(32);
        unheard.on_heard(third);
        assert_eq!(unheard.due(false), ProgressDue::No);
        unheard.on_lost(second);
        assert_eq!((unheard.due(false), unheard.memory_bytes()), (ProgressDue::No, 0));
    }

    #[test]
    fn credit_from_nothing_is_due_until_it_is_heard() {
        let mut unheard = Unheard::new();
        unheard.on_raised(40);
        assert_eq!(unheard.due(false), ProgressDue::MustArrive);
        let mark = unheard.on_sent(40);
        unheard.on_lost(mark);
        assert_eq!(unheard.due(false), ProgressDue::MustArrive);
        let mark = unheard.on_sent(41);
        unheard.on_heard(mark);
        assert_eq!(unheard.due(false), ProgressDue::No);
    }

    /// 8.4 MB of acks of one-byte blocks piled up once. A sender that announces more has received the news.
    #[test]
    fn nothing_piles_up() {
        let mut unheard = Unheard::new();
        let mut entries = Vec::new();
        for number in 0..10_000 {
            unheard.limit(1);
            unheard.on_finished(number, 1);
            let frame = unheard.frame(&Slots::new(), 1 << 30, 100, 1000, &mut entries);
            assert!(frame.unwrap().encoded_len() <= 400);
        }
        unheard.limit(0);
        unheard.check_invariants(0);
        assert!(unheard.memory_bytes() <= 64 * size_of::<Finished>());
    }
}
