//! What the application hears next.
//!
//! The invariant: that the connection has ended is heard last, since what arrived before was acknowledged.

use alloc::collections::VecDeque;

use super::{Connection, Event};
use crate::Instant;

impl Connection {
    /// The next event. Call it until it returns `None`.
    #[must_use]
    pub fn poll_event(&mut self, now: Instant) -> Option<Event> {
        if core::mem::take(&mut self.is_connected_unread) {
            return Some(Event::Connected);
        }
        // The end is reported last: what arrived before it was acknowledged, and the peer relies on that.
        if !matches!(self.events.front(), None | Some(Event::Closed(_))) {
            return self.events.pop_front();
        }
        if let Some(packet) = self.packets_in.pop() {
            return Some(packet);
        }
        if let Some((channel, data)) = self.messages_in.as_mut().and_then(|it| it.pop()) {
            return Some(Event::Message { channel, data });
        }
        if let Some(block) = self.blocks_in.as_mut().and_then(|it| it.blocks.poll_event(now)) {
            let event = block.into();
            self.note_event(now, &event);
            return Some(event);
        }
        if self.state.is_open() && self.blocks_out.report_want() {
            return Some(Event::ChunksWanted);
        }
        let end = self.events.pop_front();
        if self.events.is_empty() && self.events.capacity() > 4 {
            self.events = VecDeque::new();
        }
        end
    }

    pub(crate) fn has_events(&self) -> bool {
        self.is_connected_unread
            || !self.events.is_empty()
            || self.packets_in.has_events()
            || self.messages_in.as_ref().is_some_and(|it| it.has_next())
            || self.blocks_in.as_ref().is_some_and(|it| it.blocks.has_events())
            || self.state.is_open() && self.blocks_out.has_unreported_want()
    }
}
