//! How late the caller is, which says how much more it may send at once.
//!
//! A machine without a network thread is called once a frame, and what could have gone 16 ms ago goes
//! now: what the time since then allows, up to [`MAX_LATE`]. The invariant: a caller that comes when it
//! is asked to is never late, and nothing changes for it.

use super::tuning::TICK;
use super::tuning::lateness::MAX_LATE;
use super::units::Span;
use crate::Instant;

/// What is known of the caller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lateness {
    /// When a slice could go, as of the last call or of the first news since; `None` while none could.
    due_at: Option<Instant>,
    called_at: Instant,
    /// Of the last call.
    late: Span,
}

impl Lateness {
    pub(super) const fn new() -> Self {
        Self { due_at: None, called_at: Instant::ZERO, late: Span::ZERO }
    }

    /// It is called.
    pub(super) fn on_call(&mut self, now: Instant) {
        if now < self.called_at + TICK {
            return;
        }
        self.called_at = now;
        let late = self.due_at.map_or(Span::ZERO, |due| Span::from(now) - due.into());
        self.late = late.clamp(Span::ZERO, MAX_LATE);
    }

    /// A slice can go from then on, or none can.
    pub(super) const fn set_due(&mut self, due_at: Option<Instant>) {
        self.due_at = due_at;
    }

    /// Something came that may let a slice go.
    pub(super) fn on_news(&mut self, now: Instant) {
        self.due_at.get_or_insert(now);
    }

    /// How late the last call was.
    pub(super) const fn get(&self) -> Span {
        self.late
    }

    /// Whether that is more than a timer may be: the caller has frames.
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

    fn called(lateness: &mut Lateness, micros: u64) -> f64 {
        lateness.on_call(at(micros));
        lateness.get().0
    }

    #[test]
    fn in_time_is_never_late() {
        let mut lateness = Lateness::new();
        for ms in 1..100 {
            assert!(called(&mut lateness, ms * 1_000).abs() < 1e-9);
            lateness.set_due(Some(at((ms + 1) * 1_000)));
        }
        assert!(!lateness.is_frame());
    }

    #[test]
    fn a_frame_is_as_late_in_each_of_its_batches() {
        let mut lateness = Lateness::new();
        lateness.set_due(Some(at(10_000)));
        assert!((called(&mut lateness, 26_000) - 16_000.0).abs() < 1e-9);
        lateness.set_due(Some(at(26_000)));
        assert!((called(&mut lateness, 26_300) - 16_000.0).abs() < 1e-9);
        assert!(lateness.is_frame());
    }

    #[test]
    fn with_nothing_to_send_nobody_is_late() {
        let mut lateness = Lateness::new();
        assert!(called(&mut lateness, 5_000_000).abs() < 1e-9);
        lateness.on_news(at(5_010_000));
        lateness.on_news(at(5_015_000));
        assert!((called(&mut lateness, 5_020_000) - 10_000.0).abs() < 1e-9, "since the first");
        lateness.set_due(None);
        assert!(called(&mut lateness, 6_000_000).abs() < 1e-9);
    }

    #[test]
    fn a_program_that_stood_still_has_no_more_than_some_frames() {
        let mut lateness = Lateness::new();
        lateness.set_due(Some(at(0)));
        assert!((called(&mut lateness, 10_000_000) - MAX_LATE.0).abs() < 1e-9);
    }
}
