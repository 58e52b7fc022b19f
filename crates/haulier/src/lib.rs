//! Large blocks over UDP, quickly and reliably: a world for every player who joins.
//!
//! This is the crate to add. It gathers the machine (`haulier-proto`), the driver over real sockets
//! (`haulier-udp`, feature `udp`, on by default) and [`mod@file`], which carries files of any size as a run
//! of chunks.
//!
//! | you have | you use |
//! |---|---|
//! | nothing yet | [`udp::Driver`] round an [`ArticlePeer`]: one object, one call a frame |
//! | a transport of your own | [`ArticlePeer`]: datagrams in and out; `examples/own_transport.rs` |
//! | snapshots and inputs | [`endpoint::Endpoint`]: sent once, in fragments above the MTU, acked or lost |
//! | packets of your own | [`chunk::Sender`] and [`chunk::Receiver`]: slices and acks as plain values |
//!
//! ```
//! use haulier::udp::{Driver, Socket};
//! use haulier::{ArticleConfig, ArticlePeer};
//! use std::time::Duration;
//!
//! // The client of a game, and its server; here in one thread, on loopback.
//! let peer = || ArticlePeer::new(ArticleConfig::default());
//! let mut client = Driver::new(Socket::bind("127.0.0.1:0".parse()?)?, peer())?;
//! let mut server = Driver::new(Socket::connect(client.local_addr()?)?, peer())?;
//! server.peer.send_chunk(vec![7; 64 * 1024])?;
//! while client.peer.receiver().unread() == 0 {
//!     server.turn(Duration::from_millis(1))?;
//!     client.turn(Duration::from_millis(1))?;
//! }
//! assert_eq!(client.peer.pop_chunk().unwrap(), vec![7; 64 * 1024]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod file;

pub use haulier_proto::*;

/// The driver over real sockets.
#[cfg(feature = "udp")]
pub use haulier_udp as udp;
