//! Shows a running server or client of haulier.
//!
//! A [`Snapshot`] is the state of one of them at a moment: its counters, its drops by reason, and for each of
//! the first 200 connections the peer, the progress of its block, its rate, round trip, loss, memory, and the
//! map of the slices on the way. A [`Watch`] makes them. A [`View`] makes four a second and offers them to a
//! browser: a page that draws them as they come, one as JSON, and all counters as OpenMetrics. With the
//! feature `metrics`, which is on, it also publishes them to the facade of that name, for an exporter of the
//! program's own.
//!
//! Nothing here changes anything: a view answers GET and HEAD alone. It takes the server's lock once for each
//! connection, never across all. It is off until it is started, and whoever reaches its address sees the
//! players: give it a loopback address, unless a proxy that asks for a password is in front of it.
//!
//! ```
//! use haulier::{Server, ServerConfig, ServerCredentials};
//! use haulier_view::View;
//!
//! let credentials = ServerCredentials::default().with_open_access();
//! let server = Server::bind("127.0.0.1:0", ServerConfig::new(7, credentials))?;
//! let view = View::start("127.0.0.1:0".parse()?, server.clone())?;
//! println!("look at {}", view.url());
//! // ... the game ...
//! drop(view); // It holds the server open.
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The numbers at `/metrics`, with their units, are in [`METRICS`]; a dashboard of them for Grafana is
//! `docs/grafana/haulier.json` in the repository.

mod facade;
mod json;
mod metric;
mod names;
mod openmetrics;
mod snapshot;
mod subject;
mod view;
mod watch;
mod web;

pub use metric::{METRICS, Metric, MetricKind, Unit};
pub use names::Names;
pub use openmetrics::OPENMETRICS_TYPE;
pub use snapshot::{
    Amounts, ConnectionSnapshot, End, Histogram, MAX_CONNECTIONS, MAX_OPEN_CHUNKS, Snapshot, Totals,
};
pub use subject::Subject;
pub use view::View;
pub use watch::Watch;
pub use web::Site;

/// The example of the README is compiled and run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
