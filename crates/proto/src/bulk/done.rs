//! The acks that say a chunk is done, each repeated until its sender is known to have heard it.
//!
//! Only such an ack frees a place in the sender's window, and nothing else says the same: one that is lost
//! and not repeated stops the transfer until the sender asks. The invariant: at most [`RECEIVE_WINDOW`]
//! chunks are kept, and each is said a bounded number of times unless its sender asks for more.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::{RECEIVE_WINDOW, SEND_WINDOW};
use crate::Instant;
use crate::chunk::{Ack, ChunkId, SliceCount, SliceSet};

/// The first repetition follows after this long, each later one after twice as long as the one before.
const FIRST_REPEAT: Duration = Duration::from_millis(10);

/// For so long a repetition waits for a datagram that goes in any case. While a transfer runs, acks of datagrams
/// are never further apart.
const WAIT: Duration = Duration::from_millis(10);

/// Repetitions at most: the last one is 0.6 s after the first ack. On most links a sender that has heard none
/// of them has asked by then, and where nothing shows that one was heard they should end.
const MAX_REPEATS: u32 = 6;

/// Answers to slices of chunks that are done already are this far apart: only a sender that does not know
/// sends them, and one answer serves for all that were under way. Nothing is repeated sooner.
const MIN_INTERVAL: Duration = Duration::from_millis(5);

/// A chunk that is done, whose sender may not know it.
#[derive(Clone, Copy, Debug)]
struct Unheard {
    chunk_id: ChunkId,
    count: SliceCount,
    /// How often it was said, and when last.
    said: u32,
    said_at: Instant,
}

impl Unheard {
    /// When it is repeated, if a datagram goes then.
    fn repeat_at(&self) -> Instant {
        match self.said.checked_sub(1) {
            Some(repeats) => self.said_at + FIRST_REPEAT * (1 << repeats),
            None => Instant::ZERO,
        }
    }

    /// When it goes alone.
    fn due_at(&self) -> Instant {
        if self.said == 0 { Instant::ZERO } else { self.repeat_at() + WAIT }
    }
}

/// The chunks that are done, and which of them are to be said when.
#[derive(Debug)]
pub(super) struct DoneAcks {
    unheard: VecDeque<Unheard>,
    /// The answer to a slice of a chunk that is done.
    answer: Option<(ChunkId, SliceCount)>,
    answered_at: Option<Instant>,
}

impl DoneAcks {
    pub(super) const fn new() -> Self {
        Self { unheard: VecDeque::new(), answer: None, answered_at: None }
    }

    /// This chunk is done: that is said at once, and again until it is heard.
    pub(super) fn push(&mut self, chunk_id: ChunkId, count: SliceCount) {
        if self.unheard.len() >= RECEIVE_WINDOW {
            self.unheard.pop_front();
        }
        self.unheard.push_back(Unheard { chunk_id, count, said: 0, said_at: Instant::ZERO });
    }

    /// A slice of a chunk that is done came: its sender does not know, or did not when it sent that.
    pub(super) fn on_late_slice(&mut self, now: Instant, chunk_id: ChunkId, count: SliceCount) {
        let is_time = self.answered_at.is_none_or(|at| now.since(at) >= MIN_INTERVAL);
        if is_time && self.poll_timeout().is_none_or(|at| at > now) {
            self.answered_at = Some(now);
            self.answer = Some((chunk_id, count));
        }
    }

    /// A slice of this chunk came. No sender has slices of more than [`SEND_WINDOW`] chunks under way from the
    /// oldest that it does not know to be done [H-4.2d], so it has heard of those before them.
    pub(super) fn on_slice(&mut self, chunk_id: ChunkId) {
        self.forget(|chunk| {
            let ahead = usize::try_from(chunk_id.distance_from(chunk.chunk_id));
            chunk.said > 0 && ahead.is_ok_and(|ahead| ahead >= SEND_WINDOW)
        });
    }

    /// A datagram that said that this chunk is done was acknowledged.
    pub(super) fn on_heard(&mut self, chunk_id: ChunkId) {
        self.forget(|chunk| chunk.chunk_id == chunk_id);
    }

    /// The next ack to send now.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Ack> {
        let (chunk_id, count) = match self.answer.take() {
            Some(answer) => answer,
            None => self.say(now, |chunk| chunk.due_at() <= now)?,
        };
        Some(Ack { chunk_id, received: SliceSet::full(count) })
    }

    /// The next one for a datagram that goes in any case. If that asks for an ack, the ack will say that this
    /// one was heard: it need not be time for it.
    pub(super) fn poll_along(&mut self, now: Instant, asks: bool) -> Option<Ack> {
        let (chunk_id, count) = self.say(now, |chunk| {
            let is_old = now.since(chunk.said_at) >= MIN_INTERVAL;
            chunk.repeat_at() <= now || asks && is_old
        })?;
        Some(Ack { chunk_id, received: SliceSet::full(count) })
    }

    /// When one is due; a moment in the past means at once.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.answer.is_some() {
            return Some(Instant::ZERO);
        }
        self.unheard.iter().map(Unheard::due_at).min()
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.unheard.len() <= RECEIVE_WINDOW);
        assert!(self.unheard.iter().all(|chunk| chunk.said <= MAX_REPEATS));
    }

    /// Says the first for which it is time.
    fn say(
        &mut self,
        now: Instant,
        is_time: impl Fn(&Unheard) -> bool,
    ) -> Option<(ChunkId, SliceCount)> {
        let chunk = self.unheard.iter_mut().find(|chunk| is_time(chunk))?;
        chunk.said_at = now;
        chunk.said += 1;
        let said = (chunk.chunk_id, chunk.count);
        if chunk.said > MAX_REPEATS {
            self.on_heard(said.0);
        }
        Some(said)
    }

    fn forget(&mut self, is_known: impl Fn(&Unheard) -> bool) {
        self.unheard.retain(|chunk| !is_known(chunk));
        if self.unheard.is_empty() && self.unheard.capacity() > 0 {
            // An idle connection is small.
            self.unheard = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const COUNT: SliceCount = match SliceCount::new(7) {
        Some(count) => count,
        None => unreachable!(),
    };

    fn done(ids: core::ops::Range<u16>) -> DoneAcks {
        let mut acks = DoneAcks::new();
        ids.for_each(|id| acks.push(ChunkId::new(id), COUNT));
        acks
    }

    /// When each ack is said, in milliseconds, by a caller that comes when it is asked to.
    fn said(acks: &mut DoneAcks) -> Vec<(u64, u16)> {
        core::iter::from_fn(|| {
            let now = acks.poll_timeout()?;
            acks.check_invariants();
            let ack = acks.poll(now)?;
            assert!(ack.received.is_full() && ack.received.count() == COUNT);
            Some((now.as_nanos() / 1_000_000, ack.chunk_id.get()))
        })
        .collect()
    }

    #[test]
    fn a_done_chunk_is_said_again_and_again_but_not_for_ever() {
        let times = said(&mut done(3..4)).into_iter().map(|(at, _)| at);
        assert!(times.eq([0, 20, 50, 100, 190, 360, 690]), "10, 20, 40 and so on, and the wait");
    }

    #[test]
    fn what_is_heard_is_not_said_again() {
        let mut acks = done(3..5);
        assert_eq!(acks.poll(Instant::ZERO).unwrap().chunk_id.get(), 3);
        acks.on_heard(ChunkId::new(3));
        assert!(said(&mut acks).iter().all(|&(_, id)| id == 4));
    }

    #[test]
    fn what_goes_anyway_carries_it_sooner() {
        let mut acks = done(3..4);
        let ms = Instant::from_millis;
        assert!(acks.poll(ms(100)).is_some());
        assert!(acks.poll(ms(119)).is_none() && acks.poll_along(ms(109), false).is_none());
        assert!(acks.poll_along(ms(110), false).is_some());
        assert_eq!(acks.poll_timeout(), Some(ms(140)), "20 later, and the wait");
        assert!(acks.poll_along(ms(114), true).is_none());
        assert!(acks.poll_along(ms(115), true).is_some(), "it asks whether it was heard");
    }

    /// A slice 16 chunks further says that its sender has heard, once there was something to hear.
    #[test]
    fn a_slice_of_a_later_window_proves_that_it_was_heard() {
        let mut acks = DoneAcks::new();
        for id in [u16::MAX, 0] {
            acks.push(ChunkId::new(id), COUNT);
        }
        acks.on_slice(ChunkId::new(30));
        let now = Instant::from_millis(1);
        let first = [acks.poll(now), acks.poll(now)].map(|ack| ack.unwrap().chunk_id.get());
        assert_eq!(first, [u16::MAX, 0], "each is said once");
        acks.on_slice(ChunkId::new(15));
        assert!(said(&mut acks).iter().all(|&(_, id)| id == 0));
        let mut acks = done(0..1);
        assert!(acks.poll(now).is_some());
        acks.on_slice(ChunkId::new(16));
        assert_eq!(acks.poll_timeout(), None);
    }

    /// Whoever asks is answered every 5 ms; however many chunks are done, the memory is that of a window.
    #[test]
    fn answers_and_memory_are_bounded() {
        let mut acks = DoneAcks::new();
        let answers = (0..100u64).filter(|&ms| {
            acks.on_late_slice(Instant::from_millis(ms), ChunkId::new(1), COUNT);
            acks.poll(Instant::from_millis(ms)).is_some()
        });
        assert_eq!(answers.count(), 20);
        let mut acks = done(0..1000);
        acks.check_invariants();
        assert_eq!(said(&mut acks).first(), Some(&(0, 1000 - RECEIVE_WINDOW as u16)));
    }
}
