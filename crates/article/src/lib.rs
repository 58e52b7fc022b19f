//! The articles' system as a library: the page of the crate, then how to drive it.
//!
#![doc = include_str!("../README.md")]
//!
//! # The run loop
//!
//! [`ArticlePeer`] is one end of a transfer of chunks: a chunk sender and a chunk receiver. The loop of the
//! packet layer is on [its own page](endpoint). Whatever drives a peer repeats four steps:
//!
//! 1. hand in the datagrams that arrived ([`handle_datagram`](ArticlePeer::handle_datagram));
//! 2. hand in the time, if a deadline has passed ([`handle_timeout`](ArticlePeer::handle_timeout));
//! 3. let the application send ([`send_chunk`](ArticlePeer::send_chunk)) and receive
//!    ([`poll_event`](ArticlePeer::poll_event), [`pop_chunk`](ArticlePeer::pop_chunk));
//! 4. send all datagrams ([`poll_transmit`](ArticlePeer::poll_transmit), until a batch comes back that is
//!    not full), then sleep until [`poll_timeout`](ArticlePeer::poll_timeout) or the next datagram.
//!
//! Each of the first three steps may make something due, so the fourth always comes last. Forgetting it is
//! the usual mistake.
//!
//! The whole of it, over a wire that loses every third datagram:
//!
//! ```
//! use haulier_article::{ArticleConfig, ArticlePeer, Instant};
//!
//! let mut server = ArticlePeer::new(ArticleConfig::default());
//! let mut client = ArticlePeer::new(ArticleConfig::default());
//! let world: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
//! server.send_chunk(world.clone())?;
//!
//! let (mut sent, mut datagram) = (0, Vec::new());
//! let mut carry = |now, from: &mut ArticlePeer, to: &mut ArticlePeer| {
//!     from.handle_timeout(now);
//!     while from.poll_datagram(now, &mut datagram) {
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
//! # Ok::<(), haulier_article::chunk::SendChunkError>(())
//! ```
//!
//! # Modules
//!
//! Each module uses only those after it: `peer_machine`, `peer`, `endpoint`, `chunk`, `packet`, `ack`,
//! `congestion`, `rtt`, `drop_reason`, `bits`. So each can be used without those before it. What this wire
//! shares with haulier/1 is in `haulier_core`.

#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod peer;
mod peer_machine;

pub mod endpoint;

pub mod chunk;

pub mod packet;

pub mod ack;
pub mod congestion;

mod rtt;

mod drop_reason;

pub mod bits;

pub use drop_reason::{PacketDropCounts, PacketDropReason};
pub use haulier_core::{
    Batch, FourTuple, Instant, Machine, RttEstimator, Sequence, Sequence32, SequenceBuffer,
    SequenceNumber, fragment, time,
};
pub(crate) use haulier_core::{debug_as, settings};
pub use packet::{MAX_PACKET_BYTES, ProtocolId};
pub use peer::{ArticleConfig, ArticlePeer, PeerEvent};
pub use peer_machine::PeerMachine;
pub use rtt::{ArticleRtt, RttHistory, RttSpread};
