//! Drives haulier over real UDP sockets.
//!
//! [`Socket`] is a non-blocking socket with the buffers that a burst needs and with errors sorted into
//! those that end things and those that do not. [`Driver`] runs one [`ArticlePeer`] on it, in the
//! caller's thread: each [`turn`](Driver::turn) receives, acts, sends, and then waits for the next
//! datagram or deadline. [`Clock`] maps the real clock to the machine's time; it is the only place that
//! reads one.
//!
//! [`ClientDriver`] and [`ServerDriver`] do the same for the ends of a connection of haulier/1; with the
//! feature `tokio` the module `aio` has both again, to be awaited. A game uses the faces over them in the
//! crate `haulier`.
//!
//! Many datagrams pass with one call, where the system has one: [`Inbox`] holds those that were received, and
//! when each arrived; [`Outbox`] those that are to be sent. A machine of one's own has both with
//! [`Socket::receive`] and [`Socket::transmit`].
//!
//! [`ArticlePeer`]: haulier_article::ArticlePeer
//!
//! ```
//! use haulier_article::{ArticleConfig, ArticlePeer};
//! use haulier_udp::{Driver, Socket};
//! use std::time::Duration;
//!
//! let server = ArticlePeer::new(ArticleConfig::default());
//! let client = ArticlePeer::new(ArticleConfig::default());
//! let mut client = Driver::new(Socket::bind("127.0.0.1:0".parse()?)?, client)?;
//! let mut server = Driver::new(Socket::connect(client.local_addr()?)?, server)?;
//! server.peer.send_chunk(vec![42; 200_000])?;
//!
//! let world = loop {
//!     server.turn(Duration::from_millis(1))?;
//!     client.turn(Duration::from_millis(1))?;
//!     if let Some(world) = client.peer.pop_chunk() {
//!         break world;
//!     }
//! };
//! assert_eq!(world.len(), 200_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "tokio")]
pub mod aio;

mod client;
mod clock;
mod driver;
mod inbox;
mod machine;
mod offload;
mod outbox;
mod server;
mod socket;
mod turn;
mod wait;

pub use client::ClientDriver;
pub use clock::Clock;
pub use driver::Driver;
pub use inbox::Inbox;
pub use machine::{has_aes, platform, seed};
pub use outbox::{Outbox, Transmitted};
pub use server::ServerDriver;
pub use socket::{BufferSizes, Received, Sent, Socket, SocketStats, WANTED_BUFFER_BYTES};
pub use wait::wait;
