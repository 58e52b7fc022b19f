//! What a game holds in its hand: a client and a server over real sockets. The page docs/RUNNER.md describes
//! how they work.

mod asking;
mod client;
mod connect;
mod driver;
mod error;
mod handle;
#[cfg(feature = "tokio")]
mod on_tokio;
mod race;
mod secrets;
mod server;
mod serving;
mod shared;
mod thread;

pub use client::Client;
pub use connect::Connect;
pub use error::{ConnectError, FinishError, IssueTokenError, ListenError, NetworkError};
pub use race::{Attempt, AttemptError};
pub use secrets::{issue_token, random_secret};
pub use server::{Listen, Server};

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use haulier_proto::AesSupport;

/// The longest sleep: the waits of some systems count milliseconds in 31 bits.
const LONG: Duration = Duration::from_secs(3600);

/// In the place of an address that is not known.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// How this machine encrypts AES.
fn aes() -> AesSupport {
    if haulier_udp::has_aes() { AesSupport::Hardware } else { AesSupport::Software }
}
