//! Clients and servers that are awaited, over tokio's sockets. Feature `tokio`.
//!
//! The same two faces as [`haulier::Client`](crate::Client) and [`haulier::Server`](crate::Server), with the
//! same machines behind them. Nothing is spawned: an end receives, sends and keeps its connection alive
//! while [`Client::next_event`] or [`Server::next_event`] is awaited, so await it in a loop, beside others in
//! `tokio::select!`. Both are cancel-safe: a future that is dropped loses nothing.
//!
//! ```
//! use haulier::aio::{Client, Server};
//! use haulier::{Block, Connect, Credentials, Event, ServerConfig, ServerCredentials, ServerEvent};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let credentials = ServerCredentials { open: true, ..ServerCredentials::default() };
//! let mut server = Server::bind("127.0.0.1:0", ServerConfig::new(7, credentials))?;
//! let address = server.local_addr()?;
//! let serve = async {
//!     let world = Block::new(1, vec![7; 100_000]);
//!     while let Some((id, event)) = server.next_event().await? {
//!         match event {
//!             ServerEvent::Connecting { .. } => drop(server.send_block(id, &world)?),
//!             ServerEvent::Connection(Event::Closed(_)) => break,
//!             _ => {}
//!         }
//!     }
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! };
//! let join = async {
//!     let mut client = Client::connect(Connect::new(address, 7, Credentials::Open)).await?;
//!     while let Some(event) = client.next_event().await? {
//!         if let Event::Block { data, .. } = event {
//!             assert_eq!(data, vec![7; 100_000]);
//!             break;
//!         }
//!     }
//!     client.finish(Duration::from_secs(5)).await?;
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! };
//! tokio::try_join!(serve, join)?;
//! # Ok(())
//! # }
//! ```

mod client;
mod server;

pub use client::Client;
pub use server::Server;
