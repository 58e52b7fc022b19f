//! The machine of haulier: it decides, and touches nothing.
//!
//! Time and datagrams come in; datagrams, events and a deadline go out. There is no clock, socket,
//! thread or randomness in this crate, no `unsafe`, and no panic that bytes from outside can reach. So a
//! game drives it over its own transport, a simulator over virtual time, and a seed replays every
//! decision.
//!
//! There are two wires. On haulier/1 a [`client::ClientMachine`] joins a [`server::ServerMachine`] in one round trip,
//! encrypted; blocks, packets and messages share the [`connection::Connection`]. On the articles' wire,
//! without
//! keys, are [`ArticlePeer`] for large blocks that must arrive and [`endpoint::Endpoint`] for the game's own
//! packets, which are out of date too soon to be resent. Their parts can be used alone.
//!
//! # A join
//!
//! Over a wire that loses every third datagram:
//!
//! ```
//! use core::net::SocketAddr;
//! use haulier_proto::{Batch, Instant};
//! use haulier_proto::client::{ClientMachine, ClientConfig, Credentials};
//! use haulier_proto::connection::{Block, Event};
//! use haulier_proto::crypto::Secret;
//! use haulier_proto::server::{ServerMachine, ServerConfig, ServerCredentials, ServerEvent};
//!
//! let secret = Secret::from_bytes([7; 32]); // from a ticket; so are the seeds below from the system
//! let credentials = ServerCredentials { secret: Some(secret.clone()), ..Default::default() };
//! let config = ServerConfig::new(42, credentials);
//! let mut server = ServerMachine::new(Instant::ZERO, 0, config, [1; 32]);
//! let (at, home): (SocketAddr, SocketAddr) = ("192.0.2.1:4000".parse()?, "192.0.2.2:5000".parse()?);
//! let config = ClientConfig::new(at, 42, Credentials::Secret { secret, identity: None });
//! let mut client = ClientMachine::new(Instant::ZERO, config, [2; 32])?;
//! let world = Block::new(1, vec![9; 100_000]);
//!
//! let (mut sent, mut batch) = (0, Batch::new(32));
//! let data = 'joined: loop {
//!     sent += 1; // A millisecond a round; a real driver sleeps until `poll_timeout`.
//!     let now = Instant::from_millis(sent);
//!     server.handle_timeout(now);
//!     client.handle_timeout(now);
//!     client.poll_transmit(now, &mut batch);
//!     for (_to, datagram) in batch.iter_mut() {
//!         sent += 1;
//!         if sent % 3 != 0 {
//!             // A refusal is an ordinary outcome, already counted.
//!             let _ = server.handle_datagram(now, home, datagram);
//!         }
//!     }
//!     batch.clear();
//!     while let Some((id, event)) = server.poll_event(now) {
//!         if let ServerEvent::Connecting { .. } = event {
//!             server.connection_mut(id).ok_or("gone")?.send_block(now, &world)?;
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
//! # The run loop
//!
//! Those of the server and the endpoint are on [their](server) [own pages](endpoint). [`ArticlePeer`]
//! is one end of the article's wire: a
//! chunk sender and a chunk receiver. Whatever drives it does four things in a loop:
//!
//! 1. hand in what arrived ([`handle_datagram`](ArticlePeer::handle_datagram));
//! 2. act on a passed deadline ([`handle_timeout`](ArticlePeer::handle_timeout));
//! 3. let the application speak ([`send_chunk`](ArticlePeer::send_chunk)) and listen
//!    ([`poll_event`](ArticlePeer::poll_event), [`pop_chunk`](ArticlePeer::pop_chunk));
//! 4. send everything there is ([`poll_transmit`](ArticlePeer::poll_transmit) until it says no), then
//!    sleep until [`poll_timeout`](ArticlePeer::poll_timeout) or the next datagram.
//!
//! The rule that is easily broken: after each of the first three there may be something to send, so the
//! fourth follows them all, and runs dry before the loop sleeps.
//!
//! The whole of it, over a wire that loses every third datagram:
//!
//! ```
//! use haulier_proto::{ArticleConfig, ArticlePeer, Instant};
//!
//! let mut server = ArticlePeer::new(ArticleConfig::default());
//! let mut client = ArticlePeer::new(ArticleConfig::default());
//! let world: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
//! server.send_chunk(world.clone())?;
//!
//! let (mut sent, mut datagram) = (0, Vec::new());
//! let mut carry = |now, from: &mut ArticlePeer, to: &mut ArticlePeer| {
//!     from.handle_timeout(now);
//!     while from.poll_transmit(now, &mut datagram) {
//!         sent += 1;
//!         if sent % 3 != 0 {
//!             // A refusal is an ordinary outcome, already counted: here a duplicate.
//!             let _refused = to.handle_datagram(now, &datagram);
//!         }
//!     }
//! };
//! let mut millis = 0;
//! let received = loop {
//!     let now = Instant::from_millis(millis);
//!     carry(now, &mut server, &mut client);
//!     carry(now, &mut client, &mut server);
//!     if let Some(chunk) = client.pop_chunk() {
//!         break chunk;
//!     }
//!     millis += 1; // A real driver sleeps until the earlier of the two `poll_timeout`s.
//! };
//! assert_eq!(received, world);
//! # Ok::<(), haulier_proto::chunk::SendChunkError>(())
//! ```
//!
//! # Modules
//!
//! Parts know nothing of what stands above them in this list, and each can be used alone.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod peer;

pub mod ack;
pub mod bulk;
pub mod chunk;
pub mod client;
pub mod congestion;
pub mod connection;
pub mod credentials;
pub mod crypto;
pub mod endpoint;
pub mod fragment;
pub mod message;
pub mod packet;
pub mod server;
pub mod transit;
pub mod wire;

mod pacer;
mod platform;
mod rtt;

mod drop_reason;
mod sequence;
mod sequence_buffer;

pub mod bits;
pub use haulier_core::time;

pub use drop_reason::{DropCounts, DropReason};
pub use haulier_core::{Batch, DatagramBuffer, FourTuple, Instant, Machine};
pub use pacer::SendBudget;
pub use packet::{MAX_PACKET_BYTES, ProtocolId};
pub use peer::{ArticleConfig, ArticlePeer, Event};
pub use platform::{AesSupport, Platform};
pub use rtt::{ArticleRtt, RttEstimator, RttHistory, RttSpread};
pub use sequence::{Sequence, Sequence32, SequenceNumber, is_more_recent};
pub use sequence_buffer::SequenceBuffer;
