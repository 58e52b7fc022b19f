//! The traces of connections that were removed before they were taken: the end is in them.
//!
//! The invariant: they are no more than [`MAX_TRACES`], whatever the clients do. With one more the oldest is
//! dropped: of an application that takes traces nothing is.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use super::ConnectionId;
use crate::connection::Trace;
use crate::connection::trace::Traced;

/// Traces that are kept: more than the connections that end between two rounds, each of some kilobytes then.
const MAX_TRACES: usize = 64;

/// The traces, oldest first.
#[derive(Debug, Default)]
pub(super) struct OldTraces(VecDeque<(ConnectionId, Box<Trace>)>);

impl OldTraces {
    /// A connection is removed.
    pub(super) fn push(&mut self, id: ConnectionId, trace: Option<Box<Trace>>) {
        let Some(trace) = trace.filter(|trace| !trace.is_empty()) else { return };
        if self.0.len() >= MAX_TRACES {
            self.0.pop_front();
        }
        self.0.push_back((id, trace));
    }

    /// The next event of any of them.
    pub(super) fn pop(&mut self) -> Option<(ConnectionId, Traced)> {
        loop {
            let (id, trace) = self.0.front_mut()?;
            if let Some(traced) = trace.pop() {
                return Some((*id, traced));
            }
            self.0.pop_front();
        }
    }
}
