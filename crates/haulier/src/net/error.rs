//! What can go wrong between a handle and the network, and what to do about it.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use haulier_proto::client::ClientError;
use haulier_proto::connection::ConfigError;
use haulier_proto::credentials::{ConnectTokenError, IssueError, TicketError};

use super::race::Attempt;

/// Nothing drives a client or server any more, and nothing more will come.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The socket broke. Never for one packet, one client, full buffers, or an ICMP error.
    #[error("the socket no longer works: {0}")]
    Socket(Arc<io::Error>),
    /// The network thread panicked, or a thread that used the handle: a bug, which its message names.
    #[error("the network thread panicked")]
    Panicked,
    /// The tokio runtime that drove it was shut down.
    #[error("the tokio runtime was shut down")]
    Runtime,
    /// It is `inline`, and was awaited.
    #[error("nothing would wake the task: leave out inline(), or use poll() or wait()")]
    Inline,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The text is no ticket.
    #[error(transparent)]
    Ticket(#[from] TicketError),
    /// The text is no connect token.
    #[error(transparent)]
    Token(#[from] ConnectTokenError),
    /// There is no address to go to.
    #[error("the token does not say where the server is: set Connect::servers")]
    NoServer,
    /// `0.0.0.0`, `[::]`, or port 0.
    #[error("nobody can be reached at {0}: a server listens there; name an address of its host")]
    Unspecified(SocketAddr),
    /// A link-local address without the interface that it belongs to.
    #[error("{0} exists on every interface: say which one, as SocketAddrV6::scope_id")]
    NoScope(SocketAddr),
    /// The configuration makes no client.
    #[error(transparent)]
    Config(#[from] ClientError),
    /// The system gives no socket, no thread or no random bytes.
    #[error("no socket to the server: {0}")]
    Io(#[from] io::Error),
    /// `on_tokio` was called outside of a runtime.
    #[error(
        "there is no tokio runtime here: call connect() inside of one, or leave out on_tokio()"
    )]
    NoRuntime,
    /// Every address was asked, to no avail.
    #[error("not connected: {}", join(.0))]
    Failed(Vec<Attempt>),
    /// Nothing drives the client any more.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

fn join(attempts: &[Attempt]) -> String {
    let failed = attempts.iter().filter_map(|attempt| {
        attempt.error.as_ref().map(|error| format!("{}: {error}", attempt.server))
    });
    failed.collect::<Vec<_>>().join("; ")
}

impl From<Infallible> for ConnectError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The system gives no socket there, no thread or no random bytes.
    #[error("cannot listen: {0}")]
    Io(#[from] io::Error),
    /// A setting of its connections that cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `on_tokio` was called outside of a runtime.
    #[error("there is no tokio runtime here: call start() inside of one, or leave out on_tokio()")]
    NoRuntime,
}

/// Why something did not end as well as it should.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinishError {
    /// Not everything that was sent was acknowledged in time. It is closed all the same.
    #[error("not everything that was sent has arrived in time: allow more time, or send less")]
    TimedOut,
    /// Nothing drives it any more.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// Why a connect token cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IssueTokenError {
    /// The claims break a limit of [`TokenClaims`](haulier_proto::credentials::TokenClaims).
    #[error(transparent)]
    Claims(#[from] IssueError),
    /// The system gives no random bytes.
    #[error("no random bytes: {0}")]
    Random(#[from] io::Error),
}
