//! Completing acks, each repeated until the sender is known to have received it.
//!
//! Only such an ack frees a place in the sender's window: if one is lost and not repeated, the transfer
//! stops until the sender probes. The invariant: at most [`RECEIVE_WINDOW`] chunks are kept, and each ack is
//! sent a bounded number of times, unless the sender probes for more.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::{RECEIVE_WINDOW, SEND_WINDOW};
use crate::Instant;
use crate::chunk::{Ack, ChunkId, SliceCount, SliceSet};

/// The delay of the first repetition. It doubles with each one.
const FIRST_REPEAT: Duration = Duration::from_millis(10);

/// How long a repetition waits for a datagram to share. During a transfer acks of datagrams are never
/// further apart.
const WAIT: Duration = Duration::from_millis(10);

/// The maximum number of repetitions: the last one is 0.6 s after the first ack. On most links a sender that
/// received none of them has probed by then. Without a confirmation the repetitions must end.
const MAX_REPEATS: u32 = 6;

/// The minimum interval between answers to slices of chunks that are done already. Such slices come from a
/// sender that has not received the ack, and one answer serves for all those in flight. It is the minimum
/// interval of repetitions, too.
const MIN_INTERVAL: Duration = Duration::from_millis(5);

/// A complete chunk whose ack is not confirmed.
#[derive(Clone, Copy, Debug)]
struct Unconfirmed {
    chunk_id: ChunkId,
    count: SliceCount,
    /// How often the ack was sent, and when last.
    sent: u32,
    sent_at: Instant,
}

impl Unconfirmed {
    /// When it is repeated in a datagram that is sent anyway.
    fn repeat_at(&self) -> Instant {
        match self.sent.checked_sub(1) {
            Some(repeats) => self.sent_at + FIRST_REPEAT * (1 << repeats),
            None => Instant::ZERO,
        }
    }

    /// When it is sent in a datagram of its own.
    fn due_at(&self) -> Instant {
        if self.sent == 0 { Instant::ZERO } else { self.repeat_at() + WAIT }
    }
}

/// The completing acks to send, and when.
#[derive(Debug)]
pub(super) struct DoneAcks {
    unconfirmed: VecDeque<Unconfirmed>,
    /// The answer to a slice of a complete chunk.
    answer: Option<(ChunkId, SliceCount)>,
    answered_at: Option<Instant>,
}

impl DoneAcks {
    pub(super) const fn new() -> Self {
        Self { unconfirmed: VecDeque::new(), answer: None, answered_at: None }
    }

    /// This chunk is complete: the ack is sent at once, and repeated until it is confirmed.
    pub(super) fn push(&mut self, chunk_id: ChunkId, count: SliceCount) {
        if self.unconfirmed.len() >= RECEIVE_WINDOW {
            self.unconfirmed.pop_front();
        }
        self.unconfirmed.push_back(Unconfirmed {
            chunk_id,
            count,
            sent: 0,
            sent_at: Instant::ZERO,
        });
    }

    /// A slice of a complete chunk arrived: the sender had not received the ack when it sent the slice.
    pub(super) fn on_late_slice(&mut self, now: Instant, chunk_id: ChunkId, count: SliceCount) {
        let is_time = self.answered_at.is_none_or(|at| now.since(at) >= MIN_INTERVAL);
        if is_time && self.poll_timeout().is_none_or(|at| at > now) {
            self.answered_at = Some(now);
            self.answer = Some((chunk_id, count));
        }
    }

    /// A slice of this chunk arrived. A sender has slices in flight of at most [`SEND_WINDOW`] chunks, from
    /// the oldest without a completing ack on [H-4.2d], so it has received the acks of those before them.
    pub(super) fn on_slice(&mut self, chunk_id: ChunkId) {
        self.forget(|chunk| {
            let ahead = usize::try_from(chunk_id.distance_from(chunk.chunk_id));
            chunk.sent > 0 && ahead.is_ok_and(|ahead| ahead >= SEND_WINDOW)
        });
    }

    /// A datagram with the completing ack of this chunk was acknowledged.
    pub(super) fn on_confirmed(&mut self, chunk_id: ChunkId) {
        self.forget(|chunk| chunk.chunk_id == chunk_id);
    }

    /// The next ack to send now.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Ack> {
        let (chunk_id, count) = match self.answer.take() {
            Some(answer) => answer,
            None => self.send(now, |chunk| chunk.due_at() <= now)?,
        };
        Some(Ack { chunk_id, received: SliceSet::full(count) })
    }

    /// The next ack for a datagram that is sent anyway. If that is ack-eliciting, its acknowledgement
    /// confirms this ack, which may then be sent before it is due.
    pub(super) fn poll_along(&mut self, now: Instant, is_ack_eliciting: bool) -> Option<Ack> {
        let (chunk_id, count) = self.send(now, |chunk| {
            let is_old = now.since(chunk.sent_at) >= MIN_INTERVAL;
            chunk.repeat_at() <= now || is_ack_eliciting && is_old
        })?;
        Some(Ack { chunk_id, received: SliceSet::full(count) })
    }

    /// When an ack is due; an instant in the past means now.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.answer.is_some() {
            return Some(Instant::ZERO);
        }
        self.unconfirmed.iter().map(Unconfirmed::due_at).min()
    }

    pub(super) fn check_invariants(&self) {
        assert!(self.unconfirmed.len() <= RECEIVE_WINDOW);
        assert!(self.unconfirmed.iter().all(|chunk| chunk.sent <= MAX_REPEATS));
    }

    /// Takes the first ack for which it is time.
    fn send(
        &mut self,
        now: Instant,
        is_time: impl Fn(&Unconfirmed) -> bool,
    ) -> Option<(ChunkId, SliceCount)> {
        let chunk = self.unconfirmed.iter_mut().find(|chunk| is_time(chunk))?;
        chunk.sent_at = now;
        chunk.sent += 1;
        let sent = (chunk.chunk_id, chunk.count);
        if chunk.sent > MAX_REPEATS {
            self.on_confirmed(sent.0);
        }
        Some(sent)
    }

    fn forget(&mut self, is_confirmed: impl Fn(&Unconfirmed) -> bool) {
        self.unconfirmed.retain(|chunk| !is_confirmed(chunk));
        if self.unconfirmed.is_empty() && self.unconfirmed.capacity() > 0 {
            // An idle connection holds little memory.
            self.unconfirmed = VecDeque::new();
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

    /// When each ack is sent, in milliseconds, with a punctual caller.
    fn sent(acks: &mut DoneAcks) -> Vec<(u64, u16)> {
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
    fn a_completing_ack_is_repeated_a_limited_number_of_times() {
        let times = sent(&mut done(3..4)).into_iter().map(|(at, _)| at);
        assert!(times.eq([0, 20, 50, 100, 190, 360, 690]), "10, 20, 40 and so on, and the wait");
    }

    #[test]
    fn a_confirmed_ack_is_not_repeated() {
        let mut acks = done(3..5);
        assert_eq!(acks.poll(Instant::ZERO).unwrap().chunk_id.get(), 3);
        acks.on_confirmed(ChunkId::new(3));
        assert!(sent(&mut acks).iter().all(|&(_, id)| id == 4));
    }

    #[test]
    fn a_datagram_sent_anyway_carries_the_ack_sooner() {
        let mut acks = done(3..4);
        let ms = Instant::from_millis;
        assert!(acks.poll(ms(100)).is_some());
        assert!(acks.poll(ms(119)).is_none() && acks.poll_along(ms(109), false).is_none());
        assert!(acks.poll_along(ms(110), false).is_some());
        assert_eq!(acks.poll_timeout(), Some(ms(140)), "20 later, and the wait");
        assert!(acks.poll_along(ms(114), true).is_none());
        assert!(acks.poll_along(ms(115), true).is_some(), "an acknowledgement would confirm it");
    }

    /// A slice 16 chunks ahead shows that its sender received the ack, if one was sent.
    #[test]
    fn a_slice_of_a_later_window_confirms_the_ack() {
        let mut acks = DoneAcks::new();
        for id in [u16::MAX, 0] {
            acks.push(ChunkId::new(id), COUNT);
        }
        acks.on_slice(ChunkId::new(30));
        let now = Instant::from_millis(1);
        let first = [acks.poll(now), acks.poll(now)].map(|ack| ack.unwrap().chunk_id.get());
        assert_eq!(first, [u16::MAX, 0], "each is sent once");
        acks.on_slice(ChunkId::new(15));
        assert!(sent(&mut acks).iter().all(|&(_, id)| id == 0));
        let mut acks = done(0..1);
        assert!(acks.poll(now).is_some());
        acks.on_slice(ChunkId::new(16));
        assert_eq!(acks.poll_timeout(), None);
    }

    /// Answers are 5 ms apart; however many chunks are complete, the memory is that of a window.
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
        assert_eq!(
            sent(&mut acks).first(),
            Some(&(0, 1000 - u16::try_from(RECEIVE_WINDOW).unwrap()))
        );
    }
}
