//! The errors of handles. Each message says what to do.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use haulier_proto::client::ClientError;
use haulier_proto::connection::ConfigError;
use haulier_proto::credentials::{ConnectTokenError, IssueError, TicketError};

use super::race::Attempt;

/// The driver of a client or server has ended, and there will be no more events.
///
/// # Examples
/// ```
/// use haulier::{Client, Event, NetworkError};
///
/// /// Only this ends a game's network for good; whatever a peer or a link does comes as an event.
/// fn frame(client: &Client) -> Result<Vec<Event>, NetworkError> {
///     let mut events = Vec::new();
///     while let Some(event) = client.poll()? {
///         events.push(event);
///     }
///     Ok(events)
/// }
/// # let _ = frame;
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The socket failed. A single packet or client, full buffers or an ICMP error are no reason.
    #[error("the socket no longer works: {0}")]
    Socket(Arc<io::Error>),
    /// The network thread, or a thread that used the handle, panicked: a bug; see the panic's message.
    #[error("the network thread panicked")]
    Panicked,
    /// The tokio runtime that drove it was shut down.
    #[error("the tokio runtime was shut down")]
    Runtime,
    /// An `inline` client or server was awaited.
    #[error("an inline handle cannot be awaited: leave out inline(), or use poll() or wait()")]
    Inline,
}

/// Why there is no client.
///
/// # Examples
/// ```
/// use haulier::{Client, ConnectError};
///
/// // The message says what to do; a program can tell the causes apart.
/// match Client::connect("no ticket") {
///     Err(ConnectError::Ticket(error)) => println!("copy the whole line: {error}"),
///     Err(other) => println!("{other}"),
///     Ok(_) => unreachable!("this is no ticket"),
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The text is not a ticket.
    #[error(transparent)]
    Ticket(#[from] TicketError),
    /// The text is not a connect token.
    #[error(transparent)]
    Token(#[from] ConnectTokenError),
    /// There is no server address.
    #[error("the token has no server address: set Connect::servers")]
    NoServer,
    /// `0.0.0.0`, `[::]`, or port 0.
    #[error(
        "{0} is not an address to connect to, only to listen at: use an address of the server's host"
    )]
    Unspecified(SocketAddr),
    /// A link-local address without the interface that it belongs to.
    #[error("the link-local address {0} needs an interface: set SocketAddrV6::scope_id")]
    NoScope(SocketAddr),
    /// The configuration is not valid.
    #[error(transparent)]
    Config(#[from] ClientError),
    /// The system provides no socket, no thread or no random bytes.
    #[error("cannot open a socket to the server: {0}")]
    Io(#[from] io::Error),
    /// `on_tokio` was called outside of a runtime.
    #[error(
        "there is no tokio runtime here: call connect() inside of one, or leave out on_tokio()"
    )]
    NoRuntime,
    /// Every address was tried without success.
    #[error("not connected: {}", join(.0))]
    Failed(Vec<Attempt>),
    /// The driver of the client has ended.
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
///
/// # Examples
/// ```
/// use haulier::{ListenError, Server, ServerConfig, ServerCredentials};
///
/// let mut config = ServerConfig::new(7, ServerCredentials::default().with_open_access());
/// config.connection.max_rate_bps = 0;
/// let refused = Server::bind("127.0.0.1:0", config);
/// assert!(matches!(refused, Err(ListenError::Config(_)))); // and its message names the setting
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The system provides no socket at this address, no thread or no random bytes.
    #[error("cannot listen: {0}")]
    Io(#[from] io::Error),
    /// A setting of its connections is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its credentials accept no client.
    #[error(
        "the credentials let nobody in: give ServerCredentials a secret, a token key, or open access"
    )]
    NobodyAccepted,
    /// It would accept tokens, but the system's clock was never set: expired tokens could not be recognised.
    #[error(
        "the system's clock shows a year before 2026, so it cannot be told which connect tokens have \
         expired: set the clock"
    )]
    NoTimeOfDay,
    /// `on_tokio` was called outside of a runtime.
    #[error("there is no tokio runtime here: call start() inside of one, or leave out on_tokio()")]
    NoRuntime,
    /// Several workers, and `inline` or `on_tokio`: each worker has a thread of its own.
    #[error("each worker has a thread of its own: leave out inline() or on_tokio(), or workers()")]
    WorkersWithoutThreads,
}

/// Why a client or server did not finish.
///
/// # Examples
/// ```
/// use haulier::{Client, FinishError};
/// use std::time::Duration;
///
/// fn leave(client: Client) {
///     match client.finish(Duration::from_secs(5)) {
///         Ok(reason) => println!("{reason}"),
///         Err(FinishError::TimedOut) => println!("the last words may be lost"),
///         Err(error) => println!("{error}"),
///     }
/// }
/// # let _ = leave;
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FinishError {
    /// Not everything sent was acknowledged in time. The client or server is closed nevertheless.
    #[error("not everything sent was acknowledged in time: allow more time, or send less")]
    TimedOut,
    /// Its driver has ended.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// Why a connect token cannot be made.
///
/// # Examples
/// ```
/// use haulier::{IssueTokenError, TokenClaims, TokenKey, TokenServers, issue_token, random_secret};
///
/// let key = TokenKey { id: 1, key: random_secret()? };
/// let claims = TokenClaims::new(60, 60, TokenServers::Every); // it would expire at once
/// assert!(matches!(issue_token(&key, 7, &claims), Err(IssueTokenError::Claims(_))));
/// # Ok::<(), std::io::Error>(())
/// ```
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
