//! What came: no number twice, and an ack when one is due.
//!
//! The invariant: until a datagram was verified, and handed to
//! [`on_verified`](ReceivedDatagrams::on_verified), nothing here changes.

use core::time::Duration;

use crate::{DropReason, Instant};

use super::number::expand_number;
use super::window::{Place, ReplayWindow};
use super::{ACK_SPAN, AckFrame, MAX_ACK_DELAY};

/// Datagrams that make an ack due without waiting [H-4.1b]: at 16 for one ack, acks are 1 % of the
/// bytes of a transfer.
const ACK_AFTER: u8 = 16;

/// Which of the first datagrams are acked at once: the first gives the peer its round trip, the
/// next ones its rate while it knows nothing yet.
const ACKED_AT_ONCE: [u8; 4] = [1, 4, 8, 16];

/// How long an ack waits while a block comes: a part of any round trip that matters.
const BLOCK_ACK_DELAY: Duration = Duration::from_millis(10);

/// An ack that was followed by nothing is said again after this long, in case it was lost, then after
/// twice the time, and so on.
const FIRST_REPEAT: Duration = Duration::from_millis(10);

/// How often.
const REPEATS: u32 = 5;

/// How many numbers later a datagram is lost for its sender: the ack that says so goes at once.
const REORDERING: u64 = 3;

/// The datagrams received on one connection. The module has an example.
///
/// It has no heap before number 128, and 1 KiB from there on.
#[derive(Clone, Debug)]
pub struct ReceivedDatagrams {
    window: ReplayWindow,
    largest_at: Instant,
    /// When the ack is due, if something to be acked came since the last one.
    due: Option<Instant>,
    /// A number was missing: from this one on its sender can call it lost.
    gap_due_at: Option<u64>,
    /// Datagrams, and those of acks alone that were sent for them [H-4.1c].
    received: u64,
    alone: u64,
    /// Datagrams to be acked: since the last ack, and ever. Both stop at 255.
    pending: u8,
    asked: u8,
    is_due_for_gap: bool,
    /// A block comes: acks are wanted sooner.
    is_block: bool,
    /// Acks said again since the last datagram.
    repeats: u32,
    /// The last ack was one for a gap. The next is not, or a link that loses much would get an ack
    /// for every few datagrams.
    was_for_gap: bool,
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
            received: 0,
            alone: 0,
            pending: 0,
            asked: 0,
            is_due_for_gap: false,
            is_block: false,
            repeats: 0,
            was_for_gap: false,
        }
    }

    /// The whole packet number for the 32 bits on the wire: nearest to the one after the largest.
    #[must_use]
    pub fn expand(&self, truncated: u32) -> u64 {
        let expected = self.window.largest().map_or(0, |largest| largest.saturating_add(1));
        expand_number(truncated, expected)
    }

    /// Whether a datagram of this number may be opened at all. Changes nothing.
    ///
    /// # Errors
    /// [`DropReason::Duplicate`] if it came before, [`DropReason::TooOld`] if it is more than 8191
    /// below the largest, so that nobody knows.
    pub fn check(&self, number: u64) -> Result<(), DropReason> {
        match self.window.place(number) {
            Place::Fresh => Ok(()),
            Place::Duplicate => Err(DropReason::Duplicate),
            Place::TooOld => Err(DropReason::TooOld),
        }
    }

    /// A datagram was verified, and [`check`](Self::check) had nothing against it (else it is
    /// passed over here). `ack_eliciting` says whether any frame in it is to be acknowledged.
    pub fn on_verified(&mut self, now: Instant, number: u64, ack_eliciting: bool) {
        if self.check(number).is_err() {
            return;
        }
        let largest = self.window.largest();
        self.window.insert(number);
        self.received = self.received.saturating_add(1);
        if largest < Some(number) {
            self.largest_at = now;
            let expected = largest.map_or(0, |largest| largest.saturating_add(1));
            if number > expected {
                self.gap_due_at = number.checked_add(REORDERING - 1);
            }
        }
        if ack_eliciting {
            if self.repeats > 0 {
                (self.repeats, self.due) = (0, None);
            }
            self.ask(now);
        }
    }

    /// When an ack must be sent, in a datagram of its own if there is no other: at once (a moment
    /// that has passed), or up to 20 ms after the first datagram it is for. `None` if nothing asks
    /// for one, or if acks alone would be more than one for two datagrams received, the first
    /// apart; it then goes with data, or when more came.
    #[must_use]
    pub const fn ack_due(&self) -> Option<Instant> {
        if self.may_ack_alone() { self.due } else { None }
    }

    /// The ack for a datagram that is about to be sent; `None` if nothing asks for one. Call
    /// [`on_ack_sent`](Self::on_ack_sent) once it is in.
    #[must_use]
    pub fn ack_frame(&self, now: Instant) -> Option<AckFrame> {
        self.due?;
        let largest = self.window.largest()?;
        let run_at = |below: u16, came, limit: u16| {
            let from = largest.checked_sub(u64::from(below));
            from.map_or(0, |from| self.window.run_down(from, came, limit))
        };
        let mut span = run_at(0, true, ACK_SPAN);
        let mut frame = AckFrame::new(largest, now.since(self.largest_at), span.saturating_sub(1));
        loop {
            let gap = run_at(span, false, ACK_SPAN - span);
            let run = run_at(span + gap, true, ACK_SPAN - span - gap);
            // Nothing older came, or the frame is full.
            if !frame.push_run(gap, run) {
                return Some(frame);
            }
            span += gap + run;
        }
    }

    /// Whether a block comes: acks then wait for 10 ms instead of 20, and are said again.
    pub const fn set_block(&mut self, is_block: bool) {
        self.is_block = is_block;
    }

    /// The ack went out; `alone` if its datagram had nothing to be acknowledged in it.
    pub fn on_ack_sent(&mut self, now: Instant, alone: bool) {
        self.due = None;
        if self.is_block && self.repeats < REPEATS {
            self.due = Some(now + FIRST_REPEAT * (1 << self.repeats));
            self.repeats += 1;
        }
        self.pending = 0;
        self.was_for_gap = self.is_due_for_gap;
        self.is_due_for_gap = false;
        if alone {
            self.alone = self.alone.saturating_add(1);
        }
    }

    /// A datagram of acks of another kind went out alone, without this one: it is paid for as well.
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
        self.received
    }

    /// Panics if the parts contradict each other. For tests, fuzzers and the simulator.
    pub fn check_invariants(&self) {
        let is_repeat = self.repeats > 0 && self.pending == 0;
        assert!(
            self.due.is_some() == (self.pending > 0) || is_repeat,
            "an ack is due for something"
        );
        assert_eq!(self.received > 0, self.largest().is_some(), "what came has a largest");
        assert!(!self.is_due_for_gap || self.due.is_some(), "a gap makes an ack due");
    }

    fn ask(&mut self, now: Instant) {
        self.pending = self.pending.saturating_add(1);
        self.asked = self.asked.saturating_add(1);
        let is_for_gap = !self.was_for_gap && self.gap_due_at <= self.window.largest();
        let is_for_gap = is_for_gap && self.gap_due_at.take().is_some();
        self.is_due_for_gap |= is_for_gap;
        let at_once =
            is_for_gap || self.pending >= ACK_AFTER || ACKED_AT_ONCE.contains(&self.asked);
        let delay = if self.is_block { BLOCK_ACK_DELAY } else { MAX_ACK_DELAY };
        let due = if at_once { now } else { now + delay };
        // The earlier one, also after a clock that jumped ahead and came back.
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }

    /// The first ack is free: it has one datagram to answer, and the peer waits for its round trip.
    #[must_use]
    pub const fn may_ack_alone(&self) -> bool {
        self.alone.saturating_mul(2) < self.received
    }
}

impl Default for ReceivedDatagrams {
    fn default() -> Self {
        Self::new()
    }
}
