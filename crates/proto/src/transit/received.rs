//! The datagrams received: no number twice, and an ack when one is due.
//!
//! The invariant: nothing here changes before a datagram was verified and passed to
//! [`on_verified`](ReceivedDatagrams::on_verified).

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::time::Duration;

use crate::{DropReason, Ecn, Instant};

use super::ack_frame::MAX_ACK_RUNS;
use super::late::Late;
use super::number::expand_number;
use super::verdict::PACKET_THRESHOLD;
use super::window::{Place, ReplayWindow};
use super::{AckFrame, EcnCounts, MAX_ACK_DELAY};

/// Datagrams that make an ack due without waiting [H-4.1b], unless the peer wants another number: at 16 for
/// one ack, acks are 1 % of the bytes of a transfer.
const ACK_AFTER: u8 = 16;

/// Which of the first datagrams are acknowledged at once: the first gives the peer an RTT sample, the next
/// ones a rate while it knows none.
const ACKED_AT_ONCE: [u8; 4] = [1, 4, 8, 16];

/// How long an ack waits while a block is received, unless the peer wants another time: a fraction of any RTT
/// that matters.
const BLOCK_ACK_DELAY: Duration = Duration::from_millis(10);

/// Numbers that are remembered of datagrams that could not be kept.
const MAX_NOT_KEPT: usize = 64;

/// An ack after which nothing arrived is repeated after this long, in case it was lost, then after twice the
/// time, and so on.
const FIRST_REPEAT: Duration = Duration::from_millis(10);

/// Repetitions of an ack.
const REPEATS: u32 = 5;

/// The datagrams received on one connection. The module has an example.
///
/// It takes no heap memory before number 128, a bit or two for each number up to 1 KiB from there on, and
/// 16 KiB after 16,384 datagrams.
#[derive(Clone, Debug)]
pub struct ReceivedDatagrams {
    window: ReplayWindow,
    largest_at: Instant,
    /// When the ack is due, if something ack-eliciting arrived since the last one.
    due: Option<Instant>,
    /// A number was missing: from this one on its sender can declare it lost.
    gap_due_at: Option<u64>,
    /// Datagrams with acks alone that were sent [H-4.1c].
    alone: u64,
    /// Ack-eliciting datagrams: since the last ack, and since the first. Both stop at 255.
    pending: u8,
    asked: u8,
    is_due_for_gap: bool,
    /// A block is being received: acks are sent sooner.
    is_block: bool,
    /// The newest numbers that arrived and are not acknowledged.
    not_kept: VecDeque<u64>,
    /// The peer wants an ack after this number of datagrams, and `block_ack_delay` after one of a block.
    ack_after: u8,
    block_ack_delay: Duration,
    /// Repetitions of the ack since the last datagram.
    repeats: u32,
    /// The last ack was for a gap. The next is not, or a link that loses much would get an ack for every few
    /// datagrams.
    was_for_gap: bool,
    /// Datagrams that arrived with each mark.
    marks: EcnCounts,
    /// Those of a block that others have overtaken; `None` before the first.
    late: Option<Box<Late>>,
}

impl ReceivedDatagrams {
    /// Nothing received.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            window: ReplayWindow::new(),
            largest_at: Instant::ZERO,
            due: None,
            gap_due_at: None,
            alone: 0,
            pending: 0,
            asked: 0,
            is_due_for_gap: false,
            is_block: false,
            not_kept: VecDeque::new(),
            ack_after: ACK_AFTER,
            block_ack_delay: BLOCK_ACK_DELAY,
            repeats: 0,
            was_for_gap: false,
            marks: EcnCounts { ect0: 0, ect1: 0, ce: 0 },
            late: None,
        }
    }

    /// The packet number whose 32 bits are on the wire: the nearest to the one after the largest.
    #[must_use]
    pub fn expand(&self, truncated: u32) -> u64 {
        let expected = self.window.largest().map_or(0, |largest| largest.saturating_add(1));
        expand_number(truncated, expected)
    }

    /// Whether a datagram of this number may be opened at all. Changes nothing.
    ///
    /// # Errors
    /// [`DropReason::Duplicate`] if it arrived before, [`DropReason::TooOld`] if the number is below the
    /// window, so that this is not known.
    pub fn check(&self, number: u64) -> Result<(), DropReason> {
        if self.not_kept.contains(&number) {
            return Err(DropReason::Duplicate);
        }
        match self.window.place(number) {
            Place::Fresh => Ok(()),
            Place::Duplicate => Err(DropReason::Duplicate),
            Place::TooOld => Err(DropReason::TooOld),
        }
    }

    /// A datagram was verified, and [`check`](Self::check) accepts its number (otherwise it is ignored
    /// here). `ack_eliciting` says whether any frame in it is to be acknowledged.
    pub fn on_verified(&mut self, now: Instant, number: u64, ack_eliciting: bool) {
        if self.check(number).is_err() {
            return;
        }
        let largest = self.window.largest();
        self.window.insert(number);
        if largest < Some(number) {
            self.largest_at = now;
            let expected = largest.map_or(0, |largest| largest.saturating_add(1));
            if number > expected {
                let is_gap = !self.late.as_ref().is_some_and(|late| late.is_disordered(number));
                self.gap_due_at = number.checked_add(PACKET_THRESHOLD - 1).filter(|_| is_gap);
            }
        }
        self.note_late(number, largest);
        if ack_eliciting {
            if self.repeats > 0 {
                (self.repeats, self.due) = (0, None);
            }
            self.ask(now);
        }
    }

    /// The datagram that was just verified had this ECN field.
    pub const fn on_mark(&mut self, ecn: Ecn) {
        match ecn {
            Ecn::NotEct => {}
            Ecn::Ect0 => self.marks.ect0 += 1,
            Ecn::Ect1 => self.marks.ect1 += 1,
            Ecn::Ce => self.marks.ce += 1,
        }
    }

    /// A datagram was verified, but its contents could not be kept: it is not acknowledged, and its contents
    /// are sent again under another number. Its own number is refused from now on; the last 64 such numbers
    /// are remembered.
    pub(crate) fn on_not_kept(&mut self, number: u64) {
        if self.not_kept.len() >= MAX_NOT_KEPT {
            self.not_kept.pop_front();
        }
        self.not_kept.push_back(number);
    }

    /// When an ack must be sent, in a datagram of its own if there is no other: at once (a moment that has
    /// passed), or up to 20 ms after the first datagram it is for. `None` if none is due, or if there would
    /// be more than one datagram with acks alone for two received, the first excepted; the ack then goes
    /// with data, or after more has arrived.
    #[must_use]
    pub const fn ack_due(&self) -> Option<Instant> {
        if self.may_ack_alone() { self.due } else { None }
    }

    /// The ack for a datagram that is about to be sent; `None` if none is due. Call
    /// [`on_ack_sent`](Self::on_ack_sent) when it is in.
    #[must_use]
    pub fn ack_frame(&self, now: Instant) -> Option<AckFrame> {
        self.due?;
        let numbers = |of: u64| u32::try_from(of).unwrap_or(u32::MAX);
        let largest = self.window.largest()?;
        let mut named = self.window.run_of(largest)?;
        let first = numbers(largest - named.start());
        let mut frame = AckFrame::new(largest, now.since(self.largest_at), first);
        // Without any, no router or transport on the way carries the field.
        if self.marks != EcnCounts::default() {
            frame = frame.with_ecn(self.marks);
        }
        let (wanted, mut others) = self.wanted_runs();
        let top = *named.start();
        let mut wanted = wanted.iter().skip_while(|run| *run.start() >= top).peekable();
        // The newest runs, as far as those that are wanted leave room for them, and these.
        loop {
            let next = if others > 0 { self.window.run_below(*named.start()) } else { None };
            let is_wanted = wanted.next_if(|run| next.as_ref().is_none_or(|next| *next == **run));
            others -= usize::from(is_wanted.is_none() && next.is_some());
            let Some(run) = is_wanted.cloned().or(next) else { return Some(frame) };
            let (gap, length) = (named.start() - run.end() - 1, run.end() - run.start() + 1);
            if !frame.push_run(numbers(gap), numbers(length)) {
                return Some(frame);
            }
            named = run;
        }
    }

    /// Whether a block is being received: acks then wait for 10 ms instead of 20, and are repeated.
    pub fn set_block(&mut self, is_block: bool) {
        self.is_block = is_block;
        if !is_block {
            self.late = None;
        }
    }

    /// The peer wants an ack after this number of datagrams, and `delay` after one of a block.
    pub(crate) const fn set_frequency(&mut self, datagrams: u8, delay: Duration) {
        (self.ack_after, self.block_ack_delay) = (datagrams, delay);
    }

    /// By how much longer than unasked acks of a block wait.
    pub(crate) const fn thinned_by(&self) -> Duration {
        self.block_ack_delay.saturating_sub(BLOCK_ACK_DELAY)
    }

    /// The ack was sent; `alone` if its datagram was not ack-eliciting.
    pub fn on_ack_sent(&mut self, now: Instant, alone: bool) {
        self.due = None;
        if self.is_block && self.repeats < REPEATS {
            let first = FIRST_REPEAT.max(self.block_ack_delay);
            self.due = Some(now + first * (1 << self.repeats));
            self.repeats += 1;
        }
        self.pending = 0;
        self.was_for_gap = self.is_due_for_gap;
        self.is_due_for_gap = false;
        if let Some(late) = &mut self.late {
            late.on_named();
            if late.has_fresh() {
                (self.due, self.pending) = (Some(now), 1);
            }
        }
        if alone {
            self.alone = self.alone.saturating_add(1);
        }
    }

    /// A datagram with acks of another kind alone was sent: it counts in the same way.
    pub const fn on_other_ack_alone(&mut self) {
        self.alone = self.alone.saturating_add(1);
    }

    /// The largest number received; `None` before the first.
    #[must_use]
    pub const fn largest(&self) -> Option<u64> {
        self.window.largest()
    }

    /// Datagrams received: verified, and each counted once.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.window.count()
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        let is_repeat = self.repeats > 0 && self.pending == 0;
        assert!(
            self.due.is_some() == (self.pending > 0) || is_repeat,
            "an ack is due for something"
        );
        assert_eq!(
            self.received() > 0,
            self.largest().is_some(),
            "what arrived has a largest number"
        );
        assert!(!self.is_due_for_gap || self.due.is_some(), "a gap makes an ack due");
    }

    /// A datagram arrived, and this was the largest number before.
    fn note_late(&mut self, number: u64, largest: Option<u64>) {
        let later = largest.map_or(0, |largest| largest.saturating_sub(number));
        if later > 0 && self.is_block && self.late.is_none() {
            self.late = Some(Box::default());
        }
        let Some(late) = &mut self.late else { return };
        late.on_arrival(number);
        if let Some(largest) = largest.filter(|_| later >= PACKET_THRESHOLD) {
            late.on_overtaken(largest, later);
            self.gap_due_at = None;
        }
    }

    /// The runs that are to be in the next ack because of what arrived late, newest first; and how many more
    /// it has room for.
    fn wanted_runs(&self) -> (Vec<RangeInclusive<u64>>, usize) {
        let mut runs: Vec<RangeInclusive<u64>> = Vec::new();
        for number in self.late.iter().flat_map(|late| late.wanted()) {
            if !runs.iter().any(|run| run.contains(&number)) {
                runs.extend(self.window.run_of(number));
            }
        }
        runs.sort_unstable_by_key(|run| core::cmp::Reverse(*run.start()));
        let left = MAX_ACK_RUNS - runs.len();
        (runs, left)
    }

    fn ask(&mut self, now: Instant) {
        self.pending = self.pending.saturating_add(1);
        self.asked = self.asked.saturating_add(1);
        let is_thin = !self.thinned_by().is_zero();
        let is_for_gap = !self.was_for_gap && !is_thin && self.gap_due_at <= self.window.largest();
        let is_for_gap = is_for_gap && self.gap_due_at.take().is_some();
        self.is_due_for_gap |= is_for_gap;
        let at_once = is_for_gap
            || self.pending >= self.ack_after
            || ACKED_AT_ONCE.contains(&self.asked)
            || self.late.as_ref().is_some_and(|late| late.is_due());
        let delay = if self.is_block { self.block_ack_delay } else { MAX_ACK_DELAY };
        let due = if at_once { now } else { now + delay };
        // The earlier one, also after a clock that jumped ahead and came back.
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// Whether a datagram with acks alone may be sent. The first one always may: it answers one datagram,
    /// and the peer needs its RTT sample.
    #[must_use]
    pub const fn may_ack_alone(&self) -> bool {
        self.alone.saturating_mul(2) < self.received()
    }
}

impl Default for ReceivedDatagrams {
    fn default() -> Self {
        Self::new()
    }
}
