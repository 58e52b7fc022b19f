//! One chunk in flight: what was sent when, what is acked, and which slice is next.

use alloc::boxed::Box;
use alloc::vec;
use core::time::Duration;

use bytes::Bytes;

use crate::Instant;
use crate::chunk::{
    Ack, ChunkHandle, ChunkId, SLICE_BYTES, Slice, SliceCount, SliceIndex, SliceSet, SliceState,
};

#[derive(Clone, Copy, Debug, Default)]
struct SliceRecord {
    /// `None` if never sent. The original used time 0 for that, and so sent nothing in the first 100 ms of
    /// its clock.
    last_sent: Option<Instant>,
    sends: u32,
}

/// The chunk in flight.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    pub(super) handle: ChunkHandle,
    pub(super) id: ChunkId,
    data: Bytes,
    acked: SliceSet,
    /// The slice where the search for the next one starts: the one after the last sent.
    cursor: SliceIndex,
    records: Box<[SliceRecord]>,
    pub(super) started: Instant,
    /// When a slice was last acked for the first time, or the chunk was started.
    pub(super) last_progress: Instant,
}

/// What an ack changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckTrigger {
    /// Slices acked for the first time.
    pub(super) newly_acked: usize,
    /// The round trip of the newest of them that was sent only once.
    pub(super) rtt_sample: Option<Duration>,
}

impl Sending {
    pub(super) fn new(handle: ChunkHandle, id: ChunkId, data: Bytes, now: Instant) -> Option<Self> {
        let count = SliceCount::for_bytes(data.len())?;
        Some(Self {
            handle,
            id,
            data,
            acked: SliceSet::empty(count),
            cursor: count.first(),
            records: vec![SliceRecord::default(); count.get()].into(),
            started: now,
            last_progress: now,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.data.len()
    }

    pub(super) const fn acked(&self) -> &SliceSet {
        &self.acked
    }

    /// The slice with its data.
    pub(super) fn slice(&self, index: SliceIndex) -> Option<Slice<'_>> {
        Slice::of_chunk(self.id, index, &self.data)
    }

    /// Bytes of data in this slice.
    pub(super) fn slice_bytes(&self, index: SliceIndex) -> usize {
        self.data.len().saturating_sub(index.offset()).min(SLICE_BYTES)
    }

    pub(super) fn state_of(&self, index: SliceIndex) -> SliceState {
        if self.acked.contains(index) {
            SliceState::Acked
        } else {
            match self.records[index.get()].sends {
                0 => SliceState::Unsent,
                sends => SliceState::InFlight { sends },
            }
        }
    }

    /// The next slice of the burst: the next one that was never sent.
    pub(super) fn next_unsent(&self) -> Option<SliceIndex> {
        Some(self.cursor).filter(|cursor| self.records[cursor.get()].last_sent.is_none())
    }

    /// The first unacked slice from the cursor on that was not sent within `resend_delay`.
    pub(super) fn next_due(&self, now: Instant, resend_delay: Duration) -> Option<SliceIndex> {
        let mut index = self.cursor;
        for _ in 0..self.records.len() {
            if self.due_at(index, resend_delay).is_some_and(|due| due <= now) {
                return Some(index);
            }
            index = index.next_cyclic();
        }
        None
    }

    /// When the first unacked slice is due.
    pub(super) fn earliest_due(&self, resend_delay: Duration) -> Option<Instant> {
        self.acked.count().indices().filter_map(|index| self.due_at(index, resend_delay)).min()
    }

    /// When this slice may be sent; `None` once it is acked.
    fn due_at(&self, index: SliceIndex, resend_delay: Duration) -> Option<Instant> {
        if self.acked.contains(index) {
            return None;
        }
        let last_sent = self.records[index.get()].last_sent;
        Some(last_sent.map_or(Instant::ZERO, |sent| sent + resend_delay))
    }

    /// Records that the slice is sent now, and moves the cursor past it. Returns whether it is a
    /// retransmission. (The original never stored the time and moved its cursor by one whatever it sent:
    /// docs/decisions/0007.)
    pub(super) fn on_sent(&mut self, now: Instant, index: SliceIndex) -> bool {
        let record = &mut self.records[index.get()];
        let is_retransmission = record.last_sent.is_some();
        let sends = record.sends.saturating_add(1);
        *record = SliceRecord { last_sent: Some(now), sends };
        self.cursor = index.next_cyclic();
        is_retransmission
    }

    /// Handles an ack for this chunk, with this slice count.
    ///
    /// Flags only go from unacked to acked. A flag for a slice that was never sent is ignored: no receiver
    /// can have that slice, and it would never be sent.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &Ack) -> AckTrigger {
        let mut news = AckTrigger::default();
        let mut newest = None;
        for index in ack.received.iter() {
            let record = self.records[index.get()];
            let Some(sent) = record.last_sent else { continue };
            if !self.acked.insert(index) {
                continue;
            }
            news.newly_acked += 1;
            if record.sends == 1 {
                newest = newest.max(Some(sent));
            }
        }
        if news.newly_acked > 0 {
            self.last_progress = now;
        }
        news.rtt_sample = newest.map(|sent| now.since(sent));
        news
    }

    pub(super) fn check_invariants(&self) {
        assert_eq!(self.records.len(), self.acked.count().get());
        for index in self.acked.count().indices() {
            let record = self.records[index.get()];
            assert_eq!(record.last_sent.is_none(), record.sends == 0, "a send without a time");
            let acked = self.acked.contains(index);
            assert!(!acked || record.sends > 0, "an acked slice that was never sent");
        }
    }
}
