//! Large blocks over UDP, quickly and reliably: a world for every player who joins.
//!
//! This is the crate to add. A [`Server`] lets clients in, and gives each a world of any size, packets that
//! are in time or lost, and messages that arrive; a [`Client`] joins it in one round trip, encrypted. Both
//! are handles: a network thread does the work, and a game polls, waits or awaits them.
//!
//! | you have | you use |
//! |---|---|
//! | a game loop | [`Client`] and [`Server`]: `poll()` once a frame, or `wait()`; feature `udp`, default |
//! | tasks | the same two: `next_event().await`, with any executor |
//! | no thread to spare | [`Connect::inline`] and [`Listen::inline`]; `on_tokio`, feature `tokio` |
//! | a transport: Steam, WebRTC, QUIC | [`proto`]: a `ClientMachine`, a `ServerMachine` |
//! | a loop of your own over sockets | [`udp::Runner`] round one of these machines |
//! | a matchmaker | [`issue_token`]: a [`ConnectToken`] lets one player join |
//! | friends who play on one server | [`Ticket`]: a line to copy, [`Server::ticket`] makes it |
//! | files and directories | the crate `haulier-files`, and its example `mods.rs` |
//! | a world that opens while it loads | [`Delivery::Chunks`], `prefer_range`: `examples/stream_world.rs` |
//! | one file, by hand | [`mod@file`]: any size, as a run of chunks |
//! | a look at a connection: each datagram, keys, measures | [`mod@trace`] |
//! | the wire of the articles | the crate `haulier-article`, whole and alone; no encryption |
//!
//! What a game uses is here at the top. What an engineer of protocols uses is one level down, in [`proto`]
//! and [`udp`].
//!
//! A join, both sides of it in one thread; `docs/FIRST-JOIN.md` has the two programs:
//!
//! ```
//! use haulier::{Block, Client, CloseCode, Event};
//! use haulier::{Server, ServerConfig, ServerCredentials, ServerEvent};
//! use std::time::Duration;
//!
//! let credentials = ServerCredentials::default().with_secret(haulier::random_secret()?);
//! let server = Server::bind("127.0.0.1:0", ServerConfig::new(7, credentials))?;
//! let ticket = server.ticket(&[server.local_addr()])?.ok_or("the server has a secret")?;
//! let world = Block::new(1, vec![7; 500_000]); // hashed once, whoever gets it
//!
//! let client = Client::connect(&ticket)?; // or its text: "haulier1:..."
//! let data = 'joined: loop {
//!     while let Some((id, event)) = server.poll()? {
//!         if let ServerEvent::Connecting { .. } = event {
//!             if server.send_block(id, &world).is_err() {
//!                 server.close(id, CloseCode::NOT_ACCEPTED, "your limit is below our world");
//!             }
//!         }
//!     }
//!     while let Some(event) = client.wait(Duration::from_millis(1))? {
//!         if let Event::Block { data, .. } = event {
//!             break 'joined data;
//!         }
//!     }
//! };
//! assert_eq!(data, world.data());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(
    not(feature = "udp"),
    allow(rustdoc::broken_intra_doc_links, reason = "the front page names what needs sockets")
)]

pub mod file;
pub mod trace;

#[cfg(feature = "udp")]
mod net;

/// What data is sent as: it is shared, and never copied. A `Vec<u8>`, a `String` and a literal become it by
/// themselves; of a slice that is borrowed, send its `to_vec()`.
pub use bytes::Bytes;

/// The machines of haulier/1 without sockets: what a transport of one's own drives, and what [`Client`] and
/// [`Server`] are handles on.
pub use haulier_proto as proto;
/// Runners over real sockets, for machines of one's own.
#[cfg(feature = "udp")]
pub use haulier_udp as udp;

pub use haulier_proto::client::{ClientError, Credentials, WireBytes};
pub use haulier_proto::connection::{
    Block, BlockHandle, BlockMap, BlockNumber, BlockOptions, BlockProgress, BlockTree, ChunkMap,
    ChunkValue, CloseCode, CloseReason, ConfigError, ConnectionConfig, ConnectionState,
    ConnectionStats, Delivery, ErrorKind, Event, Lane, LaneError, Order, ProvideError, RefusalCode,
    SendError, SliceState, Source, Suite, TreeError, Urgency, WantedChunk,
};
pub use haulier_proto::credentials::{
    ConnectToken, ConnectTokenError, Identity, IssueError, Secret, Ticket, TicketAccess,
    TicketError, TokenClaims, TokenKey, TokenRate, TokenServers,
};
pub use haulier_proto::server::{
    ConnectionId, EarlierTokens, ServerConfig, ServerCredentials, ServerEvent, ServerLimits,
    ServerStats, TokenAudience, UnknownUplink,
};
pub use haulier_proto::{DropCounts, DropReason, Sequence};

#[cfg(feature = "udp")]
pub use net::{
    Attempt, AttemptError, Client, Connect, ConnectError, FinishError, Gateway, GatewayError,
    GatewayPeer, GatewayPeerConfig, GatewayStats, Heard, IssueTokenError, Listen, ListenError,
    NetworkError, Server, issue_token, random_secret,
};

/// The pages with programs in them: their code is compiled and run as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/OWN-TRANSPORT.md")]
#[doc = include_str!("../README.md")]
mod pages {}
