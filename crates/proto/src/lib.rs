//! The machines of haulier/1: the whole protocol without I/O.
//!
//! Time and datagrams come in; datagrams, events and a deadline go out. There is no clock, socket, thread or
//! randomness in this crate, no `unsafe`, and no panic that bytes from the wire can cause. So a game can run
//! it over its own transport, a simulator in virtual time, and a seed replays every decision.
//!
//! A [`client::ClientMachine`] joins a [`server::ServerMachine`] in one round trip, encrypted; blocks,
//! packets and messages share the [`connection::Connection`]. The run loop is on the page of the [server].
//! The wire of the articles, which is not encrypted, is in the crate `haulier-article`.
//!
//! # A join
//!
//! Over a link that loses every third datagram:
//!
//! ```
//! use core::net::SocketAddr;
//! use haulier_proto::{Batch, Instant, Machine};
//! use haulier_proto::client::{ClientConfig, ClientMachine, Credentials};
//! use haulier_proto::connection::{Block, CloseCode, Event};
//! use haulier_proto::credentials::Secret;
//! use haulier_proto::server::{ServerConfig, ServerCredentials, ServerEvent, ServerMachine};
//!
//! let secret = Secret::from_bytes([7; 32]); // from a ticket; so are the seeds below from the system
//! let credentials = ServerCredentials::default().with_secret(secret.clone());
//! let config = ServerConfig::new(42, credentials);
//! let mut server = ServerMachine::new(Instant::ZERO, 0, config, [1; 32])?;
//! let (at, home): (SocketAddr, SocketAddr) = ("192.0.2.1:4000".parse()?, "192.0.2.2:5000".parse()?);
//! let config = ClientConfig::new(at, 42, Credentials::Secret { secret, identity: None });
//! let mut client = ClientMachine::new(Instant::ZERO, config, [2; 32])?;
//! let world = Block::new(1, vec![9; 100_000]);
//!
//! let (mut sent, mut batch) = (0, Batch::new(32));
//! let data = 'joined: loop {
//!     sent += 1; // A round takes a millisecond; a real driver sleeps until `poll_timeout`.
//!     let now = Instant::from_millis(sent);
//!     server.handle_timeout(now);
//!     client.handle_timeout(now);
//!     client.poll_transmit(now, &mut batch);
//!     for (_to, datagram) in batch.iter_mut() {
//!         sent += 1;
//!         if sent % 3 != 0 {
//!             // A dropped datagram is ordinary, and already counted.
//!             let _ = server.handle_datagram(now, home, datagram);
//!         }
//!     }
//!     batch.clear();
//!     while let Some((id, event)) = server.poll_event(now) {
//!         if let ServerEvent::Connecting { .. } = event {
//!             let Some(connection) = server.connection_mut(id) else { continue };
//!             if connection.send_block(now, &world).is_err() {
//!                 connection.close(now, CloseCode::NOT_ACCEPTED, "your limit is below our world");
//!             }
//!         }
//!     }
//!     server.poll_transmit(now, &mut batch);
//!     for (_to, datagram) in batch.iter_mut() {
//!         sent += 1;
//!         if sent % 3 != 0 {
//!             let _ = client.handle_datagram(now, at, datagram);
//!         }
//!     }
//!     batch.clear();
//!     while let Some(event) = client.poll_event(now) {
//!         if let Event::Block { data, .. } = event {
//!             break 'joined data;
//!         }
//!     }
//! };
//! assert_eq!(data, world.data());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! Each module uses only those after it: `internals`, `server`, `client`, `connection`, `channels`,
//! `outgoing`, `credentials`, `incoming`, `wire`, `bulk`, `message`, `transit`, `crypto`, `platform`,
//! `work`, `block_map`, `fields`,
//! `drop_reason`, `stall`. What this wire shares with that of the articles is in `haulier_core`.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

pub mod client;
pub mod connection;
pub mod credentials;
#[doc(hidden)]
pub mod internals;
pub mod server;

mod block_map;
mod bulk;
mod channels;
mod crypto;
mod drop_reason;
mod fields;
mod incoming;
mod outgoing;
mod platform;
mod stall;
mod transit;
mod wire;
mod work;

pub use bulk::repair::prepare;
pub use drop_reason::{DropCounts, DropReason};
pub use haulier_core::{Batch, Ecn, FourTuple, Instant, Machine, Sequence};
pub(crate) use haulier_core::{
    BitSet, DatagramBuffer, RttEstimator, SendBudget, chunk, debug_as, fragment, settings, time,
};
pub use platform::{AesSupport, Platform};

/// The example of the README is compiled and run as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
