//! Where the traces of a client or server go: to sinks, in the driver's round.
//!
//! The invariant: a sink is called without the lock of the machines, so that the application can call them
//! meanwhile. Without sinks no event is taken, and `poll_trace` returns them.

use std::sync::{Arc, Mutex};

#[cfg(feature = "tracing")]
use haulier_proto::connection::ConnectionConfig;
#[cfg(feature = "tracing")]
use haulier_proto::connection::trace::TraceLevel;
use haulier_proto::connection::trace::Traced;
use haulier_proto::server::ConnectionId;

use crate::trace::TraceSink;

/// The sinks of a client, or of all workers of a server.
#[derive(Clone, Default)]
pub(crate) struct Sinks(Vec<Arc<Mutex<dyn TraceSink>>>);

haulier_core::debug_as! { Sinks: |sinks| count = sinks.0.len() }

impl Sinks {
    pub(crate) fn push(&mut self, sink: impl TraceSink + 'static) {
        self.0.push(Arc::new(Mutex::new(sink)));
    }

    /// Adds what a subscriber of `tracing` wants, and sets the settings of connections to it.
    #[cfg(feature = "tracing")]
    pub(crate) fn add_spans(&mut self, connection: &mut ConnectionConfig) {
        let wanted = crate::trace::Spans::wanted();
        if wanted > TraceLevel::Off {
            connection.trace = connection.trace.max(wanted);
            self.push(crate::trace::Spans::new());
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Hands these events to each.
    pub(crate) fn write(&self, taken: &[(Option<ConnectionId>, Traced)]) {
        if taken.is_empty() {
            return;
        }
        for sink in &self.0 {
            // One that has panicked is not called again.
            let Ok(mut sink) = sink.lock() else { continue };
            taken.iter().for_each(|(of, traced)| sink.write(*of, traced));
            sink.flush();
        }
    }
}
