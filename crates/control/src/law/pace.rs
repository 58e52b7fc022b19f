//! The rate at which slices go, and when the next one is due at it.

use super::link::Link;
use crate::units::{Bytes, Rate, Span};
use haulier_core::Instant;

/// A rate, and what was sent at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    rate: Rate,
    paced_at: Span,
    /// When the last datagram was sent.
    sent_at: Span,
}

impl Pace {
    pub(super) const fn new(rate: Rate) -> Self {
        Self { rate, paced_at: Span::ZERO, sent_at: Span::ZERO }
    }

    pub(super) const fn rate(&self) -> Rate {
        self.rate
    }

    /// Changes the rate.
    pub(super) const fn set(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// What was not used until this time is not made up for, and what was used too much is forgotten: it
    /// would be a debt of several round trips.
    pub(super) fn begin(&mut self, at: Instant) {
        self.paced_at = at.into();
    }

    /// The next slice is not due before this.
    pub(super) fn hold(&mut self, until: Span) {
        self.paced_at = self.paced_at.max(until);
    }

    /// When the last datagram was sent.
    pub(super) const fn sent_at(&self) -> Span {
        self.sent_at
    }

    /// When the next slice may be sent; `None` if now.
    pub(super) fn opens_at(&self, now: Instant, link: &Link) -> Option<Instant> {
        let at = self.paced_at.instant();
        (at > now).then(|| at.max(now + link.tick_at(self.rate)))
    }

    /// A datagram was sent. Up to `catch_up` of delayed sending is made up for.
    pub(super) fn on_sent(&mut self, now: Instant, bytes: Bytes, catch_up: Span) {
        self.sent_at = now.into();
        self.paced_at = self.paced_at.max(Span::from(now) - catch_up) + bytes / self.rate;
    }
}
