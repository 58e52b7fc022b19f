//! What connections write down about themselves, and where it goes.
//!
//! A connection whose settings say so ([`ConnectionConfig::trace`](crate::ConnectionConfig::trace)) has a
//! trace: each datagram and its fate, the measures of the path, states, and, only if asked for by name
//! ([`trace_secrets`](crate::ConnectionConfig::trace_secrets)), its secrets. A program takes it with
//! `poll_trace` of the client, the server or the machine, or gives it to a [`TraceSink`]: the driver then
//! hands each event over, on its own thread. `docs/VIEWS.md` says what is made of it.
//!
//! | sink | what it writes |
//! |---|---|
//! | [`KeyLog`] | the secrets of connections, for whoever has to read a capture of them |
//! | `Spans`, feature `tracing` | spans and events of that crate; clients and servers use it by themselves |
//! | `Qlog`, feature `qlog` | everything else, in the trace format of the QUIC world |
//!
//! ```
//! use haulier::trace::{TraceEvent, TraceLevel, TraceSink, Traced};
//! use haulier::{ConnectionConfig, ConnectionId, Listen, ServerConfig, ServerCredentials};
//!
//! struct Ends;
//! impl TraceSink for Ends {
//!     fn write(&mut self, of: Option<ConnectionId>, traced: &Traced) {
//!         if let TraceEvent::Closed(reason) = &traced.event {
//!             println!("{of:?} has ended at {:?}: {reason}", traced.at);
//!         }
//!     }
//! }
//!
//! let connection = ConnectionConfig::default().with_trace(TraceLevel::Life);
//! let credentials = ServerCredentials::default().with_open_access();
//! let config = ServerConfig::new(7, credentials).with_connection(connection);
//! let server = Listen::bind("127.0.0.1:0")?.with_trace_sink(Ends).start(config)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod key_log;
#[cfg(feature = "qlog")]
mod qlog;
#[cfg(feature = "tracing")]
mod spans;

pub use haulier_proto::connection::trace::{
    DatagramKind, LossReason, SliceSort, TraceDatagram, TraceEvent, TraceFrame, TraceLevel,
    TraceMeasures, TraceParameters, TraceSecret, Traced,
};
pub use key_log::{KeyLog, key_log_line};
#[cfg(feature = "qlog")]
pub use qlog::{Qlog, VantagePoint};
#[cfg(feature = "tracing")]
pub use spans::Spans;

use haulier_proto::server::ConnectionId;

/// Takes the events of traces: of a client, or of all connections of a server. It is called by the driver,
/// between rounds; while it works nothing is sent or received, so it must not take long.
pub trait TraceSink: Send {
    /// An event `of` a connection of a server, or of a client. Those of one connection are in order.
    fn write(&mut self, of: Option<ConnectionId>, traced: &Traced);

    /// All events that are available now have been written.
    fn flush(&mut self) {}
}
