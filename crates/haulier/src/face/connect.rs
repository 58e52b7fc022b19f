//! What a client needs to connect, and where it has come from: a ticket, a token, or the program.
//!
//! A ticket or a token may name several addresses of a server. They are tried in their order; the next one
//! has its turn when there is no answer at one, or no place.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use haulier_proto::client::{ClientConfig, ClientError, Credentials};
use haulier_proto::connection::{CloseReason, ConnectionConfig};
use haulier_proto::credentials::{Access, ConnectToken, TextError, Ticket, TicketError};
use haulier_proto::wire::answer::RefusalCode;

/// The least time that one of several addresses is given.
const LEAST_ATTEMPT: Duration = Duration::from_secs(2);

/// What a client needs to connect: a ticket, a connect token or a [`ClientConfig`] becomes one.
///
/// ```
/// # fn main() -> Result<(), haulier::ConnectError> {
/// # let ticket = haulier::Ticket::new(
/// #     vec!["192.0.2.1:4016".parse().unwrap()], 7, haulier::Access::Open)?.to_text();
/// use haulier::Connect;
///
/// let mut connect = Connect::try_from(ticket.as_str())?.with_request("name=alice");
/// connect.connection.max_rate_bps = 5_000_000;
/// assert_eq!(connect.servers.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Connect {
    /// Where the server is, the likeliest first. They are tried in this order.
    pub servers: Vec<SocketAddr>,
    /// The number of the application's protocol, never sent; both ends must have the same.
    pub protocol_id: u64,
    /// What lets the client in.
    pub credentials: Credentials,
    /// What the application asks for, up to 400 bytes: harmless if repeated, and no secret.
    pub request: Vec<u8>,
    /// Copies of the request sent at once, 1 to 10: see [`ClientConfig::copies`]. Default 3.
    pub copies: u8,
    /// The connection. Its handshake time-out is shared by the addresses, but each has 2 s.
    pub connection: ConnectionConfig,
}

impl Connect {
    /// To this server, with the rest as it usually is.
    #[must_use]
    pub fn new(server: SocketAddr, protocol_id: u64, credentials: Credentials) -> Self {
        ClientConfig::new(server, protocol_id, credentials).into()
    }

    /// The same, asking for this: up to 400 bytes, harmless if repeated, and no secret.
    #[must_use]
    pub fn with_request(mut self, request: impl Into<Vec<u8>>) -> Self {
        self.request = request.into();
        self
    }

    /// The configuration of a client for one of the servers.
    #[must_use]
    pub fn config(&self, server: SocketAddr) -> ClientConfig {
        let mut config = ClientConfig::new(server, self.protocol_id, self.credentials.clone());
        config.request.clone_from(&self.request);
        config.copies = self.copies;
        config.connection = self.connection;
        let share = u32::try_from(self.servers.len()).unwrap_or(u32::MAX).max(1);
        if share > 1 {
            let timeout = &mut config.connection.handshake_timeout;
            *timeout = (*timeout / share).max(LEAST_ATTEMPT);
        }
        config
    }
}

impl From<ClientConfig> for Connect {
    fn from(config: ClientConfig) -> Self {
        Self {
            servers: vec![config.server],
            protocol_id: config.protocol_id,
            credentials: config.credentials,
            request: config.request,
            copies: config.copies,
            connection: config.connection,
        }
    }
}

impl From<&Ticket> for Connect {
    fn from(ticket: &Ticket) -> Self {
        let credentials = match ticket.access() {
            Access::Open => Credentials::Open,
            Access::Secret(secret) => {
                Credentials::Secret { secret: secret.clone(), identity: ticket.identity().copied() }
            }
        };
        let servers = ticket.addresses().to_vec();
        let anywhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self { servers, ..Self::new(anywhere, ticket.protocol_id(), credentials) }
    }
}

/// A token need not say where the servers are: then fill in [`Connect::servers`].
impl From<&ConnectToken> for Connect {
    fn from(token: &ConnectToken) -> Self {
        let credentials = Credentials::Token(token.clone());
        let servers = token.servers().to_vec();
        let anywhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self { servers, ..Self::new(anywhere, token.protocol_id(), credentials) }
    }
}

/// The text of a ticket (`haulier1:...`) or of a connect token (`haulier-token1:...`).
impl TryFrom<&str> for Connect {
    type Error = ConnectError;

    fn try_from(text: &str) -> Result<Self, ConnectError> {
        if text.trim_start().starts_with("haulier-token") {
            return Ok(Self::from(&ConnectToken::parse(text)?));
        }
        Ok(Self::from(&Ticket::parse(text)?))
    }
}

impl TryFrom<&String> for Connect {
    type Error = ConnectError;

    fn try_from(text: &String) -> Result<Self, ConnectError> {
        text.as_str().try_into()
    }
}

/// Why there is no client. Each says what to do about it.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The text is no ticket.
    Ticket(TicketError),
    /// The text is no connect token.
    Token(TextError),
    /// There is no address to go to.
    NoServer,
    /// The configuration makes no client.
    Config(ClientError),
    /// The system has no socket for it, or no route.
    Io(io::Error),
    /// It was tried, and ended so: only from a client that is awaited.
    Closed(CloseReason),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ticket(error) => error.fmt(f),
            Self::Token(error) => error.fmt(f),
            Self::NoServer => {
                f.write_str("the token does not say where the server is: set Connect::servers")
            }
            Self::Config(error) => error.fmt(f),
            Self::Io(error) => write!(f, "no socket to the server: {error}"),
            Self::Closed(reason) => write!(f, "not connected: {reason}"),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Ticket(error) => Some(error),
            Self::Token(error) => Some(error),
            Self::Config(error) => Some(error),
            Self::Io(error) => Some(error),
            Self::NoServer | Self::Closed(_) => None,
        }
    }
}

impl From<TicketError> for ConnectError {
    fn from(error: TicketError) -> Self {
        Self::Ticket(error)
    }
}

impl From<TextError> for ConnectError {
    fn from(error: TextError) -> Self {
        Self::Token(error)
    }
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<ClientError>()) {
            Some(&config) => Self::Config(config),
            None => Self::Io(error),
        }
    }
}

impl From<Infallible> for ConnectError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// The addresses that were not tried yet.
#[derive(Debug)]
pub(crate) struct Attempts {
    connect: Connect,
    left: VecDeque<SocketAddr>,
}

impl Attempts {
    pub(crate) fn of(connect: Connect) -> Self {
        let left = connect.servers.iter().copied().collect();
        Self { connect, left }
    }

    /// Whether what ended so may go better elsewhere.
    pub(crate) const fn may_go_on(reason: &CloseReason) -> bool {
        use RefusalCode::{Full, ShuttingDown};
        matches!(reason, CloseReason::NoAnswer | CloseReason::Refused(Full | ShuttingDown))
    }

    /// Opens a driver to the next address that has a route. `None` when none is left; the error is the last
    /// one's.
    pub(crate) fn next<D>(
        &mut self,
        open: impl Fn(ClientConfig) -> io::Result<D>,
    ) -> Option<io::Result<D>> {
        let mut last = None;
        while let Some(server) = self.left.pop_front() {
            match open(self.connect.config(server)) {
                Ok(driver) => return Some(Ok(driver)),
                Err(error) => last = Some(Err(error)),
            }
        }
        last
    }
}
