//! How late the caller is: this much more may be sent at once.
//!
//! A machine without a network thread is called once a frame, so a slice that was due 16 ms ago is sent now.
//! The sender may then send what that time allows, up to [`MAX_LATE`]. The invariant: a caller that calls at
//! the requested deadline is never late, and lateness has no effect on it.

use crate::tuning::TICK;
use crate::tuning::lateness::MAX_LATE;
use crate::units::Span;
use haulier_core::Instant;

/// When the caller was last called, and how late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lateness {
    /// When the next slice was due, as of the last call or the first input since; `None` while none was.
    due_at: Option<Instant>,
    called_at: Instant,
    /// How late the last call was.
    late: Span,
}

impl Lateness {
    pub(super) const fn new() -> Self {
        Self { due_at: None, called_at: Instant::ZERO, late: Span::ZERO }
    }

    /// The sender is called at `now`.
    pub(super) fn on_call(&mut self, now: Instant) {
        // A clock that went back begins anew.
        if now >= self.called_at && now < self.called_at + TICK {
            return;
        }
        self.called_at = now;
        let late = self.due_at.map_or(Span::ZERO, |due| Span::from(now) - due.into());
        self.late = late.clamp(Span::ZERO, MAX_LATE);
    }

    /// The next slice is due then, or none is.
    pub(super) const fn set_due(&mut self, due_at: Option<Instant>) {
        self.due_at = due_at;
    }

    /// Input arrived that may make a slice due.
    pub(super) fn on_input(&mut self, now: Instant) {
        self.due_at.get_or_insert(now);
    }

    /// How late the last call was.
    pub(super) const fn get(&self) -> Span {
        self.late
    }

    /// Whether it was later than a timer may be, so that the caller is driven by frames.
    pub(super) fn is_frame(&self) -> bool {
        self.late > Span::from(TICK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1_000)
    }

    #[test]
    fn a_clock_that_goes_back_leaves_no_lateness_behind() {
        let mut lateness = Lateness::new();
        lateness.set_due(Some(at(10_000)));
        assert!(called(&mut lateness, 60_000_000) > 0.0);
        lateness.set_due(Some(at(60_001_000)));
        assert!(called(&mut lateness, 20_000).abs() < 1e-9);
    }

    fn called(lateness: &mut Lateness, micros: u64) -> f64 {
        lateness.on_call(at(micros));
        lateness.get().0
    }

    #[test]
    fn a_punctual_caller_is_never_late() {
        let mut lateness = Lateness::new();
        for ms in 1..100 {
            assert!(called(&mut lateness, ms * 1_000).abs() < 1e-9);
            lateness.set_due(Some(at((ms + 1) * 1_000)));
        }
        assert!(!lateness.is_frame());
    }

    #[test]
    fn each_batch_of_a_frame_has_the_same_lateness() {
        let mut lateness = Lateness::new();
        lateness.set_due(Some(at(10_000)));
        assert!((called(&mut lateness, 26_000) - 16_000.0).abs() < 1e-9);
        lateness.set_due(Some(at(26_000)));
        assert!((called(&mut lateness, 26_300) - 16_000.0).abs() < 1e-9);
        assert!(lateness.is_frame());
    }

    #[test]
    fn without_a_slice_to_send_the_caller_is_not_late() {
        let mut lateness = Lateness::new();
        assert!(called(&mut lateness, 5_000_000).abs() < 1e-9);
        lateness.on_input(at(5_010_000));
        lateness.on_input(at(5_015_000));
        assert!((called(&mut lateness, 5_020_000) - 10_000.0).abs() < 1e-9, "since the first");
        lateness.set_due(None);
        assert!(called(&mut lateness, 6_000_000).abs() < 1e-9);
    }

    #[test]
    fn lateness_after_a_long_stall_is_limited() {
        let mut lateness = Lateness::new();
        lateness.set_due(Some(at(0)));
        assert!((called(&mut lateness, 10_000_000) - MAX_LATE.0).abs() < 1e-9);
    }
}
