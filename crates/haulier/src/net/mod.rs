//! Handles for a game: a client and a server over real sockets. docs/RUNNER.md describes how they work.

mod asking;
mod blocks;
mod client;
mod connect;
mod driver;
mod error;
mod error_kind;
mod gateway;
mod handle;
#[cfg(feature = "tokio")]
mod on_tokio;
mod race;
mod secrets;
mod server;
mod serving;
mod shared;
mod sinks;
mod team;
mod thread;

pub use client::Client;
pub use connect::Connect;
pub use error::{ConnectError, FinishError, IssueTokenError, ListenError, NetworkError};
pub use gateway::{Gateway, GatewayError, GatewayPeer, GatewayPeerConfig, GatewayStats, Heard};
pub use race::{Attempt, AttemptError};
pub use secrets::{issue_token, random_secret};
pub use server::{Listen, Server};

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use haulier_proto::AesSupport;
use haulier_proto::connection::ConnectionConfig;

/// The longest sleep: some systems count waits as milliseconds in 31 bits.
const LONG: Duration = Duration::from_secs(3600);

/// Stands for an unknown address.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// These settings over this system's sockets, unless the application has set them: the largest datagram is
/// what they can send without being split by IP, and the receive buffer what the system grants.
fn over_sockets(connection: ConnectionConfig) -> ConnectionConfig {
    let (mut over, default) = (connection, ConnectionConfig::default());
    if connection.max_datagram_bytes == default.max_datagram_bytes {
        over.max_datagram_bytes = haulier_udp::max_datagram_bytes();
    }
    if connection.receive_buffer_bytes == default.receive_buffer_bytes {
        over.receive_buffer_bytes = haulier_udp::receive_buffer_bytes();
    }
    over
}

/// Whether this machine has AES instructions.
fn aes() -> AesSupport {
    if haulier_udp::has_aes() { AesSupport::Hardware } else { AesSupport::Software }
}
