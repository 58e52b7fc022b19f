//! The next event for the application.
//!
//! The invariant: the end of the connection is reported last, since the data that arrived before was
//! acknowledged, and the peer relies on that.

use super::{Connection, Event};
use crate::Instant;

impl Connection {
    /// The next event. Call it until it returns `None`.
    #[must_use]
    pub fn poll_event(&mut self, now: Instant) -> Option<Event> {
        if let Some(event) = self.life.poll_event() {
            return Some(event);
        }
        if let Some(event) = self.inbound.poll_event(now) {
            self.note_event(now, &event);
            return Some(event);
        }
        if self.life.is_open() && self.outbound.transfer_mut().report_want() {
            return Some(Event::ChunksWanted);
        }
        self.life.poll_end()
    }

    pub(crate) fn has_events(&self) -> bool {
        self.life.has_events()
            || self.inbound.has_events()
            || self.life.is_open() && self.outbound.transfer().has_unreported_want()
    }
}
